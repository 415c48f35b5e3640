/* match.c - the matching queues against the plainest matcher there is: two lists, searched from the front.
 *
 * All sequences of up to 5 operations over a small alphabet (post and arrival with two sources, two tags and the
 * wildcards), then long random ones with cancels, probes and contexts that open late. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"
#include "mpi/match.h"

enum { SOURCES = 3, MAX = 4096 };

/* The model: posted receives and unexpected messages in the order they came. */
struct entry {
    int source, tag, id;
};
static struct entry posted[MAX], arrived[MAX];
static int n_posted, n_arrived;

struct real_want {
    struct dz_want want;
    int id;
};
struct real_got {
    struct dz_got got;
    int id;
};

static int fits(int ws, int wt, int s, int t)
{
    return (ws == MPI_ANY_SOURCE || ws == s) && (wt == MPI_ANY_TAG || wt == t);
}

static struct entry *model_find(struct entry *list, int n, int source, int tag, int wanted)
{
    for (int i = 0; i < n; i++)
        if (wanted ? fits(list[i].source, list[i].tag, source, tag) : fits(source, tag, list[i].source, list[i].tag))
            return &list[i];
    return NULL;
}

static int model_take(struct entry *list, int *n, struct entry *e)
{
    int id = e ? e->id : -1;
    if (e)
        memmove(e, e + 1, (size_t)(&list[--*n] - e) * sizeof *e);
    return id;
}

static unsigned long steps;

static void check(int got, int want, const char *what)
{
    steps++;
    if (got == want)
        return;
    printf("%s: matched %d, the model says %d (step %lu)\n", what, got, want, steps);
    exit(1);
}

static void post(struct dz_mq *q, int source, int tag, int id)
{
    int want = model_take(arrived, &n_arrived, model_find(arrived, n_arrived, source, tag, 0));
    struct dz_got *g = dz_mq_search(q, source, tag, true);
    check(g ? DZ_LINKED(g, struct real_got, got)->id : -1, want, "post");
    if (g) {
        free(DZ_LINKED(g, struct real_got, got));
        return;
    }
    struct real_want *w = calloc(1, sizeof *w);
    w->want.source = source;
    w->want.tag = tag;
    w->id = id;
    dz_mq_post(q, &w->want);
    posted[n_posted++] = (struct entry){source, tag, id};
}

static void arrive(struct dz_mq *q, uint64_t ctx, int source, int tag, int id)
{
    int want = q ? model_take(posted, &n_posted, model_find(posted, n_posted, source, tag, 1)) : -1;
    struct dz_want *w = q ? dz_mq_arrive(q, source, tag) : NULL;
    check(w ? DZ_LINKED(w, struct real_want, want)->id : -1, want, "arrival");
    if (w) {
        free(DZ_LINKED(w, struct real_want, want));
        return;
    }
    struct real_got *g = calloc(1, sizeof *g);
    g->got = (struct dz_got){.ctx = ctx, .source = source, .tag = tag};
    g->id = id;
    dz_mq_unexpected(q, &g->got);
    arrived[n_arrived++] = (struct entry){source, tag, id};
}

static void probe(struct dz_mq *q, int source, int tag)
{
    struct entry *e = model_find(arrived, n_arrived, source, tag, 0);
    struct dz_got *g = dz_mq_search(q, source, tag, false);
    check(g ? DZ_LINKED(g, struct real_got, got)->id : -1, e ? e->id : -1, "probe");
}

static void free_want(struct dz_want *w, void *n)
{
    dz_mq_cancel(w);
    free(DZ_LINKED(w, struct real_want, want));
    ++*(int *)n;
}

static void free_got(struct dz_got *g, void *n)
{
    dz_link_remove(&g->of_all);
    dz_link_remove(&g->of_source);
    free(DZ_LINKED(g, struct real_got, got));
    ++*(int *)n;
}

static void clear(struct dz_mq *q)
{
    int wants = 0, gots = 0;
    dz_mq_each_posted(free_want, &wants);
    dz_mq_each_unexpected(free_got, &gots);
    check(wants, n_posted, "posted receives left");
    check(gots, n_arrived, "messages left");
    n_posted = n_arrived = 0;
    dz_mq_close(q);
}

/* Operation k of the alphabet: 9 posts ({0, 1, any} x {0, 1, any}) and 4 arrivals. */
static void apply(struct dz_mq *q, int k, int id)
{
    static const int sources[] = {0, 1, MPI_ANY_SOURCE}, tags[] = {0, 1, MPI_ANY_TAG};
    if (k < 9)
        post(q, sources[k / 3], tags[k % 3], id);
    else
        arrive(q, 1, (k - 9) / 2, (k - 9) % 2, id);
}

static void exhaustive(int length)
{
    int seq[8] = {0};
    for (;;) {
        struct dz_mq *q = dz_mq_open(1, SOURCES);
        for (int i = 0; i < length; i++)
            apply(q, seq[i], i);
        clear(q);
        int i = 0;
        while (i < length && ++seq[i] == 13)
            seq[i++] = 0;
        if (i == length)
            return;
    }
}

struct pick {
    int skip;
    struct dz_want *found;
};

static void pick_one(struct dz_want *w, void *arg)
{
    struct pick *p = arg;
    if (p->skip-- == 0)
        p->found = w;
}

static void cancel_one(void)
{
    struct pick p = {.skip = n_posted ? rand() % n_posted : 0};
    dz_mq_each_posted(pick_one, &p);
    if (!p.found)
        return;
    struct real_want *w = DZ_LINKED(p.found, struct real_want, want);
    dz_mq_cancel(p.found);
    for (int i = 0; i < n_posted; i++)
        if (posted[i].id == w->id) {
            model_take(posted, &n_posted, &posted[i]);
            break;
        }
    free(w);
}

static void long_random(unsigned seed)
{
    srand(seed);
    uint64_t ctx = seed * 2 + 100;
    struct dz_mq *q = NULL;
    for (int i = 0; i < 3000; i++) {
        if (!q && i == rand() % 50 + (i > 40 ? 0 : 60))
            q = dz_mq_open(ctx, SOURCES);
        if (!q && i > 90)
            q = dz_mq_open(ctx, SOURCES); /* what came before waited as an orphan */
        int source = rand() % (SOURCES + 1) - 1, tag = rand() % 4 - 1;
        switch (q ? rand() % 8 : 4) {
        case 0: case 1: case 2: post(q, source, tag, i); break;
        case 3: probe(q, source, tag); break;
        case 7: cancel_one(); break;
        default: arrive(q, ctx, rand() % SOURCES, rand() % 3, i);
        }
    }
    clear(q);
}

int main(void)
{
    for (int length = 1; length <= 5; length++)
        exhaustive(length);
    for (unsigned seed = 1; seed <= 200; seed++)
        long_random(seed);
    printf("%lu matches checked\n", steps);
    return 0;
}
