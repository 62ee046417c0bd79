// SPDX-License-Identifier: Apache-2.0
// Optional declarations of a target's author beside its rule.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGET_FACTS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGET_FACTS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/call_limits.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The shape of a call's result, an array or a tuple; layouts may be left out. A
// failure or a throw is E121.
using ShapeFunction = std::function<absl::StatusOr<const Shape*>(const ShapeRequest& call)>;

// How the gradients of a call's operands are computed: by another target, or by
// HLO whose parameters are `arguments`.
//   rms_norm(x, gain) -> (y, rstd) has rms_norm_bwd(dy, x, gain, rstd) -> (dx, dgain):
//   {.target = "rms_norm_bwd",
//    .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0),
//                  VjpArgument::Operand(1), VjpArgument::Result(1)},
//    .gradients = {0, 1}}
struct VjpArgument {
  enum class Kind : uint8_t { kOperand, kResult, kCotangent } kind = Kind::kOperand;
  int index = 0;  // flat
  static VjpArgument Operand(int k) { return {Kind::kOperand, k}; }
  static VjpArgument Result(int k) { return {Kind::kResult, k}; }
  static VjpArgument Cotangent(int k) { return {Kind::kCotangent, k}; }
};
struct VjpSpec {
  std::string target = {};       // or
  std::string computation = {};  // HLO text, as for RegisterReference
  std::vector<VjpArgument> arguments = {};
  std::vector<int> gradients = {};  // result k is the gradient of operand gradients[k]
  // backend_config of the target's call; nullopt: the one of the call itself.
  std::optional<std::string> backend_config = std::nullopt;
  // By factor of the rule ("..." for the factors that it stands for): the padding value, for every
  // operand of the VJP including cotangents, that adds nothing to gradients which are sums over
  // the factor. Without it the value that the rule's own pads imply is used; see TransposedRules.
  std::vector<std::pair<std::string, double>> pad = {};
  // Whether calls with this backend_config have this VJP; null: all.
  bool (*applies)(absl::string_view backend_config) = nullptr;
  // If a call leaves out optional operands, the VJP's target is called for the others alone, and
  // the absent ones get no gradient. If this is false, such a call has no VJP.
  bool skip_absent_operands = false;
};

// The form of a call under vmap.
struct BatchingSpec {
  enum class Kind : uint8_t {
    kLeading,    // the target takes one more leading dimension on operands that
                 // are batched and on all results
    kBroadcast,  // likewise, and on every operand
    kTarget,     // `target` does, as kLeading; it has a rule of its own
    kLoop,       // one call after another
  } kind = Kind::kLeading;
  std::string target = {};
};

struct TargetFacts {
  ShapeFunction shapes = {};  // null: shapes follow from the rule string, where it suffices
  std::vector<const void*> shapes_identity = {};  // identifies the function; may be empty
  std::string shapes_source = {};
  // HLO that computes the same as the target, and that its rule was made from; null: none. See
  // partitioner/check/reference.h.
  std::shared_ptr<const std::string> reference = {};
  std::optional<VjpSpec> vjp = {};
  std::optional<BatchingSpec> batching = {};
  std::optional<CallLimits> limits = {};
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGET_FACTS_H_
