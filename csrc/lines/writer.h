// Second pass over lines: those that stay, edited where first sight tells all, and proved; see
// recap/cmv/writing.py, which does the same for any line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "columns.h"

namespace recap {

// What is decided of a node; the same bits as in recap/cmv/plan.py.
enum State : uint8_t { kActive = 1, kDropped = 2, kWindow = 4, kSpared = 32 };

// Fates of lines that are no nodes; see recap/cmv/index.py.
struct Fates {
    uint8_t node, state, history, queue, null;
};

// The plan, in arrays of Python's; all of them outlive the writer.
struct Planned {
    const uint8_t* fates;
    const uint8_t* state;
    const uint32_t* flags;
    const uint32_t* cost;
    const int32_t* new_parents;
    const int32_t* stated;
    const int64_t* uuid;
    const int64_t* parent;  // of those whose parent was never written
    const int64_t* tools;
    const uint32_t* first_tool;
    const int32_t* makers;
    uint32_t boundary;
    bool has_orphans;
    bool has_session;
    std::string session;  // JSON of the new id
    Fates fate;
    int32_t unknown, gap, root;  // stand for parents: not changed, never written, none
};

struct Counts {
    uint64_t lines = 0, active_chars = 0;
    uint64_t odd_lines_dropped = 0, file_history_removed = 0, queue_operations_removed = 0,
             pre_boundary_lines = 0, thinking_removed = 0, orphans_dropped = 0, errors_kept = 0,
             usage_removed = 0, tool_use_results_removed = 0, reparented = 0, results_stubbed = 0;
};

class Writer {
   public:
    // Bytes that stand for a result of so many bytes, "" where it stays; and for a node's id.
    using Stub = std::function<std::string(int64_t node, size_t size)>;
    using NameOf = std::function<std::string(int64_t node)>;

    Writer(Reading reading, Planned planned, Stub stub, NameOf name_of)
        : reading_(std::move(reading)),
          planned_(std::move(planned)),
          stub_(std::move(stub)),
          name_of_(std::move(name_of)) {}

    // Writes lines, each with its line feed, up to the first one that Python has to write.
    // Returns the bytes read; line and node go on with each line.
    size_t write(std::string_view lines, size_t& line, size_t& node, std::string& out);

    const Counts& counts() const { return counts_; }

   private:
    struct Edit {
        const char* begin;
        const char* end;
        std::string_view text;
    };

    Reading reading_;
    Planned planned_;
    Stub stub_;
    NameOf name_of_;
    Counts counts_;
    std::unordered_map<int32_t, std::string> names_;
    Line before_, after_;
    Held held_;
    std::vector<Edit> edits_;
    std::string stub_text_, name_, edited_;

    bool keeps(size_t line, uint8_t fate);
    void leave_out(size_t node, std::string_view data);
    bool is_unsure(size_t node) const;
    bool write_node(size_t node, std::string_view data, std::string& out);
    bool find_edits(size_t node, bool is_long);
    bool add_cut(const Member& member);
    bool splice(std::string_view data);
    bool is_proved(size_t node, uint32_t& cost);
    bool has_links(size_t node) const;
    bool has_words() const;
    int64_t parent_of(size_t node) const;
};

}  // namespace recap
