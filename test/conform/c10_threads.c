/* Sixteen threads mark partitions while one tests; others look at arrivals; Start, Test and Wait come from different
 * threads in turn. 100,000 rounds (divided by DZ_TEST_SCALE), every byte checked.
 *
 * run: -n 2 -t 400
 * run: -n 1 -t 400 */
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { THREADS = 16, PARTS = 16, BYTES = 24, LOOKERS = 1 };
static unsigned char out[PARTS * BYTES], in[PARTS * BYTES];
static MPI_Request s, r;
static pthread_barrier_t turn;
static long rounds = 100000;
static int over;

static void *mark(void *arg)
{
    int p = (int)(size_t)arg;
    for (long e = 0; e < rounds; e++) {
        pthread_barrier_wait(&turn); /* started */
        fill(out, (long)p * BYTES, BYTES, rank, (int)e);
        MPI_Pready(p, s);
        if (e % 8 == 7) { /* this thread's turn to look at one that has arrived */
            while (!arrived(r, p))
                ;
            EXPECT(wrong_byte(in, (long)p * BYTES, BYTES, peer, (int)e) < 0, "round %ld, partition %d", e, p);
        }
        pthread_barrier_wait(&turn); /* complete */
    }
    return NULL;
}

static void *look(void *arg)
{
    MPI_Status status;
    int flag;
    (void)arg;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        MPI_Parrived(r, rand() % PARTS, &flag);
        MPI_Request_get_status(s, &flag, &status);
        sched_yield(); /* the cores are for those who have something to do */
    }
    return NULL;
}

static void *complete(void *arg)
{
    int flag = 0;
    (void)arg;
    while (!flag)
        MPI_Test(&s, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    return NULL;
}

static void begin_round(void)
{
    MPI_Start(&r);
    MPI_Start(&s);
}

int main(void)
{
    pthread_t t[THREADS], lookers[LOOKERS];
    const char *scale = getenv("DZ_TEST_SCALE");
    if (scale && atoi(scale) > 0)
        rounds /= atoi(scale);
    begin(MPI_THREAD_MULTIPLE);
    MPI_Psend_init(out, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, PARTS, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    pthread_barrier_init(&turn, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, mark, (void *)i);
    for (size_t i = 0; i < LOOKERS; i++)
        pthread_create(&lookers[i], NULL, look, NULL);
    for (long e = 0; e < rounds; e++) {
        begin_round();
        pthread_barrier_wait(&turn);
        if (e % 1000 == 999) { /* another thread completes it */
            pthread_t other;
            pthread_create(&other, NULL, complete, NULL);
            pthread_join(other, NULL);
        } else {
            complete(NULL);
        }
        long wrong = wrong_byte(in, 0, sizeof in, peer, (int)e);
        EXPECT(wrong < 0, "round %ld: byte %ld", e, wrong);
        pthread_barrier_wait(&turn);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < LOOKERS; i++)
        pthread_join(lookers[i], NULL);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    return end();
}
