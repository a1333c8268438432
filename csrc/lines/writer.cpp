#include "writer.h"

#include <algorithm>

namespace recap {

namespace {

constexpr size_t kHead = 200;  // bytes of a line among which clients write its parent
constexpr size_t kHeldNames = 64;

// The value of the first "parentUuid" near the beginning of a line, a plain string or null.
std::string_view parent_near_start(std::string_view data) {
    constexpr std::string_view key = "\"parentUuid\"";
    const std::string_view head = data.substr(0, kHead);
    size_t at = head.find(key);
    if (at == std::string_view::npos) return {};
    Json json(head.substr(at + key.size()));
    json.space();
    if (!json.literal(":")) return {};
    json.space();
    const char* begin = json.at();
    Text text;
    const bool is_found = json.peek() == '"' ? json.string(text) && text.is_plain
                                             : json.literal("null");
    return is_found ? std::string_view(begin, json.at() - begin) : std::string_view();
}

bool same_block(const Block& one, const Block& other) {
    return one.type == other.type && one.id == other.id && one.tool_use_id == other.tool_use_id &&
           one.name == other.name && one.text == other.text && one.thinking == other.thinking &&
           one.data == other.data && one.is_error == other.is_error && one.input == other.input &&
           one.source == other.source;
}

}  // namespace

size_t Writer::write(std::string_view lines, size_t& line, size_t& node, std::string& out) {
    size_t at = 0;
    while (at <= lines.size()) {
        const size_t end = std::min(lines.find('\n', at), lines.size());
        const std::string_view data = lines.substr(at, end - at);
        const uint8_t fate = planned_.fates[line];
        const bool is_node = fate == planned_.fate.node;
        if (is_node) {
            if (!write_node(node, data, out)) break;
        } else {
            if (planned_.has_session) break;
            if (keeps(line, fate)) {
                out.append(data).push_back('\n');
                ++counts_.lines;
            }
        }
        node += is_node;
        ++line;
        at = end + 1;
    }
    return at;
}

bool Writer::keeps(size_t line, uint8_t fate) {
    const Fates& fates = planned_.fate;
    uint64_t* gone = fate == fates.null      ? &counts_.odd_lines_dropped
                     : fate == fates.history ? &counts_.file_history_removed
                     : fate == fates.queue   ? &counts_.queue_operations_removed
                     : line + 1 < planned_.boundary && fate != fates.state
                         ? &counts_.pre_boundary_lines
                         : nullptr;
    if (gone) ++*gone;
    return !gone;
}

void Writer::leave_out(size_t node, std::string_view data) {
    if (planned_.flags[node] & kThinking) ++counts_.thinking_removed;
    if (planned_.flags[node] & kResult)
        counts_.orphans_dropped += planned_.first_tool[node + 1] - planned_.first_tool[node];
    const std::string_view parent = parent_near_start(data);
    if (parent.empty()) return;
    if (names_.size() > kHeldNames) names_.clear();
    names_[planned_.stated[node]] = parent;
}

// Tells whether a line needs more than what is found at first sight.
bool Writer::is_unsure(size_t node) const {
    const uint32_t flags = planned_.flags[node];
    if (flags & (kScan | kNulls)) return true;
    if (planned_.has_orphans && flags & kUser && flags & kResult)
        for (uint32_t tool = planned_.first_tool[node]; tool < planned_.first_tool[node + 1]; ++tool)
            if (planned_.makers[tool] < 0) return true;
    return flags & kBlocks && !(planned_.state[node] & kWindow);
}

bool Writer::write_node(size_t node, std::string_view data, std::string& out) {
    const uint8_t state = planned_.state[node];
    if (state & kDropped) {
        leave_out(node, data);
        return true;
    }
    if (is_unsure(node)) return false;
    const uint32_t flags = planned_.flags[node];
    const bool is_long = (flags & (kLong | kBlocks)) == kLong && !(state & (kWindow | kSpared));
    uint32_t cost = planned_.cost[node];
    if (is_long || flags & (kUsage | kCopy) || planned_.has_session ||
        planned_.new_parents[node] != planned_.unknown) {
        if (!before_.read(data) || !find_edits(node, is_long) || !splice(data) ||
            !is_proved(node, cost))
            return false;
        out += edited_;
        if (flags & kUsage) ++counts_.usage_removed;
        if (flags & kCopy) ++counts_.tool_use_results_removed;
        if (planned_.new_parents[node] != planned_.unknown) ++counts_.reparented;
        if (!stub_text_.empty()) ++counts_.results_stubbed;
    } else {
        out += data;
    }
    out.push_back('\n');
    ++counts_.lines;
    if (state & kActive) {
        counts_.active_chars += cost;
        if (flags & kError) ++counts_.errors_kept;
    }
    return true;
}

bool Writer::find_edits(size_t node, bool is_long) {
    edits_.clear();
    stub_text_.clear();
    const uint32_t flags = planned_.flags[node];
    const auto replace = [&](std::string_view old, std::string_view text) {
        edits_.push_back({old.data(), old.data() + old.size(), text});
    };
    if (is_long) {
        if (before_.blocks.size() != 1) return false;
        const std::string_view content = before_.blocks[0].content;
        if (content.empty() || content[0] != '"') return false;
        stub_text_ = stub_(static_cast<int64_t>(node), content.size());
        if (!stub_text_.empty()) replace(content, stub_text_);
    }
    if (flags & kCopy && !add_cut(before_.copy)) return false;
    if (flags & kUsage && !add_cut(before_.message_usage)) return false;
    if (planned_.has_session) {
        if (before_.session.value.empty() || before_.session.value[0] != '"') return false;
        replace(before_.session.value, planned_.session);
    }
    const int32_t parent = planned_.new_parents[node];
    if (parent != planned_.unknown) {
        if (!before_.parent_member.is_there()) return false;
        const auto known = names_.find(parent);
        name_ = known != names_.end() ? known->second : name_of_(parent);
        replace(before_.parent_member.value, name_);
    }
    return true;
}

bool Writer::add_cut(const Member& member) {
    if (!member.is_there() || !member.comma) return false;
    edits_.push_back({member.comma, member.value.data() + member.value.size(), {}});
    return true;
}

bool Writer::splice(std::string_view data) {
    std::sort(edits_.begin(), edits_.end(),
              [](const Edit& one, const Edit& other) { return one.begin < other.begin; });
    edited_.clear();
    const char* at = data.data();
    for (const Edit& edit : edits_) {
        if (edit.begin < at) return false;
        edited_.append(at, edit.begin);
        edited_.append(edit.text);
        at = edit.end;
    }
    edited_.append(at, data.data() + data.size());
    return true;
}

// Reads what is about to be written, and compares it with what was read and what was planned.
bool Writer::is_proved(size_t node, uint32_t& cost) {
    if (!after_.read(edited_) || !has_links(node)) return false;
    const uint32_t flags = planned_.flags[node];
    if (!(flags & (kUser | kAssistant))) {
        cost = 0;
        return true;
    }
    if (after_.message_usage.is_there() || after_.usage.is_there()) return false;
    if (after_.copy.is_there() != (before_.copy.is_there() && !(flags & kCopy))) return false;
    if (!has_words() || !held_in(after_, flags & kUser, reading_.limits, held_)) return false;
    const uint32_t first = planned_.first_tool[node];
    if (held_.tools.size() != planned_.first_tool[node + 1] - first) return false;
    for (size_t i = 0; i < held_.tools.size(); ++i)
        if (reading_.key_of(held_.tools[i]) != planned_.tools[first + i]) return false;
    if (held_.cost > cost) return false;
    cost = held_.cost;
    return true;
}

bool Writer::has_links(size_t node) const {
    const bool is_beside = (after_.is_side == Truth::kTrue) != reading_.of_side_chains;
    const int64_t lane = is_beside ? kLane : 0;
    const int64_t uuid = key_in(after_.uuid, reading_.key_of);
    return (uuid ? uuid ^ lane : 0) == planned_.uuid[node] &&
           parent_in(after_, lane, reading_.key_of) == parent_of(node) &&
           after_.type == before_.type && after_.uuid == before_.uuid &&
           after_.is_side == before_.is_side && after_.owner == before_.owner &&
           after_.id == before_.id;
}

// The key of the parent that a node has to state.
int64_t Writer::parent_of(size_t node) const {
    const int32_t parent = planned_.new_parents[node];
    if (parent == planned_.unknown) {
        const int32_t stated = planned_.stated[node];
        if (stated >= 0) return planned_.uuid[stated];
        return stated == planned_.gap ? planned_.parent[node] : stated == planned_.root ? kNoParent : 0;
    }
    if (parent < 0) return kNoParent;
    const bool crosses = (planned_.flags[node] ^ planned_.flags[parent]) & kSide;
    return planned_.uuid[parent] ^ (crosses ? kLane : 0);
}

bool Writer::has_words() const {
    if (!(after_.timestamp == before_.timestamp) || !(after_.model == before_.model) ||
        after_.content != before_.content || after_.text.raw != before_.text.raw ||
        after_.blocks.size() != before_.blocks.size())
        return false;
    for (size_t i = 0; i < after_.blocks.size(); ++i) {
        const std::string_view content =
            i == 0 && !stub_text_.empty() ? stub_text_ : before_.blocks[i].content;
        if (!same_block(after_.blocks[i], before_.blocks[i]) ||
            after_.blocks[i].content != content)
            return false;
    }
    return true;
}

}  // namespace recap
