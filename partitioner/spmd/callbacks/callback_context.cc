// SPDX-License-Identifier: Apache-2.0
// Operands, results, tiles, and the record of what a callback did.
#include "shardcall/partitioner/spmd/callbacks/callback_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

CallbackContext::CallbackContext(OpBuilder& ops, InstrId id, const Decision& d, Operands operands)
    : ops_(ops),
      id_(id),
      decision_(d),
      cause_(ops.emitter().cause()),
      view_(ViewCustomCall(ops.global(), id, d.mesh != nullptr ? d.mesh : ops.program().mesh,
                           ops.program().manual_axes(id))),
      builder_(&ops.local(), ops.builder().computation(), &ops.shared().monoids),
      operands_(std::move(operands)) {
  builder_.set_metadata(ops.global().instr(id).metadata);
  builder_.set_local();
  builder_.Seal();
  values_.resize(view_.results.size());
  states_.resize(view_.results.size(), nullptr);
  PassOver();
}

absl::StatusOr<const Shape*> CallbackContext::ShapeOf(LocalValue x) {
  SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
  return ops_.builder().shape(x.id);
}

absl::StatusOr<LocalValue> CallbackContext::Operand(int i, const Sharding* sharding) {
  SHARDCALL_RETURN_IF_ERROR(CheckIndex(i, view_.operands.size(), "operand"));
  if (view_.operands[i]->IsArray()) {
    SHARDCALL_ASSIGN_OR_RETURN(
        sharding, view_.Checked(sharding, view_.operands[i], absl::StrCat("operand ", i)));
    SHARDCALL_RETURN_IF_ERROR(CheckWhole(sharding));
  } else {
    sharding = nullptr;
  }
  NoteMade();
  const LocalValue x{operands_(i, sharding)};
  for (const CallbackRecord::Step& step : record_.steps) {
    const bool same = step.operand == i && step.sharding == sharding;
    record_.ambiguous = record_.ambiguous || (step.value == x.id && !same);
  }
  record_.steps.push_back({i, sharding, x.id});
  PassOver();
  return x;
}

absl::StatusOr<LocalValue> CallbackContext::TileStart(const Shape* global, const Sharding* sharding,
                                                      int dim) {
  SHARDCALL_RETURN_IF_ERROR(CheckDim(global, sharding, dim));
  return LocalValue{ops_.emitter().TileStart(*sharding, global, dim)};
}

absl::StatusOr<LocalValue> CallbackContext::MaskPadding(LocalValue x, const Shape* global,
                                                        const Sharding* sharding,
                                                        absl::Span<const int> dims,
                                                        LocalValue fill) {
  SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
  SHARDCALL_RETURN_IF_ERROR(CheckValue(fill));
  for (int d : dims) SHARDCALL_RETURN_IF_ERROR(CheckDim(global, sharding, d));
  if (dims.empty()) return x;
  const Shape* want = LocalShape(ops_.context(), global, sharding);
  const Shape* have = builder_.shape(x.id);
  const Shape* scalar = builder_.shape(fill.id);
  if (!have->IsArray() || want->dims() != have->dims() || !scalar->IsArray() ||
      scalar->rank() != 0 || scalar->element_type() != have->element_type()) {
    return view_.Misfit("padding is filled in what is no shard of the array, or by no scalar",
                        absl::StrCat(want->ToString(false), " and a scalar of its type"),
                        absl::StrCat(have->ToString(false), " and ", scalar->ToString(false)));
  }
  return LocalValue{ops_.emitter().MaskPadding(x.id, global, *sharding, dims, fill.id)};
}

absl::Status CallbackContext::SetResult(int i, LocalValue value, const Sharding* sharding) {
  SHARDCALL_RETURN_IF_ERROR(CheckIndex(i, values_.size(), "result"));
  SHARDCALL_RETURN_IF_ERROR(CheckValue(value));
  const Shape* global = view_.results[i];
  const std::string which = absl::StrCat("partition(\"", view_.target, "\") result ", i);
  if (global->IsArray()) {
    SHARDCALL_ASSIGN_OR_RETURN(sharding, view_.Checked(sharding, global, which));
    SHARDCALL_RETURN_IF_ERROR(CheckShard(value, global, sharding, which));
  } else {
    const Shape* have = ops_.builder().shape(value.id);
    if (have->bare() != global->bare()) {
      return view_.Misfit(absl::StrCat(which, " is another kind of value"), global->ToString(false),
                          have->ToString(false));
    }
    sharding = nullptr;
  }
  values_[i] = value.id;
  states_[i] = sharding;
  return absl::OkStatus();
}

CallbackRecord CallbackContext::TakeRecord() {
  NoteMade();
  record_.call = id_;
  record_.results = values_;
  record_.states = states_;
  return std::move(record_);
}

void CallbackContext::NoteMade() {
  const Module& m = ops_.local();
  for (; seen_ < m.num_instructions(); ++seen_) {
    if (m.instr(InstrId(seen_)).computation == builder_.computation()) {
      record_.steps.push_back({-1, nullptr, InstrId(seen_)});
    }
  }
  const std::vector<CollectiveRecord>& records = ops_.shared().records;
  for (; records_seen_ < records.size(); ++records_seen_) {
    record_.collectives.push_back(records[records_seen_]);
  }
}

void CallbackContext::PassOver() {
  seen_ = ops_.local().num_instructions();
  records_seen_ = ops_.shared().records.size();
}

const Sharding* CallbackContext::At(Decision::States states, int i) const {
  if (i < 0 || i >= static_cast<int>(states.size()) || states[i] == nullptr) return nullptr;
  return states[i]->mesh() == view_.mesh ? states[i] : view_.Replicated(states[i]->rank());
}

}  // namespace internal
}  // namespace shardcall
