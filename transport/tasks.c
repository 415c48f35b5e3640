/* tasks.c - how many tasks of this job step live on this node, as the process tree shows.
 *
 * Slurm does not tell the others when a task ends before it has spoken to PMIx: they would wait in MPI_Init until
 * srun's own time limits. But every task is a child of the step's slurmstepd, which is an ancestor of ours, whatever
 * wrappers stand between. mpirun ends the job by itself and needs no such look. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/boot.h"

struct process {
    char name[64];
    char state;
    int parent;
};

static bool look_at(int pid, struct process *p)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(line, sizeof line, f);
    fclose(f);
    /* "pid (name) state parent ...", and a name may hold anything */
    char *open = ok ? strchr(line, '(') : NULL, *close = ok ? strrchr(line, ')') : NULL;
    if (!open || !close || sscanf(close + 1, " %c %d", &p->state, &p->parent) != 2)
        return false;
    *close = 0;
    snprintf(p->name, sizeof p->name, "%s", open + 1);
    return true;
}

static int step_daemon(void)
{
    struct process p;
    int pid = getppid();
    for (int depth = 0; depth < 64 && pid > 1 && look_at(pid, &p); depth++, pid = p.parent)
        if (!strcmp(p.name, "slurmstepd"))
            return pid;
    return -1;
}

/* -1: the kernel does not tell */
static int living_children(int pid, const char *thread)
{
    char path[320];
    snprintf(path, sizeof path, "/proc/%d/task/%s/children", pid, thread);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    int n = 0, child;
    struct process p;
    while (fscanf(f, "%d", &child) == 1)
        n += look_at(child, &p) && p.state != 'Z' && p.state != 'X';
    fclose(f);
    return n;
}

int dz_boot_tasks_alive(void)
{
    int daemon = step_daemon();
    if (daemon < 0)
        return -1;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", daemon);
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    int n = 0, more = 0;
    for (struct dirent *d; more >= 0 && (d = readdir(dir));)
        if (d->d_name[0] != '.' && (more = living_children(daemon, d->d_name)) > 0)
            n += more;
    closedir(dir);
    return more < 0 ? -1 : n;
}
