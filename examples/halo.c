/* halo.c - heat on a plate: a two-dimensional grid cut into bands, one a rank; each band's first and last rows go to its
 * neighbours in partitions, and each thread sends its own part of a row as soon as it has computed it.
 *
 * What to copy from here: the requests are made once; in a step every thread marks its part of the edge rows ready
 * before it goes on with the inside, so the edges travel while the rest is computed. Neighbours that do not exist are
 * MPI_PROC_NULL. At the end rank 0 computes the same alone and compares.
 *
 *   mpicc -pthread halo.c -o halo && mpirun -n 2 ./halo [columns rows steps] */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };

static int rank, size, columns = 256, rows = 128, steps = 200; /* rows: of the whole plate */
static int first, mine;                                        /* own rows of it */
static double *grid[2];                                        /* own rows, with a row of the neighbours at each end */
static MPI_Request send[2][2], recv[2][2];                     /* [grid][0: up, 1: down] */
static pthread_barrier_t barrier;

static double *row_of(double *g, int r)
{
    return g + (size_t)r * (size_t)columns;
}

static double start_value(int r, int c)
{
    return sin(0.1 * r) * 100 + (c * 37 + r * 11) % 17;
}

/* The rim of the plate keeps its values. */
static double new_value(const double *above, const double *here, const double *below, int r, int c)
{
    if (r == 0 || r == rows - 1 || c == 0 || c == columns - 1)
        return here[c];
    return here[c] + 0.2 * (above[c] + below[c] + here[c - 1] + here[c + 1] - 4 * here[c]);
}

static void compute(int from, int to, int r, int begin, int end)
{
    const double *g = grid[from];
    for (int c = begin; c < end; c++)
        row_of(grid[to], r)[c] = new_value(row_of(grid[from], r - 1), g + (size_t)r * (size_t)columns,
                                           row_of(grid[from], r + 1), first + r - 1, c);
}

static void *work(void *arg)
{
    int t = (int)(size_t)arg, begin = columns / THREADS * t, end = begin + columns / THREADS;
    for (int s = 0; s < steps; s++) {
        int from = s % 2, to = !from;
        pthread_barrier_wait(&barrier); /* the requests are started, the neighbours' rows are here */
        compute(from, to, 1, begin, end);
        MPI_Pready(t, send[to][0]);
        if (mine > 1)
            compute(from, to, mine, begin, end);
        MPI_Pready(t, send[to][1]);
        for (int r = 2; r < mine; r++)
            compute(from, to, r, begin, end);
        pthread_barrier_wait(&barrier); /* all of this step is computed */
    }
    return NULL;
}

static void make_requests(void)
{
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, n = columns / THREADS;
    for (int g = 0; g < 2; g++) {
        /* the tag says which way a row goes */
        MPI_Psend_init(row_of(grid[g], 1), THREADS, n, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send[g][0]);
        MPI_Psend_init(row_of(grid[g], mine), THREADS, n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send[g][1]);
        MPI_Precv_init(row_of(grid[g], 0), THREADS, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &recv[g][0]);
        MPI_Precv_init(row_of(grid[g], mine + 1), THREADS, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &recv[g][1]);
    }
}

static void run(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (size_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, (void *)t);
    for (int s = 0; s < steps; s++) {
        int to = !(s % 2);
        MPI_Startall(2, recv[to]);
        MPI_Startall(2, send[to]);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        MPI_Waitall(2, send[to], MPI_STATUSES_IGNORE);
        MPI_Waitall(2, recv[to], MPI_STATUSES_IGNORE);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

/* The whole plate, by one rank. */
static double *alone(void)
{
    double *a = malloc((size_t)rows * (size_t)columns * sizeof *a), *b = malloc((size_t)rows * (size_t)columns * sizeof *b);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            row_of(a, r)[c] = start_value(r, c);
    for (int s = 0; s < steps; s++) {
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++)
                row_of(b, r)[c] = new_value(r ? row_of(a, r - 1) : NULL, row_of(a, r), row_of(a, r + 1), r, c);
        double *swap = a;
        a = b;
        b = swap;
    }
    free(b);
    return a;
}

static int compare(void)
{
    int wrong = 0;
    double *band = malloc((size_t)rows * (size_t)columns * sizeof *band), *whole = rank ? NULL : alone();
    for (int other = 0; other < size; other++) {
        int from = rows * other / size, n = (rows * (other + 1) / size - from) * columns;
        if (rank == other)
            MPI_Sendrecv(row_of(grid[steps % 2], 1), n, MPI_DOUBLE, 0, 9, band, rank ? 0 : n, MPI_DOUBLE,
                         rank ? MPI_PROC_NULL : 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (rank == 0)
            MPI_Recv(band, n, MPI_DOUBLE, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 0)
            wrong += memcmp(band, row_of(whole, from), (size_t)n * sizeof *band) != 0;
    }
    free(band);
    free(whole);
    return wrong;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc == 4) {
        columns = atoi(argv[1]);
        rows = atoi(argv[2]);
        steps = atoi(argv[3]);
    }
    if (provided < MPI_THREAD_MULTIPLE || columns < THREADS || columns % THREADS || rows < size || steps < 1) {
        if (!rank)
            fprintf(stderr, "halo: needs MPI_THREAD_MULTIPLE, columns in %d equal parts and a row a rank\n", THREADS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    first = rows * rank / size;
    mine = rows * (rank + 1) / size - first;
    for (int g = 0; g < 2; g++) {
        grid[g] = calloc((size_t)(mine + 2) * (size_t)columns, sizeof *grid[g]);
        for (int r = 0; r < mine + 2; r++)
            for (int c = 0; c < columns; c++)
                row_of(grid[g], r)[c] = start_value(first + r - 1, c);
    }
    make_requests();
    double from = MPI_Wtime();
    run();
    double spent = MPI_Wtime() - from;
    int wrong = compare();
    if (rank == 0)
        printf("%d x %d, %d steps on %d ranks of %d threads: %.2f ms, %s\n", columns, rows, steps, size, THREADS,
               spent * 1e3, wrong ? "WRONG" : "as computed alone");
    for (int g = 0; g < 2; g++) {
        for (int d = 0; d < 2; d++) {
            MPI_Request_free(&send[g][d]);
            MPI_Request_free(&recv[g][d]);
        }
        free(grid[g]);
    }
    MPI_Finalize();
    return rank == 0 && wrong;
}
/* For the tests: run: -n 2
 *                run: -n 1
 *                run: -n 5 */
