/* type_tree.c - random trees of datatypes against the standard's own description of them: a type is a list of
 * (predefined type, displacement) and of markers for its bounds. Every constructor is written down here a second time,
 * on such lists and as naively as the standard does; sizes, bounds, packing and unpacking of sub-ranges, and counts of
 * elements have to agree. Arguments: first seed, number of trees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/core.h"

#define MAX_ENTRIES 600
#define CHECK(cond, ...)                                                                                             \
    do {                                                                                                             \
        if (!(cond)) {                                                                                               \
            printf("FAIL: seed %u: %s:%d: ", seed, __FILE__, __LINE__);                                              \
            printf(__VA_ARGS__);                                                                                     \
            printf("\n");                                                                                            \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

static unsigned seed;
static uint64_t state;

static unsigned pick(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

static int between(int lo, int hi)
{
    return lo + (int)pick((unsigned)(hi - lo + 1));
}

/* ---- the naive side */
struct entry { ptrdiff_t disp; size_t size, align; };
struct naive {
    size_t n;
    struct entry e[MAX_ENTRIES];
    bool has_lb, has_ub;
    ptrdiff_t lb, ub; /* the outermost markers */
    ptrdiff_t end;    /* without markers: of the last part, its padding included */
};

static ptrdiff_t naive_lb(const struct naive *t)
{
    ptrdiff_t lb = t->n ? t->e[0].disp : 0;
    for (size_t i = 0; i < t->n; i++)
        lb = t->e[i].disp < lb ? t->e[i].disp : lb;
    return t->has_lb ? t->lb : lb;
}

static ptrdiff_t naive_end(const struct naive *t)
{
    ptrdiff_t end = t->n ? t->e[0].disp : 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->e[i].disp + (ptrdiff_t)t->e[i].size > end)
            end = t->e[i].disp + (ptrdiff_t)t->e[i].size;
    return end;
}

static ptrdiff_t naive_extent(const struct naive *t)
{
    if (t->has_ub)
        return t->ub - naive_lb(t);
    ptrdiff_t extent = t->n ? t->end - naive_lb(t) : 0, align = 1;
    for (size_t i = 0; i < t->n; i++)
        align = (ptrdiff_t)t->e[i].align > align ? (ptrdiff_t)t->e[i].align : align;
    while (extent > 0 && extent % align)
        extent++;
    return extent;
}

static size_t naive_size(const struct naive *t)
{
    size_t size = 0;
    for (size_t i = 0; i < t->n; i++)
        size += t->e[i].size;
    return size;
}

static bool naive_add(struct naive *t, const struct naive *old, ptrdiff_t disp)
{
    if (t->n + old->n > MAX_ENTRIES)
        return false;
    ptrdiff_t end = naive_lb(old) + naive_extent(old) + disp;
    if (old->n && !old->has_ub && (!t->n || end > t->end))
        t->end = end;
    for (size_t i = 0; i < old->n; i++) {
        t->e[t->n] = old->e[i];
        t->e[t->n++].disp += disp;
    }
    if (old->has_lb && (!t->has_lb || old->lb + disp < t->lb))
        t->lb = old->lb + disp;
    if (old->has_ub && (!t->has_ub || old->ub + disp > t->ub))
        t->ub = old->ub + disp;
    t->has_lb |= old->has_lb;
    t->has_ub |= old->has_ub;
    return true;
}

static bool naive_block(struct naive *t, const struct naive *old, int n, ptrdiff_t disp)
{
    ptrdiff_t extent = naive_extent(old);
    for (int i = 0; i < n; i++)
        if (!naive_add(t, old, disp + i * extent))
            return false;
    return true;
}

/* ---- one tree node on both sides; false: grew too large, nothing was made */
struct pair { MPI_Datatype type; struct naive n; bool derived; };

static void make_leaf(struct pair *p)
{
    static const size_t size[] = {1, 2, 4, 8, 16, 16}, align[] = {1, 2, 4, 8, 16, 8};
    const MPI_Datatype type[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX};
    unsigned i = pick(6);
    p->type = type[i];
    p->derived = false;
    p->n = (struct naive){.n = 1, .e = {{0, size[i], align[i]}}, .end = (ptrdiff_t)size[i]};
}

#define MADE(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

static bool make_vector(struct pair *p, const struct pair *old)
{
    int count = between(0, 4), length = between(0, 3), stride = between(-4, 5);
    bool bytes = pick(2);
    ptrdiff_t unit = bytes ? 1 : naive_extent(&old->n);
    if (bytes)
        stride *= between(1, 9);
    for (int i = 0; i < count; i++)
        if (!naive_block(&p->n, &old->n, length, i * stride * unit))
            return false;
    if (bytes)
        MADE(MPI_Type_create_hvector(count, length, stride, old->type, &p->type));
    else
        MADE(MPI_Type_vector(count, length, stride, old->type, &p->type));
    return true;
}

static bool make_indexed(struct pair *p, const struct pair *old)
{
    int count = between(0, 4), lengths[4], disps[4], fixed = between(0, 3);
    MPI_Aint adisps[4];
    bool bytes = pick(2), same = pick(2);
    for (int i = 0; i < count; i++) {
        lengths[i] = same ? fixed : between(0, 3);
        disps[i] = bytes ? between(-60, 60) : between(-5, 8);
        adisps[i] = disps[i];
        if (!naive_block(&p->n, &old->n, lengths[i], bytes ? disps[i] : disps[i] * naive_extent(&old->n)))
            return false;
    }
    if (same && bytes)
        MADE(MPI_Type_create_hindexed_block(count, fixed, adisps, old->type, &p->type));
    else if (same)
        MADE(MPI_Type_create_indexed_block(count, fixed, disps, old->type, &p->type));
    else if (bytes)
        MADE(MPI_Type_create_hindexed(count, lengths, adisps, old->type, &p->type));
    else
        MADE(MPI_Type_indexed(count, lengths, disps, old->type, &p->type));
    return true;
}

static bool make_struct(struct pair *p, const struct pair *a, const struct pair *b)
{
    int count = between(0, 4), lengths[4];
    MPI_Aint disps[4];
    MPI_Datatype types[4];
    for (int i = 0; i < count; i++) {
        const struct pair *old = pick(2) ? a : b;
        lengths[i] = between(0, 2);
        disps[i] = between(-40, 90);
        types[i] = old->type;
        if (!naive_block(&p->n, &old->n, lengths[i], disps[i]))
            return false;
    }
    MADE(MPI_Type_create_struct(count, lengths, disps, types, &p->type));
    return true;
}

static bool make_resized(struct pair *p, const struct pair *old)
{
    MPI_Aint lb = between(-20, 20), extent = between(-30, 80);
    if (!naive_add(&p->n, &old->n, 0))
        return false;
    p->n.has_lb = p->n.has_ub = true;
    p->n.lb = lb;
    p->n.ub = lb + extent;
    MADE(MPI_Type_create_resized(old->type, lb, extent, &p->type));
    return true;
}

/* An array of ndims: adds, with the fastest dimension innermost, the elements for which mine[d][index] is set. */
static bool naive_array(struct naive *n, const struct naive *old, int ndims, const int *sizes, bool mine[3][8],
                        int order)
{
    int total = 1, index[3];
    for (int d = 0; d < ndims; d++)
        total *= sizes[d];
    for (int i = 0; i < total; i++) {
        bool take = true;
        for (int k = 0, rest = i; k < ndims; k++) {
            int d = order == MPI_ORDER_C ? ndims - 1 - k : k;
            index[d] = rest % sizes[d];
            rest /= sizes[d];
            take &= mine[d][index[d]];
        }
        if (take && !naive_add(n, old, i * naive_extent(old)))
            return false;
    }
    n->has_lb = n->has_ub = true;
    n->lb = 0;
    n->ub = total * naive_extent(old);
    return true;
}

static bool make_subarray(struct pair *p, const struct pair *old)
{
    int ndims = between(1, 3), sizes[3], subsizes[3], starts[3], order = pick(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    bool mine[3][8] = {{false}};
    for (int d = 0; d < ndims; d++) {
        sizes[d] = between(1, 5);
        subsizes[d] = between(1, sizes[d]);
        starts[d] = between(0, sizes[d] - subsizes[d]);
        for (int i = 0; i < subsizes[d]; i++)
            mine[d][starts[d] + i] = true;
    }
    if (!naive_array(&p->n, &old->n, ndims, sizes, mine, order))
        return false;
    MADE(MPI_Type_create_subarray(ndims, sizes, subsizes, starts, order, old->type, &p->type));
    return true;
}

static bool make_darray(struct pair *p, const struct pair *old)
{
    int ndims = between(1, 3), order = pick(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, size = 1;
    int sizes[3], kinds[3], args[3], procs[3], coords[3];
    bool mine[3][8] = {{false}};
    for (int d = 0; d < ndims; d++) {
        sizes[d] = between(1, 7);
        kinds[d] = (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE}[pick(3)];
        procs[d] = kinds[d] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 3);
        int even = (sizes[d] + procs[d] - 1) / procs[d];
        bool standard = pick(2);
        int block = kinds[d] == MPI_DISTRIBUTE_BLOCK ? (standard ? even : between(even, 7))
                                                     : (standard ? 1 : between(1, 3));
        args[d] = standard ? MPI_DISTRIBUTE_DFLT_DARG : block;
        size *= procs[d];
        coords[d] = between(0, procs[d] - 1);
        for (int i = 0; i < sizes[d]; i++)
            mine[d][i] = kinds[d] == MPI_DISTRIBUTE_NONE || i / block % procs[d] == coords[d];
    }
    int rank = 0; /* row-major */
    for (int d = 0; d < ndims; d++)
        rank = rank * procs[d] + coords[d];
    if (!naive_array(&p->n, &old->n, ndims, sizes, mine, order))
        return false;
    MADE(MPI_Type_create_darray(size, rank, ndims, sizes, kinds, args, procs, order, old->type, &p->type));
    return true;
}

static void make(struct pair *p, int depth)
{
    struct pair *old = malloc(2 * sizeof *old);
    make_leaf(p);
    if (depth == 0 || !old) {
        free(old);
        return;
    }
    make(&old[0], depth - 1 - (int)pick(2) * (depth > 1));
    make(&old[1], pick(2) ? 0 : depth - 1);
    bool made;
    struct pair leaf = *p;
    p->n = (struct naive){0};
    switch (pick(9)) {
    case 0:
        made = naive_block(&p->n, &old->n, 3, 0);
        if (made)
            MADE(MPI_Type_contiguous(3, old->type, &p->type));
        break;
    case 1:
    case 2:
        made = make_vector(p, old);
        break;
    case 3:
        made = make_indexed(p, old);
        break;
    case 4:
        made = make_struct(p, &old[0], &old[1]);
        break;
    case 5:
        made = make_resized(p, old);
        break;
    case 6:
        made = make_subarray(p, old);
        break;
    case 7:
        made = make_darray(p, old);
        break;
    default:
        made = naive_add(&p->n, &old->n, 0);
        if (made)
            MADE(MPI_Type_dup(old->type, &p->type));
    }
    p->derived = made;
    if (!made)
        *p = leaf;
    for (int i = 0; i < 2; i++)
        if (old[i].derived)
            MADE(MPI_Type_free(&old[i].type));
    free(old);
}

/* ---- comparing */
static void compare_bounds(const struct pair *p)
{
    int size;
    MPI_Aint lb, extent, true_lb, true_extent;
    MADE(MPI_Type_size(p->type, &size));
    MADE(MPI_Type_get_extent(p->type, &lb, &extent));
    MADE(MPI_Type_get_true_extent(p->type, &true_lb, &true_extent));
    CHECK((size_t)size == naive_size(&p->n), "size %d, should be %zu", size, naive_size(&p->n));
    CHECK(lb == naive_lb(&p->n) && extent == naive_extent(&p->n), "bounds %td + %td, should be %td + %td", lb, extent,
          naive_lb(&p->n), naive_extent(&p->n));
    struct naive plain = p->n;
    plain.has_lb = plain.has_ub = false;
    ptrdiff_t lo = naive_lb(&plain), hi = naive_end(&plain);
    CHECK(true_lb == lo && true_extent == hi - lo, "true bounds %td + %td, should be %td + %td", true_lb, true_extent,
          lo, hi - lo);
    if (p->type->contig)
        CHECK(lb == 0 && extent == size && true_lb == 0 && p->type->nblocks == 1, "contig, but is not");
}

struct map { /* where each byte of a stream of `count` elements lies, and memory that just holds them */
    size_t bytes;
    ptrdiff_t *at, lo, hi;
};

static struct map map_of(const struct naive *n, int count)
{
    struct map m = {.bytes = 0};
    m.at = malloc((naive_size(n) * (size_t)count + 1) * sizeof m.at[0]);
    for (int c = 0; c < count; c++)
        for (size_t i = 0; i < n->n; i++)
            for (size_t b = 0; b < n->e[i].size; b++)
                m.at[m.bytes++] = c * naive_extent(n) + n->e[i].disp + (ptrdiff_t)b;
    for (size_t i = 0; i < m.bytes; i++) {
        m.lo = i && m.lo < m.at[i] ? m.lo : m.at[i];
        m.hi = i && m.hi > m.at[i] + 1 ? m.hi : m.at[i] + 1;
    }
    return m;
}

static void compare_range(const struct dz_view *v, const struct map *m, size_t off, size_t len, unsigned char *user,
                          unsigned char *line, unsigned char *expected)
{
    size_t span = (size_t)(m->hi - m->lo);
    memset(line, 0xee, len + 1);
    dz_view_read(v, off, len, line);
    for (size_t i = 0; i < len; i++)
        CHECK(line[i] == user[m->at[off + i] - m->lo], "gather [%zu, +%zu): byte %zu is wrong", off, len, i);
    CHECK(line[len] == 0xee, "gather [%zu, +%zu) writes too much", off, len);
    for (size_t i = 0; i < len; i++)
        line[i] = (unsigned char)pick(256);
    memcpy(expected, user, span);
    for (size_t i = 0; i < len; i++)
        expected[m->at[off + i] - m->lo] = line[i];
    dz_view_write(v, off, len, line);
    CHECK(!memcmp(expected, user, span), "scatter [%zu, +%zu)", off, len);
}

static void compare_copies(const struct pair *p)
{
    int count = between(1, 4);
    struct map m = map_of(&p->n, count);
    size_t span = (size_t)(m.hi - m.lo);
    unsigned char *user = malloc(span + 1), *line = malloc(m.bytes + 1), *expected = malloc(span + 1);
    for (size_t i = 0; i < span; i++)
        user[i] = (unsigned char)pick(256);
    struct dz_view v = dz_type_view(p->type, (char *)user - m.lo, (size_t)count);
    CHECK(v.bytes == m.bytes, "the view has %zu bytes, should have %zu", v.bytes, m.bytes);
    if (m.bytes <= 40) {
        for (size_t off = 0; off <= m.bytes; off++)
            for (size_t len = 0; len <= m.bytes - off; len++)
                compare_range(&v, &m, off, len, user, line, expected);
    } else {
        compare_range(&v, &m, 0, m.bytes, user, line, expected);
        for (int i = 0; i < 60; i++) {
            size_t off = pick((unsigned)m.bytes);
            compare_range(&v, &m, off, pick((unsigned)(m.bytes - off + 1)), user, line, expected);
        }
    }
    free(user);
    free(line);
    free(expected);
    free(m.at);
}

/* Every number of bytes up to two elements: predefined elements in it, and back again. */
static void compare_elements(const struct pair *p)
{
    size_t bytes = 0, all = 2 * p->n.n;
    for (size_t i = 0; i <= all; i++) {
        MPI_Status s = {0};
        int n;
        s._ucount = bytes;
        MADE(MPI_Get_elements(&s, p->type, &n));
        CHECK((size_t)n == i, "%zu bytes are %d elements, should be %zu", bytes, n, i);
        s._ucount = 12345;
        MADE(MPI_Status_set_elements(&s, p->type, (int)i));
        CHECK(s._ucount == bytes, "%zu elements are %zu bytes, should be %zu", i, s._ucount, bytes);
        size_t size = p->n.n ? p->n.e[i % p->n.n].size : 1;
        for (size_t k = 1; i < all && k < size; k++) {
            s._ucount = bytes + k;
            MADE(MPI_Get_elements(&s, p->type, &n));
            CHECK(n == MPI_UNDEFINED, "%zu bytes end inside an element, but are %d", bytes + k, n);
        }
        bytes += size;
    }
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    unsigned trees = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4000;
    struct pair *p = malloc(sizeof *p);
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (seed = first; seed < first + trees; seed++) {
        state = seed * 2654435761u;
        make(p, 1 + (int)(seed % 4));
        MADE(MPI_Type_commit(&p->type));
        compare_bounds(p);
        compare_copies(p);
        compare_elements(p);
        if (p->derived)
            MADE(MPI_Type_free(&p->type));
    }
    free(p);
    MPI_Finalize();
    return 0;
}
