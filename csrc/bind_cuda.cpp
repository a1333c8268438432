// Python module recap_kernels._cuda: addresses and the stream come as integers, work is asynchronous.
// recap_kernels/cuda.py is its only caller and has checked shapes, strides and devices.

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "cuda/launch.h"
#include "from_python.h"

namespace py = pybind11;

namespace {

void check(const char* error) {
    if (*error) throw std::runtime_error(std::string("CUDA: ") + error);
}

void capture_rows(uintptr_t q, uintptr_t q_ring, uintptr_t lse, uintptr_t lse_ring, uintptr_t slot,
                  int tokens, int64_t q_bytes, int64_t lse_bytes, int64_t q_stride,
                  int64_t q_ring_stride, int64_t lse_stride, int64_t lse_ring_stride, int device,
                  uintptr_t stream) {
    const recap::CaptureArgs args{
        reinterpret_cast<const char*>(q), reinterpret_cast<char*>(q_ring),
        reinterpret_cast<const char*>(lse), reinterpret_cast<char*>(lse_ring),
        reinterpret_cast<const int32_t*>(slot), tokens, q_bytes, lse_bytes, q_stride, q_ring_stride,
        lse_stride, lse_ring_stride};
    check(recap::capture_rows(args, device, reinterpret_cast<void*>(stream)));
}

void finalize(const py::dict& from, int device, uintptr_t stream) {
    using recap::at;
    const recap::FinalizeArgs args = recap::finalize_args(from);
    const recap::Workspace work{at<int32_t>(from, "keys"), at<int32_t>(from, "histograms"),
                                at<int32_t>(from, "states")};
    check(recap::finalize(args, work, device, reinterpret_cast<void*>(stream)));
}

}  // namespace

PYBIND11_MODULE(_cuda, module) {
    module.doc() = "Row capture and finalize on a GPU; see recap_kernels/cuda.py.";
    module.attr("PART_TOKENS") = recap::kPartTokens;
    module.def("device_count", &recap::device_count);
    module.def("capture_rows", &capture_rows);
    module.def("finalize", &finalize, py::arg("args"), py::arg("device"), py::arg("stream"));
}
