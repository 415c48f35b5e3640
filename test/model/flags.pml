/* flags.pml - the flag protocol of a partitioned pair, for spin: every interleaving of two threads that mark partitions,
 * one that makes progress, a receiver and two threads that take what has arrived, over EPOCHS rounds and a ring of DEPTH.
 *
 * What stands for what: ready[] and go are psend's (part_send.c: mark, keep, raise_go, give_kept); arrived[], landed,
 * done are the receiver's (part_recv.c: land, end_epoch); started and the slots are the channel's (transport/shm/chan.c).
 * Each statement is one atomic step in one total order, as the sequentially consistent accesses are; release and acquire
 * of the rest are named beside them in the sources.
 *
 * Asserted: a partition is given to the transport once a round; a slot is written only when it has been taken; what is
 * taken is of this round; a partition lands once. That nothing is lost is the absence of invalid end states.
 *
 * Large partitions are claimed one by one; RUNS is the other way, one claim for all (part_recv.c: try_claim).
 * BROKEN=1..4 breaks one step each; flags.sh expects spin to find every one. */
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef BROKEN
#define BROKEN 0
#endif
#define PARTS 2
#define KEPT(e) (4 * (e) + 1)
#define GIVING(e) (4 * (e) + 2)
#define GIVEN(e) (4 * (e) + 3)
#define ALL_GIVEN(e) (ready[0] == GIVEN(e) && ready[1] == GIVEN(e))
#define IDLE(e) (4 * (e))
#define BUSY(e) (4 * (e) + 1)
#define ARRIVED(e) (4 * (e) + 3)
#define SLOT(p, e) (((e) % DEPTH) * PARTS + (p))
#if BROKEN == 3
#define ROOM(e) ((e) < started + DEPTH + 1)
#else
#define ROOM(e) ((e) < started + DEPTH)
#endif

byte epoch, begun, go, ready[PARTS];           /* sender; begun: MPI_Start has returned */
byte started, slot_word[PARTS * DEPTH];        /* channel */
byte slot_data[PARTS * DEPTH];
bool slot_full[PARTS * DEPTH];                 /* only to assert */
byte given[PARTS];                             /* only to assert: rounds given */
byte wanted, arrived[PARTS], landed, done;     /* receiver */
bool over, claimed;                            /* claimed: with RUNS, the claim on the whole bind */

inline give(p, e)
{
    atomic { assert(given[p] == e - 1); given[p] = e; assert(!slot_full[SLOT(p, e)]); slot_full[SLOT(p, e)] = true }
    slot_data[SLOT(p, e)] = e;
    slot_word[SLOT(p, e)] = e;
    ready[p] = GIVEN(e)
}

/* One thread marks partition p in every round. */
proctype Marker(byte p)
{
    byte e = 1, seen;
    do
    :: e <= EPOCHS ->
        begun >= e;
        seen = go;
        if
        :: seen >= e ->
            assert(ready[p] < KEPT(e));
            give(p, e)
        :: else ->
            ready[p] = KEPT(e);
#if BROKEN != 1
            seen = go;
            if
            :: seen >= e ->
                if
                :: d_step { ready[p] == KEPT(e) -> ready[p] = GIVING(e) }
                    give(p, e)
                :: ready[p] != KEPT(e)
                fi
            :: else
            fi
#endif
        fi;
        seen = 0;
        (ALL_GIVEN(e) || epoch > e); /* the next round starts when this one is given */
        e++
    :: else -> break
    od
}

proctype Progress()
{
    byte e, p;
    do
    :: over -> break
    :: d_step { !over && go < epoch && ROOM(epoch) -> e = epoch; go = e; p = 0 }
        do
        :: p < PARTS ->
            if
#if BROKEN == 2
            :: ready[p] == KEPT(e) -> ready[p] = GIVING(e); give(p, e)
#else
            :: d_step { ready[p] == KEPT(e) -> ready[p] = GIVING(e) } give(p, e)
#endif
            :: ready[p] != KEPT(e)
            fi;
            p++
        :: else -> break
        od;
        e = 0;
        p = 0
    od
}

/* Start, then wait: given whole, and the next round has room. */
proctype Sender()
{
    byte e = 1;
    do
    :: e <= EPOCHS ->
        epoch = e;
        if
        :: d_step { ROOM(e) && go < e -> go = e }
        :: go >= e || !ROOM(e) /* progress raises it */
        fi;
        begun = e;
        ALL_GIVEN(e);
        (DEPTH == 1 || e == EPOCHS || ROOM(e + 1));
        e++
    :: else -> break
    od
}

proctype Receiver()
{
    byte e = 1;
    do
    :: e <= EPOCHS ->
        wanted = e;
        started = e;
        done == e;
        e++
    :: else -> over = true; break
    od
}

/* Looks only when there is something to see, which is what polling comes to. */
#define SEEN(p) (!over && wanted > 0 && arrived[p] <= IDLE(wanted) && slot_word[SLOT(p, wanted)] == wanted)
proctype Taker()
{
    byte e, p, word, before;
    do
    :: true ->
        if
        :: over -> break
        :: d_step { SEEN(0) -> p = 0; e = wanted; word = arrived[0] }
        :: d_step { SEEN(1) -> p = 1; e = wanted; word = arrived[1] }
        fi;
        if
#if BROKEN == 4
        :: true ->
#elif defined RUNS
        :: d_step { !claimed -> claimed = true }
            if
            :: done >= e || arrived[p] == ARRIVED(e) -> skip /* came late */
            :: else ->
#else
        :: d_step { arrived[p] == word -> arrived[p] = BUSY(e) }
#endif
            d_step { assert(slot_data[SLOT(p, e)] == e && slot_full[SLOT(p, e)]); slot_full[SLOT(p, e)] = false }
            arrived[p] = ARRIVED(e);
            d_step { before = landed; landed++ }
            assert(before < e * PARTS);
            if
            :: before + 1 == e * PARTS -> done = e
            :: else
            fi
#if BROKEN == 4
#elif defined RUNS
            fi;
            claimed = false
#else
        :: arrived[p] != word
#endif
        fi;
        before = 0;
        word = 0;
        p = 0;
        e = 0
    od
}

init {
    atomic {
        run Sender(); run Marker(0); run Marker(1); run Progress();
        run Receiver(); run Taker(); run Taker()
    }
}
