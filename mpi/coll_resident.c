/* coll_resident.c - collectives that stay: a channel for every transfer of a list, and the short blocking calls that are
 * made so often that they get a list of their own.
 *
 * Binding makes one partitioned request of one partition a transfer, on the second context and the operation's tag, in
 * the order of the list. Requests match in order of their making, as the messages of a blocking operation do, so what
 * one rank's list sends to another meets what that rank's list receives.
 *
 * A blocking call is looked up by its shape: what it does, how many bytes a rank has, and with what operation, root and
 * kind of type. All ranks make the same calls on a communicator, so all ranks' tables go through the same states: the
 * FIRST_USES calls of a shape go the usual way, the next one binds a list that works on memory of its own, and from
 * then on a call copies in, runs a round, and copies out. The shape that was not used for longest makes room. */
#include <errno.h>
#include <string.h>

#include "mpi/coll.h"
#include "mpi/part.h"

enum { FIRST_USES = 2, SHAPES = 16, BYTES_MAX = 4096, RANKS_MAX = 64 };

struct table {
    uint64_t calls;
    int n, last; /* shapes there are; the one found last */
    struct dz_resident shape[SHAPES];
};

/* ---- channels */
static int bind_one(struct dz_coll *c, struct dz_step *s)
{
    struct dz_part_args a = {.call = c->call, .buf = s->kind == DZ_STEP_SEND ? s->from : s->to, .parts = 1,
                             .count = (MPI_Count)s->count, .type = s->type, .peer = s->peer, .tag = c->tag,
                             .comm = c->comm, .coll = 1};
    dz_lock();
    int rc = s->kind == DZ_STEP_SEND ? dz_psend_create(&a, &s->transfer) : dz_precv_create(&a, &s->transfer);
    dz_unlock();
    return rc;
}

int dz_coll_bind(struct dz_coll *c)
{
    int rc = 0;
    for (uint32_t i = 0; i < c->nsteps && !rc; i++) {
        struct dz_step *s = &c->steps[i];
        if (s->kind <= DZ_STEP_RECV && (rc = bind_one(c, s)))
            c->peer = s->peer;
    }
    return rc;
}

void dz_coll_unbind(struct dz_coll *c)
{
    if (c->mode != DZ_COLL_INIT)
        return;
    dz_lock();
    for (uint32_t i = 0; i < c->nsteps; i++) {
        struct dz_step *s = &c->steps[i];
        if (s->kind <= DZ_STEP_RECV && s->transfer)
            s->transfer->ops->free(s->transfer);
        s->transfer = NULL;
    }
    dz_unlock();
}

/* ---- shapes */
static bool same(const struct dz_shape *a, const struct dz_shape *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->root == b->root && a->op == b->op && a->type == b->type;
}

static void forget(struct dz_resident *r)
{
    if (r->c)
        dz_coll_destroy(r->c);
    *r = (struct dz_resident){0};
}

/* Where a new shape goes. */
static struct dz_resident *make_room(struct table *t)
{
    if (t->n < SHAPES)
        return &t->shape[t->last = t->n++];
    t->last = 0;
    for (int i = 1; i < SHAPES; i++)
        if (t->shape[i].last_use < t->shape[t->last].last_use)
            t->last = i;
    forget(&t->shape[t->last]);
    return &t->shape[t->last];
}

static struct dz_resident *look_up(struct table *t, const struct dz_shape *shape)
{
    if (t->n && same(&t->shape[t->last].shape, shape))
        return &t->shape[t->last];
    for (int i = 0; i < t->n; i++)
        if (same(&t->shape[i].shape, shape))
            return &t->shape[t->last = i];
    struct dz_resident *r = make_room(t);
    r->shape = *shape;
    return r;
}

struct dz_resident *dz_resident_find(const struct dz_how *how, struct dz_comm *comm, const struct dz_shape *shape)
{
    struct table *t = comm->resident;
    if (how->mode != DZ_COLL_BLOCKING || comm->size == 1 || comm->size > RANKS_MAX || shape->bytes > BYTES_MAX ||
        (shape->op && !shape->op->predefined))
        return NULL;
    if (!t && !(t = comm->resident = calloc(1, sizeof *t)))
        return NULL; /* the other ranks' lists will wait for us in vain: as good as any end without memory */
    struct dz_resident *r = look_up(t, shape);
    r->last_use = ++t->calls;
    return r->uses++ < FIRST_USES ? NULL : r;
}

struct dz_coll *dz_resident_open(struct dz_resident *r, const struct dz_how *how, struct dz_comm *comm, size_t in,
                                 size_t out)
{
    struct dz_how often = {how->call, DZ_COLL_INIT, NULL, NULL};
    struct dz_coll *c = dz_coll_open(&often, comm, NULL);
    if (!c)
        return NULL;
    r->in = dz_coll_alloc(c, in);
    r->out = dz_coll_alloc(c, out);
    if (r->in && r->out)
        return c;
    dz_coll_destroy(c);
    dz_raise_errno(comm, -ENOMEM, how->call, NULL);
    return NULL;
}

int dz_resident_bind(struct dz_resident *r, struct dz_coll *c, int rc)
{
    struct dz_comm *comm = c->comm;
    const char *call = c->call;
    if (!rc && (rc = dz_coll_bind(c)))
        rc = dz_class_of_errno(rc);
    if (!rc) {
        r->c = c;
        return MPI_SUCCESS;
    }
    int peer = c->peer;
    dz_coll_destroy(c);
    return dz_coll_raise(comm, call, rc, peer);
}

int dz_resident_run(struct dz_resident *r, const char *call)
{
    int rc = dz_coll_round(r->c);
    return __builtin_expect(rc, 0) ? dz_coll_raise(r->c->comm, call, rc, r->c->peer) : MPI_SUCCESS;
}

void dz_resident_clear(struct dz_comm *comm)
{
    struct table *t = comm->resident;
    for (int i = 0; t && i < t->n; i++)
        forget(&t->shape[i]);
    free(t);
    comm->resident = NULL;
}
