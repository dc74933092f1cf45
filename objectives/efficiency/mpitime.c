/* Times what a program calls of MPI: a library that each process of a run loads first (LD_PRELOAD).

   A rank that ends by MPI_Finalize appends one line of JSON to a file of its host in the folder AUTOTUNE_MPI_TIMES:
   how long it ran since MPI_Init, and how much of that it was in MPI, in ns of CLOCK_MONOTONIC. The time is that of
   the thread that called MPI_Init; calls of other threads are counted, not timed. Calls within calls count once.

   It needs neither mpi.h nor an MPI library to be built, and is the same for all of them. Every argument of these
   functions is an integer, a handle or an address, each of which the calling conventions of 64-bit Linux pass in a word
   of its own, and each is passed on untouched. The profiling interface (MPI 4.1, chapter 15) says where to: the function
   of the same name with a P, of the MPI library that the caller has.

   Wrapped are the calls that communicate or may wait. Fortran has symbols of its own: Open MPI's mpi_send_ calls
   PMPI_Send, which nobody sees, MPICH's calls MPI_Send. Those with text among their arguments, which Fortran passes
   with hidden lengths, are wrapped for C alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef intptr_t word;

_Static_assert(sizeof(word) == 8, "an MPI_Offset is a word on 64-bit systems only");

static _Thread_local int inside, is_timed;
static uint64_t began_ns, in_mpi_ns, calls, calls_elsewhere;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Begin a call; the time if it counts, or else 0. */
static uint64_t enter(void)
{
    if (inside++ || !began_ns)
        return 0;
    if (is_timed)
        return now_ns();
    __atomic_add_fetch(&calls_elsewhere, 1, __ATOMIC_RELAXED);
    return 0;
}

static void leave(uint64_t since)
{
    inside--;
    if (since) {
        in_mpi_ns += now_ns() - since;
        calls++;
    }
}

/* The function of that name (PMPI_..., pmpi_...) in the caller's MPI library, or of the name without the p. */
static void *real(void **kept, const char *name, void *caller)
{
    static void *library; /* of a program that has loaded MPI for itself, as Python does: no symbol of it is global */
    void *found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    Dl_info where;

    if (found)
        return found;
    found = dlsym(RTLD_NEXT, name);
    if (!found) {
        void *own = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
        if (!own && dladdr(caller, &where) && where.dli_fname)
            own = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        found = own ? dlsym(own, name) : NULL;
        if (found)
            __atomic_store_n(&library, own, __ATOMIC_RELEASE);
    }
    if (!found)
        found = dlsym(RTLD_NEXT, name + 1);
    __atomic_store_n(kept, found, __ATOMIC_RELEASE);
    return found;
}

/* MPI was initialised, by this thread. */
static void begin(void)
{
    if (!began_ns) {
        is_timed = 1;
        began_ns = now_ns();
    }
}

/* The first of these variables that is set; start commands tell ranks who they are by them. */
static const char *told(const char *const *names, const char *otherwise)
{
    for (; *names; names++)
        if (getenv(*names))
            return getenv(*names);
    return otherwise;
}

/* Write the line of this rank; whatever goes wrong with that is no matter of the program's. */
static void end(void)
{
    static const char *const rank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};
    static const char *const ranks[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", NULL};
    const char *folder = getenv("AUTOTUNE_MPI_TIMES");
    uint64_t elapsed_ns = now_ns() - began_ns;
    char host[256] = "host", path[4096], line[512];
    int before = errno, file, length;

    if (!began_ns)
        return;
    began_ns = 0;
    if (!folder)
        return;
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/.autotune-mpi-times.%s", folder, host);
    length = snprintf(line, sizeof line,
                      "{\"rank\": %d, \"ranks\": %d, \"elapsed_ns\": %llu, \"mpi_ns\": %llu, \"calls\": %llu, "
                      "\"calls_elsewhere\": %llu}\n",
                      atoi(told(rank, "0")), atoi(told(ranks, "1")), (unsigned long long)elapsed_ns,
                      (unsigned long long)in_mpi_ns, (unsigned long long)calls,
                      (unsigned long long)__atomic_load_n(&calls_elsewhere, __ATOMIC_RELAXED));
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) {
        /* One write: the lines of a host's ranks do not mix. */
        if (write(file, line, (size_t)length) < 0)
            errno = before;
        close(file);
    }
    errno = before;
}

#define A1 word a
#define A2 A1, word b
#define A3 A2, word c
#define A4 A3, word d
#define A5 A4, word e
#define A6 A5, word f
#define A7 A6, word g
#define A8 A7, word h
#define A9 A8, word i
#define A10 A9, word j
#define A11 A10, word k
#define A12 A11, word l
#define A13 A12, word m
#define V1 a
#define V2 V1, b
#define V3 V2, c
#define V4 V3, d
#define V5 V4, e
#define V6 V5, f
#define V7 V6, g
#define V8 V7, h
#define V9 V8, i
#define V10 V9, j
#define V11 V10, k
#define V12 V11, l
#define V13 V12, m

#define NO_FUNCTION 16 /* an error to a C program; there was none to call in the first place */

#define COMMA(...) __VA_ARGS__

/* A wrapper that does something `before` and `after` the function itself. */
#define WRAPPED(symbol, target, parameters, values, before, after)                                                     \
    word symbol(parameters)                                                                                            \
    {                                                                                                                  \
        static void *kept;                                                                                             \
        word (*function)(parameters) = (word(*)(parameters))real(&kept, target, __builtin_return_address(0));          \
        word ended = NO_FUNCTION;                                                                                      \
        before;                                                                                                        \
        if (function)                                                                                                  \
            ended = function(values);                                                                                  \
        after;                                                                                                         \
        return ended;                                                                                                  \
    }

#define TIMED(symbol, target, parameters, values)                                                                      \
    WRAPPED(symbol, target, COMMA(parameters), COMMA(values), uint64_t since = enter(), leave(since))

/* A function of n arguments as C knows it: itself, and with large counts. */
#define FOR_C(n, name)                                                                                                 \
    TIMED(MPI_##name, "PMPI_" #name, COMMA(A##n), COMMA(V##n))                                                         \
    TIMED(MPI_##name##_c, "PMPI_" #name "_c", COMMA(A##n), COMMA(V##n))

/* As Fortran knows it, with an error more: mpif.h and `use mpi`, then the two ways to build `use mpi_f08`. */
#define FOR_FORTRAN(n, name)                                                                                           \
    TIMED(mpi_##name##_, "pmpi_" #name "_", COMMA(A##n, word error), COMMA(V##n, error))                               \
    TIMED(mpi_##name##_f08_, "pmpi_" #name "_f08_", COMMA(A##n, word error), COMMA(V##n, error))                       \
    TIMED(mpi_##name##_f08ts_, "pmpi_" #name "_f08ts_", COMMA(A##n, word error), COMMA(V##n, error))

#define CALL(n, name, lower)                                                                                           \
    FOR_C(n, name)                                                                                                     \
    FOR_FORTRAN(n, lower)

#define FILE_CALLS(name, lower)                                                                                        \
    CALL(5, File_read##name, file_read##lower)                                                                         \
    CALL(5, File_write##name, file_write##lower)

#define FILE_CALLS_AT(name, lower)                                                                                     \
    CALL(6, File_read##name, file_read##lower)                                                                         \
    CALL(6, File_write##name, file_write##lower)

#define STARTED_FILE_CALLS(n, name, lower)                                                                             \
    CALL(n, File_iread##name, file_iread##lower)                                                                       \
    CALL(n, File_iwrite##name, file_iwrite##lower)

/* Begun and ended apart. */
#define SPLIT_FILE_CALLS(n, name, lower)                                                                               \
    CALL(n, File_read##name##_begin, file_read##lower##_begin)                                                         \
    CALL(n, File_write##name##_begin, file_write##lower##_begin)                                                       \
    CALL(3, File_read##name##_end, file_read##lower##_end)                                                             \
    CALL(3, File_write##name##_end, file_write##lower##_end)

/* Messages between two ranks. */
CALL(6, Send, send)
CALL(6, Bsend, bsend)
CALL(6, Ssend, ssend)
CALL(6, Rsend, rsend)
CALL(7, Recv, recv)
CALL(7, Isend, isend)
CALL(7, Ibsend, ibsend)
CALL(7, Issend, issend)
CALL(7, Irsend, irsend)
CALL(7, Irecv, irecv)
CALL(7, Send_init, send_init)
CALL(7, Bsend_init, bsend_init)
CALL(7, Ssend_init, ssend_init)
CALL(7, Rsend_init, rsend_init)
CALL(7, Recv_init, recv_init)
CALL(12, Sendrecv, sendrecv)
CALL(9, Sendrecv_replace, sendrecv_replace)
CALL(12, Isendrecv, isendrecv)
CALL(9, Isendrecv_replace, isendrecv_replace)
CALL(4, Probe, probe)
CALL(5, Iprobe, iprobe)
CALL(5, Mprobe, mprobe)
CALL(6, Improbe, improbe)
CALL(5, Mrecv, mrecv)
CALL(5, Imrecv, imrecv)
CALL(2, Buffer_detach, buffer_detach)
CALL(9, Psend_init, psend_init)
CALL(9, Precv_init, precv_init)
CALL(2, Pready, pready)
CALL(3, Pready_range, pready_range)
CALL(3, Pready_list, pready_list)
CALL(3, Parrived, parrived)

/* What has been started. */
CALL(1, Start, start)
CALL(2, Startall, startall)
CALL(2, Wait, wait)
CALL(3, Waitall, waitall)
CALL(4, Waitany, waitany)
CALL(5, Waitsome, waitsome)
CALL(3, Test, test)
CALL(4, Testall, testall)
CALL(5, Testany, testany)
CALL(5, Testsome, testsome)
CALL(3, Request_get_status, request_get_status)
CALL(1, Request_free, request_free)
CALL(1, Cancel, cancel)

/* Collective operations: blocking, nonblocking, persistent. */
CALL(1, Barrier, barrier)
CALL(5, Bcast, bcast)
CALL(8, Gather, gather)
CALL(9, Gatherv, gatherv)
CALL(8, Scatter, scatter)
CALL(9, Scatterv, scatterv)
CALL(7, Allgather, allgather)
CALL(8, Allgatherv, allgatherv)
CALL(7, Alltoall, alltoall)
CALL(9, Alltoallv, alltoallv)
CALL(9, Alltoallw, alltoallw)
CALL(7, Reduce, reduce)
CALL(6, Allreduce, allreduce)
CALL(6, Reduce_scatter, reduce_scatter)
CALL(6, Reduce_scatter_block, reduce_scatter_block)
CALL(6, Scan, scan)
CALL(6, Exscan, exscan)
CALL(2, Ibarrier, ibarrier)
CALL(6, Ibcast, ibcast)
CALL(9, Igather, igather)
CALL(10, Igatherv, igatherv)
CALL(9, Iscatter, iscatter)
CALL(10, Iscatterv, iscatterv)
CALL(8, Iallgather, iallgather)
CALL(9, Iallgatherv, iallgatherv)
CALL(8, Ialltoall, ialltoall)
CALL(10, Ialltoallv, ialltoallv)
CALL(10, Ialltoallw, ialltoallw)
CALL(8, Ireduce, ireduce)
CALL(7, Iallreduce, iallreduce)
CALL(7, Ireduce_scatter, ireduce_scatter)
CALL(7, Ireduce_scatter_block, ireduce_scatter_block)
CALL(7, Iscan, iscan)
CALL(7, Iexscan, iexscan)
CALL(3, Barrier_init, barrier_init)
CALL(7, Bcast_init, bcast_init)
CALL(10, Gather_init, gather_init)
CALL(11, Gatherv_init, gatherv_init)
CALL(10, Scatter_init, scatter_init)
CALL(11, Scatterv_init, scatterv_init)
CALL(9, Allgather_init, allgather_init)
CALL(10, Allgatherv_init, allgatherv_init)
CALL(9, Alltoall_init, alltoall_init)
CALL(11, Alltoallv_init, alltoallv_init)
CALL(11, Alltoallw_init, alltoallw_init)
CALL(9, Reduce_init, reduce_init)
CALL(8, Allreduce_init, allreduce_init)
CALL(8, Reduce_scatter_init, reduce_scatter_init)
CALL(8, Reduce_scatter_block_init, reduce_scatter_block_init)
CALL(8, Scan_init, scan_init)
CALL(8, Exscan_init, exscan_init)
CALL(7, Neighbor_allgather, neighbor_allgather)
CALL(8, Neighbor_allgatherv, neighbor_allgatherv)
CALL(7, Neighbor_alltoall, neighbor_alltoall)
CALL(9, Neighbor_alltoallv, neighbor_alltoallv)
CALL(9, Neighbor_alltoallw, neighbor_alltoallw)
CALL(8, Ineighbor_allgather, ineighbor_allgather)
CALL(9, Ineighbor_allgatherv, ineighbor_allgatherv)
CALL(8, Ineighbor_alltoall, ineighbor_alltoall)
CALL(10, Ineighbor_alltoallv, ineighbor_alltoallv)
CALL(10, Ineighbor_alltoallw, ineighbor_alltoallw)
CALL(9, Neighbor_allgather_init, neighbor_allgather_init)
CALL(10, Neighbor_allgatherv_init, neighbor_allgatherv_init)
CALL(9, Neighbor_alltoall_init, neighbor_alltoall_init)
CALL(11, Neighbor_alltoallv_init, neighbor_alltoallv_init)
CALL(11, Neighbor_alltoallw_init, neighbor_alltoallw_init)

/* Communicators, which all of their ranks make together. */
CALL(2, Comm_dup, comm_dup)
CALL(3, Comm_dup_with_info, comm_dup_with_info)
CALL(3, Comm_idup, comm_idup)
CALL(4, Comm_idup_with_info, comm_idup_with_info)
CALL(3, Comm_create, comm_create)
CALL(4, Comm_create_group, comm_create_group)
CALL(4, Comm_split, comm_split)
CALL(5, Comm_split_type, comm_split_type)
CALL(1, Comm_free, comm_free)
CALL(1, Comm_disconnect, comm_disconnect)
CALL(6, Intercomm_create, intercomm_create)
CALL(3, Intercomm_merge, intercomm_merge)
CALL(6, Cart_create, cart_create)
CALL(3, Cart_sub, cart_sub)
CALL(6, Graph_create, graph_create)
CALL(9, Dist_graph_create, dist_graph_create)
CALL(10, Dist_graph_create_adjacent, dist_graph_create_adjacent)
FOR_C(8, Comm_spawn)
FOR_C(9, Comm_spawn_multiple)
FOR_C(5, Comm_accept)
FOR_C(5, Comm_connect)

/* Memory of other ranks. */
CALL(6, Win_create, win_create)
CALL(6, Win_allocate, win_allocate)
CALL(6, Win_allocate_shared, win_allocate_shared)
CALL(3, Win_create_dynamic, win_create_dynamic)
CALL(1, Win_free, win_free)
CALL(2, Win_fence, win_fence)
CALL(3, Win_start, win_start)
CALL(1, Win_complete, win_complete)
CALL(3, Win_post, win_post)
CALL(1, Win_wait, win_wait)
CALL(2, Win_test, win_test)
CALL(4, Win_lock, win_lock)
CALL(2, Win_unlock, win_unlock)
CALL(2, Win_lock_all, win_lock_all)
CALL(1, Win_unlock_all, win_unlock_all)
CALL(2, Win_flush, win_flush)
CALL(1, Win_flush_all, win_flush_all)
CALL(2, Win_flush_local, win_flush_local)
CALL(1, Win_flush_local_all, win_flush_local_all)
CALL(1, Win_sync, win_sync)
CALL(8, Put, put)
CALL(8, Get, get)
CALL(9, Accumulate, accumulate)
CALL(12, Get_accumulate, get_accumulate)
CALL(7, Fetch_and_op, fetch_and_op)
CALL(7, Compare_and_swap, compare_and_swap)
CALL(9, Rput, rput)
CALL(9, Rget, rget)
CALL(10, Raccumulate, raccumulate)
CALL(13, Rget_accumulate, rget_accumulate)

/* Files. */
FOR_C(5, File_open)
FOR_C(6, File_set_view)
CALL(1, File_close, file_close)
CALL(1, File_sync, file_sync)
CALL(2, File_set_size, file_set_size)
CALL(2, File_preallocate, file_preallocate)
FILE_CALLS(, )
FILE_CALLS(_all, _all)
FILE_CALLS(_shared, _shared)
FILE_CALLS(_ordered, _ordered)
FILE_CALLS_AT(_at, _at)
FILE_CALLS_AT(_at_all, _at_all)
STARTED_FILE_CALLS(5, , )
STARTED_FILE_CALLS(5, _all, _all)
STARTED_FILE_CALLS(5, _shared, _shared)
STARTED_FILE_CALLS(6, _at, _at)
STARTED_FILE_CALLS(6, _at_all, _at_all)
SPLIT_FILE_CALLS(4, _all, _all)
SPLIT_FILE_CALLS(4, _ordered, _ordered)
SPLIT_FILE_CALLS(5, _at_all, _at_all)

#define NOTHING (void)0

WRAPPED(MPI_Init, "PMPI_Init", COMMA(A2), COMMA(V2), NOTHING, begin())
WRAPPED(mpi_init_, "pmpi_init_", A1, V1, NOTHING, begin())
WRAPPED(mpi_init_f08_, "pmpi_init_f08_", A1, V1, NOTHING, begin())
WRAPPED(MPI_Init_thread, "PMPI_Init_thread", COMMA(A4), COMMA(V4), NOTHING, begin())
WRAPPED(mpi_init_thread_, "pmpi_init_thread_", COMMA(A3), COMMA(V3), NOTHING, begin())
WRAPPED(mpi_init_thread_f08_, "pmpi_init_thread_f08_", COMMA(A3), COMMA(V3), NOTHING, begin())
WRAPPED(MPI_Finalize, "PMPI_Finalize", void, , end(), NOTHING)
WRAPPED(mpi_finalize_, "pmpi_finalize_", A1, V1, end(), NOTHING)
WRAPPED(mpi_finalize_f08_, "pmpi_finalize_f08_", A1, V1, end(), NOTHING)
