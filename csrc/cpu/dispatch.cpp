// Chooses the kernel for this processor and drives it: packs query rows, cuts the tokens into chunks,
// spreads chunks over threads, and reduces in a fixed order, so that the number of threads never
// changes a bit of the result.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "cpu.h"
#include "kernel.h"
#include "threads.hpp"

namespace recap {
namespace {

constexpr int chunk_tokens = 2048;  // whole panels
constexpr int64_t kept_bytes = int64_t{20} << 20;  // aim for what is kept when the LSE is not given
constexpr int least_kept_rows = 48;
constexpr double log2e = 1.4426950408889634;

std::vector<const Kernel*> kernels() {
    std::vector<const Kernel*> found{&kernel_base};
#ifdef RECAP_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&kernel_avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        found.push_back(&kernel_avx512);
#endif
    return found;
}

const Kernel& kernel_named(const std::string& isa) {
    std::string wanted;
    for (const Kernel* kernel : kernels()) {
        if (isa == kernel->name) return *kernel;
        wanted += (wanted.empty() ? "" : ", ") + std::string(kernel->name);
    }
    if (!isa.empty()) throw std::invalid_argument("isa must be one of " + wanted + "; got '" + isa + "'");
    return *kernels().back();
}

// Memory of which nothing is set; 2 MB pages for large pieces, where the system has them.
class Buffer {
  public:
    explicit Buffer(int64_t floats) {
        const size_t page = floats > (1 << 20) ? size_t{2} << 20 : 64;
        const size_t bytes = (static_cast<size_t>(floats) * sizeof(float) + page - 1) / page * page;
        data_.reset(static_cast<float*>(std::aligned_alloc(page, std::max(bytes, page))));
        if (!data_) throw std::bad_alloc();
#ifdef __linux__
        if (page > 64) madvise(data_.get(), bytes, MADV_HUGEPAGE);
#endif
    }
    float* get() const { return data_.get(); }
    float& operator[](int64_t i) const { return data_.get()[i]; }

  private:
    struct Free {
        void operator()(float* data) const { std::free(data); }
    };
    std::unique_ptr<float, Free> data_;
};

struct Chunk {
    int start, end;
    int first_span, spans;
};

// Spans of tokens that cross no edge of a chunk nor, for block mass, of a block.
struct Spans {
    std::vector<Span> spans;
    std::vector<int> block;  // of each span, -1 for none
    std::vector<Chunk> chunks;

    explicit Spans(const AttnArgs& args) {
        const int blocks = args.mass ? args.blocks : 0;
        int next = 0;  // first block edge not passed yet
        for (int start = 0; start < args.kv_len;) {
            while (blocks && next <= blocks && args.block_offsets[next] <= start) ++next;
            const int chunk_end = std::min(start / chunk_tokens * chunk_tokens + chunk_tokens, args.kv_len);
            const int end = blocks && next <= blocks ? std::min(chunk_end, args.block_offsets[next]) : chunk_end;
            if (start % chunk_tokens == 0) chunks.push_back({start, chunk_end, static_cast<int>(spans.size()), 0});
            spans.push_back({start, end});
            block.push_back(next >= 1 && next <= blocks ? next - 1 : -1);
            ++chunks.back().spans;
            start = end;
        }
    }
};

struct Bf16 {
    uint16_t bits;
};
struct F16 {
    uint16_t bits;
};

float as_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

float widen(float value) { return value; }
float widen(Bf16 value) { return as_float(static_cast<uint32_t>(value.bits) << 16); }
float widen(F16 value) {
    const uint32_t sign = (value.bits & 0x8000u) << 16;
    const uint32_t magnitude = (value.bits & 0x7fffu) << 13;
    if (magnitude >= 0x0f800000u) return as_float((magnitude + 0x70000000u) | sign);  // inf, NaN
    return as_float(sign | magnitude) * 0x1p112f;
}

// Query rows of one key head by rising position, a row for each of its query heads.
struct Rows {
    int count;   // of rows that mean something
    int padded;  // to whole groups
    Buffer q;
    std::vector<int32_t> pos;

    Rows(const AttnArgs& args, int kv_head, int first, int count, int group_rows)
        : count(count),
          padded((count + group_rows - 1) / group_rows * group_rows),
          q(static_cast<int64_t>(padded) * args.width),
          pos(padded) {
        switch (args.q.type) {
            case Type::f32: pack<float>(args, kv_head, first, group_rows); break;
            case Type::bf16: pack<Bf16>(args, kv_head, first, group_rows); break;
            case Type::f16: pack<F16>(args, kv_head, first, group_rows); break;
        }
    }

  private:
    template <class T>
    void pack(const AttnArgs& args, int kv_head, int first, int group_rows) {
        const int heads = args.heads / args.kv_heads;
        float poison = 0;  // stays 0 while all is finite
        for (int m = 0; m < padded; ++m) {
            const int row = first + std::min(m, count - 1);
            const int64_t token = args.order[row / heads];
            const T* from = static_cast<const T*>(args.q.data) + token * args.q.token_stride +
                            (kv_head * heads + row % heads) * args.q.head_stride;
            pos[m] = args.q_pos[token];
            float* to = q.get() + static_cast<int64_t>(m / group_rows) * group_rows * args.width + m % group_rows;
            for (int d = 0; d < args.width; ++d) {
                const float value = m < count ? widen(from[d]) : 0.0f;
                poison += value - value;
                to[d * group_rows] = value;
            }
        }
        if (poison != 0) throw std::invalid_argument("q must be finite; got NaN or inf");
    }
};

class Driver {
  public:
    Driver(const AttnArgs& args, const Kernel& kernel)
        : args_(args),
          kernel_(kernel),
          group_(args.heads / args.kv_heads),
          head_rows_(args.rows * group_),
          threads_(std::max(1, args.threads)),
          spans_(args),
          rho_(args.kv_len),
          lse_(args.lse ? 0 : static_cast<size_t>(args.rows) * args.heads),
          mass_(args.mass ? spans_.spans.size() * args.rows : 0),
          pass_rows_(args.lse ? head_rows_ : kept_rows()),
          kept_(args.lse ? 0 : kept_tokens() * padded(pass_rows_)) {
        std::fill_n(rho_.get(), args.kv_len, 0.0f);
    }

    void run() {
        for (int head = 0; head < args_.kv_heads; ++head)
            for (int first = 0; first < head_rows_; first += pass_rows_)
                measure(head, first, std::min(pass_rows_, head_rows_ - first));
        write();
    }

  private:
    // Rows of a pass of which all is kept: equal shares, none above the aimed memory.
    int kept_rows() const {
        const int64_t row_bytes = kept_tokens() * sizeof(float);
        const int64_t most = std::max<int64_t>(least_kept_rows, kept_bytes / row_bytes);
        const int passes = static_cast<int>((head_rows_ + most - 1) / most);
        const int share = (head_rows_ + passes - 1) / passes;
        return padded(share);
    }

    // Tokens in whole panels; only the last chunk can end within one.
    int64_t kept_tokens() const {
        return (int64_t{args_.kv_len} + kernel_.panel_tokens - 1) / kernel_.panel_tokens * kernel_.panel_tokens;
    }

    // Rows to whole groups.
    int padded(int rows) const { return (rows + kernel_.group_rows - 1) / kernel_.group_rows * kernel_.group_rows; }

    void measure(int head, int first, int count) {
        const Rows rows(args_, head, first, count, kernel_.group_rows);
        const int chunks = static_cast<int>(spans_.chunks.size());
        const bool given = args_.lse != nullptr;
        const bool wants_sums = !given || args_.mass;
        Buffer sums(wants_sums ? static_cast<int64_t>(spans_.spans.size()) * rows.padded : 0);
        // Minus the reference of each chunk and row; the LSE, the same for all, when it is given.
        Buffer bias(static_cast<int64_t>(given ? 1 : chunks) * rows.padded);
        if (given) fill_given_bias(head, first, rows, bias.get());
        else std::fill_n(bias.get(), static_cast<int64_t>(chunks) * rows.padded, unset);

        const int64_t panel_floats = static_cast<int64_t>(args_.width) * kernel_.panel_tokens;
        const int64_t lane_floats = static_cast<int64_t>(rows.padded) * kernel_.lanes;
        const Buffer scratch(threads_ * (panel_floats + lane_floats));
        auto pass_of = [&](int chunk, int thread) {
            const Chunk& at = spans_.chunks[chunk];
            Pass pass{};
            pass.keys = args_.k;
            const int64_t bytes = args_.k.type == Type::f32 ? 4 : 2;
            pass.keys.data = static_cast<const char*>(args_.k.data) + head * args_.k.head_stride * bytes;
            pass.kv_indices = args_.kv_indices;
            pass.wide_indices = args_.wide_indices;
            pass.width = args_.width;
            pass.q = rows.q.get();
            pass.pos = rows.pos.data();
            pass.groups = rows.padded / kernel_.group_rows;
            pass.window = args_.window;
            pass.slope = static_cast<float>(args_.softcap ? args_.scale / args_.softcap : args_.scale * log2e);
            pass.cap = static_cast<float>(args_.softcap * log2e);
            pass.start = at.start;
            pass.end = at.end;
            pass.spans = spans_.spans.data() + at.first_span;
            pass.span_count = at.spans;
            pass.kv_len = args_.kv_len;
            pass.panel = scratch.get() + thread * (panel_floats + lane_floats);
            pass.lanes = pass.panel + panel_floats;
            pass.rho = rho_.get();
            if (wants_sums) pass.sums = sums.get() + static_cast<int64_t>(at.first_span) * rows.padded;
            pass.bias = bias.get() + (given ? 0 : static_cast<int64_t>(chunk) * rows.padded);
            if (!given) pass.kept = kept_.get() + static_cast<int64_t>(at.start) * rows.padded;
            return pass;
        };
        std::atomic<Fault> fault{Fault::none};
        parallel_for(threads_, chunks, [&](int chunk, int thread) {
            const Fault found = kernel_.weigh(pass_of(chunk, thread));
            if (found != Fault::none) fault = found;
        });
        refuse(fault);
        if (!given) {
            const Buffer factor = factors(head, first, rows, sums, bias);
            parallel_for(threads_, chunks, [&](int chunk, int thread) {
                kernel_.collect(pass_of(chunk, thread), factor.get() + static_cast<int64_t>(chunk) * rows.padded);
            });
        }
        if (args_.mass) add_mass(first, rows, sums);
    }

    static void refuse(Fault fault) {
        if (fault == Fault::key_not_finite) throw std::invalid_argument("k must be finite; got NaN or inf");
        if (fault == Fault::weight_above_one)
            throw std::invalid_argument(
                "lse must be the log of the sum of exp(logits); got one far below a logit: is lse_base right?");
    }

    int64_t lse_index(int head, int row) const {
        return args_.order[row / group_] * args_.heads + head * group_ + row % group_;
    }

    void fill_given_bias(int head, int first, const Rows& rows, float* bias) const {
        for (int m = 0; m < rows.padded; ++m) {
            const double lse = m < rows.count ? args_.lse[lse_index(head, first + m)] : unset;
            bias[m] = static_cast<float>(std::max(-1e30, std::min(1e30, -lse * log2e)));
        }
    }

    // Finds the LSE of each row from the sums of its chunks; returns what each chunk's powers are to be
    // multiplied by, and multiplies the sums by it.
    Buffer factors(int head, int first, const Rows& rows, Buffer& sums, const Buffer& bias) {
        const int chunks = static_cast<int>(spans_.chunks.size());
        Buffer factor(static_cast<int64_t>(chunks) * rows.padded);
        for (int m = 0; m < rows.padded; ++m) {
            const double lse2 = m < rows.count ? row_lse(head, first + m, m, rows.padded, sums, bias)
                                               : std::numeric_limits<double>::infinity();
            for (int c = 0; c < chunks; ++c) {
                const float minus_reference = bias[static_cast<int64_t>(c) * rows.padded + m];
                const bool sees = minus_reference != unset && m < rows.count;
                const float by = sees ? static_cast<float>(std::exp2(-minus_reference - lse2)) : 0.0f;
                factor[static_cast<int64_t>(c) * rows.padded + m] = by;
                const Chunk& at = spans_.chunks[c];
                for (int s = at.first_span; s < at.first_span + at.spans; ++s)
                    sums[static_cast<int64_t>(s) * rows.padded + m] *= by;
            }
        }
        return factor;
    }

    // Base-2 LSE of a row; also puts the natural one where it is returned from.
    double row_lse(int head, int row, int m, int padded, const Buffer& sums, const Buffer& bias) {
        const double nothing = -std::numeric_limits<double>::infinity();
        const int chunks = static_cast<int>(spans_.chunks.size());
        const double sink = args_.sinks ? args_.sinks[head * group_ + row % group_] * log2e : nothing;
        double top = sink;
        for (int c = 0; c < chunks; ++c) {
            const float minus_reference = bias[static_cast<int64_t>(c) * padded + m];
            if (minus_reference != unset) top = std::max(top, -static_cast<double>(minus_reference));
        }
        double total = sink > nothing ? std::exp2(sink - top) : 0.0;
        for (int c = 0; c < chunks; ++c) {
            const double reference = -static_cast<double>(bias[static_cast<int64_t>(c) * padded + m]);
            const Chunk& at = spans_.chunks[c];
            double sum = 0;
            for (int s = at.first_span; s < at.first_span + at.spans; ++s)
                sum += sums[static_cast<int64_t>(s) * padded + m];
            if (sum != 0) total += sum * std::exp2(reference - top);
        }
        if (!(std::isfinite(total) && total >= 0) || top == std::numeric_limits<double>::infinity())
            throw std::invalid_argument("q and k must give finite logits; got NaN or inf");
        const double lse2 = top > nothing ? top + std::log2(total) : nothing;
        lse_[lse_index(head, row)] = static_cast<float>(lse2 / log2e);
        return lse2;
    }

    // Adds sums of spans and rows over the rows' heads: one number per span and sampled row.
    void add_mass(int first, const Rows& rows, const Buffer& sums) {
        for (size_t s = 0; s < spans_.spans.size(); ++s)
            for (int m = 0; m < rows.count; ++m)
                mass_[s * args_.rows + (first + m) / group_] += sums[static_cast<int64_t>(s) * rows.padded + m];
    }

    void write() {
        for (int j = 0; j < args_.kv_len; ++j)
            if (!std::isfinite(rho_[j])) throw std::invalid_argument("q and k must give finite logits; got NaN or inf");
        for (int j = 0; j < args_.kv_len; ++j) args_.rho[j] = (args_.accumulate ? args_.rho[j] : 0.0f) + rho_[j];
        if (!args_.lse) std::copy(lse_.begin(), lse_.end(), args_.lse_out);
        if (!args_.mass) return;
        const int blocks = args_.blocks;
        std::vector<double> given(blocks);  // by the rows of one block, to each
        for (int b = 0; b < blocks; ++b) {
            std::fill(given.begin(), given.end(), 0.0);
            for (size_t s = 0; s < spans_.spans.size(); ++s) {
                if (spans_.block[s] < 0) continue;
                for (int w = args_.row_range[b]; w < args_.row_range[b + 1]; ++w)
                    given[spans_.block[s]] += mass_[s * args_.rows + w];
            }
            float* to = args_.mass + static_cast<size_t>(b) * blocks;
            for (int a = 0; a < blocks; ++a)
                to[a] = (args_.accumulate ? to[a] : 0.0f) + static_cast<float>(given[a]);
        }
    }

    const AttnArgs& args_;
    const Kernel& kernel_;
    const int group_;      // query heads of a key head
    const int head_rows_;  // rows of a key head
    const int threads_;
    const Spans spans_;
    Buffer rho_;
    std::vector<float> lse_;
    std::vector<double> mass_;  // [spans][rows]
    const int pass_rows_;
    const Buffer kept_;  // powers of two of a pass
};

}  // namespace

std::vector<std::string> isas() {
    std::vector<std::string> names;
    for (const Kernel* kernel : kernels()) names.emplace_back(kernel->name);
    return names;
}

void attn_stats(const AttnArgs& args, const std::string& isa) { Driver(args, kernel_named(isa)).run(); }

}  // namespace recap
