/* comm.h - what hangs on a communicator: its group, attributes and topology, for the files that keep them. */
#ifndef DZ_MPI_COMM_H
#define DZ_MPI_COMM_H

#include "mpi/core.h"

/* ---- groups (group.c). Immutable once made, counted, shared by all that name the same processes. */
static inline bool dz_group_ok(const struct dz_group *g)
{
    return g && g != MPI_GROUP_NULL && g->magic == DZ_MAGIC_GROUP;
}
int dz_group_init(void); /* MPI_GROUP_EMPTY */
/* The group of world[0..n), which it owns from then on; NULL: all ranks of the job. MPI_GROUP_EMPTY for n = 0; NULL: no
 * memory, and world is still the caller's. */
struct dz_group *dz_group_make(int *world, int n);
void dz_group_get(struct dz_group *);
void dz_group_put(struct dz_group *);
static inline int dz_group_world(const struct dz_group *g, int rank) { return g->world ? g->world[rank] : rank; }
int dz_group_compare(const struct dz_group *, const struct dz_group *); /* MPI_IDENT, SIMILAR, UNEQUAL; -ENOMEM */
/* For each member of g its rank in `in`, or -1; the caller frees it. NULL: no memory. */
int *dz_group_ranks_in(const struct dz_group *g, const struct dz_group *in);
int dz_check_group(const char *call, struct dz_comm *, struct dz_group *, const char *arg);

/* ---- making communicators (comm.c) */
/* Among members that know ctx: a communicator of group, of which the caller is a member. Takes over the caller's
 * reference to group, also when it fails. 0 or -errno. */
int dz_comm_make(struct dz_comm *parent, struct dz_group *group, uint64_t ctx, struct dz_comm **out);
/* Collective over comm: one communicator a color, ordered by key, then rank; MPI_COMM_NULL for MPI_UNDEFINED. Errors
 * are raised. */
int dz_comm_split(const char *call, struct dz_comm *comm, int color, int key, struct dz_comm **out);
/* What MPI_Comm_free does: MPI_SUCCESS, or the class that a delete callback returned (then nothing is freed). */
int dz_comm_release(struct dz_comm *comm);

/* ---- attributes (attr.c). Without the lock: callbacks call MPI. */
int dz_attr_init(void);
int dz_attr_copy(struct dz_comm *from, struct dz_comm *to); /* MPI_SUCCESS, or what a copy callback returned */
int dz_attr_clear(struct dz_comm *);                        /* the same for delete callbacks, newest first */

/* ---- topologies (topo.c) */
void *dz_topo_get(void *topo); /* one more reference; NULL stays NULL */
void dz_topo_put(void *topo);

/* ---- info objects (info.c) */
int dz_info_init(void);

#endif
