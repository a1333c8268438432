// Arguments of the native functions from the dict that recap_kernels/native.py makes: addresses are
// integers, the names those of args.h.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

#include "args.h"

namespace recap {

template <class T>
T* at(const pybind11::dict& from, const char* name) {
    return reinterpret_cast<T*>(from[name].cast<uintptr_t>());
}

template <class T>
T number(const pybind11::dict& from, const char* name) {
    return from[name].cast<T>();
}

// The part of the arguments that comes from the plan of a turn.
template <class Args>
void read_plan(const pybind11::dict& from, Args& args) {
    args.q_pos = at<const int32_t>(from, "q_pos");
    args.order = at<const int64_t>(from, "order");
    args.row_range = at<const int32_t>(from, "row_range");
    args.block_offsets = at<const int32_t>(from, "block_offsets");
    args.rows = number<int>(from, "rows");
    args.kv_len = number<int>(from, "kv_len");
    args.blocks = number<int>(from, "blocks");
    args.window = number<int>(from, "window");
}

inline FinalizeArgs finalize_args(const pybind11::dict& from) {
    FinalizeArgs args{};
    read_plan(from, args);
    args.rho = at<const float>(from, "rho");
    args.mass = at<const float>(from, "mass");
    args.layers = number<int>(from, "layers");
    args.heads = number<int>(from, "heads");
    args.drop_first = number<int>(from, "drop_first");
    args.quantile = number<double>(from, "quantile");
    args.times_median = number<double>(from, "times_median");
    args.exclude = at<const bool>(from, "exclude");
    args.block_mean = at<float>(from, "block_mean");
    args.block_mass = at<float>(from, "block_mass");
    args.clip_value = at<float>(from, "clip_value");
    args.row_count = at<int32_t>(from, "row_count");
    return args;
}

}  // namespace recap
