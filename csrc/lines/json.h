// A strict reader of JSON in UTF-8: what it accepts every decoder accepts, and in one way.
// What it does not accept is no error: the caller gives the line to Python, which knows more.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace recap {

// A string as it stands, quotes included.
struct Text {
    std::string_view raw;
    uint32_t chars = 0;    // code points when decoded
    bool is_plain = true;  // ASCII without escapes: its bytes are its characters

    std::string_view inner() const { return raw.substr(1, raw.size() - 2); }
};

class Json {
   public:
    static constexpr int kMaxDepth = 64;

    explicit Json(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

    const char* at() const { return at_; }
    bool is_done() {
        space();
        return at_ == end_;
    }
    char peek() const { return at_ < end_ ? *at_ : '\0'; }

    void space() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }

    // Reads a string; false where it is none, or spelled so that decoders differ.
    bool string(Text& text) {
        const char* begin = at_;
        if (peek() != '"') return false;
        ++at_;
        uint64_t less = 0;  // bytes that are no characters of their own
        text.is_plain = true;
        for (;;) {
            skip_plain();
            if (at_ == end_) return false;
            const unsigned char byte = static_cast<unsigned char>(*at_);
            if (byte == '"') break;
            if (byte < 0x20) return false;
            text.is_plain = false;
            const char* from = at_;
            if (!(byte == '\\' ? escape() : sequence())) return false;
            less += at_ - from - 1;
        }
        ++at_;
        text.raw = {begin, static_cast<size_t>(at_ - begin)};
        text.chars = static_cast<uint32_t>(text.raw.size() - 2 - less);
        return true;
    }

    // Reads past any value.
    bool skip(int depth = 0) {
        Text text;
        switch (peek()) {
            case '"':
                return string(text);
            case '{':
                return depth < kMaxDepth &&
                       object([&](const Text&, const char*) { return skip(depth + 1); });
            case '[':
                return depth < kMaxDepth && array([&] { return skip(depth + 1); });
            case 't':
                return literal("true");
            case 'f':
                return literal("false");
            case 'n':
                return literal("null");
            default:
                return number();
        }
    }

    bool skip(std::string_view& raw) {
        const char* begin = at_;
        if (!skip()) return false;
        raw = {begin, static_cast<size_t>(at_ - begin)};
        return true;
    }

    // Reads an object: member(key, comma) reads each value; the comma is the one before the key.
    template <class Member>
    bool object(Member&& member) {
        if (!opens('{')) return false;
        const char* comma = nullptr;
        if (peek() == '}') return ++at_, true;
        for (;;) {
            Text key;
            if (!string(key)) return false;
            space();
            if (peek() != ':') return false;
            ++at_;
            space();
            if (!member(key, comma)) return false;
            space();
            if (peek() == '}') return ++at_, true;
            if (peek() != ',') return false;
            comma = at_++;
            space();
        }
    }

    template <class Element>
    bool array(Element&& element) {
        if (!opens('[')) return false;
        if (peek() == ']') return ++at_, true;
        for (;;) {
            if (!element()) return false;
            space();
            if (peek() == ']') return ++at_, true;
            if (peek() != ',') return false;
            ++at_;
            space();
        }
    }

    bool literal(std::string_view word) {
        if (static_cast<size_t>(end_ - at_) < word.size()) return false;
        if (std::memcmp(at_, word.data(), word.size()) != 0) return false;
        at_ += word.size();
        return true;
    }

   private:
    const char* at_;
    const char* end_;

    bool opens(char bracket) {
        if (peek() != bracket) return false;
        ++at_;
        space();
        return true;
    }

    // Goes to the next byte of a string that is no ASCII character for itself.
    void skip_plain() {
#if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
        const __m128i space = _mm_set1_epi8(0x20);
        for (; end_ - at_ >= 16; at_ += 16) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at_));
            // As signed numbers, control characters and bytes from 0x80 on are below a space.
            const __m128i odd = _mm_or_si128(
                _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash)),
                _mm_cmplt_epi8(bytes, space));
            if (const int found = _mm_movemask_epi8(odd)) {
                at_ += __builtin_ctz(static_cast<unsigned>(found));
                return;
            }
        }
#endif
        for (; at_ < end_; ++at_) {
            const unsigned char byte = static_cast<unsigned char>(*at_);
            if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') return;
        }
    }

    bool escape() {
        if (end_ - at_ < 2) return false;
        if (at_[1] != 'u') {
            if (at_[1] == '\0' || !std::strchr("\"\\/bfnrt", at_[1])) return false;
            at_ += 2;
            return true;
        }
        int unit = 0;
        if (!code_unit(unit)) return false;
        if (unit < 0xD800 || unit > 0xDFFF) return true;
        const bool leads = unit < 0xDC00;
        return leads && code_unit(unit) && unit >= 0xDC00 && unit <= 0xDFFF;
    }

    bool code_unit(int& unit) {
        if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return false;
        unit = 0;
        for (int i = 2; i < 6; ++i) {
            const char c = at_[i];
            const int digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (digit < 0) return false;
            unit = unit * 16 + digit;
        }
        at_ += 6;
        return true;
    }

    // Reads one character of several bytes, as the Unicode standard's table 3-7 has them.
    bool sequence() {
        const auto byte = [&](int i) -> int {
            return i < end_ - at_ ? static_cast<unsigned char>(at_[i]) : 0;
        };
        const int first = byte(0), second = byte(1);
        const int size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
        const int low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        const int high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (first < 0xC2 || first > 0xF4 || second < low || second > high) return false;
        for (int i = 2; i < size; ++i)
            if (byte(i) < 0x80 || byte(i) > 0xBF) return false;
        at_ += size;
        return true;
    }

    bool digits() {
        const char* begin = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ > begin;
    }

    bool number() {
        if (peek() == '-') ++at_;
        const bool is_zero = peek() == '0';
        const char* begin = at_;
        if (!digits() || (is_zero && at_ - begin > 1)) return false;
        if (peek() == '.' && (++at_, !digits())) return false;
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            return digits();
        }
        return true;
    }
};

}  // namespace recap
