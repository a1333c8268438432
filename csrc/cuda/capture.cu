// Copies sampled rows into rings. Stands in every layer of a model and may be part of a CUDA graph.

#include "device.cuh"
#include "launch.h"

namespace recap {
namespace {

constexpr int kThreads = 256;

template <class T>
__device__ void copy(const char* from, char* to, int64_t bytes) {
    for (int64_t at = threadIdx.x; at < bytes / int64_t(sizeof(T)); at += kThreads)
        reinterpret_cast<T*>(to)[at] = reinterpret_cast<const T*>(from)[at];
}

// One block a row; a row without a slot ends at once. T is as wide as the alignment allows.
template <class T>
__global__ void __launch_bounds__(kThreads) capture_kernel(CaptureArgs args) {
    const int64_t token = blockIdx.x;
    const int64_t slot = args.slot[token];
    if (slot < 0) return;
    copy<T>(args.q + token * args.q_stride, args.q_ring + slot * args.q_ring_stride, args.q_bytes);
    if (args.lse)
        copy<float>(args.lse + token * args.lse_stride, args.lse_ring + slot * args.lse_ring_stride,
                    args.lse_bytes);
}

bool is_multiple(const CaptureArgs& args, int64_t of) {
    const int64_t all = reinterpret_cast<int64_t>(args.q) | reinterpret_cast<int64_t>(args.q_ring) |
                        args.q_bytes | args.q_stride | args.q_ring_stride;
    return all % of == 0;
}

}  // namespace

const char* capture_rows(const CaptureArgs& args, int device, void* stream) {
    if (args.tokens == 0) return "";
    const OnDevice here(device);
    const auto on = static_cast<cudaStream_t>(stream);
    if (is_multiple(args, sizeof(uint4)))
        capture_kernel<uint4><<<args.tokens, kThreads, 0, on>>>(args);
    else
        capture_kernel<uint16_t><<<args.tokens, kThreads, 0, on>>>(args);
    return last_error();
}

}  // namespace recap
