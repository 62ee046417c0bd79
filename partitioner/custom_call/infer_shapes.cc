// SPDX-License-Identifier: Apache-2.0
// Infers the shapes of calls' results: by the shape function of the target, else by its rule
// string, whose factors get their sizes from the operands.
#include <algorithm>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/custom_call/open_factors.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/custom_call/rule_choice.h"
#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Leaves = std::vector<const Shape*>;
using Dims = std::vector<int64_t>;

Leaves LeavesOf(absl::Span<const Shape* const> shapes) {
  Leaves leaves;
  for (const Shape* s : shapes) {
    for (int k = 0; k < s->num_leaves(); ++k) leaves.push_back(s->leaf(k));
  }
  return leaves;
}

std::string ListText(absl::Span<const Shape* const> shapes) {
  return absl::StrCat("(",
                      absl::StrJoin(shapes, ", ",
                                    [](std::string* out, const Shape* s) {
                                      absl::StrAppend(out, s->ToString(/*with_layout=*/false));
                                    }),
                      ")");
}

absl::Status NoShape(absl::string_view target, std::string why, std::string found = "") {
  return ToStatus({.code = "E112",
                   .message = absl::StrCat("the result shape of a call of \"", target,
                                           "\" does not follow: ", why),
                   .found = std::move(found),
                   .fix = "Give the shape, or a function for it (RegisterShapeInference, "
                          "shapes= in Python)"},
                  absl::StatusCode::kFailedPrecondition);
}

// Sizes of factors and of the dimensions that ellipses stand for, taken from operands.
class FactorSizes {
 public:
  FactorSizes(const RuleAlternative& a, absl::string_view target) : a_(a), target_(target) {
    for (const auto& [name, size] : a.text.sizes) sizes_.push_back({name, size});
  }

  absl::Status Bind(absl::Span<const Shape* const> operands) {
    SHARDCALL_RETURN_IF_ERROR(BindAll(operands, /*compounds=*/false));
    // A size that one compound gives may be what another needs.
    for (size_t known = sizes_.size() + 1; known != sizes_.size();) {
      known = sizes_.size();
      SHARDCALL_RETURN_IF_ERROR(BindAll(operands, /*compounds=*/true));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Dims> DimsOf(const RuleAlternative::Value& value) const {
    Dims dims;
    if (value.ellipsis) {
      auto it = batch_.find(value.group);
      if (it == batch_.end()) {
        return NoShape(target_, "no operand has the dimensions of '...'", a_.text.rule);
      }
      dims = it->second;
    }
    for (const std::vector<std::string>& factors : value.dims) {
      int64_t size = 1;
      for (const std::string& f : factors) {
        const int64_t* const known = SizeOf(f);
        if (known == nullptr) {
          return NoShape(target_, absl::StrCat("no operand has factor ", f), a_.text.rule);
        }
        if (__builtin_mul_overflow(size, *known, &size)) {
          return NoShape(target_, "it is too large", a_.text.rule);
        }
      }
      dims.push_back(size);
    }
    return dims;
  }

 private:
  absl::Status BindAll(absl::Span<const Shape* const> operands, bool compounds) {
    for (size_t k = 0; k < operands.size(); ++k) {
      SHARDCALL_RETURN_IF_ERROR(BindOne(static_cast<int>(k), operands[k], compounds));
    }
    return absl::OkStatus();
  }

  absl::Status BindOne(int k, const Shape* shape, bool compounds) {
    const RuleAlternative::Value& value = a_.values[k];
    const Dims dims(shape->dims().begin(), shape->dims().end());
    const size_t first = dims.size() - value.dims.size();
    if (value.ellipsis && !compounds) {
      const Dims lead(dims.begin(), dims.begin() + first);
      const auto [it, inserted] = batch_.try_emplace(value.group, lead);
      if (!inserted && it->second != lead) {
        return Contradiction("'...'", k, absl::StrJoin(it->second, ","), absl::StrJoin(lead, ","));
      }
    }
    for (size_t d = 0; d < value.dims.size(); ++d) {
      const std::vector<std::string>& factors = value.dims[d];
      const int64_t size = dims[first + d];
      if ((factors.size() > 1) != compounds) continue;
      int64_t known = 1;
      std::vector<absl::string_view> open;
      for (const std::string& f : factors) {
        if (const int64_t* const of_factor = SizeOf(f)) {
          known *= *of_factor;
        } else {
          open.push_back(f);
        }
      }
      if (open.size() == 1 && (known == 0 ? size == 0 : size % known == 0)) {
        sizes_.push_back({open[0], known == 0 ? 1 : size / known});
      } else if (open.size() == 1 || (open.empty() && known != size)) {
        return Contradiction(absl::StrJoin(factors, " "), k, absl::StrCat(known),
                             absl::StrCat(size));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Contradiction(absl::string_view factor, int operand, std::string want,
                             std::string have) const {
    return ToStatus({.code = "E111",
                     .message = absl::StrCat("operand ", operand, " of \"", target_,
                                             "\" does not fit the others in factor ", factor),
                     .expected = std::move(want),
                     .found = std::move(have),
                     .fix = "Pass operands that fit the rule"});
  }

  // Null: not known. A rule has few factors.
  const int64_t* SizeOf(absl::string_view factor) const {
    const auto it = absl::c_find_if(sizes_, [&](const auto& s) { return s.first == factor; });
    return it == sizes_.end() ? nullptr : &it->second;
  }

  const RuleAlternative& a_;
  const absl::string_view target_;
  std::vector<std::pair<absl::string_view, int64_t>> sizes_;  // names are those of a_
  std::map<std::string, Dims> batch_;                         // by group
};

// Whether calls with these operands may have the signature.
bool FitsOperands(const RuleAlternative& a, const TargetRule& rule, const ShapeRequest& call,
                  absl::Span<const Shape* const> operands) {
  return absl::c_all_of(operands, [](const Shape* s) { return s->IsArray(); }) &&
         FitsCall(a, rule.types_bind, call.backend_config, operands, /*results=*/nullptr);
}

// Whether a call by the rule has no result, rather than a scalar: its types say so, or the rule
// leaves open how the parts of a result would be combined.
bool HasNoResult(const RuleAlternative& a, const TypeSignature* signature) {
  const size_t first = a.num_operands;
  if (a.values.size() != first + 1 || !a.values[first].IsScalar()) return false;
  return signature != nullptr ? signature->num_results() == 0 : LeavesFactorsOpen(a);
}

// The type of results of which nothing is said: that of the operands if they have one, else that of
// the first of a floating-point type.
ElementType UsualType(absl::Span<const ElementType> operands) {
  if (operands.empty()) return ElementType::kInvalid;
  if (absl::c_count(operands, operands[0]) == static_cast<int64_t>(operands.size())) {
    return operands[0];
  }
  const auto real = absl::c_find_if(operands, IsFloat);
  return real == operands.end() ? ElementType::kInvalid : *real;
}

// The results with the types that `signature` gives; with null, of the operands' usual type.
absl::StatusOr<const Shape*> InferByRule(const RuleAlternative& a, const TypeSignature* signature,
                                         absl::string_view target, Context& context,
                                         absl::Span<const Shape* const> operands) {
  FactorSizes sizes(a, target);
  SHARDCALL_RETURN_IF_ERROR(sizes.Bind(operands));
  if (HasNoResult(a, signature)) return context.MakeTuple({});
  std::vector<ElementType> types;
  for (const Shape* s : operands) types.push_back(s->element_type());
  const size_t num_results = a.values.size() - a.num_operands;
  std::vector<ElementType> result_types(num_results, UsualType(types));
  if (signature != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(result_types, signature->Results(types));
  } else if (UsualType(types) == ElementType::kInvalid) {
    return NoShape(target,
                   "its operands have several element types and none of them is a float, and the "
                   "rule says nothing of those of its results",
                   ListText(operands));
  }
  Leaves results;
  for (size_t r = 0; r < num_results; ++r) {
    SHARDCALL_ASSIGN_OR_RETURN(const Dims dims, sizes.DimsOf(a.values[a.num_operands + r]));
    results.push_back(context.WithDefaultLayout(context.MakeArray(result_types[r], dims)));
  }
  return num_results == 1 ? results[0] : context.MakeTuple(results);
}

// The results under each of the type signatures, or without one if there are none.
absl::StatusOr<std::vector<const Shape*>> AllByRule(const RuleAlternative& a,
                                                    const ShapeRequest& call,
                                                    absl::Span<const Shape* const> operands) {
  Leaves shapes;
  absl::Status status;
  SHARDCALL_ASSIGN_OR_RETURN(const auto types, TypesOf(a));
  const std::vector<TypeSignature>& signatures = types->signatures;
  for (size_t k = 0; k < std::max<size_t>(signatures.size(), 1); ++k) {
    const absl::StatusOr<const Shape*> shape = InferByRule(
        a, signatures.empty() ? nullptr : &signatures[k], call.target, *call.context, operands);
    if (shape.ok()) {
      shapes.push_back(*shape);
    } else if (status.ok()) {
      status = shape.status();
    }
  }
  if (shapes.empty()) return status;
  return shapes;
}

absl::StatusOr<const Shape*> AskFunction(const ShapeFunction& function, const ShapeRequest& call) {
  std::string what;
  absl::StatusCode code = absl::StatusCode::kInternal;
  try {  // user code may throw
    absl::StatusOr<const Shape*> shape = function(call);
    if (shape.ok() && *shape != nullptr) return call.context->WithDefaultLayout(*shape);
    if (!shape.ok() && !DiagnosticCode(shape.status()).empty()) return shape.status();
    what = shape.ok() ? "gave no shape" : FailedText(shape.status().message());
    if (!shape.ok()) code = shape.status().code();
  } catch (const std::exception& e) {
    what = absl::StrCat("threw: ", e.what());
  } catch (...) {
    what = "threw";
  }
  return ToStatus({.code = "E121",
                   .message = absl::StrCat("shape function of \"", call.target, "\" ", what),
                   .found = ListText(call.operands),
                   .fix = "Correct the call, or the target's shape function"},
                  code);
}

// Whether arrays agree in types and dimensions; layouts are ignored.
bool SameLeaves(const Shape* a, const Shape* b) {
  if (a->num_leaves() != b->num_leaves()) return false;
  for (int k = 0; k < a->num_leaves(); ++k) {
    const Shape *x = a->leaf(k), *y = b->leaf(k);
    if (x->IsArray() != y->IsArray() || (x->IsArray() && !CompatibleShapes(x, y))) return false;
  }
  return true;
}

// `shape` with the element types of `declared`, for rules that do not give types.
const Shape* WithTypesOf(Context& context, const Shape* shape, const Shape* declared) {
  if (shape->num_leaves() != declared->num_leaves()) return shape;
  Leaves leaves;
  for (int k = 0; k < shape->num_leaves(); ++k) {
    const Shape* leaf = declared->leaf(k);
    leaves.push_back(leaf->IsArray() ? context.WithElementType(shape->leaf(k), leaf->element_type())
                                     : leaf);
  }
  return context.MakeTuple(leaves);
}

}  // namespace

absl::Status TargetRegistry::RegisterShapeInference(std::string target, ShapeFunction function,
                                                    std::vector<const void*> identity,
                                                    std::string source) {
  if (target.empty() || function == nullptr) {
    return ToStatus({.code = "E105",
                     .message = "shape inference needs a target's name and a function",
                     .found = target,
                     .fix = "Give both"});
  }
  const auto state = state_.Lock();
  TargetFacts facts = FactsOf(target);
  if (facts.shapes != nullptr) {
    if (!identity.empty() && facts.shapes_identity == identity) return absl::OkStatus();
    return ToStatus(
        {.code = "E105",
         .message = absl::StrCat("target \"", target, "\" has shape inference already, from ",
                                 facts.shapes_source, "; another function comes from ", source),
         .fix = "Register one function"},
        absl::StatusCode::kAlreadyExists);
  }
  facts.shapes = std::move(function);
  facts.shapes_identity = std::move(identity);
  facts.shapes_source = std::move(source);
  state->PutFacts(target, std::move(facts));
  return absl::OkStatus();
}

const TargetFacts* TargetRegistry::Facts(absl::string_view target) const {
  const auto state = state_.Lock();
  const auto it = state->facts.find(std::string(target));
  return it == state->facts.end() ? nullptr : it->second.get();
}

absl::StatusOr<const Shape*> TargetRegistry::InferShape(const ShapeRequest& call) const {
  const TargetFacts* facts = Facts(call.target);
  if (facts != nullptr && facts->shapes != nullptr) return AskFunction(facts->shapes, call);
  const TargetRule* rule = Find(call.target, call.backend_config);
  if (rule == nullptr) return NoShape(call.target, "the target is not registered");
  if (rule->alternatives.empty()) {
    return NoShape(call.target, absl::StrCat("its registration, by ", RuleLevelName(rule->level),
                                             ", says nothing of shapes"));
  }
  const Leaves operands = LeavesOf(call.operands);
  const RuleAlternative* chosen = nullptr;
  for (const RuleAlternative& a : rule->alternatives) {
    if (!FitsOperands(a, *rule, call, operands)) continue;
    if (chosen == nullptr || IsNarrowerInOperands(a, *chosen)) chosen = &a;
  }
  if (chosen == nullptr) {
    return NoRuleFits(*rule, call.backend_config, operands, /*results=*/nullptr);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Leaves shapes, AllByRule(*chosen, call, operands));
  return shapes[0];
}

absl::Status TargetRegistry::CheckShape(const ShapeRequest& call, const Shape* declared) const {
  const TargetFacts* facts = Facts(call.target);
  const Leaves operands = LeavesOf(call.operands);
  // No rule tells the bounds of a result of dynamic shape, so such calls are not checked.
  auto dynamic = [](const Shape* s) { return s->IsArray() && s->IsDynamic(); };
  if (std::any_of(operands.begin(), operands.end(), dynamic)) return absl::OkStatus();
  for (int k = 0; k < declared->num_leaves(); ++k) {
    if (dynamic(declared->leaf(k))) return absl::OkStatus();
  }
  const Shape* expected = nullptr;
  std::string by, fix = "write the expected shape, or correct the shape function";
  if (facts != nullptr && facts->shapes != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(expected, AskFunction(facts->shapes, call));
    if (SameLeaves(expected, declared)) return absl::OkStatus();
    by = absl::StrCat("the shape function of \"", call.target, "\" (", facts->shapes_source, ")");
  } else {
    const TargetRule* rule = Find(call.target, call.backend_config);
    if (rule == nullptr || rule->alternatives.empty()) return absl::OkStatus();
    // Of several signatures any that fits is right. A rule that does not determine the result
    // (E112) cannot contradict it.
    for (const RuleAlternative& a : rule->alternatives) {
      if (!FitsOperands(a, *rule, call, operands)) continue;
      const absl::StatusOr<Leaves> shapes = AllByRule(a, call, operands);
      if (!shapes.ok() && DiagnosticCode(shapes.status()) == "E112") return absl::OkStatus();
      if (!shapes.ok()) return shapes.status();
      for (const Shape* shape : *shapes) {
        if (SameLeaves(a.types.empty() ? WithTypesOf(*call.context, shape, declared) : shape,
                       declared)) {
          return absl::OkStatus();
        }
      }
      if (expected != nullptr) continue;
      expected = (*shapes)[0];
      by = absl::StrCat("the rule \"", a.text.rule, "\" of \"", call.target, "\" (", rule->source,
                        ")");
      fix = "write the expected shape, or correct the rule";
    }
    if (expected == nullptr) return absl::OkStatus();
  }
  return ToStatus({.code = "E023",
                   .message = absl::StrCat("custom-call: the written shape is not what ", by,
                                           " gives for these operands"),
                   .expected = expected->ToString(/*with_layout=*/false),
                   .found = declared->ToString(/*with_layout=*/false),
                   .fix = std::move(fix)});
}

}  // namespace shardcall
