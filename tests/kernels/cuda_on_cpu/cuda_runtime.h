// Enough of CUDA to run kernels on a CPU: a thread of the computer for each thread of a block, blocks
// one after another, so that shared memory can be static.
#pragma once

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __launch_bounds__(threads)
#define __shared__ static

using std::max;
using std::min;

struct Index {
    unsigned x;
};
inline thread_local Index threadIdx, blockIdx;
inline std::barrier<>* block_barrier;

inline void __syncthreads() { block_barrier->arrive_and_wait(); }
inline int atomicAdd(int* at, int value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __ll2float_rn(int64_t value) { return float(value); }

template <class To, class From>
To bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(&result, &value, sizeof result);
    return result;
}
inline int __float_as_int(float value) { return bits<int>(value); }
inline float __int_as_float(int value) { return bits<float>(value); }

struct uint4 {
    uint32_t x, y, z, w;
};

using cudaStream_t = void*;
using cudaError_t = int;
enum { cudaSuccess = 0 };
inline int cudaGetDevice(int*) { return cudaSuccess; }
inline int cudaSetDevice(int) { return cudaSuccess; }
inline int cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline int cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(int) { return ""; }

// What `kernel<<<blocks, threads, 0, stream>>>(...)` is rewritten to.
template <class Kernel>
void launch(int blocks, int threads, Kernel kernel) {
    for (int block = 0; block < blocks; ++block) {
        std::barrier<> barrier(threads);
        block_barrier = &barrier;
        std::vector<std::thread> running;
        for (int thread = 0; thread < threads; ++thread)
            running.emplace_back([&, thread] {
                threadIdx.x = thread;
                blockIdx.x = block;
                kernel();
                barrier.arrive_and_drop();
            });
        for (auto& thread : running) thread.join();
    }
}
