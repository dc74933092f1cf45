/* How long a collective operation of MPI takes, by message size: one line of JSON a size, and one at the end.
 *
 *     collectives COLLECTIVE SECONDS BYTES[,BYTES...]
 *
 * A size means what it means in the OSU micro-benchmarks: the vector of a rank for allreduce, reduce, bcast and
 * reduce_scatter (there the whole vector, of which a rank gets its share), what a rank contributes for allgather, and
 * what it sends to each other rank for alltoall. A barrier has no size.
 *
 * All ranks pass a barrier before each repetition. The time of a repetition is that of its slowest rank; the median over
 * the repetitions counts. Each size has an equal share of SECONDS. Results are checked before and after the repetitions,
 * in buffers that hold something else before the call. What is not measured goes from rank to rank by plain messages, so
 * that no algorithm that is tried can spoil it.
 */
#define NAME_PREFIX ""
#include "checked.h"

static void call(int collective, long count)
{
    const int n = (int)count;
    switch (collective) {
    case ALLREDUCE: MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case REDUCE: MPI_Reduce(from, to, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); break;
    case BCAST: MPI_Bcast(to, n, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case ALLGATHER: MPI_Allgather(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD); break;
    case ALLTOALL: MPI_Alltoall(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter(from, to, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    default: MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void repeat(int collective, long count, double *times, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        call(collective, count);
        times[i] = MPI_Wtime() - start;
    }
}

/* The median of one size, in seconds, at rank 0; `made` is how many repetitions it is of.
 *
 * Batches of repetitions follow each other until as many are made as the time is for, by the median so far: one that
 * was interrupted for long does not shorten the others. Only where all take long does the clock end it. */
static double median(int collective, long bytes, double budget_s, double *times, double *other, int *made)
{
    const long count = bytes / (long)sizeof(float);
    check(collective, bytes, count, other);
    repeat(collective, count, times, WARM_UP);
    const double start = MPI_Wtime();
    double found_s = 0;
    *made = 0;
    for (int n = LEAST; n > 0;) {
        repeat(collective, count, times + *made, n);
        slowest(times + *made, n, other);
        *made += n;
        if (rank == 0) {
            found_s = middle(times, *made);
            /* A repetition takes about as long again for its barrier. */
            const double fit = 0.5 * budget_s / (found_s > 1e-7 ? found_s : 1e-7);
            const int wanted = fit > MOST ? MOST : (int)fit;
            n = wanted > 3 * *made ? 2 * *made : wanted - *made;
            if (MPI_Wtime() - start > LONGEST_S * budget_s) n = 0;
        }
        n = told(n);
    }
    check(collective, bytes, count, other);
    return found_s;
}

int main(int argc, char **argv)
{
    long sizes[SIZES], largest = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int collective = argc == 4 ? collective_of(argv[1]) : -1;
    const double seconds = argc == 4 ? atof(argv[2]) : 0;
    const int n = argc == 4 ? sizes_of(argv[3], sizes, &largest) : 0;
    if (collective < 0 || seconds <= 0 || n == 0) {
        if (rank == 0) fprintf(stderr, "usage: collectives COLLECTIVE SECONDS BYTES[,BYTES...]\n");
        MPI_Finalize();
        return BAD_USAGE;
    }
    allocate(largest);
    double *times = numbers_of(MOST), *other = numbers_of(MOST), medians[SIZES];
    for (int i = 0; i < n; i++) {
        int made = 0;
        medians[i] = median(collective, sizes[i], seconds / n, times, other, &made);
        if (rank == 0) {
            printf("{\"step\": %d, \"bytes\": %ld, \"latency_s\": %.9g, \"repetitions\": %d}\n", i + 1, sizes[i], medians[i], made);
            fflush(stdout);
        }
    }
    if (rank == 0) {
        printf("{\"result\": {\"collective\": \"%s\", \"ranks\": %d, \"sizes\": [", NAMES[collective], ranks);
        for (int i = 0; i < n; i++) printf("%s[%ld, %.9g]", i ? ", " : "", sizes[i], medians[i]);
        printf("]}}\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
