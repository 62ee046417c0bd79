// SPDX-License-Identifier: Apache-2.0
// Custom calls with callbacks: infer_sharding_from_operands gives the results' shardings from the
// operands, and propagate_user_sharding is asked before a user's sharding reaches a result. A
// callback that fails or throws is E121 with target and instruction, one whose sharding does not
// fit E120.
#include <algorithm>
#include <exception>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

std::string InstrName(const Instruction& instr) { return absl::StrCat("%", instr.name); }

absl::Status CallbackError(const Instruction& instr, absl::string_view callback,
                           absl::string_view what, absl::StatusCode code) {
  return ToStatus({.code = "E121",
                   .message = absl::StrCat(callback, " callback of \"",
                                           instr.as<CustomCallAttrs>().target, "\" ", what),
                   .where = InstrName(instr),
                   .fix = "Correct the callback, or register a rule string in its place"},
                  code);
}

// E120 lacks the name of the callback, which is added here. The same holds for E111, when
// callbacks that were made from a rule do not fit the call.
absl::Status CallbackFailure(const Instruction& instr, const TargetRule& target,
                             absl::string_view callback, const absl::Status& status) {
  const absl::string_view code = DiagnosticCode(status);
  if (code == "E120" || (code == "E111" && !target.alternatives.empty())) {
    return In(status, absl::StrCat("the ", callback, " callback of \"",
                                   instr.as<CustomCallAttrs>().target, "\", ", InstrName(instr)));
  }
  return CallbackError(instr, callback, FailedText(status.message()), status.code());
}

}  // namespace

// Answers are memoised, since callbacks depend on their arguments only.
absl::StatusOr<std::vector<const Sharding*>> PropagationEngine::AskInferCallback(
    const Node& node, const std::vector<const Sharding*>& operands) {
  const Instruction& instr = program_.module.instr(node.instr);
  const PartitionerCallbacks& callbacks = rules_.target(node.instr)->callbacks;
  const auto [known, fresh] = answers_.try_emplace(
      Asked{rules_.kind(node.instr), program_.region_of[node.instr.value], -1, operands});
  if (!fresh) return known->second;
  const CustomCallView view =
      ViewCustomCall(program_.module, node.instr, program_.mesh, program_.manual_axes(node.instr));
  constexpr absl::string_view kName = "infer_sharding_from_operands";
  absl::StatusOr<std::vector<const Sharding*>> inferred;
  try {
    inferred = callbacks.infer_sharding_from_operands(view, operands);
  } catch (const std::exception& e) {
    return CallbackError(instr, kName, absl::StrCat("threw: ", e.what()),
                         absl::StatusCode::kInternal);
  } catch (...) {
    return CallbackError(instr, kName, "threw", absl::StatusCode::kInternal);
  }
  if (!inferred.ok()) {
    return CallbackFailure(instr, *rules_.target(node.instr), kName, inferred.status());
  }
  const size_t results = view.results.size();
  if (inferred->size() != results) {
    return CallbackError(
        instr, kName,
        absl::StrCat("gave ", inferred->size(), " shardings for ", results, " results"),
        absl::StatusCode::kInvalidArgument);
  }
  for (size_t r = 0; r < results; ++r) {
    const Sharding*& s = (*inferred)[r];
    if (s == nullptr || !view.results[r]->IsArray()) continue;
    // Such a result has the sharding of an operand, which may be on another mesh of the program.
    if (std::find(operands.begin(), operands.end(), s) != operands.end() &&
        s->rank() == view.results[r]->rank()) {
      continue;
    }
    SHARDCALL_ASSIGN_OR_RETURN(
        s, view.Checked(s, view.results[r], absl::StrCat(kName, ": result ", r)));
  }
  known->second = *std::move(inferred);
  return known->second;
}

absl::Status PropagationEngine::VisitCallbacks(uint32_t n, const Node& node) {
  const PartitionerCallbacks& callbacks = rules_.target(node.instr)->callbacks;
  if (callbacks.infer_sharding_from_operands == nullptr) return absl::OkStatus();
  const absl::Span<const LeafId> leaves = graph_.leaves(node);
  std::vector<const Sharding*> operands;
  LeafId from;
  for (int k = 0; k < node.index; ++k) {
    operands.push_back(sharding_[leaves[k].value]);
    if (operands.back() == nullptr) {
      operands.back() = ReplicatedSharding(context_, program_.mesh, 0);
    } else if (!from.valid() && operands.back()->HasShardedDim()) {
      from = leaves[k];
    }
  }
  if (!from.valid()) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<const Sharding*> inferred,
                             AskInferCallback(node, operands));
  for (size_t r = 0; r < inferred.size(); ++r) {
    const LeafId leaf = leaves[node.index + r];
    const Sharding* want = inferred[r];
    const Sharding* have = sharding_[leaf.value];
    if (want == nullptr || have == nullptr || want->is_maximal()) continue;
    for (int d = 0; d < have->rank(); ++d) {
      if (AxesSize(want->dim(d)) <= AxesSize(have->dim(d))) continue;
      own_offers_.push_back({0, d, 0, -1, FactorKind::kPassThrough, want->dim(d)});
      Propose(leaf, from, n, &own_offers_.back(), want->mesh(),
              program_.LeafShape(from)->byte_size());
    }
  }
  return absl::OkStatus();
}

// The new sharding of the result: the present one, extended by as much of `wanted` as the callback
// accepts.
absl::StatusOr<const Sharding*> PropagationEngine::AskUserCallback(const Node& node, LeafId leaf,
                                                                   const Sharding* wanted) {
  const Sharding* before = sharding_[leaf.value];
  const Instruction& instr = program_.module.instr(node.instr);
  const PartitionerCallbacks& callbacks = rules_.target(node.instr)->callbacks;
  if (callbacks.propagate_user_sharding == nullptr) return before;
  const absl::Span<const LeafId> leaves = graph_.leaves(node);
  int index = 0;
  while (leaves[node.index + index] != leaf) ++index;
  const auto [known, fresh] = answers_.try_emplace(
      Asked{rules_.kind(node.instr), program_.region_of[node.instr.value], index, {wanted}});
  if (!fresh) return Extended(before, known->second[0], wanted, *limits_[leaf.value]);
  const CustomCallView view =
      ViewCustomCall(program_.module, node.instr, program_.mesh, program_.manual_axes(node.instr));
  constexpr absl::string_view kName = "propagate_user_sharding";
  absl::StatusOr<const Sharding*> answer;
  try {
    answer = callbacks.propagate_user_sharding(view, index, wanted);
  } catch (const std::exception& e) {
    return CallbackError(instr, kName, absl::StrCat("threw: ", e.what()),
                         absl::StatusCode::kInternal);
  } catch (...) {
    return CallbackError(instr, kName, "threw", absl::StatusCode::kInternal);
  }
  if (!answer.ok()) {
    return CallbackFailure(instr, *rules_.target(node.instr), kName, answer.status());
  }
  const Sharding* s = *answer;
  if (s != nullptr && s != wanted) {
    SHARDCALL_ASSIGN_OR_RETURN(
        s, view.Checked(s, view.results[index], absl::StrCat(kName, ": result ", index)));
  }
  known->second = {s};
  return Extended(before, s, wanted, *limits_[leaf.value]);
}

// `before` extended by the axes of `s`.
const Sharding* PropagationEngine::Extended(const Sharding* before, const Sharding* s,
                                            const Sharding* wanted, const Limits& limits) {
  if (s == nullptr || s->is_maximal() || s->mesh() != wanted->mesh()) return before;
  ShardingBuilder b(*before);
  b.mesh = wanted->mesh();
  AxisList used(before->used().begin(), before->used().end());
  for (int d = 0; d < s->rank(); ++d) {
    if (limits.IsClosed(d)) continue;
    AxisList axes = ExtendFree(*b.mesh, b.dims[d], s->dim(d), used, limits.reserved);
    const AxisList add = RemovePrefix(*b.mesh, b.dims[d], axes);
    used.insert(used.end(), add.begin(), add.end());
    b.dims[d] = std::move(axes);
  }
  return b.Intern(context_);
}

}  // namespace internal
}  // namespace shardcall
