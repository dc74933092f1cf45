// C = A * B for square matrices of N x N floats, row by row. Each work-item computes tile_size_y x tile_size_x elements,
// which lie a work-group apart, so that neighbouring work-items read neighbouring elements of B.
__kernel __attribute__((reqd_work_group_size(block_size_x, block_size_y, 1)))
void matmul(__global float *C, __global const float *A, __global const float *B)
{
    const int x = get_group_id(0) * block_size_x * tile_size_x + get_local_id(0);
    const int y = get_group_id(1) * block_size_y * tile_size_y + get_local_id(1);
    float sum[tile_size_y][tile_size_x];
    for (int i = 0; i < tile_size_y; i++)
        for (int j = 0; j < tile_size_x; j++)
            sum[i][j] = 0.0f;
    for (int k = 0; k < N; k += unroll_k) {
        #pragma unroll
        for (int u = 0; u < unroll_k; u++) {
            float b[tile_size_x];
            for (int j = 0; j < tile_size_x; j++)
                b[j] = B[(k + u) * N + x + j * block_size_x];
            for (int i = 0; i < tile_size_y; i++) {
                const float a = A[(y + i * block_size_y) * N + k + u];
                for (int j = 0; j < tile_size_x; j++)
                    sum[i][j] += a * b[j];
            }
        }
    }
    for (int i = 0; i < tile_size_y; i++)
        for (int j = 0; j < tile_size_x; j++)
            C[(y + i * block_size_y) * N + x + j * block_size_x] = sum[i][j];
}
