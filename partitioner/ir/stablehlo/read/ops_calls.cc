// SPDX-License-Identifier: Apache-2.0
// Custom calls, annotations of shardings, random bits.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_text.h"
#include "shardcall/partitioner/ir/stablehlo/op_names.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using Kind = Attribute::Kind;

absl::StatusOr<std::vector<const Shape*>> WithLayouts(ComputationReader& c,
                                                      std::vector<const Shape*> shapes,
                                                      const Attribute& layouts) {
  if (layouts.items.size() != shapes.size()) {
    return ModuleReader::Cannot("a custom call with another number of layouts than of arrays");
  }
  for (size_t k = 0; k < shapes.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(
        shapes[k], c.reader().WithLayout(shapes[k], c.code().attribute(layouts.items[k])));
  }
  return shapes;
}

// "{{0}: (1, {})}".
absl::StatusOr<std::string> AliasText(const Bytecode& code, const Attribute& aliases) {
  std::vector<std::string> out;
  for (uint32_t item : aliases.items) {
    const Attribute& a = code.attribute(item);
    if (a.kind != Kind::kOutputAlias) {
      return ModuleReader::Cannot("a custom call with an alias of an unknown form");
    }
    out.push_back(absl::StrCat("{", absl::StrJoin(a.lists[0], ","), "}: (", a.numbers[0], ", {",
                               absl::StrJoin(a.lists[1], ","), "})"));
  }
  return absl::StrCat("{", absl::StrJoin(out, ", "), "}");
}

// Calls that stand for other ops, which XLA puts in their place.
bool IsExpandedByXla(absl::string_view target) {
  return target == "ApproxTopK" || target == "ragged_all_to_all" ||
         absl::StartsWith(target, kMhloPrefix) || absl::StartsWith(target, "chlo.") ||
         absl::StartsWith(target, "stablehlo.");
}

// backend_config as HLO holds it; the interface's version may follow from it.
absl::Status ReadConfig(ComputationReader& c, const Operation& op, CustomCallAttrs* attrs,
                        std::string* text) {
  const Attribute* config = c.Find(op, kBackendConfig);
  // Where MLIR's form of the typed interface is not yet known, its dictionary stands beside an
  // empty string.
  if (const Attribute* typed = c.Find(op, kMhloBackendConfig); typed != nullptr) {
    if (config != nullptr && (config->kind != Kind::kString || !config->text.empty())) {
      return ModuleReader::Cannot("a custom call with two configurations");
    }
    config = typed;
    attrs->api_version = kTypedFfiCall;
  }
  if (config == nullptr) return absl::OkStatus();
  const bool printed = config->kind == Kind::kAssembly && absl::StartsWith(config->text, "{");
  if (config->kind == Kind::kString || printed) {
    *text = std::string(config->text);
  } else if (config->kind == Kind::kBytes) {
    *text = std::string(config->data);
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(*text, AttributeText(c.code(), *config));
  }
  return absl::OkStatus();
}

absl::Status ReadLayouts(ComputationReader& c, const Operation& op, CustomCallAttrs* attrs,
                         std::vector<const Shape*>* inputs, std::vector<const Shape*>* results) {
  if (const Attribute* layouts = c.Find(op, "operand_layouts"); layouts != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(*inputs, WithLayouts(c, std::move(*inputs), *layouts));
    attrs->has_layout_constraints = true;
    attrs->operand_layouts = *inputs;
  }
  if (const Attribute* layouts = c.Find(op, "result_layouts"); layouts != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(*results, WithLayouts(c, std::move(*results), *layouts));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CompId>> ReadCalled(ComputationReader& c, const Operation& op) {
  std::vector<CompId> called;
  const Attribute* computations = c.Find(op, "called_computations");
  if (computations == nullptr) return called;
  for (uint32_t item : computations->items) {
    const Attribute& symbol = c.code().attribute(item);
    if (symbol.kind != Kind::kSymbol) {
      return ModuleReader::Cannot("a custom call with a computation of an unknown form");
    }
    SHARDCALL_ASSIGN_OR_RETURN(called.emplace_back(),
                               c.reader().Function(c.code().attribute(symbol.items[0]).text));
  }
  return called;
}

absl::Status ReadCustomCall(ComputationReader& c, const Operation& op) {
  const Attribute* target = c.Find(op, "call_target_name");
  if (target == nullptr || target->kind != Kind::kString ||
      c.Find(op, "custom_call_schedule") != nullptr || IsExpandedByXla(target->text)) {
    return ModuleReader::Cannot("a custom call with a schedule, or one that stands for another op");
  }
  std::vector<const Shape*> results, inputs;
  for (size_t k = 0; k < op.results.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(results.emplace_back(), c.ShapeOf(op, k));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const auto operands, c.Operands(op));
  for (InstrId o : operands) inputs.push_back(c.reader().module().instr(o).shape);
  CustomCallAttrs attrs;
  attrs.target = target->text;
  attrs.api_version = c.Integer(op, "api_version", 1);
  attrs.has_side_effect = c.Bool(op, "has_side_effect");
  std::string config, aliasing;
  SHARDCALL_RETURN_IF_ERROR(ReadConfig(c, op, &attrs, &config));
  SHARDCALL_RETURN_IF_ERROR(ReadLayouts(c, op, &attrs, &inputs, &results));
  if (const Attribute* a = c.Find(op, "output_operand_aliases");
      a != nullptr && !a->items.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(aliasing, AliasText(c.code(), *a));
    attrs.output_to_operand_aliasing = aliasing;
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<CompId> called, ReadCalled(c, op));
  attrs.called_computations = called;
  const Shape* shape = results.size() == 1 ? results[0] : c.context().MakeTuple(results);
  const InstrId id =
      c.Emit(op, Opcode::kCustomCall, shape, operands, InternAttributes(c.context(), attrs));
  c.reader().module().mutable_instr(id).backend_config = c.context().Intern(config);
  return c.Finish(op, id);
}

absl::Status ReadConstraint(ComputationReader& c, const Operation& op) {
  const Attribute* sharding = c.Find(op, "sharding");
  if (sharding == nullptr) return ModuleReader::Cannot("a sharding_constraint without a sharding");
  SHARDCALL_ASSIGN_OR_RETURN(const std::string text, AnnotationReader::PerValue(*sharding));
  CustomCallAttrs attrs;
  attrs.target = KnownTargetText(KnownTarget::kSharding);
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, c.ArrayOperand(op, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  const InstrId id =
      c.Emit(op, Opcode::kCustomCall, shape, {x}, InternAttributes(c.context(), attrs));
  c.reader().annotations().AddFrontend(id, kSdySharding, text);
  return c.Finish(op, id);
}

absl::Status ReadRngBits(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t algorithm, c.Enumerator(op, "rng_algorithm", 0, 2));
  RngBitGeneratorAttrs attrs;
  attrs.algorithm = words::kRngAlgorithms.words[algorithm];
  return c.EmitWhole(op, Opcode::kRngBitGenerator, InternAttributes(c.context(), attrs));
}

constexpr OpRow kRows[] = {
    {NameOf(Opcode::kCustomCall), ReadCustomCall},
    {"sdy.sharding_constraint", ReadConstraint},
    {NameOf(Opcode::kRngBitGenerator), ReadRngBits},
};

}  // namespace

absl::Span<const OpRow> CallRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
