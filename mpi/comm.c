/* comm.c - communicators: the predefined ones, their making, sharing and end, and the calls that only look.
 *
 * A communicator is a group, two contexts (point-to-point: ctx, collectives: ctx + 1) with a matching queue each, and
 * an error handler. Contexts are unique in the job without any agreement: rank 0 of the new communicator draws the
 * number from its own counter, together with its rank in the job, and the exchange that makes the communicator carries
 * it to the others. A member may send on it while another has not come that far: the matching engine keeps messages of
 * contexts that are not open yet.
 *
 * References: one for the handle, one for each pending operation. MPI_Comm_free takes the handle away (and the
 * attributes, whose callbacks still see a whole communicator); the last reference closes the queues. Counting needs no
 * lock, the closing does: dz_comm_put is called with dz_lock held.
 *
 * World rank lists belong to the group; comm->world is the same array. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/coll.h"
#include "mpi/comm.h"
#include "mpi/errors.h"
#include "mpi/match.h"

/* ---- contexts */
enum { SELF_NUMBER = 1 }; /* number 0 of rank 0 is MPI_COMM_WORLD's */
static _Atomic uint32_t next_number = SELF_NUMBER + 1;

static uint64_t context(int world_rank, uint32_t number)
{
    return ((uint64_t)(uint32_t)world_rank << 32 | number) << 1;
}

static uint64_t new_context(void)
{
    return context(dz_boot.rank, atomic_fetch_add_explicit(&next_number, 1, memory_order_relaxed));
}

/* ---- life */
static int open_queues(struct dz_comm *c)
{
    for (int i = 0; i < 2; i++) {
        c->mq[i] = dz_mq_open(c->ctx + (uint64_t)i, c->size);
        if (!c->mq[i]) {
            if (i)
                dz_mq_close(c->mq[0]);
            return -ENOMEM;
        }
    }
    return 0;
}

/* Everything but magic and errh. Owns group on success. */
static int fill(struct dz_comm *c, struct dz_group *group, uint64_t ctx, const char *name)
{
    if (!group)
        return -ENOMEM;
    c->rank = group->rank;
    c->size = group->size;
    c->ctx = ctx;
    c->group = group;
    c->world = group->world;
    c->coll_seq = 0;
    c->attrs = c->topo = c->resident = NULL;
    snprintf(c->name, sizeof c->name, "%s", name);
    atomic_store_explicit(&c->refs, 1, memory_order_relaxed);
    dz_lock();
    int rc = open_queues(c);
    dz_unlock();
    return rc;
}

static int fill_predefined(struct dz_comm *c, struct dz_group *group, uint64_t ctx, const char *name)
{
    int rc = fill(c, group, ctx, name);
    c->predefined = true;
    c->errh = MPI_ERRORS_ARE_FATAL;
    c->magic = rc ? 0 : DZ_MAGIC_COMM;
    return rc;
}

int dz_comm_init(void)
{
    int *self = malloc(sizeof *self);
    if (!self)
        return -ENOMEM;
    *self = dz_boot.rank;
    int rc = dz_group_init();
    if (!rc)
        rc = dz_info_init();
    if (!rc)
        rc = dz_attr_init();
    if (!rc)
        rc = fill_predefined(MPI_COMM_WORLD, dz_group_make(NULL, dz_boot.size), context(0, 0), "MPI_COMM_WORLD");
    if (!rc)
        rc = fill_predefined(MPI_COMM_SELF, dz_group_make(self, 1), context(dz_boot.rank, SELF_NUMBER),
                             "MPI_COMM_SELF");
    return rc; /* a failure ends the process: nothing to undo */
}

/* The queues stay open: until the last fence, peers may still want what was sent or received on them. */
void dz_comm_fini(void)
{
    dz_attr_clear(MPI_COMM_SELF); /* what its callbacks return has nobody to go to */
    dz_resident_clear(MPI_COMM_WORLD);
}

int dz_comm_make(struct dz_comm *parent, struct dz_group *group, uint64_t ctx, struct dz_comm **out)
{
    struct dz_comm *c = calloc(1, sizeof *c);
    int rc = c ? fill(c, group, ctx, "") : -ENOMEM;
    if (rc) {
        dz_group_put(group);
        free(c);
        return rc;
    }
    dz_lock();
    c->errh = parent->errh;
    dz_errh_get(c->errh);
    dz_unlock();
    c->magic = DZ_MAGIC_COMM;
    *out = c;
    return 0;
}

void dz_comm_get(struct dz_comm *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void dz_comm_put(struct dz_comm *c)
{
    /* release: this operation is through with it; acquire: the last one sees that all are */
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1 || c->predefined)
        return;
    c->magic = 0;
    dz_mq_close(c->mq[0]);
    dz_mq_close(c->mq[1]);
    dz_group_put(c->group);
    dz_errh_put(c->errh);
    dz_topo_put(c->topo);
    free(c);
}

int dz_comm_release(struct dz_comm *comm)
{
    int rc = dz_attr_clear(comm);
    if (rc)
        return rc;
    dz_resident_clear(comm);
    dz_lock();
    dz_comm_put(comm);
    dz_unlock();
    return MPI_SUCCESS;
}

static int free_comm(const char *call, MPI_Comm *comm)
{
    int rc = dz_check_ptr(call, NULL, comm, "comm");
    if (!rc)
        rc = dz_check_comm(call, *comm);
    if (!rc && (*comm)->predefined)
        rc = dz_raise(*comm, MPI_ERR_COMM, call, "%s is predefined and stays", (*comm)->name);
    if (rc)
        return rc;
    rc = dz_comm_release(*comm);
    if (rc)
        return dz_raise(*comm, rc, call, "the delete callback of an attribute failed with %d", rc);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int PMPI_Comm_free(MPI_Comm *comm)
{
    DZ_ENTER("MPI_Comm_free");
    return free_comm("MPI_Comm_free", comm);
}
DZ_WEAK(PI_Comm_free)

/* There are no connected processes of other jobs, and pending operations keep what they need: the same as freeing. */
int PMPI_Comm_disconnect(MPI_Comm *comm)
{
    DZ_ENTER("MPI_Comm_disconnect");
    return free_comm("MPI_Comm_disconnect", comm);
}
DZ_WEAK(PI_Comm_disconnect)

/* ---- duplicates */
static int dup_comm(const char *call, struct dz_comm *comm, MPI_Comm *newcomm)
{
    struct dz_coll c;
    uint64_t ctx = comm->rank ? 0 : new_context();
    dz_coll_begin(&c, call, comm);
    int rc = dz_coll_end(&c, dz_coll_bcast(&c, &ctx, sizeof ctx, MPI_BYTE, 0));
    if (rc)
        return rc;
    struct dz_comm *made;
    dz_group_get(comm->group);
    int err = dz_comm_make(comm, comm->group, ctx, &made);
    if (err)
        return dz_raise_errno(comm, err, call, NULL);
    made->topo = dz_topo_get(comm->topo);
    rc = dz_attr_copy(comm, made);
    if (rc) {
        dz_comm_release(made);
        return dz_raise(comm, rc, call, "the copy callback of an attribute failed with %d", rc);
    }
    *newcomm = made;
    return MPI_SUCCESS;
}

static int check_new(const char *call, struct dz_comm *comm, MPI_Comm *newcomm)
{
    int rc = dz_check_comm(call, comm);
    return rc ? rc : dz_check_ptr(call, comm, newcomm, "newcomm");
}

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    DZ_ENTER("MPI_Comm_dup");
    int rc = check_new("MPI_Comm_dup", comm, newcomm);
    return rc ? rc : dup_comm("MPI_Comm_dup", comm, newcomm);
}
DZ_WEAK(PI_Comm_dup)

static int check_info(const char *call, struct dz_comm *comm, struct dz_info *info)
{
    return dz_info_ok(info) ? MPI_SUCCESS
                            : dz_raise(comm, MPI_ERR_INFO, call, "info is %p: no info object", (void *)info);
}

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    DZ_ENTER("MPI_Comm_dup_with_info");
    int rc = check_new("MPI_Comm_dup_with_info", comm, newcomm);
    if (!rc)
        rc = check_info("MPI_Comm_dup_with_info", comm, info);
    return rc ? rc : dup_comm("MPI_Comm_dup_with_info", comm, newcomm);
}
DZ_WEAK(PI_Comm_dup_with_info)

/* ---- parts by colour. Every rank says its colour and key, and a context for the case that it leads. */
struct entry {
    uint64_t ctx;
    int32_t color, key;
    int32_t rank; /* in the parent */
    int32_t pad;
};

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Makes the communicator of color from the entries of all ranks, which it may reorder. */
static int make_part(struct dz_comm *comm, struct entry *all, int color, struct dz_comm **out)
{
    int n = 0;
    for (int r = 0; r < comm->size; r++)
        if (all[r].color == color)
            all[n++] = all[r];
    qsort(all, (size_t)n, sizeof *all, by_key);
    int *world = malloc((size_t)n * sizeof *world);
    for (int i = 0; world && i < n; i++)
        world[i] = dz_world_rank(comm, all[i].rank);
    struct dz_group *group = world ? dz_group_make(world, n) : NULL;
    if (!group) {
        free(world);
        return -ENOMEM;
    }
    return dz_comm_make(comm, group, all[0].ctx, out);
}

int dz_comm_split(const char *call, struct dz_comm *comm, int color, int key, struct dz_comm **out)
{
    struct entry own = {.ctx = new_context(), .color = color, .key = key, .rank = comm->rank};
    struct entry *all = malloc((size_t)comm->size * sizeof *all);
    if (!all)
        return dz_raise_errno(comm, -ENOMEM, call, NULL);
    struct dz_coll c;
    dz_coll_begin(&c, call, comm);
    int rc = dz_coll_end(&c, dz_coll_allgather_bytes(&c, &own, all, sizeof own)), err = 0;
    *out = MPI_COMM_NULL;
    if (!rc && color != MPI_UNDEFINED)
        err = make_part(comm, all, color, out);
    free(all);
    return err ? dz_raise_errno(comm, err, call, NULL) : rc;
}

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    DZ_ENTER("MPI_Comm_split");
    int rc = check_new("MPI_Comm_split", comm, newcomm);
    if (!rc && color < 0 && color != MPI_UNDEFINED)
        rc = dz_raise(comm, MPI_ERR_ARG, "MPI_Comm_split", "color is %d", color);
    return rc ? rc : dz_comm_split("MPI_Comm_split", comm, color, key, newcomm);
}
DZ_WEAK(PI_Comm_split)

enum { LAST_SPLIT_TYPE = 13 }; /* of any release: MPI_COMM_TYPE_HW_GUIDED of Open MPI 5 */

/* Ranks of one host have its first rank as their colour. */
static int host_color(const struct dz_comm *comm)
{
    int r = 0;
    while (dz_comm_peer(comm, r)->host_id != dz_peers[dz_boot.rank].host_id)
        r++;
    return r;
}

int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm)
{
    DZ_ENTER("MPI_Comm_split_type");
    int rc = check_new("MPI_Comm_split_type", comm, newcomm);
    if (!rc)
        rc = check_info("MPI_Comm_split_type", comm, info);
    if (!rc && split_type != MPI_UNDEFINED && (split_type < MPI_COMM_TYPE_SHARED || split_type > LAST_SPLIT_TYPE))
        rc = dz_raise(comm, MPI_ERR_ARG, "MPI_Comm_split_type", "split_type is %d: no such type", split_type);
    if (rc)
        return rc;
    int color = MPI_UNDEFINED; /* also for parts of a host: its topology is not looked at */
    if (split_type == MPI_COMM_TYPE_SHARED || split_type == OMPI_COMM_TYPE_HOST)
        color = host_color(comm);
    else if (split_type == OMPI_COMM_TYPE_CLUSTER)
        color = 0;
    return dz_comm_split("MPI_Comm_split_type", comm, color, key, newcomm);
}
DZ_WEAK(PI_Comm_split_type)

/* ---- by group. The first of the group tells the others the context, down a binomial tree over the group. */
static int tell_group(struct dz_coll *c, const int *ranks, int me, int size, uint64_t *ctx)
{
    int bit = 1, rc = MPI_SUCCESS;
    while (bit < size && !(me & bit))
        bit *= 2;
    if (me)
        rc = dz_coll_recv(c, ctx, sizeof *ctx, MPI_BYTE, ranks[me - bit]);
    for (bit /= 2; !rc && bit; bit /= 2)
        if (me + bit < size)
            rc = dz_coll_send(c, ctx, sizeof *ctx, MPI_BYTE, ranks[me + bit]);
    return rc;
}

static int create(struct dz_coll *c, struct dz_group *group, const int *ranks, MPI_Comm *newcomm)
{
    struct dz_comm *made;
    uint64_t ctx = group->rank ? 0 : new_context();
    int rc = dz_coll_end(c, tell_group(c, ranks, group->rank, group->size, &ctx));
    if (rc)
        return rc;
    dz_group_get(group);
    int err = dz_comm_make(c->comm, group, ctx, &made);
    if (err)
        return dz_raise_errno(c->comm, err, c->call, NULL);
    *newcomm = made;
    return MPI_SUCCESS;
}

static int create_checked(struct dz_coll *c, struct dz_group *group, MPI_Comm *newcomm)
{
    int *ranks = dz_group_ranks_in(group, c->comm->group);
    int r = 0, rc = MPI_SUCCESS;
    if (!ranks)
        return dz_raise_errno(c->comm, -ENOMEM, c->call, NULL);
    while (r < group->size && ranks[r] >= 0)
        r++;
    if (r < group->size)
        rc = dz_raise(c->comm, MPI_ERR_GROUP, c->call, "rank %d of the group is not in the communicator", r);
    else if (group->rank == MPI_UNDEFINED)
        *newcomm = MPI_COMM_NULL;
    else
        rc = create(c, group, ranks, newcomm);
    free(ranks);
    return rc;
}

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    DZ_ENTER("MPI_Comm_create");
    int rc = check_new("MPI_Comm_create", comm, newcomm);
    if (!rc)
        rc = dz_check_group("MPI_Comm_create", comm, group, "group");
    if (rc)
        return rc;
    struct dz_coll c;
    dz_coll_begin(&c, "MPI_Comm_create", comm);
    return create_checked(&c, group, newcomm);
}
DZ_WEAK(PI_Comm_create)

int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
    DZ_ENTER("MPI_Comm_create_group");
    int rc = check_new("MPI_Comm_create_group", comm, newcomm);
    if (!rc)
        rc = dz_check_group("MPI_Comm_create_group", comm, group, "group");
    if (!rc)
        rc = dz_check_tag("MPI_Comm_create_group", comm, tag, false);
    if (rc)
        return rc;
    struct dz_coll c = {.comm = comm, .call = "MPI_Comm_create_group", .tag = DZ_COLL_TAGS | tag % DZ_COLL_TAGS,
                        .peer = -1, .mode = DZ_COLL_BLOCKING};
    return create_checked(&c, group, newcomm);
}
DZ_WEAK(PI_Comm_create_group)

/* ---- looking */
static int check_out(const char *call, struct dz_comm *comm, const void *out, const char *arg)
{
    int rc = dz_check_comm(call, comm);
    return rc ? rc : dz_check_ptr(call, comm, out, arg);
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    DZ_ENTER("MPI_Comm_rank");
    int rc = check_out("MPI_Comm_rank", comm, rank, "rank");
    if (!rc)
        *rank = comm->rank;
    return rc;
}
DZ_WEAK(PI_Comm_rank)

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    DZ_ENTER("MPI_Comm_size");
    int rc = check_out("MPI_Comm_size", comm, size, "size");
    if (!rc)
        *size = comm->size;
    return rc;
}
DZ_WEAK(PI_Comm_size)

int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
    DZ_ENTER("MPI_Comm_compare");
    int rc = dz_check_comm("MPI_Comm_compare", comm1);
    if (!rc)
        rc = check_out("MPI_Comm_compare", comm2, result, "result");
    if (rc)
        return rc;
    int same = comm1 == comm2 ? MPI_IDENT : dz_group_compare(comm1->group, comm2->group);
    if (same < 0)
        return dz_raise_errno(comm1, same, "MPI_Comm_compare", NULL);
    *result = comm1 != comm2 && same == MPI_IDENT ? MPI_CONGRUENT : same;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Comm_compare)

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    DZ_ENTER("MPI_Comm_group");
    int rc = check_out("MPI_Comm_group", comm, group, "group");
    if (rc)
        return rc;
    dz_group_get(comm->group);
    *group = comm->group;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Comm_group)

int PMPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
    DZ_ENTER("MPI_Comm_test_inter");
    int rc = check_out("MPI_Comm_test_inter", comm, flag, "flag");
    if (!rc)
        *flag = 0;
    return rc;
}
DZ_WEAK(PI_Comm_test_inter)

static int no_remote(const char *call, struct dz_comm *comm)
{
    int rc = dz_check_comm(call, comm);
    return rc ? rc : dz_raise(comm, MPI_ERR_COMM, call, "comm '%s' is no inter-communicator", comm->name);
}

int PMPI_Comm_remote_size(MPI_Comm comm, int *size)
{
    (void)size;
    DZ_ENTER("MPI_Comm_remote_size");
    return no_remote("MPI_Comm_remote_size", comm);
}
DZ_WEAK(PI_Comm_remote_size)

int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
    (void)group;
    DZ_ENTER("MPI_Comm_remote_group");
    return no_remote("MPI_Comm_remote_group", comm);
}
DZ_WEAK(PI_Comm_remote_group)

int PMPI_Comm_get_parent(MPI_Comm *parent)
{
    DZ_ENTER("MPI_Comm_get_parent");
    int rc = dz_check_ptr("MPI_Comm_get_parent", NULL, parent, "parent");
    if (!rc)
        *parent = MPI_COMM_NULL; /* no process is ever spawned */
    return rc;
}
DZ_WEAK(PI_Comm_get_parent)

int PMPI_Comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
    DZ_ENTER("MPI_Comm_get_name");
    int rc = check_out("MPI_Comm_get_name", comm, comm_name, "comm_name");
    if (!rc)
        rc = dz_check_ptr("MPI_Comm_get_name", comm, resultlen, "resultlen");
    if (rc)
        return rc;
    dz_lock();
    size_t n = strlen(comm->name);
    memcpy(comm_name, comm->name, n + 1);
    dz_unlock();
    *resultlen = (int)n;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Comm_get_name)

int PMPI_Comm_set_name(MPI_Comm comm, const char *comm_name)
{
    DZ_ENTER("MPI_Comm_set_name");
    int rc = check_out("MPI_Comm_set_name", comm, comm_name, "comm_name");
    if (rc)
        return rc;
    dz_lock();
    snprintf(comm->name, sizeof comm->name, "%s", comm_name);
    dz_unlock();
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Comm_set_name)

/* No hint is known, so none is ever in use. */
int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
    DZ_ENTER("MPI_Comm_set_info");
    int rc = dz_check_comm("MPI_Comm_set_info", comm);
    return rc ? rc : check_info("MPI_Comm_set_info", comm, info);
}
DZ_WEAK(PI_Comm_set_info)

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
    DZ_ENTER("MPI_Comm_get_info");
    int rc = check_out("MPI_Comm_get_info", comm, info_used, "info_used");
    return rc ? rc : PMPI_Info_create(info_used);
}
DZ_WEAK(PI_Comm_get_info)
