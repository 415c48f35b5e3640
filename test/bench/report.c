/* report.c - the table for people, comma-separated values and JSON for machines. Rank 0 only. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "perf.h"

static int lines;

/* One line that may stand in a JSON string: MPICH's version has tabs and lines. */
static void tame(char *text)
{
    text[strcspn(text, "\n")] = 0;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            *text = ' ';
}

static void cpu_model(char *to, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(to, size, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (colon && !strncmp(line, "model name", 10)) {
            tame(line);
            snprintf(to, size, "%s", colon + 2);
            break;
        }
    }
    if (f)
        fclose(f);
}

void report_head(int provided, const int on[2])
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], cpu[128], date[32];
    struct utsname uts;
    int n;
    time_t now = time(NULL);
    MPI_Get_library_version(version, &n);
    tame(version);
    cpu_model(cpu, sizeof cpu);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M", localtime(&now));
    uname(&uts);
    if (opt.json)
        printf("{\"library\": \"%s\", \"host\": \"%s\", \"cpu\": \"%s\", \"kernel\": \"%s\", \"date\": \"%s\", "
               "\"cpus\": [%d, %d], \"pinned\": %s, \"thread_level\": %d,\n \"figures\": [", version, uts.nodename, cpu, uts.release,
               date, on[0], on[1], opt.pin ? "true" : "false", provided);
    else if (opt.csv)
        printf("what,bytes,partitions,us,floor_us,floor_before_us,floor_after_us,ratio\n");
    else
        printf("%s\n%s: %s, Linux %s, ranks on CPUs %d and %d%s, %s\n\n%-22s %9s %5s %11s %11s %21s %7s\n", version,
               uts.nodename, cpu, uts.release, on[0], on[1],
               !opt.pin ? " (not pinned)" : on[0] == on[1] ? " (THE SAME: figures mean nothing)" : "", date, "",
               "bytes", "parts", "one way us", "floor us", "floor before, after", "ratio");
}

void report_figure(const struct figure *f)
{
    if (opt.json)
        printf("%s\n  {\"what\": \"%s\", \"bytes\": %ld, \"partitions\": %d, \"us\": %.4f, \"floor_us\": %.4f, "
               "\"floor_before_us\": %.4f, \"floor_after_us\": %.4f, \"ratio\": %.3f}", lines ? "," : "", f->what, f->bytes,
               f->parts, f->us, f->floor_us, f->floor_before, f->floor_after, f->ratio);
    else if (opt.csv)
        printf("\"%s\",%ld,%d,%.4f,%.4f,%.4f,%.4f,%.3f\n", f->what, f->bytes, f->parts, f->us, f->floor_us, f->floor_before,
               f->floor_after, f->ratio);
    else
        printf("%-22s %9ld %5d %11.3f %11.3f %10.3f %10.3f %7.2f\n", f->what, f->bytes, f->parts, f->us, f->floor_us,
               f->floor_before, f->floor_after, f->ratio);
    fflush(stdout);
    lines++;
}

void report_rate(int threads, double marked, double arrived)
{
    if (opt.json)
        printf("%s\n  {\"what\": \"rate\", \"threads\": %d, \"marked_million_per_s\": %.3f, "
               "\"arrived_million_per_s\": %.3f}", lines ? "," : "", threads, marked, arrived);
    else if (opt.csv)
        printf("\"rate marked, million a second\",8,%d,%.3f,,,,\n"
               "\"rate arrived, million a second\",8,%d,%.3f,,,,\n", threads, marked, threads, arrived);
    else
        printf("Pready, %2d threads: %8.2f million partitions a second marked, %8.2f arrived\n", threads, marked,
               arrived);
    fflush(stdout);
    lines++;
}

void report_tail(void)
{
    if (opt.json)
        printf("\n]}\n");
}
