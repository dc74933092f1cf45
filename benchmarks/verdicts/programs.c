/* A program of known work, and the neighbours that it is measured beside.

     programs work UNITS              computes and sweeps 1 MB, UNITS times; prints its time
     programs compute                uses a core until it is killed
     programs memory                 sweeps an array of 64 MB
     programs bursts                 uses a core for .7 s, then sleeps for .7 s
     programs files FILE             writes and reads a file of 256 MB

   A neighbour ends with the process that started it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double unit(double *words, long count) {
    double sum = 0.0, x = 1.0;
    for (long i = 0; i < 2000; i++) x = 0.5 * x + 1.0 / (1.0 + x);
    for (long i = 0; i < count; i += 8) sum += words[i] += 1.0;
    return sum + x;
}

static void write_and_read(const char *name) {
    static char block[1 << 20];
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0) exit(1);
    unlink(name);
    for (;;) {
        for (long at = 0; at < 256; at++)
            if (pwrite(file, block, sizeof block, at << 20) < 0) exit(1);
        for (long at = 0; at < 256; at++)
            if (pread(file, block, sizeof block, at << 20) < 0) exit(1);
    }
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    long count = !strcmp(kind, "memory") ? 8 << 20 : 1 << 17;
    double *words = calloc(count, sizeof *words), sum = 0.0, begun = now();
    if (!words) return 1;
    if (!strcmp(kind, "work") && argc > 2) {
        for (long i = atol(argv[2]); i > 0; i--) sum += unit(words, count);
        printf("seconds %.6f\nsum %.9g\n", now() - begun, sum > 0.0 ? 1.0 : 0.0);
        return 0;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!strcmp(kind, "files") && argc > 2) write_and_read(argv[2]);
    while (!strcmp(kind, "compute") || !strcmp(kind, "memory") || !strcmp(kind, "bursts")) {
        sum += unit(words, count);
        if (!strcmp(kind, "bursts") && now() - begun > 0.7) {
            usleep(700000);
            begun = now();
        }
    }
    return sum > 0.0 ? 2 : 3;
}
