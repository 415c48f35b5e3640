/* match.h - which receive a message belongs to.
 *
 * One queue set (struct dz_mq) per context, indexed by the sender's rank in the communicator, so that a receive that
 * names its source looks at that source's list only. Posted receives with MPI_ANY_SOURCE have a list of their own;
 * numbers given at posting decide between the two. An unexpected message is in the list of its source and in the
 * list of all, which wildcard receives search.
 *
 * Always: a message and a receive that match are never both queued. Order of posting and order of arrival (per
 * source) are kept. Messages of a context that is not open here yet wait as orphans, and are handed over by dz_mq_open.
 *
 * All functions: lock held. This file knows neither transports nor requests beyond their match fields. */
#ifndef DZ_MATCH_H
#define DZ_MATCH_H

#include <stdbool.h>
#include <stdint.h>

struct dz_link { /* of a ring with a head */
    struct dz_link *prev, *next;
};
static inline void dz_link_init(struct dz_link *head) { head->prev = head->next = head; }
static inline bool dz_link_empty(const struct dz_link *head) { return head->next == head; }
static inline void dz_link_append(struct dz_link *head, struct dz_link *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}
static inline void dz_link_remove(struct dz_link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    l->prev = l->next = l;
}
#define DZ_LINKED(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* What a posted receive looks for; a part of its request. */
struct dz_want {
    struct dz_link link;
    uint64_t seq;
    int source, tag; /* rank in the communicator or MPI_ANY_SOURCE; tag or MPI_ANY_TAG */
};

/* What an arrived message is; a part of the record of an unexpected one. */
struct dz_got {
    struct dz_link of_source, of_all;
    uint64_t ctx;
    int source, tag;
};

struct dz_mq;
/* size: ranks of the communicator. NULL: no memory. */
struct dz_mq *dz_mq_open(uint64_t ctx, int size);
/* What is still queued is left alone: nobody will match it. */
void dz_mq_close(struct dz_mq *);
struct dz_mq *dz_mq_find(uint64_t ctx); /* NULL: not open here */

/* A message from source with tag: the receive it belongs to, taken out of its list, or NULL. */
struct dz_want *dz_mq_arrive(struct dz_mq *, int source, int tag);
/* Queues a message that found no receive; mq NULL: as an orphan. */
void dz_mq_unexpected(struct dz_mq *, struct dz_got *);
/* The message that a receive would get; take: out of the lists. NULL: none yet. */
struct dz_got *dz_mq_search(struct dz_mq *, int source, int tag, bool take);
void dz_mq_post(struct dz_mq *, struct dz_want *);
static inline void dz_mq_cancel(struct dz_want *w) { dz_link_remove(&w->link); }
/* Calls fn for each posted receive of every context; fn may take it out. */
void dz_mq_each_posted(void (*fn)(struct dz_want *, void *), void *arg);
/* The same for every unexpected message, orphans included. */
void dz_mq_each_unexpected(void (*fn)(struct dz_got *, void *), void *arg);

#endif
