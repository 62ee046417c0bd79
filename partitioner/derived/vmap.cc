// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/derived/vmap.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/derived/call_parts.h"
#include "shardcall/partitioner/ir/build/embed.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using namespace derived_calls;  // NOLINT

// The shape with a leading dimension of `size`.
const Shape* Batched(Context& context, const Shape* shape, int64_t size) {
  std::vector<int64_t> dims = {size};
  dims.insert(dims.end(), shape->dims().begin(), shape->dims().end());
  return context.WithDefaultLayout(context.MakeArray(shape->element_type(), dims));
}

class Batcher {
 public:
  Batcher(CheckedBuilder& b, CallParts call, Ids operands, std::vector<bool> batched, int64_t size)
      : b_(b),
        call_(std::move(call)),
        attrs_(PlainAttrs(*call_.attrs, call_.attrs->target)),
        config_(call_.instr->backend_config),
        operands_(std::move(operands)),
        batched_(std::move(batched)),
        size_(size) {}

  absl::StatusOr<Ids> AsOneCall(absl::string_view target, bool broadcast) {
    Ids operands = operands_;
    for (size_t k = 0; broadcast && k < operands.size(); ++k) {
      if (batched_[k]) continue;
      const Shape* shape = Batched(b_.context(), call_.operands[k], size_);
      std::vector<int64_t> behind;
      for (int d = 1; d < shape->rank(); ++d) behind.push_back(d);
      SHARDCALL_ASSIGN_OR_RETURN(operands[k], b_.Broadcast(operands[k], shape->dims(), behind));
    }
    attrs_.target = target;
    Shapes results;
    for (const Shape* s : call_.results) results.push_back(Batched(b_.context(), s, size_));
    SHARDCALL_ASSIGN_OR_RETURN(
        const InstrId made,
        b_.CustomCall(attrs_, operands, ResultShape(b_.context(), results), config_));
    return Leaves(b_, made);
  }

  // A loop over the batch, while (i < size): iteration i reads operands[i] and writes results[i].
  absl::StatusOr<Ids> AsLoop() {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId start, b_.ConstantInt(ElementType::kS32, 0));
    Ids init = {start};
    init.insert(init.end(), operands_.begin(), operands_.end());
    for (const Shape* s : call_.results) {
      const Shape* shape = Batched(b_.context(), s, size_);
      SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, b_.ConstantInt(s->element_type(), 0));
      SHARDCALL_ASSIGN_OR_RETURN(const InstrId zeros, b_.BroadcastScalar(zero, shape));
      init.push_back(zeros);
    }
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId carry, b_.Add(Opcode::kTuple, init));
    MonoidTable monoids(&b_.module());
    SHARDCALL_ASSIGN_OR_RETURN(const CompId condition, Condition(b_.shape(carry), &monoids));
    SHARDCALL_ASSIGN_OR_RETURN(const CompId body, Body(b_.shape(carry), &monoids));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId loop, b_.While(condition, body, carry));
    Ids out;
    for (size_t r = 0; r < call_.results.size(); ++r) {
      SHARDCALL_ASSIGN_OR_RETURN(
          const InstrId leaf,
          b_.GetTupleElement(loop, static_cast<int64_t>(1 + operands_.size() + r)));
      out.push_back(leaf);
    }
    return out;
  }

 private:
  absl::StatusOr<CompId> Condition(const Shape* carry, MonoidTable* monoids) {
    const CompId comp = AddNamedComputation("vmap_condition", &b_.module());
    CheckedBuilder c(&b_.module(), comp, monoids);
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId p, c.Parameter(0, carry));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId i, c.GetTupleElement(p, 0));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId n, c.ConstantInt(ElementType::kS32, size_));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId less, c.Compare(Direction::kLt, i, n));
    SHARDCALL_RETURN_IF_ERROR(c.SetRoot(less));
    return comp;
  }

  absl::StatusOr<CompId> Body(const Shape* carry, MonoidTable* monoids) {
    const CompId comp = AddNamedComputation("vmap_body", &b_.module());
    CheckedBuilder c(&b_.module(), comp, monoids);
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId p, c.Parameter(0, carry));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId i, c.GetTupleElement(p, 0));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId one, c.ConstantInt(ElementType::kS32, 1));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId next, c.Add(Opcode::kAdd, {i, one}));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, c.ConstantInt(ElementType::kS32, 0));
    Ids carried = {next}, arguments;
    for (size_t k = 0; k < operands_.size(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(InstrId x, c.GetTupleElement(p, static_cast<int64_t>(1 + k)));
      carried.push_back(x);
      if (batched_[k]) {
        const auto dims = call_.operands[k]->dims();
        Ids starts = {i};
        std::vector<int64_t> sizes = {1};
        for (int64_t d : dims) {
          starts.push_back(zero);
          sizes.push_back(d);
        }
        SHARDCALL_ASSIGN_OR_RETURN(x, c.DynamicSlice(x, starts, sizes));
        SHARDCALL_ASSIGN_OR_RETURN(x, c.Reshape(x, dims));
      }
      arguments.push_back(x);
    }
    SHARDCALL_ASSIGN_OR_RETURN(
        const InstrId call,
        c.CustomCall(attrs_, arguments, ResultShape(b_.context(), call_.results), config_));
    SHARDCALL_ASSIGN_OR_RETURN(const Ids results, Leaves(c, call));
    for (size_t r = 0; r < results.size(); ++r) {
      SHARDCALL_ASSIGN_OR_RETURN(
          const InstrId all, c.GetTupleElement(p, static_cast<int64_t>(1 + operands_.size() + r)));
      const Shape* row = Batched(b_.context(), call_.results[r], 1);
      SHARDCALL_ASSIGN_OR_RETURN(const InstrId update, c.Reshape(results[r], row->dims()));
      const Ids starts = [&] {
        Ids s(row->rank(), zero);
        s[0] = i;
        return s;
      }();
      SHARDCALL_ASSIGN_OR_RETURN(const InstrId updated, c.DynamicUpdateSlice(all, update, starts));
      carried.push_back(updated);
    }
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId root, c.Add(Opcode::kTuple, carried));
    SHARDCALL_RETURN_IF_ERROR(c.SetRoot(root));
    return comp;
  }

  CheckedBuilder& b_;
  const CallParts call_;
  CustomCallAttrs attrs_;
  const absl::string_view config_;
  const Ids operands_;
  const std::vector<bool> batched_;
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::vector<InstrId>> Vmap(CheckedBuilder& b, const TargetRegistry& targets,
                                          InstrId call, absl::Span<const InstrId> operands,
                                          const std::vector<bool>& batched) {
  constexpr absl::string_view kWhat = "batched form";
  SHARDCALL_ASSIGN_OR_RETURN(const CallParts parts, PartsOf(b.module(), call, kWhat));
  const std::string target(parts.attrs->target);
  if (operands.size() != parts.operands.size() || batched.size() != operands.size()) {
    return Misfit(kWhat, target, "another number of operands",
                  absl::StrCat(parts.operands.size(), ", and a flag for each"),
                  absl::StrCat(operands.size(), " and ", batched.size(), " flags"),
                  "Pass as many as the call has");
  }
  int64_t size = -1;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape* have = Knows(b, operands[k]) ? b.shape(operands[k]) : nullptr;
    if (have != nullptr && batched[k] && have->IsArray() && have->rank() > 0 && size < 0) {
      size = have->dim(0);
    }
    const Shape* want =
        batched[k] && size >= 0 ? Batched(b.context(), parts.operands[k], size) : parts.operands[k];
    if (have == nullptr || have->bare() != want->bare()) {
      return Misfit(kWhat, target, absl::StrCat("another operand ", k), want->ToString(false),
                    have == nullptr ? "no instruction of this module" : have->ToString(false),
                    batched[k] ? "Pass the operand with the batch in front"
                               : "Pass the operand as the call has it");
    }
  }
  if (size < 0) {
    return Misfit(kWhat, target, "no operand that is batched", "one or more", "none",
                  "Call the target itself");
  }
  const TargetFacts* facts = targets.Facts(target);
  BatchingSpec spec;
  if (facts != nullptr && facts->batching.has_value()) {
    spec = *facts->batching;
  } else {
    const TargetRule* const rule = targets.Find(target, parts.instr->backend_config);
    const bool takes = rule != nullptr && TakesBatch(*rule, parts.instr->backend_config,
                                                     parts.operands, parts.results, batched);
    if (!takes) spec.kind = BatchingSpec::Kind::kLoop;
  }
  Batcher batcher(b, parts, Ids(operands.begin(), operands.end()), batched, size);
  switch (spec.kind) {
    case BatchingSpec::Kind::kLeading: return batcher.AsOneCall(target, false);
    case BatchingSpec::Kind::kBroadcast: return batcher.AsOneCall(target, true);
    case BatchingSpec::Kind::kTarget: return batcher.AsOneCall(spec.target, false);
    case BatchingSpec::Kind::kLoop: break;
  }
  return batcher.AsLoop();
}

}  // namespace shardcall
