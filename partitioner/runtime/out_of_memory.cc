// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/out_of_memory.h"

#include <atomic>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

namespace {

constexpr size_t kForErrors = size_t{64} << 10;
std::atomic<void*> kept{nullptr};

}  // namespace

void KeepMemoryForErrors() {
  if (kept.load(std::memory_order_relaxed) != nullptr) return;
  void* const block = std::malloc(kForErrors);
  void* none = nullptr;
  if (!kept.compare_exchange_strong(none, block)) std::free(block);
}

absl::Status OutOfMemoryStatus(const std::bad_alloc& e, absl::string_view where) {
  std::free(kept.exchange(nullptr));
  Diagnostic d;
  d.code = "E314";
  d.message = "out of memory";
  d.where = std::string(where);
  if (const auto* asked = dynamic_cast<const OutOfMemory*>(&e)) {
    d.message = absl::StrCat("out of memory: ", HumanBytes(static_cast<double>(asked->bytes())),
                             " (", asked->bytes(), " bytes) were asked for at once");
  }
  d.fix = "Run a smaller program, or over more devices";
  return ToStatus(d, absl::StatusCode::kResourceExhausted);
}

}  // namespace internal
}  // namespace shardcall
