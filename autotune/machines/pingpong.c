/* Messages between two ranks, to and fro: prints, one a line, the latency in s and the bandwidth in bytes/s of
   each repeat. `latency S` is half the time of a round trip of 8 bytes, `bandwidth B` that of 4 MiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double half_trip_s(int rank, char *buffer, int bytes, int trips)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int trip = 0; trip < trips; trip++) {
        if (rank == 0) {
            MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / (2.0 * trips);
}

int main(int argc, char **argv)
{
    const int small = 8, large = 4 << 20, repeats = 9;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *buffer = malloc(large);
    if (ranks != 2 || buffer == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(buffer, 1, large);
    half_trip_s(rank, buffer, small, 1000);
    half_trip_s(rank, buffer, large, 5);
    for (int repeat = 0; repeat < repeats; repeat++) {
        double latency_s = half_trip_s(rank, buffer, small, 2000);
        double large_s = half_trip_s(rank, buffer, large, 20);
        if (rank == 0)
            printf("latency %.9e\nbandwidth %.9e\n", latency_s, large / large_s);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
