// Block means of the clipped token importance. The clip value is an order statistic of float32
// numbers, each the result of one division: its bits are the same on every backend.

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu.h"

namespace recap {
namespace {

// Sampled rows that see each token: those at or after it and, with a window, not too far after it.
void count_rows(const FinalizeArgs& args) {
    int from = 0, past = 0;
    auto position = [&](int row) { return int64_t{args.q_pos[args.order[row]]}; };
    for (int64_t token = 0; token < args.kv_len; ++token) {
        while (from < args.rows && position(from) < token) ++from;
        if (args.window)
            while (past < args.rows && position(past) - token < args.window) ++past;
        else
            past = args.rows;
        args.row_count[token] = std::max(past - from, 0);
    }
}

float clip_value(const FinalizeArgs& args, std::vector<float> counted) {
    const double share = args.quantile > 0 ? args.quantile : 0.5;
    if (counted.empty() || (args.quantile <= 0 && args.times_median <= 0))
        return std::numeric_limits<float>::infinity();
    const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(counted.size())));
    const auto nth = counted.begin() + std::max<int64_t>(rank, 1) - 1;
    std::nth_element(counted.begin(), nth, counted.end());
    return args.times_median > 0 ? static_cast<float>(args.times_median) * *nth : *nth;
}

void mean_mass(const FinalizeArgs& args) {
    for (int b = 0; b < args.blocks; ++b) {
        const int rows = std::max(args.row_range[b + 1] - args.row_range[b], 1);
        const auto divisor = static_cast<float>(static_cast<int64_t>(args.heads) * rows);
        for (int a = 0; a < args.blocks; ++a) {
            const int64_t i = static_cast<int64_t>(b) * args.blocks + a;
            args.block_mass[i] = args.mass[i] / divisor;
        }
    }
}

}  // namespace

void finalize(const FinalizeArgs& args) {
    count_rows(args);
    std::vector<float> rho(args.kv_len), counted;
    std::vector<bool> counts(args.kv_len);
    const int64_t shares = static_cast<int64_t>(args.layers) * args.heads;
    for (int j = 0; j < args.kv_len; ++j) {
        counts[j] = args.row_count[j] > 0 && j >= args.drop_first && !(args.exclude && args.exclude[j]);
        if (!counts[j]) continue;
        rho[j] = args.rho[j] / static_cast<float>(shares * args.row_count[j]);
        counted.push_back(rho[j]);
    }
    const float clip = *args.clip_value = clip_value(args, std::move(counted));
    for (int b = 0; b < args.blocks; ++b) {
        double total = 0;
        int tokens = 0;
        for (int j = args.block_offsets[b]; j < args.block_offsets[b + 1]; ++j) {
            if (!counts[j]) continue;
            total += std::min(rho[j], clip);
            ++tokens;
        }
        args.block_mean[b] = static_cast<float>(total / std::max(tokens, 1));
    }
    if (args.mass) mean_mass(args);
}

}  // namespace recap
