/* main.c - denizen-perf: options, the rules of measuring (perf.h), the order of things. */
#define _GNU_SOURCE
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf.h"

struct options opt = {.pin = true};
int rank, ranks, cpus[2];
cpu_set_t inherited;

double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare_doubles);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double one_run(round_trip *fn, void *arg, long bytes)
{
    static double samples[1000];
    int n = bytes <= 65536 ? 1000 : bytes <= 262144 ? 400 : bytes <= 1048576 ? 100 : 40;
    int batch = bytes <= 8192 ? 8 : 1;
    if (opt.quick)
        n /= 5;
    for (int i = 0; i < n; i++) {
        double from = now_us();
        for (int k = 0; k < batch; k++)
            fn(arg);
        samples[i] = (now_us() - from) / (2 * batch);
    }
    return median(samples, n);
}

void measure(const char *what, long bytes, int parts, enum floor_kind kind, round_trip *fn, void *arg)
{
    double us[RUNS], floors[RUNS + 1] = {0}, ratio[RUNS] = {0};
    if (ranks != 2) {
        one_run(fn, arg, bytes);
        for (int r = 0; r < RUNS; r++)
            us[r] = one_run(fn, arg, bytes);
        if (!rank)
            report_figure(&(struct figure){.what = what, .bytes = bytes, .parts = parts, .us = median(us, RUNS)});
        return;
    }
    floor_prepare(kind, bytes, parts);
    one_run(fn, arg, bytes);
    floor_run();
    floors[0] = floor_run();
    for (int r = 0; r < RUNS; r++) {
        us[r] = one_run(fn, arg, bytes);
        floors[r + 1] = floor_run();
        ratio[r] = us[r] / ((floors[r] + floors[r + 1]) / 2);
    }
    if (rank)
        return;
    struct figure f = {.what = what, .bytes = bytes, .parts = parts, .floor_before = floors[0], .floor_after = floors[RUNS]};
    f.us = median(us, RUNS);
    f.ratio = median(ratio, RUNS);
    f.floor_us = median(floors, RUNS + 1);
    report_figure(&f);
}

static void measure_flag(void)
{
    floor_prepare(FLOOR_FLAG, 8, 1);
    floor_run();
    double runs[RUNS];
    for (int r = 0; r < RUNS; r++)
        runs[r] = floor_run();
    double us = median(runs, RUNS);
    if (!rank)
        report_figure(&(struct figure){"floor: flag", 8, 1, us, us, us, us, 1});
    for (int s = 0; s < opt.n_sizes; s++) {
        floor_prepare(FLOOR_ONE_COPY, opt.sizes[s], 1);
        floor_run();
        double one = floor_run();
        floor_prepare(FLOOR_TWO_COPIES, opt.sizes[s], 1);
        floor_run();
        double two = floor_run();
        if (rank)
            continue;
        report_figure(&(struct figure){"floor: one copy", opt.sizes[s], 1, one, one, one, one, 1});
        report_figure(&(struct figure){"floor: two copies", opt.sizes[s], 1, two, two, two, two, 1});
    }
}

void wrong_bytes(const char *what, long bytes, int parts, long at)
{
    fprintf(stderr, "denizen-perf: %s, %ld bytes in %d partitions: byte %ld is wrong at rank %d\n", what, bytes, parts, at,
            rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void fill_pattern(unsigned char *buf, long bytes, int from, int round)
{
    for (long i = 0; i < bytes; i++)
        buf[i] = pattern(from, round, i);
}

long check_pattern(const unsigned char *buf, long bytes, int from, int round)
{
    for (long i = 0; i < bytes; i++)
        if (buf[i] != pattern(from, round, i))
            return i;
    return -1;
}

void *get_buffer(long bytes, bool receive)
{
    void *p = NULL;
    if (receive && opt.alloc)
        MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &p);
    else
        p = malloc((size_t)bytes);
    if (!p) {
        fprintf(stderr, "denizen-perf: no memory for %ld bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(p, 0, (size_t)bytes); /* pages are there before anything is timed */
    return p;
}

void put_buffer(void *p, bool receive)
{
    if (receive && opt.alloc)
        MPI_Free_mem(p);
    else
        free(p);
}

/* ---- options */
static void usage(int rc)
{
    fprintf(rc ? stderr : stdout,
            "usage: mpirun -n 2 denizen-perf [options]      (allreduce, alltoall: any number of ranks)\n"
            "  --quick            a fifth of the samples, fewer sizes\n"
            "  --only LIST        of part, parrived, persistent, plain, floor, allreduce, alltoall, rate\n"
            "                     (default: all but the last three)\n"
            "  --sizes LIST       bytes, comma separated, up to 4194304\n"
            "  --parts LIST       partition counts\n"
            "  --alloc            receive buffers from MPI_Alloc_mem, beside the one-copy floor\n"
            "  --csv, --json      for machines\n"
            "  --no-pin           leave the ranks where the launcher put them\n"
            "  --startup          time from MPI_Init to the first message instead; any number of ranks\n");
    exit(rc);
}

static int numbers(const char *text, long *to, long low, long high)
{
    int n = 0;
    for (char *end; *text; text = *end == ',' ? end + 1 : end) {
        long v = strtol(text, &end, 10);
        if (end == text || (*end && *end != ',') || v < low || v > high || n == MAX_LIST) {
            fprintf(stderr, "denizen-perf: '%s' is no list of numbers from %ld to %ld\n", text, low, high);
            exit(2);
        }
        to[n++] = v;
    }
    return n;
}

static const struct section {
    const char *name;
    bool by_default, partitioned;
    void (*measure)(void);
} sections[] = {
    {"floor", true, false, measure_flag},           {"part", true, true, measure_partitioned},
    {"parrived", true, true, measure_parrived},     {"persistent", true, false, measure_persistent},
    {"plain", true, false, measure_plain},          {"allreduce", false, false, measure_allreduce},
    {"alltoall", false, false, measure_alltoall},   {"rate", false, true, measure_rate},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static bool is_word(const char *p, size_t w, const char *name)
{
    return w == strlen(name) && !memcmp(p, name, w);
}

static bool wanted(const struct section *s)
{
    if (!opt.only)
        return s->by_default;
    for (const char *p = opt.only; *p;) {
        size_t w = strcspn(p, ",");
        if (is_word(p, w, s->name))
            return true;
        p += w + (p[w] == ',');
    }
    return false;
}

/* A section that does not exist would measure nothing and look like success. */
static void check_only(void)
{
    for (const char *p = opt.only; p;) {
        size_t w = strcspn(p, ",");
        int s = 0;
        while (s < SECTIONS && !is_word(p, w, sections[s].name))
            s++;
        if (s == SECTIONS) {
            fprintf(stderr, "denizen-perf: --only: '%.*s' is none of part, parrived, persistent, plain, floor, allreduce, "
                    "alltoall, rate\n", (int)w, p);
            exit(2);
        }
        p = p[w] ? p + w + 1 : NULL;
    }
}

static void defaults(void)
{
    static const long all[] = {8, 128, 1024, 8192, 65536, 262144, 1048576, 4194304}, few[] = {8, 128, 8192, 65536, 1048576};
    static const int parts[] = {1, 2, 16, 128};
    if (!opt.n_sizes) {
        opt.n_sizes = opt.quick ? 5 : 8;
        memcpy(opt.sizes, opt.quick ? few : all, (size_t)opt.n_sizes * sizeof *all);
    }
    if (!opt.n_parts) {
        opt.n_parts = 4;
        memcpy(opt.parts, parts, sizeof parts);
    }
}

static void parse(int argc, char **argv)
{
    static const struct option longs[] = {
        {"quick", 0, 0, 'q'}, {"only", 1, 0, 'o'},  {"sizes", 1, 0, 's'},  {"parts", 1, 0, 'p'},   {"alloc", 0, 0, 'a'},
        {"csv", 0, 0, 'c'},   {"json", 0, 0, 'j'},  {"no-pin", 0, 0, 'n'}, {"startup", 0, 0, 'u'}, {"help", 0, 0, 'h'},
        {0, 0, 0, 0}};
    long list[MAX_LIST];
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'q': opt.quick = true; break;
        case 'o': opt.only = optarg; break;
        case 's': opt.n_sizes = numbers(optarg, opt.sizes, 1, MAX_SIZE); break;
        case 'p':
            opt.n_parts = numbers(optarg, list, 1, 100000);
            for (int i = 0; i < opt.n_parts; i++)
                opt.parts[i] = (int)list[i];
            break;
        case 'a': opt.alloc = true; break;
        case 'c': opt.csv = true; break;
        case 'j': opt.json = true; break;
        case 'n': opt.pin = false; break;
        case 'u': opt.startup = true; break;
        case 'h': usage(0); break;
        default: usage(2);
        }
    }
    if (optind < argc)
        usage(2);
    check_only();
    defaults();
}


/* Each rank its own CPU of those it may use; where the launcher has bound it to one, that one. */
static int pin(void)
{
    cpu_set_t one;
    if (sched_getaffinity(0, sizeof inherited, &inherited) || !opt.pin)
        return sched_getcpu();
    int want = CPU_COUNT(&inherited) > 1 ? rank % CPU_COUNT(&inherited) : 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &inherited) || want--)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return cpu;
    }
    return sched_getcpu();
}

static void startup(double began, double inited, int size)
{
    int out = 1, in = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    double mine[2] = {(inited - began) / 1e3, (now_us() - began) / 1e3}, all[2];
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf(opt.csv ? "startup_ms,%d,%.2f,%.2f\n"
               : opt.json ? "{\"what\": \"startup\", \"ranks\": %d, \"init_ms\": %.2f, \"first_message_ms\": %.2f}\n"
                          : "%d ranks: MPI_Init %.2f ms, to the first message %.2f ms\n", size, all[0], all[1]);
}

static bool only_collectives(void)
{
    for (int s = 0; s < SECTIONS; s++)
        if (wanted(&sections[s]) && sections[s].measure != measure_allreduce && sections[s].measure != measure_alltoall)
            return false;
    return true;
}

static void gather_cpus(int cpu) /* of the first two ranks */
{
    int mine[2] = {rank == 0 ? cpu : 0, rank == 1 ? cpu : 0};
    MPI_Allreduce(mine, cpus, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int provided, cpu;
    parse(argc, argv);
    bool threads = wanted(&sections[SECTIONS - 1]);
    double began = now_us();
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    double inited = now_us();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (opt.startup) {
        startup(began, inited, ranks);
        MPI_Finalize();
        return 0;
    }
    if (ranks < 2 || (ranks > 2 && !only_collectives())) {
        if (rank == 0)
            fprintf(stderr, "denizen-perf: needs 2 ranks, has %d (mpirun -n 2 denizen-perf)\n", ranks);
        MPI_Finalize();
        return 2;
    }
    cpu = pin();
    gather_cpus(cpu);
    if (rank == 0)
        report_head(provided, cpus);
    if (ranks == 2)
        floor_open();
    for (int s = 0; s < SECTIONS; s++) {
        if (!wanted(&sections[s]))
            continue;
        if (HAVE_PARTITIONED || !sections[s].partitioned)
            sections[s].measure();
        else if (rank == 0)
            fprintf(stderr, "denizen-perf: %s is left out: this MPI has no partitioned calls\n", sections[s].name);
    }
    if (ranks == 2)
        floor_close();
    if (rank == 0)
        report_tail();
    MPI_Finalize();
    return 0;
}
