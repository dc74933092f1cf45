/* Forward transforms of a complex grid with FFTW: planned once, which does not count, then timed.
 *
 *   fft N PLANNER THREADS LAYOUT ALIGNMENT REPEATS
 *
 * PLANNER is estimate, measure or patient; LAYOUT in-place or out-of-place; ALIGNMENT simd or any. It prints the time of
 * planning, GFlop/s by FFTW's own convention (5 n log2 n for n points, http://www.fftw.org/speed), and a checksum.
 */
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static unsigned planner(const char *name)
{
    if (!strcmp(name, "estimate")) return FFTW_ESTIMATE;
    if (!strcmp(name, "measure")) return FFTW_MEASURE;
    if (!strcmp(name, "patient")) return FFTW_PATIENT;
    fprintf(stderr, "no planner is called %s\n", name);
    exit(2);
}

static void fill(fftw_complex *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i][0] = (double)(i % 17) / 17.0;
        x[i][1] = (double)(i % 13) / 13.0;
    }
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "fft N PLANNER THREADS LAYOUT ALIGNMENT REPEATS\n");
        return 2;
    }
    const int side = atoi(argv[1]), threads = atoi(argv[3]), repeats = atoi(argv[6]);
    const int in_place = !strcmp(argv[4], "in-place");
    const unsigned flags = planner(argv[2]) | (strcmp(argv[5], "simd") ? FFTW_UNALIGNED : 0);
    const size_t n = (size_t)side * side * side;
    fftw_complex *in = fftw_malloc(sizeof *in * n), *out = in_place ? in : fftw_malloc(sizeof *out * n);
    if (!in || !out || !fftw_init_threads()) {
        fprintf(stderr, "not enough memory, or no threads\n");
        return 1;
    }
    fftw_plan_with_nthreads(threads);
    double began = now();
    fftw_plan plan = fftw_plan_dft_3d(side, side, side, in, out, FFTW_FORWARD, flags);
    printf("planned in %.6f s\n", now() - began);
    double checksum = 0, spent = 0;
    for (int k = 0; k < repeats; k++) {
        fill(in, n); /* an in-place transform has overwritten it, and so has planning */
        began = now();
        fftw_execute(plan);
        spent += now() - began;
        checksum = 0;
        for (size_t i = 0; i < n; i += 97) checksum += fabs(out[i][0]) + fabs(out[i][1]);
        printf("transform %d\n", k + 1);
        fflush(stdout);
    }
    printf("speed %.6f GFlop/s\n", 5e-9 * n * log2((double)n) * repeats / spent);
    printf("checksum %.12e\n", checksum);
    return 0;
}
