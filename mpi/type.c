/* type.c - datatypes as objects: building one from older ones, references, commit, free, dup, names.
 *
 * A built type is flat: it keeps the runs of bytes of one element in pack order and nothing of the tree it came from,
 * but for the constructor's arguments, which hold references to the older types because MPI_Type_get_contents gives
 * them back. A type is immutable once its handle is out, apart from `committed` and the name. MPI_Type_free gives one
 * reference back; pending operations and younger types keep theirs.
 *
 * Bounds follow MPI 3.1 section 4.1.6: bounds that MPI_Type_create_resized (or its kin) has set win over all natural
 * ones, however deep they lie. The natural extent is rounded up to the strictest alignment inside. That padding is part
 * of an older type's upper bound when it is used again: the standard's formula does not say so, MPICH and Open MPI do
 * it, and programs see it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "mpi/type.h"

/* ---- runs */
static bool reserve(struct dz_build *b, size_t more)
{
    if (b->err || more > DZ_MAX_BLOCKS - b->nblocks) {
        b->err = b->err ? b->err : -ENOMEM;
        return false;
    }
    if (more <= b->room - b->nblocks)
        return true;
    size_t room = b->nblocks + more;
    if (room < 2 * b->room)
        room = 2 * b->room;
    struct dz_block *blocks = realloc(b->blocks, room * sizeof blocks[0]);
    if (!blocks) {
        b->err = -ENOMEM;
        return false;
    }
    b->blocks = blocks;
    b->room = room;
    return true;
}

static void push(struct dz_build *b, ptrdiff_t disp, size_t len)
{
    struct dz_block *last = b->nblocks ? &b->blocks[b->nblocks - 1] : NULL;
    if (last && last->disp + (ptrdiff_t)last->len == disp)
        last->len += len;
    else if (reserve(b, 1))
        b->blocks[b->nblocks++] = (struct dz_block){disp, len, b->size};
    b->size += len;
}

static void push_copies(struct dz_build *b, const struct dz_type *old, size_t n, ptrdiff_t disp, ptrdiff_t stride)
{
    struct dz_block whole = {0, old->size, 0};
    const struct dz_block *blocks = old->blocks ? old->blocks : &whole;
    if (old->nblocks == 1 && (n == 1 || stride == (ptrdiff_t)old->size)) {
        push(b, disp + blocks[0].disp, n * old->size);
        return;
    }
    size_t runs;
    if (__builtin_mul_overflow(n, (size_t)old->nblocks, &runs))
        runs = SIZE_MAX;
    if (!reserve(b, runs))
        return;
    for (size_t i = 0; i < n; i++, disp += stride)
        for (uint32_t k = 0; k < old->nblocks; k++)
            push(b, disp + blocks[k].disp, blocks[k].len);
}

/* ---- bounds */
static void lower(struct dz_build *b, ptrdiff_t lb, bool set)
{
    bool first = !b->lb_any || (set && !b->lb_set);
    if (first || (set == b->lb_set && lb < b->lb))
        b->lb = lb;
    b->lb_any = true;
    b->lb_set |= set;
}

static void upper(struct dz_build *b, ptrdiff_t ub, bool set)
{
    bool first = !b->ub_any || (set && !b->ub_set);
    if (first || (set == b->ub_set && ub > b->ub))
        b->ub = ub;
    b->ub_any = true;
    b->ub_set |= set;
}

struct range { ptrdiff_t lo, hi; };

/* [lo + disp, hi + disp) of all copies */
static bool spread(struct dz_build *b, struct range copies, ptrdiff_t lo, ptrdiff_t hi, struct range *out)
{
    if (__builtin_add_overflow(copies.lo, lo, &out->lo) || __builtin_add_overflow(copies.hi, hi, &out->hi))
        b->err = -EOVERFLOW;
    return !b->err;
}

static void add_bounds(struct dz_build *b, const struct dz_type *old, struct range copies)
{
    struct range natural, marked;
    if (!spread(b, copies, old->true_lb, old->true_lb + old->true_extent, &natural) ||
        !spread(b, copies, old->lb, old->lb + old->extent, &marked))
        return;
    if (old->size) {
        b->true_lb = b->size && b->true_lb < natural.lo ? b->true_lb : natural.lo;
        b->true_ub = b->size && b->true_ub > natural.hi ? b->true_ub : natural.hi;
    }
    if (old->lb_set || old->size)
        lower(b, marked.lo, old->lb_set);
    if (old->ub_set || old->size)
        upper(b, marked.hi, old->ub_set); /* natural: with the padding of the older type */
}

/* ---- the builder */
void dz_build_init(struct dz_build *b)
{
    *b = (struct dz_build){.align = 1};
}

void dz_build_add(struct dz_build *b, const struct dz_type *old, size_t n, ptrdiff_t disp, ptrdiff_t stride)
{
    bool nothing = !old->size && !old->lb_set && !old->ub_set;
    if (b->err || !n || nothing)
        return;
    ptrdiff_t far;
    size_t bytes, total, elems;
    if (n - 1 > PTRDIFF_MAX || __builtin_mul_overflow((ptrdiff_t)(n - 1), stride, &far) ||
        __builtin_add_overflow(far, disp, &far) || __builtin_mul_overflow(n, old->size, &bytes) ||
        __builtin_add_overflow(bytes, b->size, &total) || total > PTRDIFF_MAX ||
        __builtin_mul_overflow(n, dz_type_elems(old), &elems)) {
        b->err = -EOVERFLOW;
        return;
    }
    add_bounds(b, old, (struct range){far < disp ? far : disp, far < disp ? disp : far});
    if (b->err || !old->size)
        return;
    b->mixed |= !old->elem || (b->elem && b->elem != old->elem);
    b->elem = old->elem;
    b->elems += elems;
    b->align = old->align > b->align ? old->align : b->align;
    push_copies(b, old, n, disp, stride);
}

void dz_build_add_at(struct dz_build *b, const struct dz_type *old, size_t len, ptrdiff_t n, ptrdiff_t unit)
{
    ptrdiff_t disp;
    if (!len)
        return;
    if (!__builtin_mul_overflow(n, unit, &disp))
        dz_build_add(b, old, len, disp, old->extent);
    else if (!b->err)
        b->err = -EOVERFLOW;
}

void dz_build_bounds(struct dz_build *b, ptrdiff_t lb, ptrdiff_t ub)
{
    b->lb = lb;
    b->ub = ub;
    b->lb_any = b->ub_any = b->lb_set = b->ub_set = true;
}

static void shrink(struct dz_build *b)
{
    if (!b->nblocks) {
        free(b->blocks);
        b->blocks = NULL;
        return;
    }
    struct dz_block *blocks = realloc(b->blocks, b->nblocks * sizeof blocks[0]);
    b->blocks = blocks ? blocks : b->blocks;
}

int dz_build_close(struct dz_build *b, struct dz_type *t)
{
    ptrdiff_t lb = b->lb_any ? b->lb : 0, ub = b->ub_any ? b->ub : lb, extent = 0, over = 0;
    if (!b->err && __builtin_sub_overflow(ub, lb, &extent))
        b->err = -EOVERFLOW;
    if (!b->ub_set && extent > 0)
        over = extent % b->align;
    if (!b->err && over && __builtin_add_overflow(extent, b->align - over, &extent))
        b->err = -EOVERFLOW;
    if (b->err) {
        free(b->blocks);
        b->blocks = NULL;
        return b->err;
    }
    shrink(b);
    t->size = b->size;
    t->lb = lb;
    t->extent = extent;
    t->true_lb = b->size ? b->true_lb : 0;
    t->true_extent = b->size ? b->true_ub - b->true_lb : 0;
    t->blocks = b->blocks;
    t->nblocks = (uint32_t)b->nblocks;
    t->align = b->align;
    t->lb_set = b->lb_set;
    t->ub_set = b->ub_set;
    t->elem = b->mixed ? NULL : b->elem;
    if (dz_type_contents(t))
        dz_type_contents(t)->elems = b->elems;
    dz_type_layout(t);
    b->blocks = NULL;
    return 0;
}

int dz_build_temp(struct dz_build *b, struct dz_temp_type *t)
{
    *t = (struct dz_temp_type){0};
    t->type.envelope = &t->contents;
    return dz_build_close(b, &t->type);
}

/* ---- handles */
struct derived { /* one allocation; the arguments follow in this order */
    struct dz_type t;
    struct dz_contents c;
};

struct dz_type *dz_type_create(int combiner, size_t nints, size_t naddrs, size_t ntypes)
{
    size_t addrs = naddrs * sizeof(MPI_Aint), types = ntypes * sizeof(struct dz_type *);
    struct derived *d = NULL;
    if (nints <= INT_MAX) /* the largest of the three */
        d = calloc(1, sizeof *d + addrs + types + nints * sizeof(int));
    if (!d)
        return NULL;
    d->t.refs = 1;
    d->t.combiner = combiner;
    d->t.envelope = &d->c;
    d->c.nints = (int)nints;
    d->c.naddrs = (int)naddrs;
    d->c.ntypes = (int)ntypes;
    d->c.addrs = (MPI_Aint *)(d + 1);
    d->c.types = (struct dz_type **)((char *)d->c.addrs + addrs);
    d->c.ints = (int *)((char *)d->c.types + types);
    return &d->t;
}

int dz_type_finish(const char *call, struct dz_build *b, struct dz_type *t, MPI_Datatype *newtype)
{
    int err = t ? dz_build_close(b, t) : -ENOMEM;
    if (!t)
        free(b->blocks);
    if (err) {
        free(t);
        if (err == -EOVERFLOW)
            return dz_raise(NULL, MPI_ERR_ARG, call, "the type would not fit into the address space");
        return dz_raise(NULL, MPI_ERR_NO_MEM, call, "no memory for the type; %zu separate runs of bytes are the most",
                        DZ_MAX_BLOCKS);
    }
    struct dz_contents *c = dz_type_contents(t);
    for (int i = 0; i < c->ntypes; i++)
        dz_type_get(c->types[i]);
    t->magic = DZ_MAGIC_TYPE;
    *newtype = t;
    return MPI_SUCCESS;
}

void dz_type_get(struct dz_type *t)
{
    if (!t->predefined)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
}

void dz_type_put(struct dz_type *t)
{
    /* acq_rel: whoever frees sees what the others did with it */
    while (t && !t->predefined && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        struct dz_contents *c = dz_type_contents(t);
        struct dz_type *last = c->ntypes ? c->types[c->ntypes - 1] : NULL; /* no recursion: chains may be long */
        for (int i = 0; i < c->ntypes - 1; i++)
            dz_type_put(c->types[i]);
        t->magic = 0;
        free(t->blocks);
        free(t);
        t = last;
    }
}

int dz_check_old(const char *call, struct dz_type *t, const char *arg)
{
    if (dz_type_ok(t))
        return MPI_SUCCESS;
    if (t == MPI_DATATYPE_NULL)
        return dz_raise(NULL, MPI_ERR_TYPE, call, "%s is MPI_DATATYPE_NULL", arg);
    return dz_raise(NULL, MPI_ERR_TYPE, call, "%s is %p: no datatype, or one that was freed", arg, (void *)t);
}

int dz_check_make(const char *call, int count, struct dz_type *oldtype, const MPI_Datatype *newtype)
{
    int rc = dz_check_count(call, NULL, count, "count");
    if (!rc)
        rc = dz_check_old(call, oldtype, "oldtype");
    return rc ? rc : dz_check_ptr(call, NULL, newtype, "newtype");
}

int PMPI_Type_commit(MPI_Datatype *datatype)
{
    DZ_ENTER("MPI_Type_commit");
    int rc = dz_check_ptr("MPI_Type_commit", NULL, datatype, "datatype");
    if (!rc)
        rc = dz_check_old("MPI_Type_commit", *datatype, "datatype");
    if (!rc)
        (*datatype)->committed = true;
    return rc;
}
DZ_WEAK(PI_Type_commit)

int PMPI_Type_free(MPI_Datatype *datatype)
{
    DZ_ENTER("MPI_Type_free");
    int rc = dz_check_ptr("MPI_Type_free", NULL, datatype, "datatype");
    if (!rc)
        rc = dz_check_old("MPI_Type_free", *datatype, "datatype");
    if (rc)
        return rc;
    if ((*datatype)->predefined)
        return dz_raise(NULL, MPI_ERR_TYPE, "MPI_Type_free", "datatype is the predefined %s", (*datatype)->name);
    dz_type_put(*datatype);
    *datatype = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}
DZ_WEAK(PI_Type_free)

int PMPI_Type_dup(MPI_Datatype type, MPI_Datatype *newtype)
{
    DZ_ENTER("MPI_Type_dup");
    int rc = dz_check_make("MPI_Type_dup", 0, type, newtype);
    if (rc)
        return rc;
    struct dz_type *t = dz_type_create(MPI_COMBINER_DUP, 0, 0, 1);
    struct dz_build b;
    dz_build_init(&b);
    dz_build_add(&b, type, 1, 0, 0);
    if (t) {
        dz_type_contents(t)->types[0] = type;
        t->committed = type->committed;
    }
    return dz_type_finish("MPI_Type_dup", &b, t, newtype);
}
DZ_WEAK(PI_Type_dup)
