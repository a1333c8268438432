// The fields of a line of a Claude Code log that a trim reads, and where they stand.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "json.h"

namespace recap {

// What a node's line holds; the same bits as in recap/cmv/contents.py.
enum Flag : uint32_t {
    kUser = 1, kAssistant = 2, kSide = 4, kMeta = 8, kSolid = 16, kResult = 32, kThinking = 64,
    kNulls = 128, kLong = 256, kError = 512, kBlocks = 1024, kProgress = 4096, kAttachment = 8192,
    kUsage = 16384, kCopy = 32768, kScan = 65536, kWords = 1 << 17, kText = 1 << 18,
};

// A string or null; absent where the line does not have it.
struct Name {
    enum State : uint8_t { kAbsent, kNull, kString } state = kAbsent;
    Text text;

    bool is_empty() const { return state != kString || text.raw.size() == 2; }
    bool operator==(const Name& other) const {
        return state == other.state && (state != kString || text.raw == other.text.raw);
    }
};

// A member of an object: its comma, null where it is the first, and its value.
struct Member {
    const char* comma = nullptr;
    std::string_view value;

    bool is_there() const { return !value.empty(); }
};

enum class Truth : uint8_t { kAbsent, kNull, kFalse, kTrue };

struct Block {
    Name type, id, tool_use_id, name, text, thinking, data;
    Truth is_error = Truth::kAbsent;
    std::string_view input, content, source;
    Text content_text;  // where the content is a string
};

// Of more blocks in a line the memory would be felt; and their number stands in the flags.
constexpr size_t kMostBlocks = 1000;

struct Line {
    Name type, uuid, parent, timestamp, version, subtype, owner;
    Member parent_member, session, usage, copy, attachment;
    Truth is_side = Truth::kAbsent, is_meta = Truth::kAbsent, is_api_error = Truth::kAbsent;
    bool has_message = false;
    Name id, model;
    Member message_usage;
    enum Content : uint8_t { kNone, kString, kBlocks } content = kNone;
    Text text;  // the content where it is a string
    std::vector<Block> blocks;

    // Reads a line; false for one that Python has to read.
    bool read(std::string_view data);
};

// What is kept the same by options: see Reader in recap/cmv/contents.py.
struct Limits {
    uint32_t least, threshold;
    bool is_verbatim, may_change_texts;
};

struct Held {
    uint32_t flags = 0, cost = 0;
    std::vector<std::string_view> tools;  // ids of the calls it makes or answers
};

// Tells what a user or assistant line holds; false for one that Python has to read.
bool held_in(const Line& line, bool is_user, const Limits& limits, Held& held);

}  // namespace recap
