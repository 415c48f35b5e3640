/* match.c - posted receives and unexpected messages (match.h says what always holds). */
#include <stddef.h>
#include <stdlib.h>

#include "mpi.h"
#include "mpi/match.h"

enum { BUCKETS = 256 };

struct source {
    struct dz_link posted;     /* struct dz_want */
    struct dz_link unexpected; /* struct dz_got, of_source */
};

struct dz_mq {
    struct dz_mq *next; /* in its bucket */
    uint64_t ctx, seq;
    int size;
    struct dz_link posted_any;
    struct dz_link all; /* struct dz_got, of_all */
    struct source sources[];
};

static struct dz_mq *buckets[BUCKETS];
static struct dz_link orphans = {&orphans, &orphans}; /* struct dz_got, of_all; of_source is not linked */
static struct dz_mq *recent;                          /* most messages belong to one context */

static struct dz_mq **place(uint64_t ctx)
{
    struct dz_mq **at = &buckets[(ctx * 0x9e3779b97f4a7c15u) >> 56];
    while (*at && (*at)->ctx != ctx)
        at = &(*at)->next;
    return at;
}

struct dz_mq *dz_mq_find(uint64_t ctx)
{
    if (!recent || recent->ctx != ctx)
        recent = *place(ctx);
    return recent;
}

static bool fits(int want_source, int want_tag, int source, int tag)
{
    return (want_source == MPI_ANY_SOURCE || want_source == source) && (want_tag == MPI_ANY_TAG || want_tag == tag);
}

struct dz_mq *dz_mq_open(uint64_t ctx, int size)
{
    struct dz_mq *q = calloc(1, sizeof *q + (size_t)size * sizeof q->sources[0]);
    if (!q)
        return NULL;
    q->ctx = ctx;
    q->size = size;
    dz_link_init(&q->posted_any);
    dz_link_init(&q->all);
    for (int i = 0; i < size; i++) {
        dz_link_init(&q->sources[i].posted);
        dz_link_init(&q->sources[i].unexpected);
    }
    *place(ctx) = q;
    for (struct dz_link *l = orphans.next, *next; l != &orphans; l = next) {
        struct dz_got *g = DZ_LINKED(l, struct dz_got, of_all);
        next = l->next;
        if (g->ctx == ctx) {
            dz_link_remove(l);
            dz_mq_unexpected(q, g);
        }
    }
    return q;
}

static void orphan_all(struct dz_mq *q)
{
    while (!dz_link_empty(&q->all)) {
        struct dz_got *g = DZ_LINKED(q->all.next, struct dz_got, of_all);
        dz_link_remove(&g->of_all);
        dz_link_remove(&g->of_source);
        dz_link_append(&orphans, &g->of_all);
    }
}

void dz_mq_close(struct dz_mq *q)
{
    if (!q)
        return;
    orphan_all(q); /* the engine frees them at the end; a context is never opened twice */
    *place(q->ctx) = q->next;
    recent = NULL;
    free(q);
}

static struct dz_want *first_fit(struct dz_link *list, int source, int tag)
{
    for (struct dz_link *l = list->next; l != list; l = l->next) {
        struct dz_want *w = DZ_LINKED(l, struct dz_want, link);
        if (fits(w->source, w->tag, source, tag))
            return w;
    }
    return NULL;
}

struct dz_want *dz_mq_arrive(struct dz_mq *q, int source, int tag)
{
    struct dz_want *named = first_fit(&q->sources[source].posted, source, tag);
    struct dz_want *any = first_fit(&q->posted_any, source, tag);
    struct dz_want *w = !named || (any && any->seq < named->seq) ? any : named;
    if (w)
        dz_link_remove(&w->link);
    return w;
}

void dz_mq_unexpected(struct dz_mq *q, struct dz_got *g)
{
    dz_link_init(&g->of_source);
    dz_link_append(q ? &q->all : &orphans, &g->of_all);
    if (q)
        dz_link_append(&q->sources[g->source].unexpected, &g->of_source);
}

struct dz_got *dz_mq_search(struct dz_mq *q, int source, int tag, bool take)
{
    bool any = source == MPI_ANY_SOURCE;
    struct dz_link *list = any ? &q->all : &q->sources[source].unexpected;
    for (struct dz_link *l = list->next; l != list; l = l->next) {
        struct dz_got *g = any ? DZ_LINKED(l, struct dz_got, of_all) : DZ_LINKED(l, struct dz_got, of_source);
        if (!fits(source, tag, g->source, g->tag))
            continue;
        if (take) {
            dz_link_remove(&g->of_all);
            dz_link_remove(&g->of_source);
        }
        return g;
    }
    return NULL;
}

void dz_mq_post(struct dz_mq *q, struct dz_want *w)
{
    w->seq = ++q->seq;
    dz_link_append(w->source == MPI_ANY_SOURCE ? &q->posted_any : &q->sources[w->source].posted, &w->link);
}

static void each_want(struct dz_link *list, void (*fn)(struct dz_want *, void *), void *arg)
{
    for (struct dz_link *l = list->next, *next; l != list; l = next) {
        next = l->next;
        fn(DZ_LINKED(l, struct dz_want, link), arg);
    }
}

void dz_mq_each_posted(void (*fn)(struct dz_want *, void *), void *arg)
{
    for (int b = 0; b < BUCKETS; b++)
        for (struct dz_mq *q = buckets[b]; q; q = q->next) {
            each_want(&q->posted_any, fn, arg);
            for (int i = 0; i < q->size; i++)
                each_want(&q->sources[i].posted, fn, arg);
        }
}

static void each_got(struct dz_link *list, void (*fn)(struct dz_got *, void *), void *arg)
{
    for (struct dz_link *l = list->next, *next; l != list; l = next) {
        next = l->next;
        fn(DZ_LINKED(l, struct dz_got, of_all), arg);
    }
}

void dz_mq_each_unexpected(void (*fn)(struct dz_got *, void *), void *arg)
{
    each_got(&orphans, fn, arg);
    for (int b = 0; b < BUCKETS; b++)
        for (struct dz_mq *q = buckets[b]; q; q = q->next)
            each_got(&q->all, fn, arg);
}
