/* Counts the collective operations of a program by ranks and message size, as weights of a study's [decisions].
 *
 *     mpicc -O2 -shared -fPIC -o messages.so messages.c
 *     mpirun -x LD_PRELOAD=$PWD/messages.so PROGRAM
 *
 * When the program finalizes MPI, its first rank writes messages.csv, or the file that MESSAGES_CSV names. Calls of C are
 * seen, and those of Fortran by mpif.h or `use mpi`. An operation counts once, by the first rank of its communicator,
 * with the size that collectives.c counts.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALLREDUCE, REDUCE, BCAST, ALLGATHER, ALLTOALL, REDUCE_SCATTER, BARRIER };
static const char *const NAMES[] = {"allreduce", "reduce", "bcast", "allgather", "alltoall", "reduce_scatter", "barrier"};

/* So many different operations are told apart; what comes beyond them is only counted. */
enum { ROOM = 1 << 14, FIELDS = 4 };
typedef struct { long long collective, ranks, bytes, count; } Entry;
static Entry entries[ROOM];
static long long left_out;

static void add(Entry given)
{
    unsigned long long mixed = (unsigned long long)((given.bytes * 8191 + given.ranks) * 7 + given.collective);
    mixed *= 0x9E3779B97F4A7C15ull;
    for (int step = 0; step < ROOM; step++) {
        Entry *entry = &entries[((mixed >> 40) + (unsigned long long)step) % ROOM];
        if (entry->count == 0) {
            *entry = given;
            return;
        }
        if (entry->collective == given.collective && entry->ranks == given.ranks && entry->bytes == given.bytes) {
            entry->count += given.count;
            return;
        }
    }
    left_out += given.count;
}

static void seen(int collective, long long count, MPI_Datatype type, MPI_Comm comm)
{
    int rank, ranks, bytes = 0;
    PMPI_Comm_rank(comm, &rank);
    if (rank != 0) return;
    PMPI_Comm_size(comm, &ranks);
    if (type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &bytes);
    add((Entry){collective, ranks, count * bytes, 1});
}

static long long sum(const int counts[], MPI_Comm comm)
{
    int ranks;
    long long total = 0;
    PMPI_Comm_size(comm, &ranks);
    for (int rank = 0; rank < ranks; rank++) total += counts[rank];
    return total;
}

static void written(void)
{
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank != 0) {
        PMPI_Send(entries, ROOM * FIELDS, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD);
        PMPI_Send(&left_out, 1, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD);
        return;
    }
    Entry *theirs = malloc(sizeof entries);
    for (int other = 1; theirs && other < ranks; other++) {
        long long more;
        PMPI_Recv(theirs, ROOM * FIELDS, MPI_LONG_LONG, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        PMPI_Recv(&more, 1, MPI_LONG_LONG, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        left_out += more;
        for (int place = 0; place < ROOM; place++)
            if (theirs[place].count) add(theirs[place]);
    }
    free(theirs);
    const char *name = getenv("MESSAGES_CSV");
    FILE *file = fopen(name ? name : "messages.csv", "w");
    if (!file) {
        perror(name ? name : "messages.csv");
        return;
    }
    fprintf(file, "collective,ranks,bytes,count\n");
    for (int place = 0; place < ROOM; place++)
        if (entries[place].count && entries[place].ranks > 1)
            fprintf(file, "%s,%lld,%lld,%lld\n", NAMES[entries[place].collective], entries[place].ranks,
                    entries[place].bytes, entries[place].count);
    fclose(file);
    if (left_out) fprintf(stderr, "messages.c: %lld operations of too many different sizes are left out\n", left_out);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    seen(ALLREDUCE, count, type, comm);
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Reduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    seen(REDUCE, count, type, comm);
    return PMPI_Reduce(from, to, count, type, op, root, comm);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    seen(BCAST, count, type, comm);
    return PMPI_Bcast(data, count, type, root, comm);
}

int MPI_Allgather(const void *from, int sent, MPI_Datatype sent_type, void *to, int count, MPI_Datatype type, MPI_Comm comm)
{
    seen(ALLGATHER, count, type, comm);
    return PMPI_Allgather(from, sent, sent_type, to, count, type, comm);
}

int MPI_Alltoall(const void *from, int sent, MPI_Datatype sent_type, void *to, int count, MPI_Datatype type, MPI_Comm comm)
{
    seen(ALLTOALL, count, type, comm);
    return PMPI_Alltoall(from, sent, sent_type, to, count, type, comm);
}

int MPI_Reduce_scatter(const void *from, void *to, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    seen(REDUCE_SCATTER, sum(counts, comm), type, comm);
    return PMPI_Reduce_scatter(from, to, counts, type, op, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
    seen(BARRIER, 0, MPI_DATATYPE_NULL, comm);
    return PMPI_Barrier(comm);
}

int MPI_Finalize(void)
{
    written();
    return PMPI_Finalize();
}

/* Fortran: arguments by address, handles as integers. Programs of C have no such functions to call on: hence weak. */
#define FORTRAN(name, given, passed, counted)      \
    extern void pmpi_##name##_ given __attribute__((weak)); \
    void mpi_##name##_ given                       \
    {                                              \
        counted;                                   \
        pmpi_##name##_ passed;                     \
    }
typedef MPI_Fint I;
#define SEEN(collective, count) seen(collective, count, MPI_Type_f2c(*type), MPI_Comm_f2c(*comm))

FORTRAN(allreduce, (void *from, void *to, I *count, I *type, I *op, I *comm, I *error), (from, to, count, type, op, comm, error),
        SEEN(ALLREDUCE, *count))
FORTRAN(reduce, (void *from, void *to, I *count, I *type, I *op, I *root, I *comm, I *error),
        (from, to, count, type, op, root, comm, error), SEEN(REDUCE, *count))
FORTRAN(bcast, (void *data, I *count, I *type, I *root, I *comm, I *error), (data, count, type, root, comm, error),
        SEEN(BCAST, *count))
FORTRAN(allgather, (void *from, I *sent, I *sent_type, void *to, I *count, I *type, I *comm, I *error),
        (from, sent, sent_type, to, count, type, comm, error), SEEN(ALLGATHER, *count))
FORTRAN(alltoall, (void *from, I *sent, I *sent_type, void *to, I *count, I *type, I *comm, I *error),
        (from, sent, sent_type, to, count, type, comm, error), SEEN(ALLTOALL, *count))
FORTRAN(reduce_scatter, (void *from, void *to, I *counts, I *type, I *op, I *comm, I *error),
        (from, to, counts, type, op, comm, error), SEEN(REDUCE_SCATTER, sum(counts, MPI_Comm_f2c(*comm))))
FORTRAN(barrier, (I *comm, I *error), (comm, error), seen(BARRIER, 0, MPI_DATATYPE_NULL, MPI_Comm_f2c(*comm)))
FORTRAN(finalize, (I *error), (error), written())
