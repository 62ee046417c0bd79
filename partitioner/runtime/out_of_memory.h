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

// Keeps some memory for what is done after an allocation has failed: the error's text, and how the
// other devices learn of it. To be called where memory may become short; does nothing where it is
// kept already.
void KeepMemoryForErrors();

// E314. Gives the kept memory back first.
absl::Status OutOfMemoryStatus(const std::bad_alloc& e, absl::string_view where);

// The result of `body`, a Status or a StatusOr, or E314 if it throws for lack of memory.
template <typename Body>
auto WithinMemory(absl::string_view where, Body body) -> decltype(body()) {
  KeepMemoryForErrors();
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
