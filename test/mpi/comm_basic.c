/* comm_basic.c - communicators: dup, split, split_type, create, create_group, compare, names, freeing; that their
 * messages stay apart; and the error cases (MPI 3.1, section 6.4). */
/* run: -n 5 */
#include "coll.h"

static int result_of(MPI_Comm a, MPI_Comm b)
{
    int result = -1;
    EXPECT(MPI_Comm_compare(a, b, &result) == MPI_SUCCESS, "compare");
    return result;
}

static int sum_on(MPI_Comm comm)
{
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

static void duplicates(void)
{
    MPI_Comm a, b;
    int x = world_rank, y = -1, next = (world_rank + 1) % world_size,
        before = (world_rank + world_size - 1) % world_size;
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_dup(a, &b);
    EXPECT(result_of(a, a) == MPI_IDENT && result_of(a, b) == MPI_CONGRUENT, "compare");
    EXPECT(result_of(a, MPI_COMM_SELF) == (world_size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL), "compare");
    EXPECT(sum_on(a) == world_size && sum_on(b) == world_size, "sums");
    /* same peer, same tag: what is received is decided by the communicator, against the order of sending */
    MPI_Request r[3];
    int sent[3] = {x * 3, x * 3 + 1, x * 3 + 2}, got[3];
    const MPI_Comm comms[3] = {MPI_COMM_WORLD, a, b};
    for (int i = 0; i < 3; i++)
        MPI_Isend(&sent[i], 1, MPI_INT, next, 7, comms[i], &r[i]);
    for (int i = 2; i >= 0; i--)
        MPI_Recv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], MPI_STATUS_IGNORE);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++)
        EXPECT(got[i] == before * 3 + i, "%d in communicator %d", got[i], i);
    /* freed while a receive is pending: the receive completes */
    MPI_Irecv(&y, 1, MPI_INT, before, 1, b, &r[0]);
    MPI_Isend(&x, 1, MPI_INT, next, 1, b, &r[1]);
    MPI_Comm_free(&b);
    EXPECT(b == MPI_COMM_NULL, "freed");
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    EXPECT(y == before, "%d", y);
    MPI_Comm_disconnect(&a);
    EXPECT(a == MPI_COMM_NULL, "disconnected");
}

static void splits(void)
{
    MPI_Comm c;
    int rank, size, all;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &c);
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    EXPECT(size == (world_size + 1 - world_rank % 2) / 2, "%d", size);
    EXPECT(rank == (world_size - 1 - world_rank) / 2, "rank %d", rank);
    MPI_Allreduce(&world_rank, &all, 1, MPI_INT, MPI_MIN, c);
    EXPECT(all == world_rank % 2, "a foreigner: %d", all);
    MPI_Comm_free(&c);
    MPI_Comm_split(MPI_COMM_WORLD, 3, 0, &c); /* equal keys: the old order */
    EXPECT(result_of(c, MPI_COMM_WORLD) == MPI_CONGRUENT, "the same order");
    MPI_Comm_free(&c);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &c);
    EXPECT(result_of(c, MPI_COMM_WORLD) == (world_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR), "another order");
    MPI_Comm_free(&c);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank ? 0 : MPI_UNDEFINED, 0, &c);
    EXPECT((c == MPI_COMM_NULL) == !world_rank, "undefined colour");
    if (c != MPI_COMM_NULL)
        MPI_Comm_free(&c);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);
    MPI_Comm_size(c, &size);
    EXPECT(size == world_size, "all ranks of the test share a host: %d", size);
    MPI_Comm_free(&c);
    MPI_Comm_split_type(MPI_COMM_WORLD, world_rank ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);
    EXPECT((c == MPI_COMM_NULL) == (world_rank > 0), "undefined type");
    if (c != MPI_COMM_NULL)
        MPI_Comm_free(&c);
}

static void by_group(void)
{
    MPI_Group world, odd, even;
    MPI_Comm c;
    int ranks[3] = {3, 1, 4}, rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 3, ranks, &odd);
    MPI_Comm_create(MPI_COMM_WORLD, odd, &c);
    EXPECT((c != MPI_COMM_NULL) == (world_rank == 1 || world_rank >= 3), "members");
    if (c != MPI_COMM_NULL) {
        MPI_Comm_rank(c, &rank);
        EXPECT(ranks[rank] == world_rank, "rank %d", rank);
        EXPECT(sum_on(c) == 3, "sum");
        MPI_Comm_free(&c);
        MPI_Comm_create_group(MPI_COMM_WORLD, odd, 12345, &c); /* the others do not call */
        EXPECT(sum_on(c) == 3, "sum");
        MPI_Comm_free(&c);
    }
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c);
    EXPECT(c == MPI_COMM_NULL, "of nobody");
    /* two groups at once */
    MPI_Group_difference(world, odd, &even);
    MPI_Comm_create(MPI_COMM_WORLD, world_rank == 0 || world_rank == 2 ? even : odd, &c);
    EXPECT(sum_on(c) == (world_rank == 0 || world_rank == 2 ? 2 : 3), "disjoint groups");
    EXPECT(MPI_Comm_create(c, world, &c) == MPI_ERR_GROUP, "a group that is not in the communicator");
    MPI_Comm_free(&c);
    MPI_Group_free(&even);
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
}

/* The first rank sends on the new communicator at once; the last one comes to it late. */
static void early_messages(void)
{
    for (int i = 0; i < 50; i++) {
        MPI_Comm c;
        int x = i, late = -1;
        for (double until = MPI_Wtime() + 0.0005; world_rank == world_size - 1 && MPI_Wtime() < until;)
            ;
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        if (world_rank == 0)
            MPI_Send(&x, 1, MPI_INT, world_size - 1, 0, c);
        if (world_rank == world_size - 1)
            MPI_Recv(&late, 1, MPI_INT, 0, 0, c, MPI_STATUS_IGNORE);
        EXPECT(world_rank < world_size - 1 || late == i, "%d in round %d", late, i);
        MPI_Comm_free(&c);
    }
}

static void many(void)
{
    enum { LIVE = 300 };
    MPI_Comm c[LIVE];
    for (int i = 0; i < LIVE; i++)
        MPI_Comm_split(i ? c[i - 1] : MPI_COMM_WORLD, 0, i % 2 ? world_rank : -world_rank, &c[i]);
    EXPECT(sum_on(c[LIVE - 1]) == world_size, "the last");
    for (int i = 0; i < LIVE; i++)
        MPI_Comm_free(&c[i]);
    for (int i = 0; i < 1000; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &c[0]);
        MPI_Comm_free(&c[0]);
    }
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME], longer[2 * MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Comm c;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
    EXPECT(!strcmp(name, "MPI_COMM_WORLD") && n == 14, "%s", name);
    MPI_Comm_get_name(MPI_COMM_SELF, name, &n);
    EXPECT(!strcmp(name, "MPI_COMM_SELF"), "%s", name);
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_get_name(c, name, &n);
    EXPECT(!n && !*name, "no name yet: %s", name);
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    MPI_Comm_set_name(c, longer);
    MPI_Comm_get_name(c, name, &n);
    EXPECT(n == MPI_MAX_OBJECT_NAME - 1 && strlen(name) == (size_t)n, "cut to %d", n);
    MPI_Comm_free(&c);
}

static void handlers_and_hints(void)
{
    MPI_Comm c, d;
    MPI_Errhandler h;
    MPI_Info info;
    int n = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_dup(c, &d);
    MPI_Comm_get_errhandler(d, &h);
    EXPECT(h == MPI_ERRORS_ARE_FATAL, "inherited");
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_free(&d);
    MPI_Comm_split(c, 0, 0, &d);
    MPI_Comm_get_errhandler(d, &h);
    EXPECT(h == MPI_ERRORS_RETURN, "inherited");
    MPI_Comm_free(&d);
    MPI_Comm_dup_with_info(c, MPI_INFO_NULL, &d);
    MPI_Comm_get_info(d, &info);
    MPI_Comm_set_info(d, info);
    EXPECT(MPI_Info_get_nkeys(info, &n) == MPI_SUCCESS && n == 0, "no hint in use: %d", n);
    MPI_Info_free(&info);
    MPI_Comm_free(&d);
    MPI_Comm_free(&c);
}

static void errors(void)
{
    MPI_Comm c = MPI_COMM_NULL, world = MPI_COMM_WORLD;
    MPI_Group group;
    int x = 0;
    char garbage[512];
    memset(garbage, 0x5a, sizeof garbage);
    EXPECT(MPI_Comm_free(&c) == MPI_ERR_COMM, "nothing to free");
    EXPECT(MPI_Comm_free(NULL) == MPI_ERR_ARG, "NULL");
    EXPECT(MPI_Comm_free(&world) == MPI_ERR_COMM && world == MPI_COMM_WORLD, "the world stays");
    EXPECT(MPI_Comm_dup(MPI_COMM_NULL, &c) == MPI_ERR_COMM, "null");
    EXPECT(MPI_Comm_dup((MPI_Comm)garbage, &c) == MPI_ERR_COMM, "garbage");
    EXPECT(MPI_Comm_dup(NULL, &c) == MPI_ERR_COMM, "NULL");
    EXPECT(MPI_Comm_dup(MPI_COMM_SELF, NULL) == MPI_ERR_ARG, "NULL result");
    EXPECT(MPI_Comm_split(MPI_COMM_SELF, -3, 0, &c) == MPI_ERR_ARG, "colour -3");
    EXPECT(MPI_Comm_split_type(MPI_COMM_SELF, 4711, 0, MPI_INFO_NULL, &c) == MPI_ERR_ARG, "type 4711");
    EXPECT(MPI_Comm_create(MPI_COMM_SELF, MPI_GROUP_NULL, &c) == MPI_ERR_GROUP, "no group");
    EXPECT(MPI_Comm_rank(MPI_COMM_NULL, &x) == MPI_ERR_COMM && MPI_Comm_size(MPI_COMM_NULL, &x) == MPI_ERR_COMM,
           "null");
    EXPECT(MPI_Comm_rank(MPI_COMM_WORLD, NULL) == MPI_ERR_ARG, "NULL");
    EXPECT(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &x) == MPI_ERR_COMM, "null");
    EXPECT(MPI_Comm_remote_size(MPI_COMM_WORLD, &x) == MPI_ERR_COMM, "no inter-communicator");
    EXPECT(MPI_Comm_remote_group(MPI_COMM_WORLD, &group) == MPI_ERR_COMM, "no inter-communicator");
    EXPECT(MPI_Comm_test_inter(MPI_COMM_WORLD, &x) == MPI_SUCCESS && !x, "no inter-communicator");
    EXPECT(MPI_Comm_get_parent(&c) == MPI_SUCCESS && c == MPI_COMM_NULL, "no parent");
    EXPECT(MPI_Comm_set_name(MPI_COMM_NULL, "x") == MPI_ERR_COMM, "null");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 5);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    duplicates();
    splits();
    if (world_size == 5)
        by_group();
    early_messages();
    many();
    names();
    handlers_and_hints();
    errors();
    return end();
}
