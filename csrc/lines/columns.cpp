#include "columns.h"

#include <algorithm>

namespace recap {

namespace {

const Type* type_of(const Line& line, const Reading& reading) {
    if (line.type.state != Name::kString) return nullptr;
    for (const Type& type : reading.types)
        if (type.name == line.type.text.inner()) return &type;
    return nullptr;
}

// Flags of a line that links others; false for one that Python has to read.
bool link_in(const Line& line, const Reading& reading, Held& held) {
    held = Held();
    const std::string_view type = line.type.text.inner();
    if (type == "progress") held.flags = kProgress;
    if (type == "system" && line.subtype.state == Name::kString)
        return line.subtype.text.inner() != "compact_boundary";
    if (type != "attachment") return true;
    const std::string_view raw = line.attachment.value;
    held.flags = raw.size() > reading.limits.threshold ? kAttachment | kBlocks : kAttachment;
    return raw.find("queued_command") == std::string_view::npos;
}

bool add_cuts(const Line& line, const Reading& reading, Held& held) {
    if (line.message_usage.is_there()) held.flags |= kUsage;
    if (line.usage.is_there()) held.flags |= kScan;
    if (line.copy.value.size() > reading.limits.threshold) {
        held.flags |= kCopy;
        return line.copy.value.find("\"agentId\"") == std::string_view::npos;
    }
    return true;
}

bool add_node(const Line& line, int kind, const Reading& reading, Columns& columns, Held& held) {
    const bool is_spoken = kind == reading.user || kind == reading.assistant;
    if (is_spoken ? !held_in(line, kind == reading.user, reading.limits, held) ||
                        !add_cuts(line, reading, held)
                  : !link_in(line, reading, held))
        return false;
    const KeyOf key_of = reading.key_of;
    const bool is_beside = (line.is_side == Truth::kTrue) != reading.of_side_chains;
    const int64_t lane = is_beside ? kLane : 0;
    const int64_t uuid = key_in(line.uuid, key_of);
    columns.uuid.push_back(uuid ? uuid ^ lane : 0);
    columns.parent.push_back(parent_in(line, lane, key_of));
    columns.group.push_back(key_in(kind == reading.assistant ? line.id : line.owner, key_of));
    columns.kind.push_back(static_cast<char>(is_beside ? reading.link : kind));
    columns.flags.push_back(is_beside ? held.flags | kSide : held.flags);
    columns.cost.push_back(held.cost);
    for (const std::string_view tool : held.tools) columns.tools.push_back(key_of(tool));
    return true;
}

}  // namespace

size_t read_columns(std::string_view lines, const Reading& reading, Place place,
                    Columns& columns) {
    Line line;
    Held held;
    size_t at = 0;
    while (at <= lines.size()) {
        const size_t end = std::min(lines.find('\n', at), lines.size());
        if (!line.read(lines.substr(at, end - at))) break;
        const Type* type = type_of(line, reading);
        if (type && type->kind >= 0) {
            if (!add_node(line, type->kind, reading, columns, held)) break;
            columns.line.push_back(place.number);
            columns.start.push_back(place.start + at);
            columns.first_tool.push_back(place.tools + static_cast<uint32_t>(columns.tools.size()));
        }
        columns.fates.push_back(static_cast<char>(type ? type->fate : reading.other));
        if (!line.version.is_empty()) {
            const std::string_view version = line.version.text.inner();
            if (columns.versions.empty() || columns.versions.back() != version)
                columns.versions.emplace_back(version);
        }
        ++place.number;
        at = end + 1;
    }
    return at;
}

}  // namespace recap
