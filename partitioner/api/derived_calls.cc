// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/derived_calls.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/ir/build/embed.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/rules/resize.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Ids = std::vector<InstrId>;
using Shapes = std::vector<const Shape*>;

absl::Status Cannot(absl::string_view what, absl::string_view target, std::string why,
                    std::string fix) {
  return ToStatus({.code = "E118",
                   .message = absl::StrCat("there is no ", what, " of \"", target, "\": ", why),
                   .fix = std::move(fix)},
                  absl::StatusCode::kFailedPrecondition);
}

// The error for arguments that do not fit the call.
absl::Status Misfit(absl::string_view what, absl::string_view target, std::string message,
                    std::string expected, std::string found, std::string fix) {
  return ToStatus({.code = "E123",
                   .message = absl::StrCat("the ", what, " of \"", target, "\" is given ", message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)});
}

// Flat results of a call with at most one level of tuple.
absl::StatusOr<Ids> Leaves(CheckedBuilder& b, InstrId value) {
  Ids out;
  const Shape* shape = b.shape(value);
  if (!shape->IsTuple()) return Ids{value};
  for (size_t k = 0; k < shape->tuple().size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId leaf,
                               b.GetTupleElement(value, static_cast<int64_t>(k)));
    out.push_back(leaf);
  }
  return out;
}

const Shape* ResultShape(Context& context, const Shapes& leaves) {
  return leaves.size() == 1 ? leaves[0] : context.MakeTuple(leaves);
}

// Operands and results of a custom call, which must be arrays.
struct CallParts {
  const Instruction* instr = nullptr;
  const CustomCallAttrs* attrs = nullptr;
  Shapes operands, results;
};
absl::StatusOr<CallParts> PartsOf(const Module& m, InstrId call, absl::string_view what) {
  CallParts p;
  if (!call.valid() || call.value >= static_cast<uint32_t>(m.num_instructions()) ||
      m.instr(call).opcode != Opcode::kCustomCall) {
    return ToStatus({.code = "E123",
                     .message = absl::StrCat("a ", what, " is asked for of what is no custom call"),
                     .expected = "a custom call of this module",
                     .found = call.valid() ? absl::StrCat("instruction ", call.value) : "none",
                     .fix = "Pass a custom call"});
  }
  p.instr = &m.instr(call);
  p.attrs = &p.instr->as<CustomCallAttrs>();
  for (InstrId o : m.operands(call)) p.operands.push_back(m.instr(o).shape);
  const Shape* shape = p.instr->shape;
  if (shape->IsTuple()) {
    p.results.assign(shape->tuple().begin(), shape->tuple().end());
  } else {
    p.results.push_back(shape);
  }
  bool arrays = p.attrs->called_computations.empty();
  for (const Shapes* list : {&p.operands, &p.results}) {
    for (const Shape* s : *list) arrays = arrays && s->IsArray();
  }
  if (!arrays || p.attrs->has_side_effect) {
    return Cannot(what, p.attrs->target, "it has tuples, tokens, computations or side effects",
                  "Write that call by hand");
  }
  return p;
}

bool Knows(const CheckedBuilder& b, InstrId id) {
  return id.valid() && id.value < static_cast<uint32_t>(b.module().num_instructions());
}

// The attributes of a derived call, which has none of the layouts and aliases of the original.
CustomCallAttrs PlainAttrs(const CustomCallAttrs& call, absl::string_view target) {
  CustomCallAttrs attrs;
  attrs.target = target;
  attrs.api_version = call.api_version;
  return attrs;
}

absl::StatusOr<InstrId> CallComputation(CheckedBuilder& b, const TargetRegistry& targets,
                                        const std::string& hlo, const Ids& arguments) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(hlo),
                                         b.module().shared_context(), "vjp", &targets));
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, "vjp"));
  std::vector<std::vector<int64_t>> dims;
  for (InstrId x : arguments) {
    const auto d = b.shape(x)->dims();
    dims.emplace_back(d.begin(), d.end());
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Module fitted, ResizeModule(std::move(module), dims, &targets));
  return b.Call(EmbedComputations(fitted, &b.module()), arguments);
}

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

// Whether the rule of the call has `...` where the batch dimension is.
bool RuleTakesBatch(const TargetRegistry& targets, const CallParts& call,
                    const std::vector<bool>& batched) {
  const TargetRule* rule = targets.Find(call.attrs->target, call.instr->backend_config);
  if (rule == nullptr) return false;
  for (const RuleAlternative& a : rule->alternatives) {
    const size_t tensors = call.operands.size() + call.results.size();
    if (a.num_operands != static_cast<int>(call.operands.size()) || a.values.size() != tensors) {
      continue;
    }
    bool fits = a.applies == nullptr || a.applies(call.instr->backend_config);
    for (size_t k = 0; k < a.values.size(); ++k) {
      fits = fits && a.values[k].ellipsis == (k >= batched.size() || batched[k]);
    }
    if (fits) return true;
  }
  return false;
}

}  // namespace

bool TakesCotangent(const VjpSpec& vjp, int result) {
  return std::any_of(vjp.arguments.begin(), vjp.arguments.end(), [&](const VjpArgument& a) {
    return a.kind == VjpArgument::Kind::kCotangent && a.index == result;
  });
}

absl::StatusOr<std::vector<InstrId>> Vjp(CheckedBuilder& b, const TargetRegistry& targets,
                                         InstrId call, absl::Span<const InstrId> cotangents) {
  constexpr absl::string_view kWhat = "VJP";
  SHARDCALL_ASSIGN_OR_RETURN(const CallParts parts, PartsOf(b.module(), call, kWhat));
  // Copied first, because adding to the module moves its instructions.
  const CustomCallAttrs& primal = *parts.attrs;
  const absl::string_view config = parts.instr->backend_config;
  const TargetFacts* facts = targets.Facts(primal.target);
  if (facts == nullptr || !facts->vjp.has_value()) {
    return Cannot(kWhat, primal.target, "none is registered",
                  "Name one by \"vjp\" in a manifest, or with RegisterVjp");
  }
  const VjpSpec& vjp = *facts->vjp;
  if (vjp.applies != nullptr && !vjp.applies(config)) {
    return Cannot(kWhat, primal.target, absl::StrCat("none with backend_config=", config),
                  "Call the target with attributes that it can be differentiated with");
  }
  const auto gives = [&](int operand) {
    return !vjp.skip_absent_operands || operand < static_cast<int>(parts.operands.size());
  };
  std::vector<int> gradients_of;
  std::copy_if(vjp.gradients.begin(), vjp.gradients.end(), std::back_inserter(gradients_of), gives);
  if (cotangents.size() != parts.results.size()) {
    return Misfit(kWhat, primal.target, absl::StrCat(cotangents.size(), " cotangents"),
                  absl::StrCat(parts.results.size(), ", one for each result"),
                  absl::StrCat(cotangents.size()),
                  "Pass one for each result, an invalid id for one that is zero");
  }
  for (size_t k = 0; k < cotangents.size(); ++k) {
    if (cotangents[k].valid() && !TakesCotangent(vjp, static_cast<int>(k))) {
      return Misfit(kWhat, primal.target,
                    absl::StrCat("a cotangent of result ", k, ", which it does not take"), "none",
                    absl::StrCat("instruction ", cotangents[k].value),
                    "Pass none for it, and let nothing differentiable use that result");
    }
  }
  const Ids operands(b.module().operands(call).begin(), b.module().operands(call).end());
  SHARDCALL_ASSIGN_OR_RETURN(const Ids results, Leaves(b, call));
  Ids arguments;
  for (const VjpArgument& a : vjp.arguments) {
    const size_t most = a.kind == VjpArgument::Kind::kOperand ? operands.size() : results.size();
    if (a.index < 0 || static_cast<size_t>(a.index) >= most) {
      return Cannot(
          kWhat, primal.target,
          absl::StrCat("it needs ", a.kind == VjpArgument::Kind::kOperand ? "operand " : "result ",
                       a.index, ", which this call does not have"),
          "Call the target with all of them");
    }
    if (a.kind != VjpArgument::Kind::kCotangent) {
      arguments.push_back(a.kind == VjpArgument::Kind::kOperand ? operands[a.index]
                                                                : results[a.index]);
      continue;
    }
    InstrId cotangent = cotangents[a.index];
    const Shape* shape = parts.results[a.index];
    if (!cotangent.valid()) {
      SHARDCALL_ASSIGN_OR_RETURN(cotangent, b.ConstantInt(shape->element_type(), 0));
      SHARDCALL_ASSIGN_OR_RETURN(cotangent, b.BroadcastScalar(cotangent, shape));
    } else if (const bool known = Knows(b, cotangent);
               !known || b.shape(cotangent)->bare() != shape->bare()) {
      return Misfit(kWhat, primal.target, absl::StrCat("another cotangent ", a.index),
                    shape->ToString(false),
                    known ? b.shape(cotangent)->ToString(false)
                          : absl::StrCat("number ", cotangent.value, ", which is no instruction"),
                    "Pass a value of the result's shape");
    }
    arguments.push_back(cotangent);
  }
  Shapes shapes;
  for (int g : gradients_of) {
    if (g < 0 || static_cast<size_t>(g) >= operands.size()) {
      return Cannot(kWhat, primal.target, absl::StrCat("it gives a gradient of operand ", g),
                    "Call the target with all of its operands");
    }
    shapes.push_back(b.context().WithDefaultLayout(parts.operands[g]->bare()));
  }
  absl::StatusOr<InstrId> made = InstrId();
  if (!vjp.computation.empty()) {
    made = CallComputation(b, targets, vjp.computation, arguments);
  } else {
    made = b.CustomCall(
        PlainAttrs(primal, vjp.target), arguments, ResultShape(b.context(), shapes),
        vjp.backend_config.has_value() ? absl::string_view(*vjp.backend_config) : config);
  }
  if (!made.ok()) return made.status();
  SHARDCALL_ASSIGN_OR_RETURN(const Ids gradients, Leaves(b, *made));
  if (gradients.size() != gradients_of.size()) {
    return Cannot(kWhat, primal.target,
                  absl::StrCat("its computation gives ", gradients.size(), " gradients of ",
                               gradients_of.size()),
                  "Correct the registration");
  }
  Ids out(operands.size());
  for (size_t k = 0; k < gradients.size(); ++k) {
    if (b.shape(gradients[k])->bare() != shapes[k]->bare()) {
      return Cannot(kWhat, primal.target,
                    absl::StrCat("its computation gives ", b.shape(gradients[k])->ToString(false),
                                 " for operand ", gradients_of[k]),
                    "Correct the registration");
    }
    out[gradients_of[k]] = gradients[k];
  }
  return out;
}

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
  } else if (!RuleTakesBatch(targets, parts, batched)) {
    spec.kind = BatchingSpec::Kind::kLoop;
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
