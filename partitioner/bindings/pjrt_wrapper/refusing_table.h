// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_REFUSING_TABLE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_REFUSING_TABLE_H_

#include <cstddef>
#include <cstring>
#include <vector>

#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// The offset of a function in a PJRT_Api.
inline size_t OffsetOf(int place) { return offsetof(abi::Api, functions) + place * sizeof(void*); }

inline void SetFunction(std::vector<char>& table, int place, const void* function) {
  if (OffsetOf(place) + sizeof(void*) > table.size()) return;
  std::memcpy(table.data() + OffsetOf(place), &function, sizeof(void*));
}

// The PJRT_Api of a plugin that cannot work: each of its functions, as many as the oldest version
// has, is `refuse`. The caller sets the error functions.
inline std::vector<char> RefusingTable(const void* refuse) {
  constexpr int kPlacesOfOldest = 118;
  abi::Api head = {};
  head.header.struct_size = OffsetOf(kPlacesOfOldest);
  head.version.header.struct_size = sizeof(abi::Version);
  head.version.minor = abi::kOldestMinorVersion;
  std::vector<char> table(head.header.struct_size);
  std::memcpy(table.data(), &head, OffsetOf(0));
  for (int place = 0; place < kPlacesOfOldest; ++place) SetFunction(table, place, refuse);
  return table;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_REFUSING_TABLE_H_
