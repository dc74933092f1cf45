// C += A B, single precision, as a tiled loop nest in 32 variants.
//
// Reads lines "order unroll vector packed rows columns depth threads", and prints for each the least time of some
// repetitions in microseconds, or "wrong" where the result is not that of plain loops.

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 192, STRIDE = 256 };  // rows start 1 KiB apart, as those of larger matrices do: they share cache sets

static float a[N * STRIDE], b[N * STRIDE], c[N * STRIDE], packed_b[N * N], plain[N * STRIDE];

typedef float vec1;
typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float vec8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vec16 __attribute__((vector_size(64), aligned(4), may_alias));

typedef struct {
    int rows, columns, depth, threads, packed;
} Tiles;

typedef void (*Tile)(const float *a, const float *b, int stride_b, float *c, const Tiles *tiles);

// "sums" keeps a block of C in registers over the depth of the tile; "streams" goes over a row of C for each k.
#define TILE(U, V)                                                                                                   \
    static void sums_##U##_##V(const float *a, const float *b, int stride_b, float *c, const Tiles *t) {             \
        for (int i = 0; i < t->rows; i += U)                                                                         \
            for (int j = 0; j < t->columns; j += V) {                                                                \
                vec##V sum[U];                                                                                       \
                for (int u = 0; u < U; u++) sum[u] = *(const vec##V *)(c + (i + u) * STRIDE + j);                    \
                for (int k = 0; k < t->depth; k++) {                                                                 \
                    vec##V right = *(const vec##V *)(b + k * stride_b + j);                                          \
                    for (int u = 0; u < U; u++) sum[u] += a[(i + u) * STRIDE + k] * right;                           \
                }                                                                                                    \
                for (int u = 0; u < U; u++) *(vec##V *)(c + (i + u) * STRIDE + j) = sum[u];                          \
            }                                                                                                        \
    }                                                                                                                \
    static void streams_##U##_##V(const float *a, const float *b, int stride_b, float *c, const Tiles *t) {          \
        for (int i = 0; i < t->rows; i += U)                                                                         \
            for (int k = 0; k < t->depth; k++)                                                                       \
                for (int j = 0; j < t->columns; j += V) {                                                            \
                    vec##V right = *(const vec##V *)(b + k * stride_b + j);                                          \
                    for (int u = 0; u < U; u++)                                                                      \
                        *(vec##V *)(c + (i + u) * STRIDE + j) += a[(i + u) * STRIDE + k] * right;                    \
                }                                                                                                    \
    }
#define TILES(U) TILE(U, 1) TILE(U, 4) TILE(U, 8) TILE(U, 16)
TILES(1) TILES(2) TILES(4) TILES(8)

#define OF_VECTOR(ORDER, U) {ORDER##_##U##_1, ORDER##_##U##_4, ORDER##_##U##_8, ORDER##_##U##_16}
#define OF_UNROLL(ORDER) {OF_VECTOR(ORDER, 1), OF_VECTOR(ORDER, 2), OF_VECTOR(ORDER, 4), OF_VECTOR(ORDER, 8)}
static const Tile variants[2][4][4] = {OF_UNROLL(sums), OF_UNROLL(streams)};

static void pack(const Tiles *t) {
    float *to = packed_b;
    for (int j = 0; j < N; j += t->columns)
        for (int k = 0; k < N; k++, to += t->columns) memcpy(to, b + k * STRIDE + j, t->columns * sizeof *to);
}

static void multiply(Tile tile, const Tiles *t) {
    if (t->packed) pack(t);
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int i = 0; i < N; i += t->rows)
        for (int k = 0; k < N; k += t->depth)
            for (int j = 0; j < N; j += t->columns) {
                const float *right = t->packed ? packed_b + j * N + k * t->columns : b + k * STRIDE + j;
                tile(a + i * STRIDE + k, right, t->packed ? t->columns : STRIDE, c + i * STRIDE + j, t);
            }
}

static double timed_us(Tile tile, const Tiles *t) {
    double start = omp_get_wtime();
    multiply(tile, t);
    return 1e6 * (omp_get_wtime() - start);
}

static int right(Tile tile, const Tiles *t) {
    memset(c, 0, sizeof c);
    multiply(tile, t);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (fabsf(c[i * STRIDE + j] - plain[i * STRIDE + j]) > 1e-3f * N) return 0;
    return 1;
}

static int log2_of(int value) {
    int log = 0;
    while (value >>= 1) log++;
    return log;
}

int main(int count, char **words) {
    int repeats = count > 1 ? atoi(words[1]) : 5;
    for (int at = 0; at < N * STRIDE; at++) a[at] = (at * 7 % 13) / 13.0f, b[at] = (at * 5 % 11) / 11.0f;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) plain[i * STRIDE + j] += a[i * STRIDE + k] * b[k * STRIDE + j];
    char order[16];
    int unroll, vector;
    Tiles t;
    while (scanf("%15s %d %d %d %d %d %d %d", order, &unroll, &vector, &t.packed, &t.rows, &t.columns, &t.depth,
                 &t.threads) == 8) {
        int width = vector == 1 ? 0 : log2_of(vector) - 1;
        Tile tile = variants[strcmp(order, "streams") == 0][log2_of(unroll)][width];
        if (!right(tile, &t)) {
            puts("wrong");
            continue;
        }
        double least = timed_us(tile, &t);
        for (int repeat = 1; repeat < repeats; repeat++) least = fmin(least, timed_us(tile, &t));
        printf("%.2f\n", least);
        fflush(stdout);
    }
    return 0;
}
