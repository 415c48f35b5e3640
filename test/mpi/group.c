/* group.c - groups: choosing members, set operations, translation, comparison, and the error cases (MPI 3.1,
 * section 6.3). */
/* run: -n 5 */
#include "coll.h"

static MPI_Group world;

/* The group's members as ranks of the world, compared to a list. */
static int is(MPI_Group g, int n, const int *want)
{
    int size, mine, ranks[64], there[64], expect_rank = MPI_UNDEFINED;
    MPI_Group_size(g, &size);
    if (size != n)
        return 0;
    for (int i = 0; i < n; i++) {
        ranks[i] = i;
        if (want[i] == world_rank)
            expect_rank = i;
    }
    MPI_Group_translate_ranks(g, n, ranks, world, there);
    MPI_Group_rank(g, &mine);
    return mine == expect_rank && !memcmp(there, want, (size_t)n * sizeof *want);
}
#define IS(g, ...) is(g, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

static void choosing(void)
{
    MPI_Group g;
    MPI_Group_incl(world, 3, (int[]){4, 0, 2}, &g);
    EXPECT(IS(g, 4, 0, 2), "incl");
    MPI_Group h;
    MPI_Group_incl(g, 2, (int[]){2, 0}, &h);
    EXPECT(IS(h, 2, 4), "incl of incl");
    MPI_Group_free(&h);
    MPI_Group_excl(g, 1, (int[]){1}, &h);
    EXPECT(IS(h, 4, 2), "excl");
    MPI_Group_free(&h);
    MPI_Group_free(&g);
    EXPECT(g == MPI_GROUP_NULL, "freed");
    MPI_Group_range_incl(world, 2, (int[][3]){{4, 2, -2}, {0, 1, 1}}, &g);
    EXPECT(IS(g, 4, 2, 0, 1), "range_incl");
    MPI_Group_free(&g);
    MPI_Group_range_incl(world, 2, (int[][3]){{0, 4, 3}, {4, 3, 5}}, &g);
    EXPECT(IS(g, 0, 3), "range_incl that ends before its last, and an empty range");
    MPI_Group_free(&g);
    MPI_Group_range_excl(world, 1, (int[][3]){{1, 4, 2}}, &g);
    EXPECT(IS(g, 0, 2, 4), "range_excl");
    MPI_Group_free(&g);
    MPI_Group_incl(world, 0, NULL, &g);
    EXPECT(g == MPI_GROUP_EMPTY, "nobody");
    MPI_Group_free(&g);
    MPI_Group_excl(world, 5, (int[]){0, 1, 2, 3, 4}, &g);
    EXPECT(g == MPI_GROUP_EMPTY, "nobody left");
    MPI_Group_excl(world, 0, NULL, &g);
    EXPECT(IS(g, 0, 1, 2, 3, 4), "everybody");
    MPI_Group_free(&g);
}

static void sets(void)
{
    MPI_Group a, b, g;
    MPI_Group_incl(world, 3, (int[]){3, 1, 0}, &a);
    MPI_Group_incl(world, 3, (int[]){0, 4, 3}, &b);
    MPI_Group_union(a, b, &g);
    EXPECT(IS(g, 3, 1, 0, 4), "union");
    MPI_Group_free(&g);
    MPI_Group_intersection(a, b, &g);
    EXPECT(IS(g, 3, 0), "intersection in the order of the first");
    MPI_Group_free(&g);
    MPI_Group_difference(a, b, &g);
    EXPECT(IS(g, 1), "difference");
    MPI_Group_free(&g);
    MPI_Group_difference(a, a, &g);
    EXPECT(g == MPI_GROUP_EMPTY, "nothing is left");
    MPI_Group_union(MPI_GROUP_EMPTY, b, &g);
    EXPECT(IS(g, 0, 4, 3), "union with nothing");
    MPI_Group_free(&g);
    MPI_Group_intersection(MPI_GROUP_EMPTY, b, &g);
    EXPECT(g == MPI_GROUP_EMPTY, "intersection with nothing");
    MPI_Group_free(&a);
    MPI_Group_free(&b);
}

static void comparing(void)
{
    MPI_Group a, b, c;
    int r, there[4];
    MPI_Group_incl(world, 2, (int[]){3, 1}, &a);
    MPI_Group_incl(world, 2, (int[]){1, 3}, &b);
    MPI_Group_incl(world, 2, (int[]){1, 2}, &c);
    MPI_Group_compare(a, a, &r);
    EXPECT(r == MPI_IDENT, "%d", r);
    MPI_Group_compare(a, b, &r);
    EXPECT(r == MPI_SIMILAR, "%d", r);
    MPI_Group_compare(b, c, &r);
    EXPECT(r == MPI_UNEQUAL, "%d", r);
    MPI_Group_compare(b, world, &r);
    EXPECT(r == MPI_UNEQUAL, "%d", r);
    MPI_Group_compare(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, &r);
    EXPECT(r == MPI_IDENT, "%d", r);
    MPI_Group_translate_ranks(world, 4, (int[]){1, 3, MPI_PROC_NULL, 2}, a, there);
    EXPECT(there[0] == 1 && there[1] == 0 && there[2] == MPI_PROC_NULL && there[3] == MPI_UNDEFINED, "translation");
    MPI_Group_rank(MPI_GROUP_EMPTY, &r);
    EXPECT(r == MPI_UNDEFINED, "%d", r);
    MPI_Group_size(MPI_GROUP_EMPTY, &r);
    EXPECT(r == 0, "%d", r);
    MPI_Group_free(&a);
    MPI_Group_free(&b);
    MPI_Group_free(&c);
}

/* A group outlives the communicator it was taken from. */
static void lifetime(void)
{
    MPI_Comm c;
    MPI_Group g;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &c);
    MPI_Comm_group(c, &g);
    MPI_Comm_free(&c);
    EXPECT(IS(g, 4, 3, 2, 1, 0), "after the communicator");
    MPI_Group_free(&g);
}

static void errors(void)
{
    MPI_Group g = MPI_GROUP_NULL, empty = MPI_GROUP_EMPTY;
    int r;
    char garbage[256];
    memset(garbage, 0x5a, sizeof garbage);
    EXPECT(MPI_Group_size(MPI_GROUP_NULL, &r) == MPI_ERR_GROUP, "null");
    EXPECT(MPI_Group_size((MPI_Group)garbage, &r) == MPI_ERR_GROUP, "garbage");
    EXPECT(MPI_Group_size(NULL, &r) == MPI_ERR_GROUP, "NULL");
    EXPECT(MPI_Group_size(world, NULL) == MPI_ERR_ARG, "NULL result");
    EXPECT(MPI_Group_free(&g) == MPI_ERR_GROUP, "nothing to free");
    EXPECT(MPI_Group_free(&empty) == MPI_SUCCESS && empty == MPI_GROUP_NULL, "the empty group");
    EXPECT(MPI_Group_size(MPI_GROUP_EMPTY, &r) == MPI_SUCCESS, "it is still there");
    EXPECT(MPI_Group_incl(world, 1, (int[]){5}, &g) == MPI_ERR_RANK, "no such rank");
    EXPECT(MPI_Group_incl(world, 1, (int[]){-1}, &g) == MPI_ERR_RANK, "no such rank");
    EXPECT(MPI_Group_incl(world, 2, (int[]){3, 3}, &g) == MPI_ERR_RANK, "twice");
    EXPECT(MPI_Group_excl(world, 1, (int[]){5}, &g) == MPI_ERR_RANK, "no such rank");
    EXPECT(MPI_Group_incl(world, -1, (int[]){0}, &g) == MPI_ERR_ARG, "n is -1");
    EXPECT(MPI_Group_incl(world, 1, NULL, &g) == MPI_ERR_ARG, "no list");
    EXPECT(MPI_Group_range_incl(world, 1, (int[][3]){{0, 3, 0}}, &g) == MPI_ERR_ARG, "stride 0");
    EXPECT(MPI_Group_range_incl(world, 1, (int[][3]){{0, 6, 2}}, &g) == MPI_ERR_RANK, "beyond the end");
    EXPECT(MPI_Group_range_incl(world, 2, (int[][3]){{0, 3, 1}, {3, 4, 1}}, &g) == MPI_ERR_RANK, "twice");
    EXPECT(MPI_Group_translate_ranks(world, 1, (int[]){7}, world, &r) == MPI_ERR_RANK, "no such rank");
    EXPECT(MPI_Group_union(world, MPI_GROUP_NULL, &g) == MPI_ERR_GROUP, "null");
    EXPECT(MPI_Group_compare(MPI_GROUP_NULL, world, &r) == MPI_ERR_GROUP, "null");
    EXPECT(g == MPI_GROUP_NULL, "nothing was made");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, 5);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (world_size == 5) {
        choosing();
        sets();
        comparing();
        lifetime();
        errors();
    }
    MPI_Group_free(&world);
    return end();
}
