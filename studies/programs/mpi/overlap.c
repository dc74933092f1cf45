/* How much of a nonblocking collective operation of MPI hides behind computation, by message size: one line of JSON a
 * size, and one at the end.
 *
 *     overlap COLLECTIVE SECONDS BYTES[,BYTES...] TESTS PAUSE_US
 *
 * COLLECTIVE is iallreduce, ibcast, iallgather or ialltoall; sizes and checks are those of collectives.c. Between start
 * and MPI_Wait each rank computes for about as long as the operation takes by itself, and calls MPI_Test so many times,
 * evenly spread. PAUSE_US is how long a thread of the rank's own waits between two calls that make progress meanwhile; -1
 * is no thread.
 *
 * The OSU micro-benchmarks (print_stats_nbc in util/osu_util_mpi.c; github.com/ROCm/hipOMB has a copy) define
 *
 *     overlap = max(0, 100 - (overall - (cpu - test)) / comm * 100)
 *
 * by the time `overall` from start to the end of MPI_Wait, `cpu` of the computation with its calls of MPI_Test, `test` of
 * these calls, and `comm` of the operation by itself. What is divided by `comm` is the exposed time: what the operation
 * costs a program although it computes meanwhile. Two things differ here. A repetition has the time of its slowest rank,
 * and the median over the repetitions counts, where OSU has means. And the computation is a fixed amount of work: where
 * the thread takes a core from it, the time that it loses is exposed time, too.
 */
#define NAME_PREFIX "i"
#include "checked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { PIECE = 64, TRIED_ROUNDS = 20000, SHARES = 6 };

static int tests;
static long pause_us;
static atomic_int goes_on;
static MPI_Comm apart;

static MPI_Request started(int collective, long count)
{
    const int n = (int)count;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (collective) {
    case ALLREDUCE: MPI_Iallreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request); break;
    case BCAST: MPI_Ibcast(to, n, MPI_FLOAT, 0, MPI_COMM_WORLD, &request); break;
    case ALLGATHER: MPI_Iallgather(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD, &request); break;
    default: MPI_Ialltoall(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD, &request);
    }
    return request;
}

static void call(int collective, long count)
{
    MPI_Request request = started(collective, count);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Work that takes as long for each round, and that no compiler leaves out. */
static void compute(long rounds)
{
    static volatile float kept[PIECE];
    float numbers[PIECE];
    for (int i = 0; i < PIECE; i++) numbers[i] = kept[i];
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < PIECE; i++) numbers[i] = numbers[i] * 0.999f + 0.5f;
    for (int i = 0; i < PIECE; i++) kept[i] = numbers[i];
}

static void *progress(void *unused)
{
    const struct timespec pause = {pause_us / 1000000, pause_us % 1000000 * 1000};
    while (atomic_load(&goes_on)) {
        int found;
        /* Nobody sends there: to look makes the library look after everything. */
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, apart, &found, MPI_STATUS_IGNORE);
        nanosleep(&pause, NULL);
    }
    return unused;
}

/* The exposed time of a repetition; `alone` is how long its computation takes by itself. */
static double exposed(int collective, long count, long rounds, double alone)
{
    double test = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Request request = started(collective, count);
    const double computing = MPI_Wtime();
    for (int piece = 0; piece <= tests; piece++) {
        compute(rounds * (piece + 1) / (tests + 1) - rounds * piece / (tests + 1));
        if (piece == tests) break;
        int done;
        const double testing = MPI_Wtime();
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        test += MPI_Wtime() - testing;
    }
    const double computed = MPI_Wtime() - computing - test;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Wtime() - start - (computed < alone ? computed : alone);
}

static void repeat(int collective, long count, long rounds, double *comm, double *of_exposed, double *scratch, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        call(collective, count);
        comm[i] = MPI_Wtime() - start;
    }
    for (int i = 0; i < n; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        compute(rounds);
        scratch[i] = MPI_Wtime() - start;
    }
    const double alone = middle(scratch, n);
    pthread_t thread;
    atomic_store(&goes_on, 1);
    if (pause_us >= 0 && pthread_create(&thread, NULL, progress, NULL) != 0) {
        fprintf(stderr, "Cannot start a thread\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < n; i++) of_exposed[i] = exposed(collective, count, rounds, alone);
    atomic_store(&goes_on, 0);
    if (pause_us >= 0) pthread_join(thread, NULL);
}

/* How many rounds of work take as long as the operation by itself, by rank 0's clock. */
static long rounds_for(int collective, long count, double *comm, double *other)
{
    double rounds = 0;
    for (int i = 0; i < LEAST; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        call(collective, count);
        comm[i] = MPI_Wtime() - start;
    }
    slowest(comm, LEAST, other);
    const double start = MPI_Wtime();
    compute(TRIED_ROUNDS);
    if (rank == 0) rounds = middle(comm, LEAST) / (MPI_Wtime() - start) * TRIED_ROUNDS;
    return told(rounds > 1e9 ? 1000000000 : (int)rounds + 1);
}

typedef struct {
    double comm, exposed;
    int made;
} Found;

/* The medians of one size, in seconds, at rank 0, in batches as in collectives.c. */
static Found medians(int collective, long bytes, double budget_s, double *comm, double *of_exposed, double *other)
{
    const long count = bytes / (long)sizeof(float);
    Found found = {0, 0, 0};
    check(collective, bytes, count, other);
    for (int i = 0; i < WARM_UP; i++) call(collective, count);
    const long rounds = rounds_for(collective, count, comm, other);
    const double start = MPI_Wtime();
    for (int n = LEAST; n > 0;) {
        repeat(collective, count, rounds, comm + found.made, of_exposed + found.made, other, n);
        slowest(comm + found.made, n, other);
        slowest(of_exposed + found.made, n, other);
        found.made += n;
        if (rank == 0) {
            found.comm = middle(comm, found.made);
            found.exposed = middle(of_exposed, found.made);
            /* The operation twice, the computation twice, and barriers. */
            const double fit = budget_s / SHARES / (found.comm > 1e-7 ? found.comm : 1e-7);
            const int wanted = fit > MOST ? MOST : (int)fit;
            n = wanted > 3 * found.made ? 2 * found.made : wanted - found.made;
            if (MPI_Wtime() - start > LONGEST_S * budget_s) n = 0;
        }
        n = told(n);
    }
    check(collective, bytes, count, other);
    return found;
}

static double hidden_percent(Found found)
{
    const double hidden = 100 - found.exposed / found.comm * 100;
    return hidden > 0 ? hidden : 0;
}

int main(int argc, char **argv)
{
    long sizes[SIZES], largest = 0;
    int level = MPI_THREAD_SINGLE;
    const int usual = argc == 6;
    pause_us = usual ? atol(argv[5]) : -1;
    tests = usual ? atoi(argv[4]) : -1;
    MPI_Init_thread(&argc, &argv, pause_us < 0 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int collective = usual && argv[1][0] == 'i' ? collective_of(argv[1] + 1) : -1;
    const int is_known = collective == ALLREDUCE || collective == BCAST || collective == ALLGATHER || collective == ALLTOALL;
    const double seconds = usual ? atof(argv[2]) : 0;
    const int n = usual ? sizes_of(argv[3], sizes, &largest) : 0;
    if (!is_known || seconds <= 0 || n == 0 || tests < 0) {
        if (rank == 0) fprintf(stderr, "usage: overlap COLLECTIVE SECONDS BYTES[,BYTES...] TESTS PAUSE_US\n");
        MPI_Finalize();
        return BAD_USAGE;
    }
    if (pause_us >= 0 && level < MPI_THREAD_MULTIPLE) {
        if (rank == 0) fprintf(stderr, "This MPI library lets one thread only call it: no thread can make progress\n");
        MPI_Finalize();
        return BAD_USAGE;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    allocate(largest);
    double *comm = numbers_of(MOST), *of_exposed = numbers_of(MOST), *other = numbers_of(MOST);
    Found found[SIZES];
    for (int i = 0; i < n; i++) {
        found[i] = medians(collective, sizes[i], seconds / n, comm, of_exposed, other);
        if (rank == 0) {
            printf("{\"step\": %d, \"bytes\": %ld, \"exposed_s\": %.9g, \"communication_s\": %.9g, \"repetitions\": %d}\n",
                   i + 1, sizes[i], found[i].exposed, found[i].comm, found[i].made);
            fflush(stdout);
        }
    }
    if (rank == 0) {
        printf("{\"result\": {\"collective\": \"i%s\", \"ranks\": %d, \"sizes\": [", NAMES[collective], ranks);
        for (int i = 0; i < n; i++) printf("%s[%ld, %.9g]", i ? ", " : "", sizes[i], found[i].exposed);
        printf("], \"hidden_percent\": [");
        for (int i = 0; i < n; i++) printf("%s[%ld, %.4g]", i ? ", " : "", sizes[i], hidden_percent(found[i]));
        printf("]}}\n");
        fflush(stdout);
    }
    MPI_Comm_free(&apart);
    MPI_Finalize();
    return 0;
}
