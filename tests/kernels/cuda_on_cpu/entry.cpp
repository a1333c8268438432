// C entry points to the CUDA sources; pointers in the order of the names in test_cuda_host.py.

#include "cuda/launch.h"

template <class T>
static T* at(void* pointer) {
    return static_cast<T*>(pointer);
}

extern "C" void finalize(void* const* p, const int* n, double quantile, double times_median) {
    recap::FinalizeArgs args{};
    args.rho = at<const float>(p[0]);
    args.mass = at<const float>(p[1]);
    args.q_pos = at<const int32_t>(p[2]);
    args.order = at<const int64_t>(p[3]);
    args.row_range = at<const int32_t>(p[4]);
    args.block_offsets = at<const int32_t>(p[5]);
    args.exclude = at<const bool>(p[6]);
    args.block_mean = at<float>(p[7]);
    args.block_mass = at<float>(p[8]);
    args.clip_value = at<float>(p[9]);
    args.row_count = at<int32_t>(p[10]);
    args.rows = n[0];
    args.kv_len = n[1];
    args.blocks = n[2];
    args.window = n[3];
    args.layers = n[4];
    args.heads = n[5];
    args.drop_first = n[6];
    args.quantile = quantile;
    args.times_median = times_median;
    const recap::Workspace work{at<int32_t>(p[11]), at<int32_t>(p[12]), at<int32_t>(p[13])};
    recap::finalize(args, work, 0, nullptr);
}

extern "C" void capture_rows(void* const* p, int tokens, const int64_t* n) {
    const recap::CaptureArgs args{at<const char>(p[0]), at<char>(p[1]),
                                  at<const char>(p[2]), at<char>(p[3]),
                                  at<const int32_t>(p[4]), tokens,
                                  n[0], n[1], n[2], n[3], n[4], n[5]};
    recap::capture_rows(args, 0, nullptr);
}

extern "C" int part_tokens() { return recap::kPartTokens; }
