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
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 10, MOST = 20000, WARM_UP = 5, SIZES = 64, LONGEST_S = 4, BAD_USAGE = 2, WRONG = 3, TAG = 7 };

static const char *const NAMES[] = {"allreduce", "reduce", "bcast", "allgather", "alltoall", "reduce_scatter", "barrier"};
enum { ALLREDUCE, REDUCE, BCAST, ALLGATHER, ALLTOALL, REDUCE_SCATTER, BARRIER, COLLECTIVES };

static int rank, ranks, *counts;
static float *from, *to;

/* A whole number that depends on who sends it and on where it stands, so small that sums of floats are exact. */
static float value(int sender, long place) { return (float)((sender * 31 + place * 7) % 101); }

static float sum(long place)
{
    float total = 0;
    for (int sender = 0; sender < ranks; sender++) total += value(sender, place);
    return total;
}

static long share(long count, int of) { return count / ranks + (of < count % ranks ? 1 : 0); }

/* Fill the buffers for `count` numbers a message: what is sent, and in what is received something that no result is. */
static void fill(int collective, long count)
{
    const long sent = collective == ALLTOALL ? count * ranks : count;
    const long received = collective == ALLTOALL || collective == ALLGATHER ? count * ranks : count;
    for (long i = 0; i < sent; i++) from[i] = value(rank, i);
    for (long i = 0; i < received; i++) to[i] = -1;
    if (collective == BCAST && rank == 0) memcpy(to, from, sizeof *to * (size_t)count);
    for (int of = 0; of < ranks; of++) counts[of] = (int)share(count, of);
}

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

/* How many numbers of the result are not what they must be. */
static double wrong_numbers(int collective, long count)
{
    double wrong = 0;
    long first = 0;
    switch (collective) {
    case REDUCE:
        if (rank != 0) return 0;
        /* fall through */
    case ALLREDUCE:
        for (long i = 0; i < count; i++) wrong += to[i] != sum(i);
        return wrong;
    case BCAST:
        for (long i = 0; i < count; i++) wrong += to[i] != value(0, i);
        return wrong;
    case REDUCE_SCATTER:
        for (int of = 0; of < rank; of++) first += counts[of];
        for (long i = 0; i < counts[rank]; i++) wrong += to[i] != sum(first + i);
        return wrong;
    case ALLGATHER:
    case ALLTOALL:
        for (int of = 0; of < ranks; of++)
            for (long i = 0; i < count; i++)
                wrong += to[of * count + i] != value(of, collective == ALLTOALL ? rank * count + i : i);
        return wrong;
    default: return 0;
    }
}

/* At rank 0, for each place the largest of what the ranks have there: by plain messages. */
static void slowest(double *times, int n, double *other)
{
    if (rank != 0) {
        MPI_Send(times, n, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    for (int of = 1; of < ranks; of++) {
        MPI_Recv(other, n, MPI_DOUBLE, of, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++)
            if (other[i] > times[i]) times[i] = other[i];
    }
}

static int told(int number)
{
    for (int of = 1; rank == 0 && of < ranks; of++) MPI_Send(&number, 1, MPI_INT, of, TAG, MPI_COMM_WORLD);
    if (rank != 0) MPI_Recv(&number, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return number;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
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

static void check(int collective, long bytes, long count, double *other)
{
    fill(collective, count);
    call(collective, count);
    double wrong = wrong_numbers(collective, count), none;
    slowest(&wrong, 1, other ? other : &none);
    if (told(wrong > 0)) {
        if (rank == 0) {
            printf("{\"wrong\": {\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %ld, \"numbers\": %.0f}}\n",
                   NAMES[collective], ranks, bytes, wrong);
            fflush(stdout);
        }
        MPI_Finalize();
        exit(WRONG);
    }
}

static double middle(double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, ascending);
    return n % 2 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
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

static int collective_of(const char *name)
{
    for (int i = 0; i < COLLECTIVES; i++)
        if (strcmp(name, NAMES[i]) == 0) return i;
    return -1;
}

int main(int argc, char **argv)
{
    long sizes[SIZES], largest = 0;
    int n = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int collective = argc == 4 ? collective_of(argv[1]) : -1;
    const double seconds = argc == 4 ? atof(argv[2]) : 0;
    for (char *word = argc == 4 ? strtok(argv[3], ",") : NULL; word && n < SIZES; word = strtok(NULL, ",")) {
        sizes[n] = atol(word);
        if (sizes[n] > largest) largest = sizes[n];
        n++;
    }
    if (collective < 0 || seconds <= 0 || n == 0) {
        if (rank == 0) fprintf(stderr, "usage: collectives COLLECTIVE SECONDS BYTES[,BYTES...]\n");
        MPI_Finalize();
        return BAD_USAGE;
    }
    const size_t numbers = (size_t)(largest / (long)sizeof(float) + 1) * (size_t)ranks;
    from = malloc(numbers * sizeof *from);
    to = malloc(numbers * sizeof *to);
    counts = malloc((size_t)ranks * sizeof *counts);
    double *times = malloc(MOST * sizeof *times), *other = malloc(MOST * sizeof *other), medians[SIZES];
    if (!from || !to || !counts || !times || !other) {
        fprintf(stderr, "Cannot allocate memory for messages of %ld bytes\n", largest);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
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
