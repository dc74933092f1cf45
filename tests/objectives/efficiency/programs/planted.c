/* A program of known efficiencies. It computes by sleeping, so that ranks share cores without a loss.

   planted balance S:  rank r computes for (r + 1) S seconds, then all wait for the last
   planted turns S:    the ranks compute for S seconds one after the other
   planted talk S:     the ranks do nothing but talk for S seconds
   planted killed S:   after S seconds the last rank is killed, before it ends
   planted threads S:  a second thread of each rank talks as well (MPI_THREAD_MULTIPLE); every answer is checked */

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks;

static void compute(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&pause, &pause))
        ;
}

static void *sums(void *comm)
{
    for (int i = 0; i < 200; i++) {
        int sum = 0, own = rank + i;
        MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)comm);
        if (sum != ranks * i + ranks * (ranks - 1) / 2)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return NULL;
}

static void with_threads(void)
{
    MPI_Comm first, second;
    pthread_t other;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    pthread_create(&other, NULL, sums, &second);
    sums(&first);
    pthread_join(other, NULL);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    double seconds = atof(argv[2]), ended;
    int provided, goes_on = 1, token = 0, last;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    last = rank == ranks - 1;
    if (!strcmp(what, "balance")) {
        compute((rank + 1) * seconds);
    } else if (!strcmp(what, "turns")) {
        if (rank)
            MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(seconds);
        if (!last)
            MPI_Ssend(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    } else if (!strcmp(what, "talk")) {
        for (ended = MPI_Wtime() + seconds; goes_on;) {
            goes_on = MPI_Wtime() < ended;
            MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    } else if (!strcmp(what, "killed")) {
        compute(seconds);
        if (last)
            raise(SIGKILL);
    } else if (provided == MPI_THREAD_MULTIPLE) {
        with_threads();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank)
        printf("answer %d\n", 6 * 7);
    MPI_Finalize();
    return argc < 0;
}
