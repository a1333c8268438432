// The kernel, written once in vector extensions of the compiler and compiled once per instruction set.
// An isa_*.cpp file defines RECAP_ISA (its namespace), RECAP_LANES (floats of a vector) and
// RECAP_GROUP_ROWS, and includes this. Everything here has internal linkage and uses nothing of the
// standard library: a shared inline function compiled for AVX-512 would crash on other processors.
//
// Tokens are stationary: a panel of 2 * LANES tokens of K is transposed to [width][tokens] in L1, and
// the packed query rows stream past it, GROUP_ROWS at a time. Dot products stay in registers, where
// they become weights and then column sums.

#include <cstring>

#include "kernel.h"

namespace recap {
namespace RECAP_ISA {
namespace {

constexpr int LANES = RECAP_LANES;
constexpr int GROUP_ROWS = RECAP_GROUP_ROWS;
constexpr int PANEL = 2 * LANES;

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef uint32_t u4 __attribute__((vector_size(16)));
typedef uint16_t h4 __attribute__((vector_size(8)));

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define RECAP_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#endif
#endif
#ifndef RECAP_SHUFFLE
#define RECAP_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (i4){i, j, k, l})
#endif

#define RECAP_INLINE inline __attribute__((always_inline))

constexpr float HIDDEN = -1000.0f;   // base-2 logit of a token that a row does not see
constexpr float GIVEN_LIMIT = 1.0f;  // a weight above 2 contradicts the LSE that was given
constexpr float KEPT_LIMIT = 40.0f;  // kept powers above 2^40 move their reference

RECAP_INLINE vf load(const float* from) {
    vf value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

RECAP_INLINE void store(float* to, vf value) { std::memcpy(to, &value, sizeof value); }

RECAP_INLINE vf splat(float value) { return value - vf{}; }

RECAP_INLINE vf bits(vi value) { return (vf)value; }

RECAP_INLINE float sum(const float* lanes) {
    f4 total = {};
    for (int i = 0; i < LANES; i += 4) {
        f4 part;
        std::memcpy(&part, lanes + i, sizeof part);
        total += part;
    }
    return (total[0] + total[1]) + (total[2] + total[3]);
}

// Makes 2^x of x for x <= 64, within 2e-7 relative; exactly 0 from -127 down; NaN stays NaN.
// Minimax polynomial of degree 5 on [-1/2, 1/2] whose value at 0 is 1, which makes the 0 exact.
// Step by step for all COUNT vectors: a processor does not look far enough ahead to overlap them.
template <int COUNT>
RECAP_INLINE void exp2(vf* x) {
    const vf magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
    const vf least = splat(-127.0f);
    constexpr float coefficients[] = {0.0096715126f, 0.055507337f, 0.24022242f, 0.69314698f, 1.0f};
    vf shifted[COUNT], p[COUNT];
#pragma GCC unroll 16
    for (int i = 0; i < COUNT; ++i) x[i] = least > x[i] ? least : x[i];
#pragma GCC unroll 16
    for (int i = 0; i < COUNT; ++i) shifted[i] = x[i] + magic;
#pragma GCC unroll 16
    for (int i = 0; i < COUNT; ++i) x[i] -= shifted[i] - magic;
#pragma GCC unroll 16
    for (int i = 0; i < COUNT; ++i) p[i] = splat(0.0013264727f);
#pragma GCC unroll 5
    for (float coefficient : coefficients) {
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i) p[i] = p[i] * x[i] + coefficient;
    }
#pragma GCC unroll 16
    for (int i = 0; i < COUNT; ++i) x[i] = bits((vi)p[i] + ((vi)shifted[i] << 23));
}

RECAP_INLINE vf exp2(vf x) {
    exp2<1>(&x);
    return x;
}

// tanh(x), 2 ulp: odd polynomial (Cephes) near 0, 1 - 2 / (e^2x + 1) elsewhere.
RECAP_INLINE vf tanh(vf x) {
    const vi sign = (vi)x & INT32_MIN;
    vf a = bits((vi)x & INT32_MAX);
    a = splat(20.0f) > a ? a : splat(20.0f);
    vf far = 1.0f - 2.0f / (exp2(a * 2.8853901f) + 1.0f);
    vf s = a * a;
    vf p = splat(-5.70498872745e-3f);
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    vf near = a + a * s * p;
    return bits((vi)(a < splat(0.625f) ? near : far) | sign);
}

RECAP_INLINE f4 widen(const float* from) {
    f4 value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

struct Bf16 {
    uint16_t bits;
};
struct F16 {
    uint16_t bits;
};

RECAP_INLINE f4 widen(const Bf16* from) {
    h4 raw;
    std::memcpy(&raw, from, sizeof raw);
    return (f4)(__builtin_convertvector(raw, u4) << 16);
}

// By integer arithmetic: denormal halves are right although denormal floats count as 0 here.
RECAP_INLINE f4 widen(const F16* from) {
    h4 raw;
    std::memcpy(&raw, from, sizeof raw);
    u4 h = __builtin_convertvector(raw, u4);
    u4 sign = (h & 0x8000u) << 16;
    u4 magnitude = (h & 0x7fffu) << 13;
    u4 exponent = magnitude & 0x0f800000u;
    u4 normal = magnitude + 0x38000000u;
    u4 special = magnitude + 0x70000000u;
    u4 tiny = (u4)((f4)(magnitude + 0x38800000u) - 6.103515625e-5f);
    u4 value = exponent == 0x0f800000u ? special : normal;
    value = exponent == 0u ? tiny : value;
    return (f4)(value | sign);
}

RECAP_INLINE float widen_one(const float* from) { return *from; }

template <class T>
RECAP_INLINE float widen_one(const T* from) {
    T four[4] = {*from, {0}, {0}, {0}};
    return widen(four)[0];
}

RECAP_INLINE int64_t slot_of(const Pass& pass, int token) {
    if (!pass.kv_indices) return token;
    return pass.wide_indices ? static_cast<const int64_t*>(pass.kv_indices)[token]
                             : static_cast<const int32_t*>(pass.kv_indices)[token];
}

// Transposes the vectors of tokens [start, end) to panel[width][PANEL], the last token again in the
// rest. Gathers through kv_indices, so paging costs nothing more. Returns false for NaN or inf.
template <class T>
bool pack(const Pass& pass, int start, int end) {
    const T* base = static_cast<const T*>(pass.keys.data);
    const T* token[PANEL];
    for (int i = 0; i < PANEL; ++i) {
        int last = start + i < end ? start + i : end - 1;
        token[i] = base + slot_of(pass, last) * pass.keys.token_stride;
    }
    f4 poison = {};  // stays 0 while all is finite
    int d = 0;
    for (; d + 4 <= pass.width; d += 4) {
        for (int i = 0; i < PANEL; i += 4) {
            f4 a = widen(token[i] + d), b = widen(token[i + 1] + d);
            f4 c = widen(token[i + 2] + d), e = widen(token[i + 3] + d);
            poison += a * 0.0f + b * 0.0f + c * 0.0f + e * 0.0f;
            f4 ab0 = RECAP_SHUFFLE(a, b, 0, 4, 1, 5), ab1 = RECAP_SHUFFLE(a, b, 2, 6, 3, 7);
            f4 ce0 = RECAP_SHUFFLE(c, e, 0, 4, 1, 5), ce1 = RECAP_SHUFFLE(c, e, 2, 6, 3, 7);
            f4 column[4] = {
                RECAP_SHUFFLE(ab0, ce0, 0, 1, 4, 5), RECAP_SHUFFLE(ab0, ce0, 2, 3, 6, 7),
                RECAP_SHUFFLE(ab1, ce1, 0, 1, 4, 5), RECAP_SHUFFLE(ab1, ce1, 2, 3, 6, 7)};
            for (int j = 0; j < 4; ++j)
                std::memcpy(pass.panel + (d + j) * PANEL + i, &column[j], sizeof(f4));
        }
    }
    for (; d < pass.width; ++d) {
        for (int i = 0; i < PANEL; ++i) {
            float value = widen_one(token[i] + d);
            poison[0] += value - value;
            pass.panel[d * PANEL + i] = value;
        }
    }
    return poison[0] + poison[1] + poison[2] + poison[3] == 0.0f;
}

bool pack(const Pass& pass, int start, int end) {
    switch (pass.keys.type) {
        case Type::f32: return pack<float>(pass, start, end);
        case Type::bf16: return pack<Bf16>(pass, start, end);
        default: return pack<F16>(pass, start, end);
    }
}

// Asks for keys of tokens [first, past). A whole panel at once would wait for memory; a few tokens with
// each group of rows arrive beside its products.
RECAP_INLINE void prefetch(const Pass& pass, int first, int past) {
    const int64_t size = pass.keys.type == Type::f32 ? 4 : 2;
    const char* base = static_cast<const char*>(pass.keys.data);
    for (int token = first; token < past && token < pass.kv_len; ++token) {
        const char* key = base + slot_of(pass, token) * pass.keys.token_stride * size;
        for (int64_t byte = 0; byte < size * pass.width; byte += 64) __builtin_prefetch(key + byte);
    }
}

// How a group of rows meets the tokens [start, end) of a panel.
enum class Sight { none, part, whole };

RECAP_INLINE Sight sight(const Pass& pass, int group, int start, int end) {
    const int first = pass.pos[group * GROUP_ROWS];
    const int last = pass.pos[group * GROUP_ROWS + GROUP_ROWS - 1];
    const int64_t window = pass.window ? pass.window : INT64_MAX;
    if (last < start || int64_t{first} - (end - 1) >= window) return Sight::none;
    bool whole = first >= end - 1 && int64_t{last} - start < window && end - start == PANEL;
    return whole ? Sight::whole : Sight::part;
}

// Which of LANES tokens from `first` on a row sees, of those before `end`: -1 or 0 per lane.
RECAP_INLINE vi visible(const Pass& pass, int row, int first, int end) {
    const int pos = pass.pos[row];
    const int past = pos < end ? pos + 1 : end;
    const int from = pass.window && pos - pass.window + 1 > first ? pos - pass.window + 1 : first;
    vi token;
    for (int i = 0; i < LANES; ++i) token[i] = i;
    return (token >= from - first) & (token < past - first);
}

RECAP_INLINE void dot(const Pass& pass, int group, vf out[GROUP_ROWS][2]) {
    const float* q = pass.q + static_cast<int64_t>(group) * pass.width * GROUP_ROWS;
    const float* k = pass.panel;
    for (int r = 0; r < GROUP_ROWS; ++r) out[r][0] = out[r][1] = vf{};
    for (int d = 0; d < pass.width; ++d, q += GROUP_ROWS, k += PANEL) {
        const vf left = load(k), right = load(k + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < GROUP_ROWS; ++r) {
            out[r][0] += q[r] * left;
            out[r][1] += q[r] * right;
        }
    }
}

template <bool CAP>
RECAP_INLINE vf logit(const Pass& pass, vf dot_product) {
    if (CAP) return pass.cap * tanh(dot_product * pass.slope);
    return dot_product * pass.slope;
}

// Where a tile of logits lies: a group of rows, tokens [start, end) of a panel, and their spans.
struct Place {
    int group, panel, start, end, span, last_span;
};

// Base-2 logits plus bias; HIDDEN for what a row does not see.
template <bool MASKED, bool CAP>
RECAP_INLINE void logits(const Pass& pass, const Place& at, vf out[GROUP_ROWS][2]) {
    dot(pass, at.group, out);
#pragma GCC unroll 16
    for (int r = 0; r < GROUP_ROWS; ++r) {
        const int row = at.group * GROUP_ROWS + r;
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
            out[r][half] = logit<CAP>(pass, out[r][half]) + pass.bias[row];
            if (MASKED) {
                const vi seen = visible(pass, row, at.start + half * LANES, at.end);
                out[r][half] = seen ? out[r][half] : splat(HIDDEN);
            }
        }
    }
}

// Moves the reference of rows that have none yet, or whose logits are too far above it, and scales what
// this chunk has kept of them. Rare, so it computes the tile again, from no reference, and is plain.
template <bool MASKED, bool CAP>
__attribute__((noinline)) void move_references(const Pass& pass, const Place& at) {
    const int rows = pass.groups * GROUP_ROWS;
    float before[GROUP_ROWS];
    float* bias = pass.bias + at.group * GROUP_ROWS;
    std::memcpy(before, bias, sizeof before);
    std::memset(bias, 0, sizeof before);
    vf tile[GROUP_ROWS][2];
    logits<MASKED, CAP>(pass, at, tile);
    for (int r = 0; r < GROUP_ROWS; ++r) {
        float top = -__builtin_inff();
        for (int i = 0; i < PANEL; ++i) {
            const int token = at.start + i;
            const bool seen = !MASKED || visible(pass, at.group * GROUP_ROWS + r, token, at.end)[0];
            const float value = tile[r][i / LANES][i % LANES];
            if (seen && value > top) top = value;
        }
        const bool has_none = before[r] == unset;
        if (top == -__builtin_inff() || !(has_none || top + before[r] > KEPT_LIMIT)) {
            bias[r] = before[r];
            continue;
        }
        bias[r] = -top;
        if (has_none) continue;
        const int row = at.group * GROUP_ROWS + r;
        const float factor = exp2(splat(-top - before[r]))[0];
        for (int s = 0; s < pass.span_count; ++s) pass.sums[s * rows + row] *= factor;
        for (int i = 0; i < LANES; ++i) pass.lanes[row * LANES + i] *= factor;
        for (int p = 0; p < at.panel; ++p) {
            float* kept = pass.kept + (static_cast<int64_t>(p) * rows + row) * PANEL;
            for (int i = 0; i < PANEL; ++i) kept[i] *= factor;
        }
    }
}

RECAP_INLINE bool any_above(const vf tile[GROUP_ROWS][2], float limit) {
    vf top = tile[0][0];
    for (int r = 0; r < GROUP_ROWS; ++r)
        for (int half = 0; half < 2; ++half) top = top > tile[r][half] ? top : tile[r][half];
    const vi above = top > splat(limit);
    int64_t words[LANES / 2], any = 0;
    std::memcpy(words, &above, sizeof words);
    for (int64_t word : words) any |= word;
    return any != 0;
}

// Adds the weights of a tile that crosses edges of spans to the sums of each.
__attribute__((noinline)) void add_pieces(const Pass& pass, const Place& at, const float* weight) {
    const int rows = pass.groups * GROUP_ROWS;
    for (int r = 0; r < GROUP_ROWS; ++r, weight += PANEL) {
        float* sums = pass.sums + at.span * rows + at.group * GROUP_ROWS + r;
        for (int span = at.span; span <= at.last_span; ++span, sums += rows) {
            const int from = pass.spans[span].start > at.start ? pass.spans[span].start - at.start : 0;
            const int past = (pass.spans[span].end < at.end ? pass.spans[span].end : at.end) - at.start;
            float total = 0;
            for (int i = from; i < past; ++i) total += weight[i];
            *sums += total;
        }
    }
}

// Weights of a tile: added to `column`, or kept; and to the rows' running sums. False for a weight that
// contradicts the LSE given.
template <bool MASKED, bool CAP, bool KEEP, bool SUMS>
RECAP_INLINE bool weigh_tile(const Pass& pass, const Place& at, float* column) {
    vf tile[GROUP_ROWS][2];
    logits<MASKED, CAP>(pass, at, tile);
    if (__builtin_expect(any_above(tile, KEEP ? KEPT_LIMIT : GIVEN_LIMIT), 0)) {
        if (!KEEP) return false;
        move_references<MASKED, CAP>(pass, at);
        logits<MASKED, CAP>(pass, at, tile);
    }
    const int64_t row0 = static_cast<int64_t>(at.group) * GROUP_ROWS;
    float pieces[GROUP_ROWS * PANEL];
    float* kept = pieces;
    if (KEEP) kept = pass.kept + (static_cast<int64_t>(at.panel) * pass.groups * GROUP_ROWS + row0) * PANEL;
    const bool one_span = at.span == at.last_span;
    static_assert(GROUP_ROWS % 2 == 0, "rows become weights two at a time");
    vf left = {}, right = {};
#pragma GCC unroll 16
    for (int r = 0; r < GROUP_ROWS; ++r) {
        if (r % 2 == 0) exp2<4>(&tile[0][0] + 2 * r);
        const vf first = tile[r][0], second = tile[r][1];
        if (KEEP || (SUMS && !one_span)) {
            store(kept + r * PANEL, first);
            store(kept + r * PANEL + LANES, second);
        }
        if (SUMS && one_span) {
            float* lanes = pass.lanes + (row0 + r) * LANES;
            store(lanes, load(lanes) + (first + second));
        }
        left += first;
        right += second;
    }
    if (SUMS && !one_span) add_pieces(pass, at, kept);
    if (!KEEP) {
        store(column, load(column) + left);
        store(column + LANES, load(column + LANES) + right);
    }
    return true;
}

// Ends the running sums of a span.
void end_span(const Pass& pass, int span) {
    const int rows = pass.groups * GROUP_ROWS;
    for (int row = 0; row < rows; ++row) pass.sums[span * rows + row] += sum(pass.lanes + row * LANES);
    std::memset(pass.lanes, 0, sizeof(float) * rows * LANES);
}

template <bool CAP, bool KEEP, bool SUMS>
Fault weigh_chunk(const Pass& pass) {
    const int rows = pass.groups * GROUP_ROWS;
    if (SUMS) {
        std::memset(pass.lanes, 0, sizeof(float) * rows * LANES);
        std::memset(pass.sums, 0, sizeof(float) * rows * pass.span_count);
    }
    const int share = (PANEL + pass.groups - 1) / pass.groups;  // tokens of the next panel
    Place at{};
    for (at.start = pass.start; at.start < pass.end; at.start += PANEL, ++at.panel) {
        at.end = at.start + PANEL < pass.end ? at.start + PANEL : pass.end;
        if (SUMS) {
            int last = at.last_span;
            while (pass.spans[last].end < at.end) ++last;
            if (last > at.span) end_span(pass, at.span);
            at.span = pass.spans[at.last_span].end > at.start ? at.last_span : at.last_span + 1;
            at.last_span = last;
        }
        if (!pack(pass, at.start, at.end)) return Fault::key_not_finite;
        float column[PANEL] = {};
        for (at.group = 0; at.group < pass.groups; ++at.group) {
            if (at.group * share < PANEL)
                prefetch(pass, at.end + at.group * share, at.end + (at.group + 1) * share);
            const Sight sees = sight(pass, at.group, at.start, at.end);
            if (sees == Sight::none) continue;
            const bool fine = sees == Sight::whole ? weigh_tile<false, CAP, KEEP, SUMS>(pass, at, column)
                                                   : weigh_tile<true, CAP, KEEP, SUMS>(pass, at, column);
            if (!fine) return Fault::weight_above_one;
        }
        for (int i = 0; !KEEP && i < at.end - at.start; ++i) pass.rho[at.start + i] += column[i];
    }
    if (SUMS) end_span(pass, at.last_span);
    return Fault::none;
}

Fault weigh(const Pass& pass) {
    const bool cap = pass.cap != 0.0f;
    if (pass.kept) return cap ? weigh_chunk<true, true, true>(pass) : weigh_chunk<false, true, true>(pass);
    if (pass.sums) return cap ? weigh_chunk<true, false, true>(pass) : weigh_chunk<false, false, true>(pass);
    return cap ? weigh_chunk<true, false, false>(pass) : weigh_chunk<false, false, false>(pass);
}

void collect(const Pass& pass, const float* factor) {
    const float* kept = pass.kept;
    for (int start = pass.start; start < pass.end; start += PANEL) {
        const int end = start + PANEL < pass.end ? start + PANEL : pass.end;
        vf left = {}, right = {};
        for (int group = 0; group < pass.groups; ++group, kept += GROUP_ROWS * PANEL) {
            if (sight(pass, group, start, end) == Sight::none) continue;
            const float* scale = factor + group * GROUP_ROWS;
            vf group_left = {}, group_right = {};
            for (int r = 0; r < GROUP_ROWS; ++r) {
                group_left += scale[r] * load(kept + r * PANEL);
                group_right += scale[r] * load(kept + r * PANEL + LANES);
            }
            left += group_left;
            right += group_right;
        }
        float column[PANEL];
        store(column, left);
        store(column + LANES, right);
        for (int i = 0; i < end - start; ++i) pass.rho[start + i] += column[i];
    }
}

}  // namespace
}  // namespace RECAP_ISA

const Kernel RECAP_KERNEL = {RECAP_ISA_NAME, RECAP_ISA::LANES, RECAP_ISA::GROUP_ROWS,
                             RECAP_ISA::PANEL, RECAP_ISA::weigh, RECAP_ISA::collect};

}  // namespace recap
