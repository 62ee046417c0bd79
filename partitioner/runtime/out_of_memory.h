// SPDX-License-Identifier: Apache-2.0
// Reports lack of memory as a diagnostic with the bytes that were requested. Tensors throw
// std::bad_alloc; functions that start such work return a Status.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OUT_OF_MEMORY_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OUT_OF_MEMORY_H_

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(uint64_t bytes) : bytes_(bytes) {}
  const char* what() const noexcept override { return "out of memory"; }
  uint64_t bytes() const { return bytes_; }

 private:
  const uint64_t bytes_;
};

// E314.
absl::Status OutOfMemoryStatus(const std::bad_alloc& e, absl::string_view where);

// The result of `body`, a Status or a StatusOr, or E314 if it throws for lack of memory.
template <typename Body>
auto WithinMemory(absl::string_view where, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc& e) {
    return OutOfMemoryStatus(e, where);
  } catch (const std::length_error&) {  // more elements than a container can have
    return OutOfMemoryStatus(std::bad_alloc(), where);
  }
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OUT_OF_MEMORY_H_
