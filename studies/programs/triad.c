/* A triad as in John McCalpin's STREAM (https://www.cs.virginia.edu/stream/): a = b + s * c over arrays that are much
   larger than the caches, so that what is measured is the memory's bandwidth. Written for autotune's study `stream`.

   triad WORDS SWEEPS    prints the bandwidth of the median sweep and a checksum that does not depend on the order of
                         the additions: all values are small whole numbers. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    long words = argc > 1 ? atol(argv[1]) : 0, sweeps = argc > 2 ? atol(argv[2]) : 0;
    if (words < 1 || sweeps < 1) {
        fprintf(stderr, "error: triad WORDS SWEEPS, both at least 1\n");
        return 2;
    }
    double *a = malloc(words * sizeof *a), *b = malloc(words * sizeof *b), *c = malloc(words * sizeof *c);
    double *times_s = malloc(sweeps * sizeof *times_s);
    if (!a || !b || !c || !times_s) {
        fprintf(stderr, "error: Cannot allocate memory for 3 arrays of %ld words\n", words);
        return 1;
    }
    /* In parallel, so that each page lies in the memory of the core that will use it (first touch). */
#pragma omp parallel for schedule(runtime)
    for (long i = 0; i < words; i++) {
        a[i] = 0.0;
        b[i] = i % 7;
        c[i] = i % 5;
    }
    for (long k = 0; k < sweeps; k++) {
        double began = omp_get_wtime();
#pragma omp parallel for schedule(runtime)
        for (long i = 0; i < words; i++)
            a[i] = b[i] + 3.0 * c[i];
        times_s[k] = omp_get_wtime() - began;
        printf("sweep %ld\n", k + 1);
        fflush(stdout);
    }
    double sum = 0.0;
    for (long i = 0; i < words; i++)
        sum += a[i];
    qsort(times_s, sweeps, sizeof *times_s, by_value);
    printf("checksum %.17g\n", sum);
    printf("triad %.4f GB/s with %d threads\n", 3e-9 * words * sizeof *a / times_s[sweeps / 2], omp_get_max_threads());
    return 0;
}
