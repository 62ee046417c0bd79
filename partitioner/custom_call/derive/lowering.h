// SPDX-License-Identifier: Apache-2.0
// Per-platform lowerings of calls that are marked by name: composites (JAX's `call(..),
// is_composite=true` with composite.name), plain calls that have a composite.name or call a
// computation named by a lowering, and custom calls of targets that no platform implements
// directly (Qr, Eigh). A lowering replaces the body of a composite by a better implementation:
//
//   lowerings.Register("my.gelu", "Host", [](const LoweringRequest& call) -> Answer {
//     if (call.operands[0]->rank() < 2) return Skip();
//     return LoweredCall{.target = "fast_gelu", .operand_types = {ElementType::kF32}};
//   });
//
// Lowerings are asked in order of specificity: those for this name and platform, for this name on
// any platform, for any name on this platform, for any name on any platform; within each group in
// order of registration. The first that does not skip decides. Where all skip, the body of a
// composite is inlined, and a custom call stays as it is.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_LOWERING_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_LOWERING_H_

#include <functional>
#include <map>
#include <memory>
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
#include "shardcall/sharding/base/synchronized.h"

namespace shardcall SHARDCALL_PUBLIC {

struct LoweringRequest {
  Context* context = nullptr;         // to make shapes with
  absl::string_view name = {};        // of the composite, or of the custom call's target
  bool composite = false;             // a composite or a plain call, which has a body
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
  // One type per operand, which is converted if it has another; empty: all types stay.
  std::vector<ElementType> operand_types = {};
  // Results of the target; empty: the call's own. Result k of the call is the target's result
  // take[k] (empty: k), converted if it has another type.
  std::vector<const Shape*> results = {};
  std::vector<int> take = {};
  // Matrices (values with as many dimensions as the largest operand) are passed and returned in
  // column-major order, as LAPACK requires.
  bool column_major = false;
};

using LoweringAnswer = absl::StatusOr<std::optional<LoweredCall>>;
inline LoweringAnswer Skip() { return std::optional<LoweredCall>(); }
using LoweringFunction = std::function<LoweringAnswer(const LoweringRequest& call)>;

// Any threads may register, ask and copy at once. No lock is held while a lowering is asked.
class LoweringRegistry {
 public:
  // An empty name or platform means any. E105 without a function.
  absl::Status Register(std::string name, std::string platform, LoweringFunction function,
                        std::string source = "program");
  // The answer of the first lowering that does not skip. One that fails or throws is E121.
  LoweringAnswer Ask(const LoweringRequest& call) const;
  // Whether any lowering is registered for exactly that name.
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
  // By name and by platform in lower case, as platform names are case-insensitive.
  using Functions =
      std::map<std::pair<std::string, std::string>, std::vector<std::shared_ptr<const Known>>>;
  Synchronized<Functions> functions_;
};

// Lowers Qr, ProductOfElementaryHouseholderReflectors and Eigh to the LAPACK targets of their
// element type, on Host; bf16 and f16 are computed in f32.
absl::Status RegisterBuiltinLowerings(LoweringRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_LOWERING_H_
