// SPDX-License-Identifier: Apache-2.0
// What a platform makes of calls that are marked by name: composites (JAX's
// `call(..), is_composite=true` with composite.name), plain calls with a
// composite.name or of a computation that a lowering names, and custom calls of
// targets that no platform has as they stand (Qr, Eigh). Whoever has a better way than
// the composite's body registers a lowering:
//
//   lowerings.Register("my.gelu", "Host", [](const LoweringRequest& call) -> Answer {
//     if (call.operands[0]->rank() < 2) return Skip();
//     return LoweredCall{.target = "fast_gelu", .operand_types = {ElementType::kF32}};
//   });
//
// They are asked in order of specificity: those for this name and platform, for
// this name on any platform, for any name on this platform, for any; among equals
// as registered. The first that does not skip decides. Where all skip, a
// composite is its body, inlined, and a custom call stays as it is.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_LOWERING_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_LOWERING_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct LoweringRequest {
  Context* context = nullptr;         // to make shapes with
  absl::string_view name = {};        // of the composite, or of the custom call's target
  bool composite = false;             // it has a body: a composite or a plain call
  absl::string_view version = {};     // composite.version; empty: none
  absl::string_view attributes = {};  // composite.attributes, or the call's backend_config
  absl::string_view platform = {};    // "Host", "CUDA", ..
  absl::Span<const Shape* const> operands = {}, results = {};  // arrays; results of a tuple each
};

// A custom call in place of the call.
struct LoweredCall {
  std::string target = {};
  int64_t api_version = 4;
  std::string backend_config = {};  // "{key = value, ..}"
  // One for each operand, which is converted where it has another; empty: all as
  // they are.
  std::vector<ElementType> operand_types = {};
  // What the target gives; empty: the call's own results. Result k of the call is
  // the target's take[k] (empty: k), converted where it has another type.
  std::vector<const Shape*> results = {};
  std::vector<int> take = {};
  // Matrices (what has as many dimensions as the largest operand) are handed over
  // and come back column by column, as LAPACK has them.
  bool column_major = false;
};

using LoweringAnswer = absl::StatusOr<std::optional<LoweredCall>>;
inline LoweringAnswer Skip() { return std::optional<LoweredCall>(); }
using LoweringFunction = std::function<LoweringAnswer(const LoweringRequest& call)>;

class LoweringRegistry {
 public:
  // Empty name, empty platform: any. E105 without a function.
  absl::Status Register(std::string name, std::string platform, LoweringFunction function,
                        std::string source = "program");
  // The answer of the first that does not skip. A failure or a throw is E121.
  LoweringAnswer Ask(const LoweringRequest& call) const;
  // Whether any lowering is for that name in particular.
  bool Knows(absl::string_view name) const;
  struct Entry {
    std::string name, platform, source;  // empty name or platform: any
  };
  std::vector<Entry> List() const;  // by name, then platform, then as registered

 private:
  struct Known {
    LoweringFunction function;
    std::string platform, source;  // the platform as it was written
  };
  // By name, and platform in lower case: capitals make no difference.
  std::map<std::pair<std::string, std::string>, std::vector<Known>> functions_;
};

// Qr, ProductOfElementaryHouseholderReflectors and Eigh onto the LAPACK targets
// of their element type, on Host; bf16 and f16 by way of f32.
absl::Status RegisterBuiltinLowerings(LoweringRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_LOWERING_H_
