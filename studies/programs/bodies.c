/* Bodies that attract each other, in single precision: square roots, divisions and a sum, which a compiler may turn
   into vectors if it is allowed to. Written for autotune's study `flags`.

   bodies COUNT STEPS    prints the time of the steps and the total energy at the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 4096 };
static float x[MOST], y[MOST], z[MOST], u[MOST], v[MOST], w[MOST];
static const float softening = 0.05f, step = 0.001f;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void advance(int n)
{
    for (int i = 0; i < n; i++) {
        float fx = 0, fy = 0, fz = 0;
        for (int j = 0; j < n; j++) {
            float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            float r2 = dx * dx + dy * dy + dz * dz + softening;
            float f = 1.0f / (r2 * sqrtf(r2));
            fx += f * dx;
            fy += f * dy;
            fz += f * dz;
        }
        u[i] += step / n * fx;
        v[i] += step / n * fy;
        w[i] += step / n * fz;
    }
    for (int i = 0; i < n; i++) {
        x[i] += step * u[i];
        y[i] += step * v[i];
        z[i] += step * w[i];
    }
}

static double energy(int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += 0.5 / n * ((double)u[i] * u[i] + (double)v[i] * v[i] + (double)w[i] * w[i]);
        for (int j = 0; j < i; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            sum -= 1.0 / n / n / sqrt(dx * dx + dy * dy + dz * dz + softening);
        }
    }
    return sum;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 0, steps = argc > 2 ? atoi(argv[2]) : 0;
    if (n < 2 || n > MOST || steps < 1) {
        fprintf(stderr, "error: bodies COUNT STEPS, COUNT from 2 to %d\n", MOST);
        return 2;
    }
    unsigned int seed = 12345;
    float *all[] = {x, y, z, u, v, w};
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < n; i++) {
            seed = 1664525u * seed + 1013904223u;
            all[k][i] = (seed >> 8) / 16777216.0f - 0.5f;
        }
    double began = now_s();
    for (int k = 0; k < steps; k++)
        advance(n);
    printf("steps took %.6f s\n", now_s() - began);
    printf("energy %.9g\n", energy(n));
    return 0;
}
