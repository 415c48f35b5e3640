/* group.c - groups: ordered sets of processes, named by their ranks in MPI_COMM_WORLD.
 *
 * A group never changes once it is made, so whoever wants it takes a reference: communicators share theirs with the
 * handles that MPI_Comm_group gives out. A list that is NULL stands for all ranks of the job in their order, which
 * keeps MPI_COMM_WORLD free of an array as long as the job. Every empty result is MPI_GROUP_EMPTY, which is never
 * freed.
 *
 * Always: the members are distinct, and `rank` is the own process's place among them, or MPI_UNDEFINED.
 *
 * Set operations go through a table of the job's ranks (where[world rank] = rank in the group, or -1): linear in the
 * sizes, at the price of one allocation. */
#include <errno.h>
#include <stdlib.h>

#include "mpi/comm.h"

int dz_group_init(void)
{
    struct dz_group *g = MPI_GROUP_EMPTY;
    g->magic = DZ_MAGIC_GROUP;
    g->rank = MPI_UNDEFINED;
    g->size = 0;
    g->world = NULL;
    atomic_store_explicit(&g->refs, 1, memory_order_relaxed);
    return 0;
}

struct dz_group *dz_group_make(int *world, int n)
{
    if (!n) {
        free(world);
        return MPI_GROUP_EMPTY;
    }
    struct dz_group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->magic = DZ_MAGIC_GROUP;
    g->size = n;
    g->world = world;
    g->rank = world ? MPI_UNDEFINED : dz_boot.rank;
    for (int r = 0; world && r < n; r++)
        if (world[r] == dz_boot.rank)
            g->rank = r;
    atomic_store_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void dz_group_get(struct dz_group *g)
{
    if (g != MPI_GROUP_EMPTY)
        atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
}

void dz_group_put(struct dz_group *g)
{
    /* release: this user is through with it; acquire: the last one sees that all are */
    if (!g || g == MPI_GROUP_EMPTY || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) > 1)
        return;
    g->magic = 0;
    free(g->world);
    free(g);
}

int dz_check_group(const char *call, struct dz_comm *comm, struct dz_group *g, const char *arg)
{
    if (dz_group_ok(g))
        return MPI_SUCCESS;
    if (g == MPI_GROUP_NULL)
        return dz_raise(comm, MPI_ERR_GROUP, call, "%s is MPI_GROUP_NULL", arg);
    return dz_raise(comm, MPI_ERR_GROUP, call, "%s is %p: no group, or one that was freed", arg, (void *)g);
}

/* where[world rank] = rank in g, or -1. NULL: no memory. */
static int *table_of(const struct dz_group *g)
{
    int *where = malloc((size_t)dz_boot.size * sizeof *where);
    for (int w = 0; where && w < dz_boot.size; w++)
        where[w] = -1;
    for (int r = 0; where && r < g->size; r++)
        where[dz_group_world(g, r)] = r;
    return where;
}

int dz_group_compare(const struct dz_group *a, const struct dz_group *b)
{
    if (a->size != b->size)
        return MPI_UNEQUAL;
    int r = 0;
    while (r < a->size && dz_group_world(a, r) == dz_group_world(b, r))
        r++;
    if (r == a->size)
        return MPI_IDENT;
    int *where = table_of(a);
    if (!where)
        return -ENOMEM;
    while (r < b->size && where[dz_group_world(b, r)] >= 0)
        r++;
    free(where);
    return r == b->size ? MPI_SIMILAR : MPI_UNEQUAL;
}

int *dz_group_ranks_in(const struct dz_group *g, const struct dz_group *in)
{
    int *where = table_of(in);
    int *ranks = malloc(((size_t)g->size + 1) * sizeof *ranks);
    for (int r = 0; where && ranks && r < g->size; r++)
        ranks[r] = where[dz_group_world(g, r)];
    if (!where) {
        free(ranks);
        ranks = NULL;
    }
    free(where);
    return ranks;
}

/* Hands the group of world[0..n) to the user; owns world. */
static int give(const char *call, int *world, int n, MPI_Group *out)
{
    struct dz_group *g = dz_group_make(world, n);
    if (!g) {
        free(world);
        return dz_raise_errno(NULL, -ENOMEM, call, NULL);
    }
    *out = g;
    return MPI_SUCCESS;
}

static int check_in_out(const char *call, struct dz_group *g, const void *out, const char *arg)
{
    int rc = dz_check_group(call, NULL, g, "group");
    return rc ? rc : dz_check_ptr(call, NULL, out, arg);
}

int PMPI_Group_size(MPI_Group group, int *size)
{
    DZ_ENTER("MPI_Group_size");
    int rc = check_in_out("MPI_Group_size", group, size, "size");
    if (!rc)
        *size = group->size;
    return rc;
}
DZ_WEAK(PI_Group_size)

int PMPI_Group_rank(MPI_Group group, int *rank)
{
    DZ_ENTER("MPI_Group_rank");
    int rc = check_in_out("MPI_Group_rank", group, rank, "rank");
    if (!rc)
        *rank = group->rank;
    return rc;
}
DZ_WEAK(PI_Group_rank)

int PMPI_Group_free(MPI_Group *group)
{
    DZ_ENTER("MPI_Group_free");
    int rc = dz_check_ptr("MPI_Group_free", NULL, group, "group");
    if (!rc)
        rc = dz_check_group("MPI_Group_free", NULL, *group, "*group");
    if (rc)
        return rc;
    dz_group_put(*group);
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Group_free)

static int check_two(const char *call, struct dz_group *a, struct dz_group *b, const void *out, const char *arg)
{
    int rc = dz_check_group(call, NULL, a, "group1");
    if (!rc)
        rc = dz_check_group(call, NULL, b, "group2");
    return rc ? rc : dz_check_ptr(call, NULL, out, arg);
}

int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
    DZ_ENTER("MPI_Group_compare");
    int rc = check_two("MPI_Group_compare", group1, group2, result, "result");
    if (rc)
        return rc;
    int same = dz_group_compare(group1, group2);
    if (same < 0)
        return dz_raise_errno(NULL, same, "MPI_Group_compare", NULL);
    *result = same;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Group_compare)

static int translate(const char *call, struct dz_group *a, int n, const int from[], struct dz_group *b, int to[])
{
    for (int i = 0; i < n; i++)
        if (from[i] != MPI_PROC_NULL && (from[i] < 0 || from[i] >= a->size))
            return dz_raise(NULL, MPI_ERR_RANK, call, "ranks1[%d] is %d; group1 has %d members", i, from[i], a->size);
    int *where = table_of(b);
    if (!where)
        return dz_raise_errno(NULL, -ENOMEM, call, NULL);
    for (int i = 0; i < n; i++) {
        int r = from[i] == MPI_PROC_NULL ? MPI_PROC_NULL : where[dz_group_world(a, from[i])];
        to[i] = r == -1 ? MPI_UNDEFINED : r;
    }
    free(where);
    return MPI_SUCCESS;
}

int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])
{
    static const char call[] = "MPI_Group_translate_ranks";
    DZ_ENTER(call);
    int rc = check_two(call, group1, group2, n ? (const void *)ranks2 : call, "ranks2");
    if (!rc && n < 0)
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "n is %d", n);
    if (!rc && n)
        rc = dz_check_ptr(call, NULL, ranks1, "ranks1");
    return rc || !n ? rc : translate(call, group1, n, ranks1, group2, ranks2);
}
DZ_WEAK(PI_Group_translate_ranks)

/* ---- set operations */
enum set { UNION, INTERSECTION, DIFFERENCE };

static int combine(const char *call, enum set set, struct dz_group *a, struct dz_group *b, MPI_Group *out)
{
    int rc = check_two(call, a, b, out, "newgroup");
    if (rc)
        return rc;
    int *world = malloc((size_t)(a->size + b->size + 1) * sizeof *world), n = 0;
    int *where = table_of(set == UNION ? a : b);
    if (!world || !where) {
        free(world), free(where);
        return dz_raise_errno(NULL, -ENOMEM, call, NULL);
    }
    for (int r = 0; r < a->size; r++) {
        int w = dz_group_world(a, r);
        if (set == UNION || (where[w] >= 0) == (set == INTERSECTION))
            world[n++] = w;
    }
    for (int r = 0; set == UNION && r < b->size; r++)
        if (where[dz_group_world(b, r)] < 0)
            world[n++] = dz_group_world(b, r);
    free(where);
    return give(call, world, n, out);
}

int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    DZ_ENTER("MPI_Group_union");
    return combine("MPI_Group_union", UNION, group1, group2, newgroup);
}
DZ_WEAK(PI_Group_union)

int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    DZ_ENTER("MPI_Group_intersection");
    return combine("MPI_Group_intersection", INTERSECTION, group1, group2, newgroup);
}
DZ_WEAK(PI_Group_intersection)

int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    DZ_ENTER("MPI_Group_difference");
    return combine("MPI_Group_difference", DIFFERENCE, group1, group2, newgroup);
}
DZ_WEAK(PI_Group_difference)

/* ---- choosing members. A list of ranks of group: distinct and in range, else MPI_ERR_RANK. Both forms of a choice are
 * turned into such a list, in the user's order. */
struct choice {
    int n, room;
    int *ranks;  /* as the user ordered them */
    bool *taken; /* per rank of the group */
};

static int choice_open(const char *call, struct choice *c, const struct dz_group *g)
{
    *c = (struct choice){.room = g->size};
    c->ranks = malloc(((size_t)g->size + 1) * sizeof *c->ranks);
    c->taken = calloc((size_t)g->size + 1, sizeof *c->taken);
    if (c->ranks && c->taken)
        return MPI_SUCCESS;
    free(c->ranks), free(c->taken);
    return dz_raise_errno(NULL, -ENOMEM, call, NULL);
}

static int choice_add(const char *call, struct choice *c, int rank, int i)
{
    if (rank < 0 || rank >= c->room)
        return dz_raise(NULL, MPI_ERR_RANK, call, "rank %d (from entry %d) is not in the group of %d", rank, i,
                        c->room);
    if (c->taken[rank])
        return dz_raise(NULL, MPI_ERR_RANK, call, "rank %d (from entry %d) is there twice", rank, i);
    c->taken[rank] = true;
    c->ranks[c->n++] = rank;
    return MPI_SUCCESS;
}

/* Makes the group of the chosen members, or of all others; ends the choice. */
static int choice_close(const char *call, struct choice *c, const struct dz_group *g, bool keep, MPI_Group *out)
{
    int n = 0;
    int *world = malloc(((size_t)g->size + 1) * sizeof *world);
    for (int i = 0; world && keep && i < c->n; i++)
        world[n++] = dz_group_world(g, c->ranks[i]);
    for (int r = 0; world && !keep && r < g->size; r++)
        if (!c->taken[r])
            world[n++] = dz_group_world(g, r);
    free(c->ranks), free(c->taken);
    return world ? give(call, world, n, out) : dz_raise_errno(NULL, -ENOMEM, call, NULL);
}

static int check_choice(const char *call, struct dz_group *g, int n, const void *list, const void *out)
{
    int rc = check_in_out(call, g, out, "newgroup");
    if (!rc && n < 0)
        rc = dz_raise(NULL, MPI_ERR_ARG, call, "n is %d", n);
    return rc || !n ? rc : dz_check_ptr(call, NULL, list, "ranks");
}

static int choose(const char *call, struct dz_group *g, int n, const int ranks[], bool keep, MPI_Group *out)
{
    struct choice c;
    int rc = check_choice(call, g, n, ranks, out);
    if (!rc)
        rc = choice_open(call, &c, g);
    if (rc)
        return rc;
    for (int i = 0; !rc && i < n; i++)
        rc = choice_add(call, &c, ranks[i], i);
    if (!rc)
        return choice_close(call, &c, g, keep, out);
    free(c.ranks), free(c.taken);
    return rc;
}

/* Ranks first, first + stride, ... not beyond last. */
static int add_range(const char *call, struct choice *c, const int range[3], int i)
{
    if (!range[2])
        return dz_raise(NULL, MPI_ERR_ARG, call, "ranges[%d] has stride 0", i);
    int rc = MPI_SUCCESS;
    for (long r = range[0]; !rc && (range[2] > 0 ? r <= range[1] : r >= range[1]); r += range[2])
        rc = choice_add(call, c, (int)r, i);
    return rc;
}

static int choose_ranges(const char *call, struct dz_group *g, int n, int ranges[][3], bool keep, MPI_Group *out)
{
    struct choice c;
    int rc = check_choice(call, g, n, ranges, out);
    if (!rc)
        rc = choice_open(call, &c, g);
    if (rc)
        return rc;
    for (int i = 0; !rc && i < n; i++)
        rc = add_range(call, &c, ranges[i], i);
    if (!rc)
        return choice_close(call, &c, g, keep, out);
    free(c.ranks), free(c.taken);
    return rc;
}

int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    DZ_ENTER("MPI_Group_incl");
    return choose("MPI_Group_incl", group, n, ranks, true, newgroup);
}
DZ_WEAK(PI_Group_incl)

int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    DZ_ENTER("MPI_Group_excl");
    return choose("MPI_Group_excl", group, n, ranks, false, newgroup);
}
DZ_WEAK(PI_Group_excl)

int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    DZ_ENTER("MPI_Group_range_incl");
    return choose_ranges("MPI_Group_range_incl", group, n, ranges, true, newgroup);
}
DZ_WEAK(PI_Group_range_incl)

int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    DZ_ENTER("MPI_Group_range_excl");
    return choose_ranges("MPI_Group_range_excl", group, n, ranges, false, newgroup);
}
DZ_WEAK(PI_Group_range_excl)
