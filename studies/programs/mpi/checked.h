/* What programs that measure collective operations share: their buffers and the right answers, and what passes between
 * ranks by plain messages, so that no algorithm that is tried can spoil it. A program defines `call`, which does the
 * operation once, and NAME_PREFIX, what the names of its operations begin with.
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

static void call(int collective, long count);

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

/* Do it once, and end the program with what is wrong if anything is. */
static void check(int collective, long bytes, long count, double *other)
{
    fill(collective, count);
    call(collective, count);
    double wrong = wrong_numbers(collective, count), none;
    slowest(&wrong, 1, other ? other : &none);
    if (told(wrong > 0)) {
        if (rank == 0) {
            printf("{\"wrong\": {\"collective\": \"" NAME_PREFIX "%s\", \"ranks\": %d, \"bytes\": %ld, \"numbers\": %.0f}}\n",
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

static int collective_of(const char *name)
{
    for (int i = 0; i < COLLECTIVES; i++)
        if (strcmp(name, NAMES[i]) == 0) return i;
    return -1;
}

/* The sizes of a list with commas; `largest` becomes the largest. */
static int sizes_of(char *list, long *sizes, long *largest)
{
    int n = 0;
    for (char *word = strtok(list, ","); word && n < SIZES; word = strtok(NULL, ",")) {
        sizes[n] = atol(word);
        if (sizes[n] > *largest) *largest = sizes[n];
        n++;
    }
    return n;
}

static void *memory(size_t bytes)
{
    void *got = malloc(bytes);
    if (!got) {
        fprintf(stderr, "Cannot allocate memory of %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return got;
}

static double *numbers_of(int n) { return memory((size_t)n * sizeof(double)); }

static void allocate(long largest_bytes)
{
    const size_t numbers = (size_t)(largest_bytes / (long)sizeof(float) + 1) * (size_t)ranks;
    from = memory(numbers * sizeof *from);
    to = memory(numbers * sizeof *to);
    counts = memory((size_t)ranks * sizeof *counts);
}
