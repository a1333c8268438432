// Arguments of the native functions: raw pointers, sizes and strides in elements.
#pragma once

#include <cstdint>

namespace recap {

enum class Type : int { f32, bf16, f16 };

// A [tokens, heads, width] tensor whose vectors are contiguous.
struct Vectors {
    const void* data;
    Type type;
    int64_t token_stride;
    int64_t head_stride;
};

struct AttnArgs {
    Vectors q;
    Vectors k;
    int rows, heads, kv_heads, width;
    int kv_len;
    const int32_t* q_pos;      // [rows], the caller's order
    const int64_t* order;      // [rows], rows by rising position
    const int32_t* row_range;  // [blocks + 1], sorted rows of each block
    const int32_t* block_offsets;  // [blocks + 1]
    int blocks, window;
    const void* kv_indices;  // [kv_len] or null
    bool wide_indices;       // int64, not int32
    double scale, softcap;
    const float* sinks;  // [heads] or null
    const float* lse;    // [rows, heads] natural log with sinks, or null
    float* rho;          // [kv_len]
    float* mass;         // [blocks, blocks] or null
    float* lse_out;      // [rows, heads]; unused when lse is given
    bool accumulate;
    int threads;
};

struct FinalizeArgs {
    const float* rho;   // [kv_len]
    const float* mass;  // [blocks, blocks] or null
    const int32_t* q_pos;
    const int64_t* order;
    const int32_t* row_range;
    const int32_t* block_offsets;
    int rows, kv_len, blocks, window;
    int layers, heads, drop_first;
    double quantile, times_median;  // 0 for not this one
    const bool* exclude;            // [kv_len] or null
    float* block_mean;              // [blocks]
    float* block_mass;              // [blocks, blocks] or null
    float* clip_value;              // [1]
    int32_t* row_count;             // [kv_len]
};

}  // namespace recap
