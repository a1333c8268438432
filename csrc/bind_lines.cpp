// Python module recap.cmv._lines: runs of common lines of a log, for recap/cmv/index.py and writing.py.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "lines/columns.h"
#include "lines/writer.h"

namespace py = pybind11;

namespace {

using recap::Columns;

// Python's own hash of an ASCII text: ids that only Python reads have to meet these.
int64_t key_of(std::string_view text) {
    PyObject* made = PyUnicode_New(static_cast<Py_ssize_t>(text.size()), 127);
    if (!made) throw py::error_already_set();
    std::memcpy(PyUnicode_1BYTE_DATA(made), text.data(), text.size());
    const int64_t key = PyObject_Hash(made);
    Py_DECREF(made);
    return key;
}

std::string_view view(const py::bytes& data, size_t begin, size_t end) {
    const std::string_view whole(PyBytes_AS_STRING(data.ptr()), PyBytes_GET_SIZE(data.ptr()));
    return whole.substr(begin, end - begin);
}

template <class T>
py::bytes bytes_of(const std::vector<T>& column) {
    return {reinterpret_cast<const char*>(column.data()), column.size() * sizeof(T)};
}

template <class T>
T number(const py::dict& from, const char* name) {
    return from[name].cast<T>();
}

recap::Reading reading_of(const py::dict& from) {
    recap::Reading reading{};
    reading.limits = {number<uint32_t>(from, "least"), number<uint32_t>(from, "threshold"),
                      number<bool>(from, "is_verbatim"), number<bool>(from, "may_change_texts")};
    for (const auto& [name, fate, kind] :
         from["types"].cast<std::vector<std::tuple<std::string, int, int>>>())
        reading.types.push_back({name, static_cast<uint8_t>(fate), kind});
    reading.node = number<uint8_t>(from, "node");
    reading.other = number<uint8_t>(from, "other");
    reading.link = number<uint8_t>(from, "link");
    reading.user = number<uint8_t>(from, "user");
    reading.assistant = number<uint8_t>(from, "assistant");
    reading.of_side_chains = number<bool>(from, "of_side_chains");
    reading.key_of = key_of;
    return reading;
}

// Arrays of Python's, held as long as addresses into them are used.
class Arrays {
   public:
    template <class T>
    const T* at(const py::dict& from, const char* name) {
        held_.push_back(from[name].cast<py::buffer>().request());
        if (held_.back().itemsize != sizeof(T)) throw std::invalid_argument(name);
        return static_cast<const T*>(held_.back().ptr);
    }

   private:
    std::vector<py::buffer_info> held_;
};

class LineWriter {
   public:
    LineWriter(const py::dict& reading, const py::dict& plan, py::function stub, py::function name)
        : writer_(reading_of(reading), planned(plan), asking(std::move(stub)),
                  [ask = std::move(name)](int64_t node) { return ask(node).cast<std::string>(); }) {}

    py::tuple write(const py::bytes& data, size_t begin, size_t end, size_t line, size_t node) {
        std::string out;
        out.reserve(end - begin);
        const size_t read = writer_.write(view(data, begin, end), line, node, out);
        return py::make_tuple(py::bytes(out), begin + read, line, node);
    }

    py::dict counts() const {
        const recap::Counts& held = writer_.counts();
        py::dict named;
        named["lines"] = held.lines;
        named["active_chars"] = held.active_chars;
        named["odd_lines_dropped"] = held.odd_lines_dropped;
        named["file_history_removed"] = held.file_history_removed;
        named["queue_operations_removed"] = held.queue_operations_removed;
        named["pre_boundary_lines"] = held.pre_boundary_lines;
        named["thinking_removed"] = held.thinking_removed;
        named["orphans_dropped"] = held.orphans_dropped;
        named["errors_kept"] = held.errors_kept;
        named["usage_removed"] = held.usage_removed;
        named["tool_use_results_removed"] = held.tool_use_results_removed;
        named["reparented"] = held.reparented;
        named["results_stubbed"] = held.results_stubbed;
        return named;
    }

   private:
    Arrays arrays_;
    recap::Writer writer_;

    static recap::Writer::Stub asking(py::function ask) {
        return [ask = std::move(ask)](int64_t node, size_t size) {
            const py::object stub = ask(node, size);
            return stub.is_none() ? std::string() : stub.cast<std::string>();
        };
    }

    recap::Planned planned(const py::dict& from) {
        recap::Planned plan{};
        plan.fates = arrays_.at<uint8_t>(from, "fates");
        plan.state = arrays_.at<uint8_t>(from, "state");
        plan.flags = arrays_.at<uint32_t>(from, "flags");
        plan.cost = arrays_.at<uint32_t>(from, "cost");
        plan.new_parents = arrays_.at<int32_t>(from, "new_parents");
        plan.stated = arrays_.at<int32_t>(from, "stated");
        plan.uuid = arrays_.at<int64_t>(from, "uuid");
        plan.parent = arrays_.at<int64_t>(from, "parent");
        plan.tools = arrays_.at<int64_t>(from, "tools");
        plan.first_tool = arrays_.at<uint32_t>(from, "first_tool");
        plan.makers = arrays_.at<int32_t>(from, "makers");
        plan.boundary = number<uint32_t>(from, "boundary");
        plan.has_orphans = number<bool>(from, "has_orphans");
        plan.has_session = !from["session"].is_none();
        if (plan.has_session) plan.session = from["session"].cast<std::string>();
        plan.fate = {number<uint8_t>(from, "node"), number<uint8_t>(from, "kept_state"),
                     number<uint8_t>(from, "history"), number<uint8_t>(from, "queue"),
                     number<uint8_t>(from, "null")};
        plan.unknown = number<int32_t>(from, "unknown");
        plan.gap = number<int32_t>(from, "gap");
        plan.root = number<int32_t>(from, "root");
        return plan;
    }
};

py::bytes starts_of(const std::vector<uint64_t>& starts, bool is_wide) {
    if (is_wide) return bytes_of(starts);
    return bytes_of(std::vector<uint32_t>(starts.begin(), starts.end()));
}

py::tuple read_run(const py::bytes& data, size_t begin, size_t end, const recap::Reading& reading,
                   uint32_t number, uint64_t start, uint32_t tools, bool is_wide) {
    Columns made;
    const size_t size = recap::read_columns(view(data, begin, end), reading,
                                            {number, start, tools}, made);
    return py::make_tuple(begin + size, made.versions, py::bytes(made.fates), py::bytes(made.kind),
                          bytes_of(made.line), starts_of(made.start, is_wide), bytes_of(made.uuid),
                          bytes_of(made.parent), bytes_of(made.group), bytes_of(made.tools),
                          bytes_of(made.first_tool), bytes_of(made.flags), bytes_of(made.cost));
}

}  // namespace

PYBIND11_MODULE(_lines, module) {
    module.doc() = "Runs of common lines of a log; see recap/cmv/native.py.";
    py::class_<recap::Reading>(module, "Reading", py::module_local()).def(py::init(&reading_of));
    module.def("read", &read_run);
    py::class_<LineWriter>(module, "Writer", py::module_local())
        .def(py::init<const py::dict&, const py::dict&, py::function, py::function>())
        .def("write", &LineWriter::write)
        .def("counts", &LineWriter::counts);
}
