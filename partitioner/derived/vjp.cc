// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/derived/vjp.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/derived/call_parts.h"
#include "shardcall/partitioner/ir/build/embed.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/rules/resize.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using namespace derived_calls;  // NOLINT

constexpr absl::string_view kWhat = "VJP";

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

// The registered VJP of a target, which must be one for calls with this backend_config.
absl::StatusOr<const VjpSpec*> VjpOf(const TargetRegistry& targets, absl::string_view target,
                                     absl::string_view config) {
  const TargetFacts* facts = targets.Facts(target);
  if (facts == nullptr || !facts->vjp.has_value()) {
    return Cannot(kWhat, target, "none is registered",
                  "Name one by \"vjp\" in a manifest, or with RegisterVjp");
  }
  if (facts->vjp->applies != nullptr && !facts->vjp->applies(config)) {
    return Cannot(kWhat, target, absl::StrCat("none with backend_config=", config),
                  "Call the target with attributes that it can be differentiated with");
  }
  return &*facts->vjp;
}

absl::Status CheckCotangents(const VjpSpec& vjp, const CallParts& parts,
                             absl::Span<const InstrId> cotangents) {
  const absl::string_view target = parts.attrs->target;
  if (cotangents.size() != parts.results.size()) {
    return Misfit(kWhat, target, absl::StrCat(cotangents.size(), " cotangents"),
                  absl::StrCat(parts.results.size(), ", one for each result"),
                  absl::StrCat(cotangents.size()),
                  "Pass one for each result, an invalid id for one that is zero");
  }
  for (size_t k = 0; k < cotangents.size(); ++k) {
    if (cotangents[k].valid() && !TakesCotangent(vjp, static_cast<int>(k))) {
      return Misfit(kWhat, target,
                    absl::StrCat("a cotangent of result ", k, ", which it does not take"), "none",
                    absl::StrCat("instruction ", cotangents[k].value),
                    "Pass none for it, and let nothing differentiable use that result");
    }
  }
  return absl::OkStatus();
}

// The cotangent of a result as the VJP takes it: zeros if it is invalid.
absl::StatusOr<InstrId> CotangentOf(CheckedBuilder& b, const CallParts& parts, int result,
                                    InstrId given) {
  const Shape* shape = parts.results[result];
  if (!given.valid()) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, b.ConstantInt(shape->element_type(), 0));
    return b.BroadcastScalar(zero, shape);
  }
  const bool known = Knows(b, given);
  if (known && b.shape(given)->bare() == shape->bare()) return given;
  return Misfit(kWhat, parts.attrs->target, absl::StrCat("another cotangent ", result),
                shape->ToString(false),
                known ? b.shape(given)->ToString(false)
                      : absl::StrCat("number ", given.value, ", which is no instruction"),
                "Pass a value of the result's shape");
}

// What the VJP is called with.
absl::StatusOr<Ids> ArgumentsOf(CheckedBuilder& b, const VjpSpec& vjp, const CallParts& parts,
                                const Ids& operands, const Ids& results,
                                absl::Span<const InstrId> cotangents) {
  Ids arguments;
  for (const VjpArgument& a : vjp.arguments) {
    const bool operand = a.kind == VjpArgument::Kind::kOperand;
    const size_t most = operand ? operands.size() : results.size();
    if (operand && vjp.skip_absent_operands && a.index >= static_cast<int>(most)) continue;
    if (a.index < 0 || static_cast<size_t>(a.index) >= most) {
      return Cannot(kWhat, parts.attrs->target,
                    absl::StrCat("it needs ", operand ? "operand " : "result ", a.index,
                                 ", which this call does not have"),
                    "Call the target with all of them");
    }
    if (a.kind != VjpArgument::Kind::kCotangent) {
      arguments.push_back(operand ? operands[a.index] : results[a.index]);
      continue;
    }
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId cotangent,
                               CotangentOf(b, parts, a.index, cotangents[a.index]));
    arguments.push_back(cotangent);
  }
  return arguments;
}

// The gradients by operand. `gradients` are those of the operands `gradients_of`, and must have
// their shapes.
absl::StatusOr<Ids> ByOperand(CheckedBuilder& b, const CallParts& parts, const Ids& gradients,
                              const std::vector<int>& gradients_of, const Shapes& shapes) {
  const absl::string_view target = parts.attrs->target;
  if (gradients.size() != gradients_of.size()) {
    return Cannot(kWhat, target,
                  absl::StrCat("its computation gives ", gradients.size(), " gradients of ",
                               gradients_of.size()),
                  "Correct the registration");
  }
  Ids out(parts.operands.size());
  for (size_t k = 0; k < gradients.size(); ++k) {
    if (b.shape(gradients[k])->bare() != shapes[k]->bare()) {
      return Cannot(kWhat, target,
                    absl::StrCat("its computation gives ", b.shape(gradients[k])->ToString(false),
                                 " for operand ", gradients_of[k]),
                    "Correct the registration");
    }
    out[gradients_of[k]] = gradients[k];
  }
  return out;
}

}  // namespace

bool TakesCotangent(const VjpSpec& vjp, int result) {
  return std::any_of(vjp.arguments.begin(), vjp.arguments.end(), [&](const VjpArgument& a) {
    return a.kind == VjpArgument::Kind::kCotangent && a.index == result;
  });
}

absl::StatusOr<std::vector<InstrId>> Vjp(CheckedBuilder& b, const TargetRegistry& targets,
                                         InstrId call, absl::Span<const InstrId> cotangents) {
  SHARDCALL_ASSIGN_OR_RETURN(const CallParts parts, PartsOf(b.module(), call, kWhat));
  // Copied first, because adding to the module moves its instructions.
  const CustomCallAttrs& primal = *parts.attrs;
  const absl::string_view config = parts.instr->backend_config;
  SHARDCALL_ASSIGN_OR_RETURN(const VjpSpec* vjp, VjpOf(targets, primal.target, config));
  SHARDCALL_RETURN_IF_ERROR(CheckCotangents(*vjp, parts, cotangents));
  const Ids operands(b.module().operands(call).begin(), b.module().operands(call).end());
  SHARDCALL_ASSIGN_OR_RETURN(const Ids results, Leaves(b, call));
  SHARDCALL_ASSIGN_OR_RETURN(const Ids arguments,
                             ArgumentsOf(b, *vjp, parts, operands, results, cotangents));
  std::vector<int> gradients_of;
  Shapes shapes;
  for (int g : vjp->gradients) {
    const bool absent = g >= static_cast<int>(operands.size());
    if (absent && vjp->skip_absent_operands) continue;
    if (g < 0 || absent) {
      return Cannot(kWhat, primal.target, absl::StrCat("it gives a gradient of operand ", g),
                    "Call the target with all of its operands");
    }
    gradients_of.push_back(g);
    shapes.push_back(b.context().WithDefaultLayout(parts.operands[g]->bare()));
  }
  absl::StatusOr<InstrId> made = InstrId();
  if (!vjp->computation.empty()) {
    made = CallComputation(b, targets, vjp->computation, arguments);
  } else {
    made = b.CustomCall(
        PlainAttrs(primal, vjp->target), arguments, ResultShape(b.context(), shapes),
        vjp->backend_config.has_value() ? absl::string_view(*vjp->backend_config) : config);
  }
  if (!made.ok()) return made.status();
  SHARDCALL_ASSIGN_OR_RETURN(const Ids gradients, Leaves(b, *made));
  return ByOperand(b, parts, gradients, gradients_of, shapes);
}

}  // namespace shardcall
