// First pass over lines: what recap/cmv/index.py keeps of them, a column for each of its arrays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "line.h"

namespace recap {

// A key of an id, as recap/transcript/links.py makes it of the text.
using KeyOf = int64_t (*)(std::string_view);

constexpr int64_t kNoParent = -1;
constexpr int64_t kLane = 0x5BD1E9955BD1E995;

// What is made of a line of a type: see _FATES and _KINDS in recap/cmv/index.py.
struct Type {
    std::string name;
    uint8_t fate;
    int kind;  // -1: no node
};

struct Reading {
    Limits limits;
    std::vector<Type> types;
    uint8_t node, other;                   // fates
    uint8_t link, user, assistant, system;  // kinds
    bool of_side_chains;
    KeyOf key_of;
};

struct Columns {
    std::string fates;  // of each line; the others of each node
    std::vector<uint32_t> line, first_tool, flags, cost;
    std::string kind;
    std::vector<uint64_t> start;
    std::vector<int64_t> uuid, parent, group, tools;
    std::vector<std::string> versions;
};

// Where the run of lines begins: its number, its offset, and the tools known before it.
struct Place {
    uint32_t number;
    uint64_t start;
    uint32_t tools;
};

// Key of an id, 0 for none.
inline int64_t key_in(const Name& name, KeyOf key_of) {
    return name.is_empty() ? 0 : key_of(name.text.inner());
}

// Key of the parent as a line states it.
inline int64_t parent_in(const Line& line, int64_t lane, KeyOf key_of) {
    if (line.parent.state == Name::kNull) return kNoParent;
    return line.parent.is_empty() ? 0 : key_of(line.parent.text.inner()) ^ lane;
}

// Reads lines up to the first one that Python has to read; returns the bytes read, line feeds too.
size_t read_columns(std::string_view lines, const Reading& reading, Place place, Columns& columns);

}  // namespace recap
