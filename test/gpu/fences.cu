/* fences.cu - what it costs to hand bytes from a kernel to another through mapped host memory, by the way the bytes are
 * ordered behind their flag. One process, no MPI: the floors and the choice that cuda/mpix_device.h rests on.
 *
 *   release      payload, then st.release.sys of the flag; ld.acquire.sys, then the payload is read
 *   threadfence  payload, __threadfence_system(), volatile flag; volatile flag, __threadfence_system(), payload
 *   cells        [8 bytes | flag] in one 16-byte store; relaxed loads until every cell has its flag: no fence at all
 *   relaxed      the flag alone, without order (only for no payload)
 *
 * Two kernels of one warp each play ping-pong. "proxy": a host thread that polls takes flag (and payload) from one
 * kernel's memory and stores them to the other's; "direct": the kernels poll the same memory. Figures: one way in us,
 * median of 1,000 round trips after 100, the median (least to most) of 5 runs. Every payload is checked, each in its
 * round; a wrong byte ends the program with 1. Usage: fences */
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "cuda/mpix_device.h"

enum { WARM = 100, ROUNDS = 1000, RUNS = 5, MAX_BYTES = 1024, WAYS = 4 };
enum way { RELEASE, THREADFENCE, CELLS, RELAXED };
static const char *const names[WAYS] = {"release", "threadfence", "cells", "relaxed"};

#define CHECK(call)                                                                                                  \
    do {                                                                                                             \
        cudaError_t rc_ = (call);                                                                                    \
        if (rc_ != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(rc_));                                             \
            exit(2);                                                                                                 \
        }                                                                                                            \
    } while (0)

/* A mailbox: payload, and the flag in a line of its own; cells use the payload's place for [8 | word] each. */
struct box {
    char data[2 * MAX_BYTES];
    uint64_t flag, pad[15];
};

__device__ static uint64_t pattern(uint64_t round, uint32_t i)
{
    return round * 0x9e3779b97f4a7c15u + i;
}

__device__ static void put(box *b, int way, uint32_t words, uint64_t round)
{
    uint32_t me = threadIdx.x;
    if (way == CELLS) {
        for (uint32_t i = me; i < words; i += 32)
            mpix_st_cell(b->data + 16 * i, pattern(round, i), round);
        return;
    }
    uint64_t *to = (uint64_t *)b->data;
    for (uint32_t i = me; i < words; i += 32)
        to[i] = pattern(round, i);
    __syncwarp();
    if (me)
        return;
    if (way == RELEASE) {
        mpix_st_release(&b->flag, round);
    } else if (way == THREADFENCE) {
        __threadfence_system();
        *(volatile uint64_t *)&b->flag = round;
    } else {
        mpix_st(&b->flag, round);
    }
}

__device__ static int get(box *b, int way, uint32_t words, uint64_t round)
{
    uint32_t me = threadIdx.x;
    int bad = 0;
    uint64_t v;
    if (way == CELLS) {
        for (uint32_t i = me; i < words; i += 32) {
            while (mpix_ld_cell(b->data + 16 * i, &v) != round)
                ;
            bad |= v != pattern(round, i);
        }
        __syncwarp();
        return bad;
    }
    if (!me) {
        if (way == RELEASE)
            while (mpix_ld_acquire(&b->flag) != round)
                ;
        else if (way == THREADFENCE)
            while (*(volatile uint64_t *)&b->flag != round)
                ;
        else
            while (mpix_ld(&b->flag) != round)
                ;
        if (way == THREADFENCE)
            __threadfence_system();
    }
    __syncwarp();
    const uint64_t *from = (const uint64_t *)b->data;
    for (uint32_t i = me; i < words; i += 32)
        bad |= from[i] != pattern(round, i);
    __syncwarp();
    return bad;
}

/* Block 0 begins, block 1 answers; times[round] in cycles of block 0's processor, span: cycles and ns of the whole. */
__global__ static void play(box *out0, box *in0, box *out1, box *in1, int way, uint32_t words, long long *times,
                            unsigned long long *span, int *wrong)
{
    int bad = 0;
    unsigned long long ns0, ns1;
    long long began = clock64();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns0));
    for (uint64_t round = 1; round <= WARM + ROUNDS; round++) {
        if (blockIdx.x == 0) {
            long long t = clock64();
            put(out0, way, words, round);
            bad |= get(in0, way, words, round);
            if (!threadIdx.x && round > WARM)
                times[round - WARM - 1] = clock64() - t;
        } else {
            bad |= get(in1, way, words, round);
            put(out1, way, words, round);
        }
    }
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns1));
    if (!threadIdx.x && !blockIdx.x) {
        span[0] = (unsigned long long)(clock64() - began);
        span[1] = ns1 - ns0;
    }
    if (bad)
        atomicExch(wrong, 1);
}

/* The host's part of a proxy: from one kernel's box to the other's, both ways. */
static void forward(box *from, box *to, int way, uint32_t words, uint64_t round)
{
    if (way == CELLS) {
        for (uint32_t i = 0; i < words; i++) {
            uint64_t v;
            while (mpix_ld_cell(from->data + 16 * i, &v) != round)
                ;
            mpix_st_cell(to->data + 16 * i, v, round);
        }
        return;
    }
    while (mpix_ld_acquire(&from->flag) != round)
        ;
    memcpy(to->data, from->data, 8 * words);
    mpix_st_release(&to->flag, round);
}

static box *boxes; /* 4 */
static long long *times;
static unsigned long long *span;
static int *wrong;

static double once(bool proxy, int way, uint32_t words)
{
    memset(boxes, 0, 4 * sizeof *boxes);
    box *out0 = boxes, *in1 = proxy ? boxes + 1 : boxes, *out1 = boxes + 2, *in0 = proxy ? boxes + 3 : boxes + 2;
    play<<<2, 32>>>(out0, in0, out1, in1, way, words, times, span, wrong);
    CHECK(cudaGetLastError());
    if (proxy)
        for (uint64_t round = 1; round <= WARM + ROUNDS; round++) {
            forward(out0, in1, way, words, round);
            forward(out1, in0, way, words, round);
        }
    CHECK(cudaDeviceSynchronize());
    if (*wrong) {
        printf("wrong bytes: %s, %s, %u bytes\n", proxy ? "proxy" : "direct", names[way], 8 * words);
        exit(1);
    }
    std::vector<long long> t(times, times + ROUNDS);
    std::nth_element(t.begin(), t.begin() + ROUNDS / 2, t.end());
    return (double)t[ROUNDS / 2] * (double)span[1] / (double)span[0] / 2000.0;
}

int main()
{
    cudaDeviceProp p;
    int driver;
    CHECK(cudaGetDeviceProperties(&p, 0));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaHostAlloc((void **)&boxes, 4 * sizeof *boxes, cudaHostAllocMapped));
    CHECK(cudaHostAlloc((void **)&times, ROUNDS * sizeof *times, cudaHostAllocMapped));
    CHECK(cudaHostAlloc((void **)&span, 2 * sizeof *span, cudaHostAllocMapped));
    CHECK(cudaHostAlloc((void **)&wrong, sizeof *wrong, cudaHostAllocMapped));
    *wrong = 0;
    printf("%s, CUDA driver %d.%d; one way, us: median (least to most) of %d runs\n\n", p.name, driver / 1000,
           driver % 1000 / 10, RUNS);
    printf("| path | payload | order | one way |\n| --- | --- | --- | --- |\n");
    static const uint32_t sizes[] = {0, 8, 16, 128, 1024};
    for (int proxy = 0; proxy < 2; proxy++)
        for (uint32_t bytes : sizes) {
            double run[WAYS][RUNS];
            for (int r = 0; r < RUNS; r++) /* in turns: what the machine does meanwhile meets all alike */
                for (int w = 0; w < WAYS; w++)
                    if (bytes ? w != RELAXED : w != CELLS)
                        run[w][r] = once(proxy, w, bytes / 8);
            for (int w = 0; w < WAYS; w++)
                if (bytes ? w != RELAXED : w != CELLS) {
                    std::sort(run[w], run[w] + RUNS);
                    printf("| %s | %u B | %s | %.2f (%.2f to %.2f) |\n", proxy ? "proxy" : "direct", bytes, names[w],
                           run[w][RUNS / 2], run[w][0], run[w][RUNS - 1]);
                }
        }
    return 0;
}
