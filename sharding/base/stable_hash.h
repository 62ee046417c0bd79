// SPDX-License-Identifier: Apache-2.0
// 64-bit FNV-1a. It gives the same value in every process and build, unlike absl's hash, which is
// seeded. For values that ranks compare with each other and for file names.
#ifndef SHARDCALL_SHARDING_BASE_STABLE_HASH_H_
#define SHARDCALL_SHARDING_BASE_STABLE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace shardcall::inline internal {

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
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_SHARDING_BASE_STABLE_HASH_H_
