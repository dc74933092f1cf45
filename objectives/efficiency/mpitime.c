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
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef intptr_t word;

_Static_assert(sizeof(word) == 8, "an MPI_Offset is a word on 64-bit systems only");

static _Thread_local int inside, is_timed;
static uint64_t began_ns, in_mpi_ns, calls, calls_elsewhere;
static int world_rank, world_size; /* 0 ranks: the library was not understood */
static void *library; /* of a program that has loaded MPI for itself, as Python does: no symbol of it is global */

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

/* What the program's MPI library calls by that name. */
static void *of_library(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return found || !library ? found : dlsym(library, name);
}

/* Ask the library for this rank and the number of ranks: a start command may tell more than there is, since ranks that
   another library's command has started know nothing of one another. Open MPI's world is a variable, MPICH's and that of
   its descendants a number (their mpi.h). */
static void ask_world(void)
{
    static char text[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING, the greatest that is known */
    word (*version)(char *, int *) = (word(*)(char *, int *))of_library("PMPI_Get_library_version");
    word (*size)(word, int *) = (word(*)(word, int *))of_library("PMPI_Comm_size");
    word (*rank)(word, int *) = (word(*)(word, int *))of_library("PMPI_Comm_rank");
    word world = (word)of_library("ompi_mpi_comm_world");
    int length = 0, number = 0, count = 0;

    if (!size || !rank)
        return;
    if (!world) {
        if (!version || (int)version(text, &length))
            return;
        if (!strstr(text, "MPICH") && !strstr(text, "Intel(R) MPI") && !strstr(text, "MVAPICH"))
            return;
        world = 0x44000000;
    }
    if (!(int)rank(world, &number) && !(int)size(world, &count)) {
        world_rank = number;
        world_size = count;
    }
}

/* MPI was initialised, by this thread. */
static void begin(void)
{
    if (!began_ns) {
        ask_world();
        is_timed = 1;
        began_ns = now_ns();
    }
}

/* The first of these variables that is set; start commands tell ranks by them who they are to be. */
static const char *told(const char *const *names, const char *otherwise)
{
    for (; *names; names++)
        if (getenv(*names))
            return getenv(*names);
    return otherwise;
}

/* Write the line of this rank; whatever goes wrong with that is no matter of the program's. What the start command told
   is beside what the library knows: where it started more ranks, they know nothing of one another. */
static void end(void)
{
    static const char *const rank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};
    static const char *const ranks[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", NULL};
    const char *folder = getenv("AUTOTUNE_MPI_TIMES");
    uint64_t elapsed_ns = now_ns() - began_ns;
    char host[256] = "host", path[4096], line[512];
    int before = errno, started = atoi(told(ranks, "0")), file, length;

    if (!began_ns)
        return;
    began_ns = 0;
    if (!folder)
        return;
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/.autotune-mpi-times.%s", folder, host);
    length = snprintf(line, sizeof line,
                      "{\"rank\": %d, \"ranks\": %d, \"started\": %d, \"elapsed_ns\": %llu, \"mpi_ns\": %llu, "
                      "\"calls\": %llu, \"calls_elsewhere\": %llu}\n",
                      world_size ? world_rank : atoi(told(rank, "0")), world_size ? world_size : started ? started : 1,
                      started, (unsigned long long)elapsed_ns, (unsigned long long)in_mpi_ns,
                      (unsigned long long)calls,
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

#include "mpicalls.h"

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
