/* chan.h - channels over RDMA: what a partition costs is one posted write.
 *
 * The receiver decides at bind how partitions come (struct grant, in its reply), the sender follows:
 *
 *   landing  SLOT    library memory of the receiver: a ring of `depth` epochs, epoch e in set e % depth; copied out
 *            BUFFER  the receive buffer itself, registered; one epoch at a time (depth 1)
 *   notice   PACKED  (SLOT, short partitions) each 8-byte word of the slot carries 4 bytes of the partition, in its
 *                    lower half, and the low half of the epoch, in its upper: one write, nothing else. Sound where the
 *                    device places aligned words whole, in any order, and where it places bytes in ascending order.
 *            IMM     the write carries immediate data, imm_base + partition; its completion at the receiver counts that
 *                    partition's arrivals, which are epochs, since one queue pair keeps order. Sound everywhere.
 *            WORD    a second write of the epoch into the partition's own word, in the same post. Sound where writes of
 *                    one queue pair are placed in order, which InfiniBand and RoCE promise.
 *
 * Receiver-ready tokens: the receiver writes the epoch it has started into the sender's word `started`. An epoch e may
 * be sent when started > 0 and e < started + depth: never before the receiver's first Start, since until then it may
 * hand its place on to another request. When it does, the first token of the new place may be here before the grant
 * that belongs to it is read: so the first token is preceded by the number of its bind, which has to be the grant's.
 * With depth > 1 the token is written every depth / 2 epochs.
 *
 * A strided send buffer is gathered by the device where each partition is a few spans of some length (GATHER_MAX and
 * GATHER_MEAN, chan_send.c), else packed into registered memory by MPI_Pready. Strided receives land in slots and are
 * copied out.
 *
 * The send buffer may be reused when nothing of it is to be read any more: at once where the bytes were copied into the
 * work request (inline), else with the completion of the epoch's last write, which is asked for.
 *
 * Work requests are prepared at bind, LIST of them per channel, chained; a post sets addresses and epoch, with ep.lock. */
#ifndef DZ_VERBS_CHAN_H
#define DZ_VERBS_CHAN_H

#include "transport/verbs/verbs.h"

enum { PACKED_MAX = 64 };
enum landing { SLOT, BUFFER };
enum notice { PACKED, IMM, WORD };

struct offer {
    uint64_t started_addr;   /* of two words: the token, and the bind that it belongs to */
    uint32_t started_key;
    uint32_t max_inline;
};
struct grant {
    uint64_t data_addr, word_addr;
    uint64_t bind;           /* no other grant of this process has the number */
    uint64_t bytes;          /* of the receive buffer's packed stream, as far as it may be written */
    uint64_t stride;         /* SLOT: from partition to partition */
    uint32_t data_key, word_key;
    uint32_t imm_base, depth;
    uint8_t landing, notice;
};
_Static_assert(sizeof(struct grant) <= DZ_BLOB_MAX && sizeof(struct offer) <= DZ_BLOB_MAX, "blobs fit");

static inline uint64_t packed_words(uint64_t part_bytes)
{
    return part_bytes ? (part_bytes + 3) / 4 : 1;
}

#endif
