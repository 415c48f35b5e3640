/* What other libraries get wrong: progress before the first Pready of a restarted send must not complete it; Testall
 * succeeds when all did; statuses stay right after Request_get_status; a send's status is well defined; the status of a
 * receive larger than the send tells the sender's count; a send and its arrival complete while the sender makes no call.
 *
 * run: -n 2
 * Over RDMA what was marked before the receiver was there needs the sender's next call, or its progress thread.
 *
 * run: -n 2 -e DENIZEN_PROGRESS_THREAD=1
 * run: -n 2 -e DENIZEN_TRANSPORT=shm,self
 * run: -n 2 -e DENIZEN_TRANSPORT=shm,self -e DENIZEN_SLOT_LIMIT=0 */
#include "check.h"

enum { PARTS = 4, LEN = 4096 };
static unsigned char out[PARTS * LEN], in[2 * PARTS * LEN];

static void restarted(MPI_Request *s, MPI_Request *r)
{
    int flag;
    for (int round = 0; round < 3; round++) {
        MPI_Start(r);
        MPI_Start(s);
        for (int i = 0; i < 200; i++) {
            MPI_Test(s, &flag, MPI_STATUS_IGNORE);
            EXPECT(!flag, "round %d: complete before any Pready", round);
        }
        MPI_Pready_range(0, PARTS - 2, *s);
        for (int i = 0; i < 200; i++) {
            MPI_Test(s, &flag, MPI_STATUS_IGNORE);
            EXPECT(!flag, "round %d: complete before the last Pready", round);
        }
        MPI_Pready(PARTS - 1, *s);
        MPI_Wait(s, MPI_STATUS_IGNORE);
        MPI_Wait(r, MPI_STATUS_IGNORE);
    }
}

static void statuses(MPI_Request *s, MPI_Request *r)
{
    MPI_Request both[2] = {*s, *r};
    MPI_Status st[2], look;
    int flag = 0, n = -1;
    MPI_Startall(2, both);
    MPI_Pready_range(0, PARTS - 1, *s);
    while (!flag)
        MPI_Request_get_status(*r, &flag, &look);
    MPI_Get_count(&look, MPI_BYTE, &n);
    EXPECT(n == PARTS * LEN && look.MPI_SOURCE == peer && look.MPI_TAG == 5, "looked: %d from %d, tag %d", n, look.MPI_SOURCE,
           look.MPI_TAG);
    memset(st, 0x77, sizeof st);
    int rc = MPI_SUCCESS;
    for (flag = 0; !flag && rc == MPI_SUCCESS;)
        rc = MPI_Testall(2, both, &flag, st);
    EXPECT(rc == MPI_SUCCESS, "Testall: %d", rc);
    MPI_Get_count(&st[1], MPI_BYTE, &n);
    EXPECT(n == PARTS * LEN && st[1].MPI_SOURCE == peer && st[1].MPI_TAG == 5, "receive larger than the send: %d bytes", n);
    MPI_Get_count(&st[0], MPI_BYTE, &n);
    MPI_Test_cancelled(&st[0], &flag);
    EXPECT(!flag && n == 0 && st[0].MPI_TAG == MPI_ANY_TAG, "the send's status: cancelled %d, count %d, tag %d", flag, n,
           st[0].MPI_TAG);
}

/* Rank 0 makes no call between its last Pready and the message that says it has been received; what says so travels on
 * a pipe between the processes, not through MPI. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void silent_sender(MPI_Request *s, MPI_Request *r)
{
    char path[128] = "", byte = 0;
    snprintf(path, sizeof path, "/tmp/denizen-c16.%d", rank == 0 ? (int)getpid() : 0);
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0 && mkfifo(path, 0600))
        EXPECT(0, "no pipe at %s", path);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Start(s);
        fill(out, 0, sizeof out, 0, 99);
        MPI_Pready_range(0, PARTS - 1, *s);
        int fd = open(path, O_RDONLY); /* until the receiver has everything */
        EXPECT(fd >= 0 && read(fd, &byte, 1) == 1 && byte == 1, "the receiver said %d", byte);
        close(fd);
        unlink(path);
        MPI_Wait(s, MPI_STATUS_IGNORE);
    } else {
        MPI_Start(r);
        MPI_Wait(r, MPI_STATUS_IGNORE);
        EXPECT(wrong_byte(in, 0, sizeof out, 0, 99) < 0, "bytes");
        byte = 1;
        int fd = open(path, O_WRONLY);
        EXPECT(fd >= 0 && write(fd, &byte, 1) == 1, "cannot say so");
        close(fd);
    }
}

int main(void)
{
    MPI_Request s, r;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Psend_init(out, PARTS, LEN, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, 2 * LEN, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    restarted(&s, &r);
    statuses(&s, &r);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    if (rank == 0)
        MPI_Psend_init(out, PARTS, LEN, MPI_BYTE, peer, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    else
        MPI_Precv_init(in, PARTS, LEN, MPI_BYTE, peer, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    silent_sender(&s, &r);
    MPI_Request_free(rank == 0 ? &s : &r);
    return end();
}
