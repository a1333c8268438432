// From summed attention to block means: importance, its quantile by radix selection, means.
// The same steps as recap_kernels/triton/finalize.py: integer counts and ordered sums, so the same
// bits on every run, and no program adds to memory that another writes.

#include <cmath>

#include "device.cuh"
#include "launch.h"

namespace recap {
namespace {

constexpr int kThreads = 256;
constexpr int kBins = 256;  // one digit of 8 bits; the select gives a thread to each bin
static_assert(kThreads == kBins);

// What is known of the selected key after some digits.
struct State {
    int prefix, rank, counted;
};

// How many sampled rows lie below a position: a search in the rows by rising position.
__device__ int rows_below(const FinalizeArgs& args, int64_t position) {
    int low = 0, high = args.rows;
    while (low < high) {
        const int middle = (low + high) / 2;
        const bool below = args.q_pos[args.order[middle]] < position;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    return low;
}

// Importance is never negative, so its bits are ordered as it is; -1 for a token that is not counted.
__global__ void __launch_bounds__(kThreads) importance_kernel(FinalizeArgs args, int32_t* keys) {
    const int64_t token = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    if (token >= args.kv_len) return;
    const int above = args.window ? rows_below(args, token + args.window) : args.rows;
    const int row_count = above - rows_below(args, token);
    const bool counts =
        row_count > 0 && token >= args.drop_first && !(args.exclude && args.exclude[token]);
    const int64_t share = int64_t(args.layers) * args.heads * max(row_count, 1);
    const float importance = __fdiv_rn(args.rho[token], __ll2float_rn(share));
    keys[token] = counts ? __float_as_int(importance) : -1;
    args.row_count[token] = row_count;
}

// Returns, to all threads of a block, the state after the digit that `histograms` count.
__device__ State select_digit(const int32_t* histograms, const State* before, int parts, double q) {
    __shared__ int running[kBins];
    __shared__ State selected;
    const int bin = threadIdx.x;
    int count = 0;
#pragma unroll 16
    for (int part = 0; part < parts; ++part) count += histograms[part * kBins + bin];
    running[bin] = count;
    __syncthreads();
    for (int step = 1; step < kBins; step *= 2) {
        const int lower = bin >= step ? running[bin - step] : 0;
        __syncthreads();
        running[bin] += lower;
        __syncthreads();
    }
    State state;
    if (before) {
        state = *before;
    } else {  // the first digit: nearest rank, in float64 as on every backend
        const int counted = running[kBins - 1];
        state = {0, max(1, int(ceil(q * double(counted)))), counted};
    }
    if (bin == 0) selected = {state.prefix, state.rank, state.counted};
    __syncthreads();
    const int below = bin > 0 ? running[bin - 1] : 0;
    if (below < state.rank && state.rank <= running[bin])
        selected = {state.prefix * kBins + bin, state.rank - below, state.counted};
    __syncthreads();
    return selected;
}

// Counts one digit, 0 the highest, of the keys of a part that match the digits selected so far.
__global__ void __launch_bounds__(kThreads)
    digit_kernel(const int32_t* keys, int kv_len, int parts, double q, int digit, Workspace work) {
    __shared__ int counts[kBins];
    int32_t* mine = work.histograms + (int64_t(digit) * parts + blockIdx.x) * kBins;
    State* states = reinterpret_cast<State*>(work.states);
    State state{0, 0, 0};
    if (digit > 0) {
        state = select_digit(work.histograms + int64_t(digit - 1) * parts * kBins,
                             digit > 1 ? states + digit - 1 : nullptr, parts, q);
        if (blockIdx.x == 0 && threadIdx.x == 0) states[digit] = state;
    }
    counts[threadIdx.x] = 0;
    __syncthreads();
    const int64_t first = int64_t(blockIdx.x) * kPartTokens;
    for (int64_t at = first + threadIdx.x; at < min(first + kPartTokens, int64_t(kv_len)); at += kThreads) {
        const int key = keys[at];
        const bool matches = key >= 0 && (digit == 0 || (key >> (32 - 8 * digit)) == state.prefix);
        if (matches) atomicAdd(&counts[(key >> (24 - 8 * digit)) & (kBins - 1)], 1);  // shared memory
    }
    __syncthreads();
    mine[threadIdx.x] = counts[threadIdx.x];
}

__global__ void __launch_bounds__(kThreads)
    clip_kernel(float* clip_value, int parts, double q, float factor, Workspace work) {
    const State state =
        select_digit(work.histograms + int64_t(3) * parts * kBins,
                     reinterpret_cast<const State*>(work.states) + 3, parts, q);
    if (threadIdx.x == 0)
        *clip_value = state.counted > 0 ? __int_as_float(state.prefix) * factor : INFINITY;
}

__global__ void infinite_kernel(float* clip_value) { *clip_value = INFINITY; }

// One block of threads a block of tokens: mean of the clipped importance in float64, and mean mass.
__global__ void __launch_bounds__(kThreads) block_kernel(FinalizeArgs args, const int32_t* keys) {
    __shared__ double totals[kThreads];
    __shared__ int tokens[kThreads];
    const int block = blockIdx.x, thread = threadIdx.x;
    const float clip = *args.clip_value;
    double total = 0;
    int counted = 0;
    for (int64_t at = int64_t(args.block_offsets[block]) + thread; at < args.block_offsets[block + 1];
         at += kThreads) {
        const int key = keys[at];
        if (key < 0) continue;
        total += double(fminf(__int_as_float(key), clip));
        ++counted;
    }
    totals[thread] = total;
    tokens[thread] = counted;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (thread < half) {
            totals[thread] += totals[thread + half];
            tokens[thread] += tokens[thread + half];
        }
        __syncthreads();
    }
    if (thread == 0) args.block_mean[block] = float(totals[0] / max(tokens[0], 1));
    if (!args.mass) return;
    const int64_t rows = max(args.row_range[block + 1] - args.row_range[block], 1);
    const float share = __ll2float_rn(rows * args.heads);
    for (int other = thread; other < args.blocks; other += kThreads) {
        const int64_t at = int64_t(block) * args.blocks + other;
        args.block_mass[at] = __fdiv_rn(args.mass[at], share);
    }
}

}  // namespace

const char* finalize(const FinalizeArgs& args, const Workspace& work, int device, void* stream) {
    const OnDevice here(device);
    const auto on = static_cast<cudaStream_t>(stream);
    const int parts = (args.kv_len + kPartTokens - 1) / kPartTokens;
    importance_kernel<<<(args.kv_len + kThreads - 1) / kThreads, kThreads, 0, on>>>(args, work.keys);
    const double q = args.times_median > 0 ? 0.5 : args.quantile;
    const float factor = args.times_median > 0 ? float(args.times_median) : 1.0f;
    if (q > 0) {
        for (int digit = 0; digit < 4; ++digit)
            digit_kernel<<<parts, kThreads, 0, on>>>(work.keys, args.kv_len, parts, q, digit, work);
        clip_kernel<<<1, kThreads, 0, on>>>(args.clip_value, parts, q, factor, work);
    } else {
        infinite_kernel<<<1, 1, 0, on>>>(args.clip_value);
    }
    if (args.blocks > 0) block_kernel<<<args.blocks, kThreads, 0, on>>>(args, work.keys);
    return last_error();
}

int device_count() {
    int count = 0;
    const bool answers = cudaGetDeviceCount(&count) == cudaSuccess;
    cudaGetLastError();  // no driver is an answer, not an error to keep
    return answers ? count : 0;
}

}  // namespace recap
