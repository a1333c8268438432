// What the CUDA sources offer to bind_cuda.cpp. Nothing here allocates or synchronises.
#pragma once

#include <cstdint>

#include "../args.h"

namespace recap {

// Rows to copy; strides in bytes, log-sum-exp null for none.
struct CaptureArgs {
    const char* q;
    char* q_ring;
    const char* lse;
    char* lse_ring;
    const int32_t* slot;  // [tokens], -1 for nowhere
    int tokens;
    int64_t q_bytes, lse_bytes;  // of a row
    int64_t q_stride, q_ring_stride, lse_stride, lse_ring_stride;
};

// Memory that finalize works in.
struct Workspace {
    int32_t* keys;        // [kv_len]
    int32_t* histograms;  // [4, parts(kv_len), 256]
    int32_t* states;      // [4, 3]
};

// Tokens of one program that counts digits.
constexpr int kPartTokens = 2048;

// Each returns "" or what CUDA says is wrong; `stream` is a cudaStream_t.
const char* capture_rows(const CaptureArgs& args, int device, void* stream);
const char* finalize(const FinalizeArgs& args, const Workspace& work, int device, void* stream);
int device_count();

}  // namespace recap
