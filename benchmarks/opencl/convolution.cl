// A filter of F x F over an image of W x H floats; the input has a border of F - 1 more on the right and below. With
// use_local a work-group first copies its part of the input into local memory.
#define TILE_W (block_size_x * tile_size_x)
#define TILE_H (block_size_y * tile_size_y)
#define IN_W (W + F - 1)

__kernel __attribute__((reqd_work_group_size(block_size_x, block_size_y, 1)))
void convolution(__global float *out, __global const float *in, __constant float *filter)
{
    const int x0 = get_group_id(0) * TILE_W, y0 = get_group_id(1) * TILE_H;
    const int lx = get_local_id(0), ly = get_local_id(1);
#if use_local
    __local float part[TILE_H + F - 1][TILE_W + F - 1];
    for (int i = ly; i < TILE_H + F - 1; i += block_size_y)
        for (int j = lx; j < TILE_W + F - 1; j += block_size_x)
            part[i][j] = in[(y0 + i) * IN_W + x0 + j];
    barrier(CLK_LOCAL_MEM_FENCE);
#define INPUT(i, j) part[i][j]
#else
#define INPUT(i, j) in[(y0 + (i)) * IN_W + x0 + (j)]
#endif
    float sum[tile_size_y][tile_size_x];
    for (int i = 0; i < tile_size_y; i++)
        for (int j = 0; j < tile_size_x; j++)
            sum[i][j] = 0.0f;
    for (int fy = 0; fy < F; fy++)
        for (int fx = 0; fx < F; fx++)
            for (int i = 0; i < tile_size_y; i++)
                for (int j = 0; j < tile_size_x; j++)
                    sum[i][j] += filter[fy * F + fx] * INPUT(ly + i * block_size_y + fy, lx + j * block_size_x + fx);
    for (int i = 0; i < tile_size_y; i++)
        for (int j = 0; j < tile_size_x; j++)
            out[(y0 + ly + i * block_size_y) * W + x0 + lx + j * block_size_x] = sum[i][j];
}
