/* Types may differ between the sides when the signature is equal: vectors, resized, struct, subarray and indexed types a
 * partition, against plain integers.
 *
 * run: -n 2
 * run: -n 1
 * run: -n 2 -e DENIZEN_SLOT_LIMIT=0
 * run: -n 2 -e DENIZEN_CMA=0 -e DENIZEN_CHUNK=512 */
#include "check.h"

enum { PARTS = 6, INTS = 12 * 40 }; /* of one partition */

/* A type of 12 integers and the places of these in its extent, in units of an integer. */
struct kind {
    const char *name;
    MPI_Datatype type;
    int extent, place[12];
};

static void places(struct kind *k, int extent, const int *place)
{
    MPI_Aint lb, bytes;
    MPI_Type_commit(&k->type);
    MPI_Type_get_extent(k->type, &lb, &bytes);
    EXPECT(bytes == extent * (MPI_Aint)sizeof(int), "%s: extent %ld", k->name, (long)bytes);
    k->extent = extent;
    memcpy(k->place, place, sizeof k->place);
}

static int make(struct kind *k)
{
    int plain[12], p[12], n = 0;
    MPI_Datatype t;
    for (int i = 0; i < 12; i++)
        plain[i] = i;
    k[n].name = "contiguous";
    MPI_Type_contiguous(12, MPI_INT, &k[n].type);
    places(&k[n++], 12, plain);
    k[n].name = "vector";
    MPI_Type_vector(4, 3, 5, MPI_INT, &k[n].type);
    for (int i = 0; i < 12; i++)
        p[i] = i / 3 * 5 + i % 3;
    places(&k[n++], 18, p);
    k[n].name = "resized";
    MPI_Type_contiguous(12, MPI_INT, &t);
    MPI_Type_create_resized(t, 0, 16 * sizeof(int), &k[n].type);
    MPI_Type_free(&t);
    places(&k[n++], 16, plain);
    k[n].name = "indexed";
    int lengths[3] = {2, 7, 3}, starts[3] = {10, 0, 14};
    MPI_Type_indexed(3, lengths, starts, MPI_INT, &t);
    MPI_Type_create_resized(t, 0, 20 * sizeof(int), &k[n].type);
    MPI_Type_free(&t);
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = 0; j < lengths[i]; j++)
            p[at++] = starts[i] + j;
    places(&k[n++], 20, p);
    k[n].name = "struct";
    int sl[2] = {5, 7};
    MPI_Aint sd[2] = {8 * sizeof(int), 0};
    MPI_Datatype st[2] = {MPI_INT, MPI_INT};
    MPI_Type_create_struct(2, sl, sd, st, &k[n].type);
    for (int i = 0; i < 12; i++)
        p[i] = i < 5 ? 8 + i : i - 5;
    places(&k[n++], 13, p);
    k[n].name = "subarray";
    int full[2] = {5, 6}, part[2] = {4, 3}, from[2] = {1, 2};
    MPI_Type_create_subarray(2, full, part, from, MPI_ORDER_C, MPI_INT, &k[n].type);
    for (int i = 0; i < 12; i++)
        p[i] = (1 + i / 3) * 6 + 2 + i % 3;
    places(&k[n++], 30, p);
    return n;
}

static int value(int from, int round, int i)
{
    return from * 1000003 + round * 7919 + i;
}

static void pair(const struct kind *a, const struct kind *b)
{
    int elements = PARTS * INTS / 12, out_ints = elements * a->extent, in_ints = elements * b->extent;
    int *out = malloc((size_t)out_ints * sizeof *out), *in = malloc((size_t)in_ints * sizeof *in);
    MPI_Request s, r;
    MPI_Status status;
    MPI_Psend_init(out, PARTS, INTS / 12, a->type, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, INTS / 12, b->type, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 3; round++) {
        int n = -1, wrong = -1;
        memset(out, 0x55, (size_t)out_ints * sizeof *out);
        memset(in, 0xaa, (size_t)in_ints * sizeof *in);
        for (int i = 0; i < PARTS * INTS; i++)
            out[i / 12 * a->extent + a->place[i % 12]] = value(rank, round, i);
        MPI_Start(&r);
        MPI_Start(&s);
        for (int p = PARTS; p-- > 0;)
            MPI_Pready(p, s);
        MPI_Wait(&r, &status);
        MPI_Wait(&s, MPI_STATUS_IGNORE);
        MPI_Get_count(&status, b->type, &n);
        EXPECT(n == elements, "%s to %s: count %d", a->name, b->name, n);
        for (int i = 0; i < PARTS * INTS && wrong < 0; i++) {
            int *at = &in[i / 12 * b->extent + b->place[i % 12]];
            if (*at != value(peer, round, i))
                wrong = i;
            *at = (int)0xaaaaaaaa;
        }
        EXPECT(wrong < 0, "%s to %s, round %d: integer %d", a->name, b->name, round, wrong);
        for (int i = 0; i < in_ints; i++)
            if (in[i] != (int)0xaaaaaaaa) {
                EXPECT(0, "%s to %s: a gap was written at %d", a->name, b->name, i);
                break;
            }
    }
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    free(out);
    free(in);
}

int main(void)
{
    struct kind k[8];
    begin(MPI_THREAD_SINGLE);
    int n = make(k);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            pair(&k[i], &k[j]);
    for (int i = 0; i < n; i++)
        MPI_Type_free(&k[i].type);
    return end();
}
