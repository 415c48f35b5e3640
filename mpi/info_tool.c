/* denizen-info - how the library was built and how it is set: what to look at, and what to paste into a report; and what
 * the counters that a run has left (DENIZEN_STATS) mean. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/boot.h"
#include "transport/transport.h"

static const struct {
    const char *name, *help;
} counters[] = {
#define X(name, help) {#name, help},
    DZ_COUNTERS(X)
#undef X
};
enum { COUNTERS = sizeof counters / sizeof *counters };

static int usage(const char *name, int rc)
{
    fprintf(rc ? stderr : stdout,
            "usage: %s [--settings | --counters FILE...]\n"
            "  without an argument: version, build, settings\n"
            "  --settings: the settings alone\n"
            "  --counters: what runs have counted, from the files that DENIZEN_STATS named: sum, least and most of a rank\n",
            name);
    return rc;
}

static void build_and_version(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    MPI_Get_library_version(version, &n);
    printf("%s\nMPI          %d.%d with the partitioned calls of 4.0\ncompiler     %s\nflags        %s\n"
           "sanitizers   %s\ntransports   self, shm%s\nlibrary      %s\n\n",
           version, MPI_VERSION, MPI_SUBVERSION, DZ_BUILD_CC, DZ_BUILD_CFLAGS, DZ_BUILD_SANITIZERS,
           DZ_HAVE_VERBS ? ", verbs" : "", DZ_BUILD_LIBRARY);
}

struct sum {
    unsigned long long all, least, most, ranks;
};

/* 0, or the number of the line that is none of ours. */
static long add_file(FILE *f, struct sum *sums)
{
    char line[256], name[64];
    unsigned long long value;
    int rank, used;
    for (long n = 1; fgets(line, sizeof line, f); n++) {
        int i = 0;
        if (sscanf(line, "%d %63s %llu %n", &rank, name, &value, &used) != 3 || line[used])
            return n;
        while (i < COUNTERS && strcmp(name, counters[i].name) != 0)
            i++;
        if (i == COUNTERS)
            continue; /* another version's */
        struct sum *s = &sums[i];
        s->least = !s->ranks || value < s->least ? value : s->least;
        s->most = value > s->most ? value : s->most;
        s->all += value;
        s->ranks++;
    }
    return 0;
}

static int show_counters(const char *tool, int files, char **names)
{
    struct sum sums[COUNTERS];
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < files; i++) {
        FILE *f = fopen(names[i], "r");
        if (!f) {
            fprintf(stderr, "%s: %s cannot be read\n", tool, names[i]);
            return 1;
        }
        long bad = add_file(f, sums);
        fclose(f);
        if (bad) {
            fprintf(stderr, "%s: %s, line %ld is no counter\n", tool, names[i], bad);
            return 1;
        }
    }
    printf("%-14s %14s %14s %14s  of %llu processes\n", "counter", "sum", "least", "most", sums[0].ranks);
    for (int i = 0; i < COUNTERS; i++)
        printf("%-14s %14llu %14llu %14llu  %s\n", counters[i].name, sums[i].all, sums[i].least, sums[i].most,
               counters[i].help);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "--counters"))
        return show_counters(argv[0], argc - 2, argv + 2);
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--settings") != 0))
        return usage(argv[0], argc != 2 || strcmp(argv[1], "--help") != 0);
    if (dz_settings_load()) {
        fprintf(stderr, "%s: %s\n", argv[0], dz_boot_error);
        return 1;
    }
    if (argc == 1)
        build_and_version();
    dz_settings_print(stdout, true);
    return 0;
}
