// SPDX-License-Identifier: Apache-2.0
// What a custom-call target is at run time: a handler that gets dense,
// row-major local buffers (in the layouts that the call states), attributes and
// a context, and fills its results. Handlers live in a HandlerRegistry, a
// value that is passed around; rules (compile time) live in a registry of the
// partitioner, joined by the target's name.
#ifndef SHARDCALL_KERNELS_FFI_HANDLER_H_
#define SHARDCALL_KERNELS_FFI_HANDLER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "collectives/communicator.h"
#include "sharding/element_type.h"

namespace shardcall {

// A dense buffer in row-major order of `dims`. Not owned. Tokens have rank 0
// and null data.
struct BufferView {
  ElementType type = ElementType::kInvalid;
  std::vector<int64_t> dims;
  void* data = nullptr;

  int64_t num_elements() const;
  int64_t byte_size() const { return num_elements() * ElementTypeBytes(type); }
};

// An attribute of a typed-FFI call's backend_config, `{a = 1 : i64, s = "x"}`.
struct AttributeArray {
  ElementType type;
  std::vector<int64_t> ints;     // for integer and pred types
  std::vector<double> floats;    // for float types
};
struct AttributeScalar {
  ElementType type;
  int64_t i = 0;                 // integers and pred; u64 by its bits
  double f = 0;                  // floats
};
struct Attribute {
  absl::variant<AttributeScalar, AttributeArray, std::string, std::vector<std::pair<std::string, Attribute>>> value;
};

// Attributes by name, parsed from the MLIR dictionary text of an API-4 call.
class AttributeMapView {
 public:
  // The map of `{...}`; an empty text gives an empty map. Errors: E131 with the
  // place in the text.
  static absl::StatusOr<AttributeMapView> Parse(absl::string_view text);

  const Attribute* Find(absl::string_view name) const;
  // With a default if absent; an error if of another kind.
  absl::StatusOr<int64_t> GetInt(absl::string_view name, int64_t fallback) const;
  absl::StatusOr<double> GetFloat(absl::string_view name, double fallback) const;
  absl::StatusOr<bool> GetBool(absl::string_view name, bool fallback) const;
  absl::StatusOr<std::string> GetString(absl::string_view name, absl::string_view fallback) const;
  const std::vector<std::pair<std::string, Attribute>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, Attribute>> entries_;  // sorted by name
};

// What a handler sees of its device.
struct HandlerContext {
  absl::string_view target;
  absl::string_view instruction;          // name, for messages
  const AttributeMapView* attributes = nullptr;
  absl::string_view backend_config;       // as the text has it
  int device_ordinal = 0;                 // partition id
  int num_devices = 1;
  Communicator* communicator = nullptr;   // null when run on one device
};

using HostHandler = std::function<absl::Status(
    const HandlerContext& context, absl::Span<const BufferView> operands,
    absl::Span<const BufferView> results)>;

struct HandlerEntry {
  std::string target;
  std::string platform = "Host";
  int api_version = 4;   // as in HLO, 1 to 4
  std::vector<std::string> traits;
  std::string source;    // "built in" or a library's path
  HostHandler host;
};

class HandlerRegistry {
 public:
  // kAlreadyExists if the target stands there for that platform.
  absl::Status Register(HandlerEntry entry);
  // E140 with near names if there is none.
  absl::StatusOr<const HandlerEntry*> Find(absl::string_view target,
                                           absl::string_view platform) const;
  std::vector<const HandlerEntry*> List() const;  // by target, then platform

 private:
  absl::btree_map<std::pair<std::string, std::string>, HandlerEntry> entries_;
};

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_HANDLER_H_
