/* faults.c - a peer that is lost and memory that runs out in the middle (DENIZEN_FAULT, or none): calls return errors that
 * name what failed, nothing hangs, and what does not need the lost goes on.
 *
 * run: -n 2 -e DENIZEN_FAULT=open=3
 * run: -n 2 -e DENIZEN_FAULT=dead=40 -e DENIZEN_PEER_TIMEOUT=50 */
#include <stdbool.h>

#include "test/conform/check.h"

enum { CHANNELS = 9, PARTS = 3, BYTES = 50 };

static bool names(int rc, int class, const char *word)
{
    int got, n;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(rc, &got);
    MPI_Error_string(rc, text, &n);
    EXPECT(got == class, "class %d, not %d: %s", got, class, text);
    EXPECT(strstr(text, word) != NULL, "'%s' is not in: %s", word, text);
    return true;
}

/* Every third end of a channel finds no memory: Psend_init says so, or the pair's completions do; the others work. */
static void no_memory(void)
{
    static unsigned char out[CHANNELS][PARTS * BYTES], in[CHANNELS][PARTS * BYTES];
    int refused = 0, failed = 0, good = 0;
    for (int c = 0; c < CHANNELS; c++) {
        MPI_Request s = MPI_REQUEST_NULL, r;
        fill(out[c], 0, sizeof out[c], rank, c);
        int rc = MPI_Psend_init(out[c], PARTS, BYTES, MPI_BYTE, peer, c, MPI_COMM_WORLD, MPI_INFO_NULL, &s), theirs = 0;
        int mine = rc != MPI_SUCCESS && names(rc, MPI_ERR_NO_MEM, "MPI_Psend_init");
        refused += mine;
        MPI_Sendrecv(&mine, 1, MPI_INT, peer, 100, &theirs, 1, MPI_INT, peer, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (mine || theirs) { /* what the peer has opened stays without its other end: freed unmatched */
            if (!mine)
                MPI_Request_free(&s);
            continue;
        }
        MPI_Precv_init(in[c], PARTS, BYTES, MPI_BYTE, peer, c, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        MPI_Start(&s);
        MPI_Pready_range(0, PARTS - 1, s);
        int bad_recv = MPI_Wait(&r, MPI_STATUS_IGNORE), bad_send = MPI_Wait(&s, MPI_STATUS_IGNORE);
        if (bad_recv)
            names(bad_recv, MPI_ERR_NO_MEM, "MPI_Wait");
        else
            EXPECT(wrong_byte(in[c], 0, sizeof in[c], peer, c) < 0, "channel %d", c);
        if (bad_send)
            names(bad_send, MPI_ERR_NO_MEM, "MPI_Wait");
        failed += bad_recv || bad_send;
        good += !bad_recv && !bad_send;
        MPI_Request_free(&s);
        MPI_Request_free(&r);
    }
    EXPECT(refused + failed > 0, "nothing has failed");
    EXPECT(good > 0, "nothing has worked");
}

/* After some messages the peer is gone, for this process. */
static void lost(void)
{
    unsigned char out[PARTS * BYTES] = {0}, in[PARTS * BYTES];
    char who[16];
    MPI_Request s, r;
    int rc = MPI_SUCCESS, self = -1;
    snprintf(who, sizeof who, "rank %d", peer);
    MPI_Psend_init(out, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int e = 0; e < 1000 && !rc; e++) {
        MPI_Start(&r);
        MPI_Start(&s);
        for (int p = 0; p < PARTS; p++)
            MPI_Pready(p, s);
        rc = MPI_Send(&e, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
        if (!rc)
            rc = MPI_Recv(&self, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!rc)
            rc = MPI_Wait(&s, MPI_STATUS_IGNORE);
        if (!rc)
            rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    EXPECT(rc != MPI_SUCCESS, "nothing was lost");
    if (rc)
        names(rc, MPI_ERR_PROC_FAILED, who);
    names(MPI_Recv(&self, 1, MPI_INT, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_PROC_FAILED, who);
    names(MPI_Send(out, 1, MPI_INT, peer, 5, MPI_COMM_WORLD), MPI_ERR_PROC_FAILED, who);
    int one = 7;
    MPI_Sendrecv(&one, 1, MPI_INT, 0, 6, &self, 1, MPI_INT, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    EXPECT(self == 7, "oneself is not reached any more: %d", self);
}

int main(void)
{
    const char *fault = getenv("DENIZEN_FAULT");
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (fault && strstr(fault, "dead")) {
        lost();
        MPI_Finalize(); /* says who is gone */
        return failures != 0;
    }
    no_memory();
    return end();
}
