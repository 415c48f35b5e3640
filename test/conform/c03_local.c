/* Psend_init, Precv_init, Start and Pready are local: one side goes as far as it can before the other has begun.
 *
 * run: -n 2
 * run: -n 2 -e DENIZEN_CMA=0 -e DENIZEN_SLOT_LIMIT=0 */
#include "check.h"

enum { PARTS = 8, BYTES = 3000 };
static unsigned char buf[PARTS * BYTES];

static void sender(int tag, int before)
{
    MPI_Request s;
    int flag;
    if (!before)
        hear();
    MPI_Psend_init(buf, PARTS, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Start(&s);
    fill(buf, 0, sizeof buf, rank, tag);
    for (int p = 0; p < PARTS; p++)
        MPI_Pready(p, s); /* returns at once, whoever listens */
    MPI_Test(&s, &flag, MPI_STATUS_IGNORE);
    if (before)
        tell();
    if (!flag)
        MPI_Wait(&s, MPI_STATUS_IGNORE);
    MPI_Request_free(&s);
}

static void receiver(int tag, int sender_first)
{
    MPI_Request r;
    MPI_Status status;
    int flag = 0, n = -1;
    if (sender_first)
        hear();
    memset(buf, 0, sizeof buf);
    MPI_Precv_init(buf, PARTS, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Test(&r, &flag, &status);
    if (!sender_first) {
        EXPECT(!flag, "complete before the sender has begun");
        EXPECT(!arrived(r, 0), "arrived before the sender has begun");
        tell();
    }
    if (!flag)
        MPI_Wait(&r, &status);
    MPI_Get_count(&status, MPI_BYTE, &n);
    EXPECT(n == PARTS * BYTES && status.MPI_SOURCE == peer && status.MPI_TAG == tag, "%d bytes from %d, tag %d", n,
           status.MPI_SOURCE, status.MPI_TAG);
    EXPECT(wrong_byte(buf, 0, sizeof buf, peer, tag) < 0, "byte %ld", wrong_byte(buf, 0, sizeof buf, peer, tag));
    MPI_Request_free(&r);
}

int main(void)
{
    begin(MPI_THREAD_SINGLE);
    for (int i = 0; i < 40; i++) {
        int sender_first = i / 2 % 2;
        if ((rank + i) % 2)
            receiver(i, sender_first);
        else
            sender(i, sender_first);
    }
    return end();
}
