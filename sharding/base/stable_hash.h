// SPDX-License-Identifier: Apache-2.0
// 64-bit FNV-1a. It gives the same value in every process and build, unlike absl's hash, which is
// seeded. For values that ranks compare with each other and for file names.
#ifndef SHARDCALL_SHARDING_BASE_STABLE_HASH_H_
#define SHARDCALL_SHARDING_BASE_STABLE_HASH_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

class StableHash {
 public:
  StableHash& Add(absl::string_view text) {  // byte by byte
    for (const char c : text) AddWord(static_cast<unsigned char>(c));
    return *this;
  }
  StableHash& AddWord(uint64_t word) {  // the whole word in one step
    hash_ = (hash_ ^ word) * 0x100000001b3;
    return *this;
  }
  // Eight bytes per step in four independent lanes, at about the speed of memory: for arrays and
  // files. The lanes are those of xxHash64 (Y. Collet), which, unlike FNV's, spread the highest bit
  // of a word, such as the sign of a double. Not the value that Add gives for these bytes.
  StableHash& AddBulk(absl::string_view bytes) {
    uint64_t lanes[4] = {1, 2, 3, 4};
    size_t at = 0;
    for (; at + sizeof(lanes) <= bytes.size(); at += sizeof(lanes)) {
      for (int k = 0; k < 4; ++k) {
        uint64_t word;
        std::memcpy(&word, bytes.data() + at + 8 * k, sizeof(word));
        lanes[k] = Rotated(lanes[k] + word * 0xc2b2ae3d27d4eb4f, 31) * 0x9e3779b185ebca87;
      }
    }
    for (const uint64_t lane : lanes) AddWord(lane ^ (lane >> 29));
    return Add(bytes.substr(at)).AddWord(bytes.size());
  }
  uint64_t value() const { return hash_; }

 private:
  static uint64_t Rotated(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_STABLE_HASH_H_
