// Python module recap_kernels._cpu: addresses come as integers, and the GIL is released at work.
// recap_kernels/cpu.py is its only caller and has checked shapes, strides and index ranges.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "cpu/cpu.h"
#include "from_python.h"

namespace py = pybind11;

namespace {

using recap::at;
using recap::number;

recap::Vectors vectors(const py::dict& from, const std::string& name) {
    return {at<const void>(from, name.c_str()), static_cast<recap::Type>(number<int>(from, "type")),
            number<int64_t>(from, (name + "_token_stride").c_str()),
            number<int64_t>(from, (name + "_head_stride").c_str())};
}

void attn_stats(const py::dict& from, const std::string& isa) {
    recap::AttnArgs args{};
    recap::read_plan(from, args);
    args.q = vectors(from, "q");
    args.k = vectors(from, "k");
    args.heads = number<int>(from, "heads");
    args.kv_heads = number<int>(from, "kv_heads");
    args.width = number<int>(from, "width");
    args.kv_indices = at<const void>(from, "kv_indices");
    args.wide_indices = number<bool>(from, "wide_indices");
    args.scale = number<double>(from, "scale");
    args.softcap = number<double>(from, "softcap");
    args.sinks = at<const float>(from, "sinks");
    args.lse = at<const float>(from, "lse");
    args.rho = at<float>(from, "rho");
    args.mass = at<float>(from, "mass");
    args.lse_out = at<float>(from, "lse_out");
    args.accumulate = number<bool>(from, "accumulate");
    args.threads = number<int>(from, "threads");
    py::gil_scoped_release released;
    recap::attn_stats(args, isa);
}

void finalize(const py::dict& from) {
    const recap::FinalizeArgs args = recap::finalize_args(from);
    py::gil_scoped_release released;
    recap::finalize(args);
}

}  // namespace

PYBIND11_MODULE(_cpu, module) {
    module.doc() = "Attention statistics on a CPU; see recap_kernels/cpu.py.";
    module.def("isas", &recap::isas);
    module.def("attn_stats", &attn_stats, py::arg("args"), py::arg("isa"));
    module.def("finalize", &finalize, py::arg("args"));
}
