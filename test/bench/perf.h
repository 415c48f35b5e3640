/* perf.h - what the files of denizen-perf share.
 *
 * Two ranks bounce a buffer; one way is half a round trip. A sample is the mean of `batch` round trips (one where they
 * are long), a run is the median of its samples, a figure the median of five recorded runs after one to warm up. The
 * machine's own floor for the same bytes is measured by the same rules before and after each recorded run, because
 * cores may be moved between the runs; a ratio is a run over the mean of its two floors. */
#ifndef PERF_H
#define PERF_H

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(DENIZEN_VERSION) || MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAVE_PARTITIONED 1
#else
#define HAVE_PARTITIONED 0
#endif

enum { RUNS = 5, MAX_SIZE = 4 << 20, MAX_LIST = 32 };

struct options {
    bool quick, csv, json, pin, alloc, startup;
    const char *only; /* comma-separated sections, NULL: all but rate */
    long sizes[MAX_LIST];
    int n_sizes;
    int parts[MAX_LIST];
    int n_parts;
};
extern struct options opt;
extern int rank, ranks; /* more than two: collectives only, without floors */
extern int cpus[2]; /* where the ranks are */
extern cpu_set_t inherited; /* the CPUs this rank might use before it was pinned */

/* One round trip: rank 0 sends first. */
typedef void round_trip(void *arg);

double now_us(void);
int compare_doubles(const void *, const void *);
/* Median one-way time of a run, in us; the same number of round trips on both ranks. */
double one_run(round_trip *fn, void *arg, long bytes);

/* floor.c: a mapping that both ranks share */
enum floor_kind { FLOOR_FLAG, FLOOR_ONE_COPY, FLOOR_TWO_COPIES };
void floor_open(void);
void floor_close(void);
/* Prepares the floor of bytes in `parts` pieces (each with a flag of its own where they are small); collective. */
void floor_prepare(enum floor_kind, long bytes, int parts);
double floor_run(void);

/* main.c: warm-up, recorded runs between floors, one line of the report; collective. floor: which one is the measure. */
void measure(const char *what, long bytes, int parts, enum floor_kind floor, round_trip *fn, void *arg);
void wrong_bytes(const char *what, long bytes, int parts, long at);

/* report.c */
struct figure {
    const char *what;
    long bytes;
    int parts;
    double us, floor_us, floor_before, floor_after, ratio;
};
void report_head(int provided, const int on[2]);
void report_figure(const struct figure *);
void report_rate(int threads, double marked, double arrived); /* million partitions a second */
void report_tail(void);

void measure_partitioned(void); /* part.c */
void measure_parrived(void);
void measure_rate(void);
void measure_persistent(void); /* p2p.c */
void measure_plain(void);
void measure_allreduce(void); /* coll.c */
void measure_alltoall(void);

/* The byte at i of the message that `from` sends in round `round`. */
static inline unsigned char pattern(int from, int round, long i)
{
    return (unsigned char)(from * 101 + round * 31 + i * 7 + (i >> 8));
}
void fill_pattern(unsigned char *buf, long bytes, int from, int round);
long check_pattern(const unsigned char *buf, long bytes, int from, int round); /* first wrong byte, or -1 */
void *get_buffer(long bytes, bool receive); /* receive: from MPI_Alloc_mem with --alloc */
void put_buffer(void *, bool receive);

#endif
