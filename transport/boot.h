/* boot.h - who this process is, who its peers are, and how the library is set.
 *
 * dz_boot_init finds the process manager (PMIx), or decides that this is a single process. dz_boot_exchange
 * gives every rank's blob to every rank: one Put, one global fence with data, one Get a peer (a data-less fence is
 * no barrier under Slurm 22.05, so no other kind is used). Nothing here knows MPI. */
#ifndef DZ_TRANSPORT_BOOT_H
#define DZ_TRANSPORT_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dz_boot {
    int rank; /* in the job, 0..size-1 */
    int size;
    int appnum;
    int universe;  /* at least size */
    bool launched; /* false: singleton, no process manager */
    uint64_t host_id; /* equal exactly for processes that share boot, pid and IPC namespaces and /dev/shm */
    char name[256];   /* of the job, for messages */
};
extern struct dz_boot dz_boot;

/* 0; or a negative errno after dz_boot_error has been filled with one line that says what to do.
 * A launcher whose PMIx does not answer is an error, never a silent singleton. */
int dz_boot_init(void);
extern char dz_boot_error[512];

/* Publishes own[0..bytes) and collects every rank's: (*all)[r] points to rank r's blob of (*sizes)[r] bytes.
 * Collective over the job. The arrays stay valid until dz_boot_fini. */
int dz_boot_exchange(const void *own, size_t bytes, void ***all, size_t **sizes);
int dz_boot_fence(void); /* global barrier through the process manager; slow */
int dz_boot_fence_start(void); /* the same in two steps: whoever waits can go on serving its peers */
int dz_boot_fence_test(void);  /* 0: all ranks have started it; -EAGAIN: not yet; else an error */
/* Tasks of this job step that live on this node, or -1 where nobody can tell (tasks.c). */
int dz_boot_tasks_alive(void);
void dz_boot_fini(void);
/* Tells the process manager to end the job with code, then leaves the process with _exit(code). Prints nothing. */
_Noreturn void dz_boot_abort(int code);

/* ---- settings: one table (settings.c) generates parsing, checking, denizen-info's listing and the README's table */
#define DZ_SETTINGS(INT, STR)                                                                                        \
    STR(transport, TRANSPORT, "auto", "transports to use, by name, comma separated: auto, self, shm, verbs")        \
    INT(slot_ring, SLOT_RING, 16, "rounds that a sender may be ahead of its receiver, if they are short (4 to 64)")      \
    INT(slot_limit, SLOT_LIMIT, 4194304,                                                                             \
        "bytes of one epoch of a channel up to which partitions go through shared slots (two copies)")              \
    INT(chunk, CHUNK, 16384, "bytes of a pipelined piece of a large partition or message (512 to 1048576)")          \
    INT(eager, EAGER, 262144, "bytes of a plain message up to which it is sent without waiting for the receive")    \
    INT(pool, POOL, 1048576, "bytes of shared pieces a process keeps for plain messages in flight")                 \
    INT(cma, CMA, 1, "1: copy between address spaces where the kernel allows it (process_vm_readv), 0: never (0 to 1)")   \
    INT(get_min, GET_MIN, 16777216,                                                                                  \
        "bytes of a plain message from which its receiver fetches it alone; below, the sender copies it in pieces")  \
    STR(ib_device, IB_DEVICE, "", "RDMA device by name; empty: the first with a port that is up")                   \
    INT(ib_port, IB_PORT, 0, "its port, counted from 1; 0: the first that is up (0 to 255)")                        \
    INT(ib_gid_index, IB_GID_INDEX, -1, "index of the port's GID; -1: RoCE v2 and routable before others")          \
    INT(ib_timeout, IB_TIMEOUT, 15,                                                                                  \
        "RDMA: local ACK timeout of a packet, 4.096 us x 2^n; the device asks 7 times before the peer is dead (1 to 31)") \
    INT(connect_timeout, CONNECT_TIMEOUT, 600, "RDMA: seconds that a peer may take to answer the first message (1 to 86400)") \
    INT(ib_packed, IB_PACKED, 32, "RDMA: bytes of a partition up to which its words carry the epoch too (0 to 64)")  \
    INT(ib_slot, IB_SLOT, 1024, "RDMA: bytes of a partition up to which it lands in library memory, not in the receive buffer") \
    STR(ib_notice, IB_NOTICE, "imm", "RDMA: how a longer partition is announced: imm (immediate data) or word (second write)") \
    INT(spin, SPIN, -1, "polls before a waiting rank gives its core away; -1: many where cores suffice, few else")  \
    INT(progress_thread, PROGRESS_THREAD, 0,                                                                         \
        "1: a thread of each process moves what waits for its next MPI call while it computes (0 to 1)")             \
    INT(boot_timeout, BOOT_TIMEOUT, 300, "seconds that MPI_Init waits for all ranks of the job (1 to 86400)")        \
    INT(peer_timeout, PEER_TIMEOUT, 1000, "milliseconds between looks whether a silent peer is alive (10 to 3600000)")  \
    STR(fault, FAULT, "", "for tests: faults to inject, comma separated: post=N, part=N, start=N, get, open=N, dead=N") \
    STR(stats, STATS, "", "file to append this process's counters to at MPI_Finalize (%r: rank); empty: none")
#define DZ_X_INT(field, NAME, def, help) long field;
#define DZ_X_STR(field, NAME, def, help) const char *field;
struct dz_settings {
    DZ_SETTINGS(DZ_X_INT, DZ_X_STR)
};
#undef DZ_X_INT
#undef DZ_X_STR
extern struct dz_settings dz_set;
/* Reads DENIZEN_* once. A value that is no number or out of range: -EINVAL and dz_boot_error names variable and
 * value. dz_settings_unknown then lists the DENIZEN_* names that mean nothing, or is NULL: MPI_Init puts one warning
 * line on stderr (rank 0 only, after boot). */
int dz_settings_load(void);
const char *dz_settings_unknown(void);
void dz_settings_print(void *stdio_file, bool values); /* the table, for denizen-info and the README */

#endif
