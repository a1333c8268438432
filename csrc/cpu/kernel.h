// What the driver hands to a kernel of one instruction set: plain data, no code, so that nothing
// compiled for a wider instruction set is ever linked into the rest.
#pragma once

#include "../args.h"

namespace recap {

struct Span {
    int start, end;  // tokens
};

enum class Fault : int { none, key_not_finite, weight_above_one };

// One key head, some of its query rows, one chunk of tokens.
struct Pass {
    // Keys
    Vectors keys;  // of the head: head_stride is not used
    const void* kv_indices;
    bool wide_indices;
    int width;
    // Query rows by rising position, packed [groups][width][group_rows]
    const float* q;
    const int32_t* pos;  // [groups * group_rows]
    int groups;
    int window;
    // Base-2 logit of a dot product: dot * slope, or cap * tanh(dot * slope)
    float slope, cap;
    // Tokens of the chunk, and its spans: each lies in one block or in none, none is empty
    int start, end;
    const Span* spans;
    int span_count;
    int kv_len;
    // Scratch of the thread
    float* panel;  // [width][panel_tokens]
    float* lanes;  // [groups * group_rows][lanes]
    // Results
    float* rho;   // [tokens of all chunks], added to
    float* sums;  // [span_count][groups * group_rows]: sums of weights; null for not wanted
    // LSE given: bias is minus its base-2 value. Else it is the reference that the kept powers of two
    // are relative to, found on the way, and starts as `unset`.
    float* bias;  // [groups * group_rows]
    float* kept;  // [panels][groups][group_rows][panel_tokens]; null when the LSE is given
};

constexpr float unset = 1e30f;

struct Kernel {
    const char* name;
    int lanes, group_rows, panel_tokens;
    // Adds weights to rho (LSE given), or keeps powers of two and their sums.
    Fault (*weigh)(const Pass&);
    // Adds the kept powers times `factor[groups * group_rows]` to rho.
    void (*collect)(const Pass&, const float* factor);
};

extern const Kernel kernel_base;
#ifdef RECAP_X86
extern const Kernel kernel_avx2;
extern const Kernel kernel_avx512;
#endif

}  // namespace recap
