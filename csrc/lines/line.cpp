#include "line.h"

namespace recap {

namespace {

// Which of the known members of an object were read: a second one of a name is Python's to judge.
class Seen {
   public:
    bool first(int number) {
        const uint32_t bit = 1u << number;
        const bool is_new = !(bits_ & bit);
        bits_ |= bit;
        return is_new;
    }

   private:
    uint32_t bits_ = 0;
};

bool read_name(Json& json, Name& name) {
    if (json.peek() == '"') {
        name.state = Name::kString;
        return json.string(name.text);
    }
    name.state = Name::kNull;
    return json.literal("null");
}

// Reads an id or the like, which has to stand for itself.
bool read_plain(Json& json, Name& name) {
    return read_name(json, name) && (name.state != Name::kString || name.text.is_plain);
}

bool read_truth(Json& json, Truth& truth) {
    truth = json.peek() == 't' ? Truth::kTrue : json.peek() == 'f' ? Truth::kFalse : Truth::kNull;
    return json.literal(truth == Truth::kTrue    ? "true"
                        : truth == Truth::kFalse ? "false"
                                                 : "null");
}

template <size_t N>
int number_of(std::string_view key, const std::string_view (&keys)[N]) {
    for (size_t i = 0; i < N; ++i)
        if (keys[i] == key) return static_cast<int>(i);
    return -1;
}

bool read_block(Json& json, Block& block) {
    static constexpr std::string_view keys[] = {"type", "text",     "id",    "tool_use_id",
                                                "name", "input",    "content", "thinking",
                                                "data", "is_error", "source"};
    Seen seen;
    return json.object([&](const Text& key, const char*) {
        const int known = number_of(key.inner(), keys);
        if (!key.is_plain || (known >= 0 && !seen.first(known))) return false;
        switch (known) {
            case 0:
                return read_plain(json, block.type) && block.type.state == Name::kString;
            case 1:
                return read_name(json, block.text);
            case 2:
                return read_plain(json, block.id);
            case 3:
                return read_plain(json, block.tool_use_id);
            case 4:
                return read_name(json, block.name);
            case 5:
                return json.skip(block.input);
            case 6:
                if (json.peek() != '"') return json.skip(block.content);
                if (!json.string(block.content_text)) return false;
                block.content = block.content_text.raw;
                return true;
            case 7:
                return read_name(json, block.thinking);
            case 8:
                return read_name(json, block.data);
            case 9:
                return read_truth(json, block.is_error);
            case 10:
                return json.skip(block.source);
            default:
                return json.skip();
        }
    });
}

bool read_content(Json& json, Line& line) {
    if (json.peek() == '"') {
        line.content = Line::kString;
        return json.string(line.text);
    }
    if (json.peek() != '[') return false;
    line.content = Line::kBlocks;
    return json.array([&] {
        if (line.blocks.size() == kMostBlocks) return false;
        line.blocks.emplace_back();
        return json.peek() == '{' && read_block(json, line.blocks.back());
    });
}

bool read_message(Json& json, Line& line) {
    static constexpr std::string_view keys[] = {"id", "model", "content", "usage"};
    Seen seen;
    line.has_message = true;
    return json.object([&](const Text& key, const char* comma) {
        const int known = number_of(key.inner(), keys);
        if (!key.is_plain || (known >= 0 && !seen.first(known))) return false;
        switch (known) {
            case 0:
                return read_plain(json, line.id);
            case 1:
                return read_name(json, line.model);
            case 2:
                return read_content(json, line);
            case 3:
                line.message_usage.comma = comma;
                return json.skip(line.message_usage.value);
            default:
                return json.skip();
        }
    });
}

bool read_member(Json& json, const char* comma, Member& member) {
    member.comma = comma;
    return json.skip(member.value);
}

}  // namespace

bool Line::read(std::string_view data) {
    static constexpr std::string_view keys[] = {
        "parentUuid", "isSidechain", "sessionId", "version", "type", "uuid", "timestamp", "message",
        "toolUseResult", "subtype", "sourceToolAssistantUUID", "isMeta", "isApiErrorMessage",
        "usage", "attachment"};
    blocks.clear();
    auto held = std::move(blocks);
    *this = Line();
    blocks = std::move(held);
    Json json(data);
    Seen seen;
    const bool is_read = json.object([&](const Text& key, const char* comma) {
        const int known = number_of(key.inner(), keys);
        if (!key.is_plain || (known >= 0 && !seen.first(known))) return false;
        const char* begin = json.at();
        switch (known) {
            case 0:
                if (!read_plain(json, parent)) return false;
                parent_member = {comma, {begin, static_cast<size_t>(json.at() - begin)}};
                return true;
            case 1:
                return read_truth(json, is_side);
            case 2:
                return read_member(json, comma, session);
            case 3:
                return read_plain(json, version);
            case 4:
                return read_plain(json, type) && type.state == Name::kString;
            case 5:
                return read_plain(json, uuid);
            case 6:
                return read_name(json, timestamp);
            case 7:
                return json.peek() == '{' ? read_message(json, *this) : json.literal("null");
            case 8:
                return read_member(json, comma, copy);
            case 9:
                return read_plain(json, subtype);
            case 10:
                return read_plain(json, owner);
            case 11:
                return read_truth(json, is_meta);
            case 12:
                return read_truth(json, is_api_error);
            case 13:
                return read_member(json, comma, usage);
            case 14:
                return read_member(json, comma, attachment);
            default:
                return json.skip();
        }
    });
    return is_read && json.is_done();
}

namespace {

bool is(const Name& name, std::string_view word) {
    return name.state == Name::kString && name.text.inner() == word;
}

bool add_text(const Name& text, bool is_user, const Limits& limits, Held& held) {
    if (is_user && limits.may_change_texts) return false;
    held.flags |= text.is_empty() ? kSolid : kSolid | kWords;
    held.cost += text.state == Name::kString ? text.text.chars : 0;
    return true;
}

bool add_call(const Block& block, const Limits& limits, Held& held) {
    if (!limits.is_verbatim && block.input.size() > limits.threshold) return false;
    held.flags |= kSolid | kWords;
    held.cost += static_cast<uint32_t>(block.input.size());
    if (!block.id.is_empty() && !block.name.is_empty())
        held.tools.push_back(block.id.text.inner());
    return true;
}

bool add_result(const Block& block, const Limits& limits, Held& held) {
    if (!block.content.empty() && block.content[0] == '[') return false;
    if (!block.tool_use_id.is_empty()) held.tools.push_back(block.tool_use_id.text.inner());
    held.flags |= kResult;
    held.cost += block.content_text.chars;
    if (block.content_text.chars <= limits.least) return true;
    constexpr std::string_view stubbed = "\"[Trimmed: ";
    if (block.is_error == Truth::kTrue || block.content.substr(0, stubbed.size()) == stubbed)
        return false;
    held.flags |= kLong;
    return true;
}

bool add_block(const Block& block, bool is_user, const Limits& limits, Held& held) {
    if (is(block.type, "text")) {
        held.flags += kText;
        return add_text(block.text, is_user, limits, held);
    }
    if (is_user) return is(block.type, "tool_result") && add_result(block, limits, held);
    if (is(block.type, "tool_use")) return add_call(block, limits, held);
    if (!is(block.type, "thinking") && !is(block.type, "redacted_thinking")) return false;
    const Name& words = block.thinking.is_empty() ? block.data : block.thinking;
    held.flags |= kThinking;
    held.cost += words.state == Name::kString ? words.text.chars : 0;
    return true;
}

}  // namespace

bool held_in(const Line& line, bool is_user, const Limits& limits, Held& held) {
    held.flags = is_user ? kUser : kAssistant;
    held.cost = 0;
    held.tools.clear();
    if (!line.has_message) return false;
    if (line.content == Line::kString) {
        held.flags += kText;
        if (!add_text({Name::kString, line.text}, is_user, limits, held)) return false;
    } else if (line.content == Line::kBlocks) {
        for (const Block& block : line.blocks)
            if (!add_block(block, is_user, limits, held)) return false;
        if (line.blocks.size() > 1 && held.flags & (kLong | kThinking)) held.flags |= kBlocks;
    } else {
        return false;
    }
    if (line.is_api_error == Truth::kTrue) held.cost = 0;
    if (line.is_meta == Truth::kTrue) held.flags |= kMeta;
    return true;
}

}  // namespace recap
