// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shardcall {
inline namespace internal {

const char* FirstNonUtf8(absl::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (true) {
    for (uint64_t word; end - p >= 8; p += 8) {  // eight ASCII characters at once
      std::memcpy(&word, p, 8);
      if (word & 0x8080808080808080u) break;
    }
    while (p < end && static_cast<unsigned char>(*p) < 0x80) ++p;
    if (p == end) return nullptr;
    // The lead byte gives the number of bytes that follow, and the smallest code point allowed.
    // Surrogates and values above U+10FFFF are invalid.
    const auto lead = static_cast<unsigned char>(*p);
    const int more = lead >= 0xf0 && lead < 0xf5 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc2 ? 1 : 0;
    uint32_t code = lead & (0x3f >> more);
    bool ok = more > 0 && lead < 0xf5 && end - p > more;
    for (int k = 1; ok && k <= more; ++k) {
      const auto c = static_cast<unsigned char>(p[k]);
      ok = (c & 0xc0) == 0x80;
      code = code << 6 | (c & 0x3f);
    }
    ok = ok && !(more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) &&
         !(more == 3 && (code < 0x10000 || code > 0x10ffff));
    if (!ok) return p;
    p += more + 1;
  }
}

absl::string_view FirstCharacter(absl::string_view text) {
  size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) ++size;
  return text.substr(0, IsUtf8(text.substr(0, size)) ? size : 1);
}

}  // namespace internal
}  // namespace shardcall
