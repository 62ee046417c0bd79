// SPDX-License-Identifier: Apache-2.0
// Custom calls, annotations of shardings, random bits.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/stablehlo/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::stablehlo {
namespace {

using Kind = Attribute::Kind;

constexpr int kMaxNesting = 32;

// "i64", "ui8", "f32": MLIR's names.
std::string MlirName(ElementType type) {
  if (type == ElementType::kPred) return "i1";
  const std::string name(ElementTypeName(type));
  if (name[0] == 's') return "i" + name.substr(1);
  return name[0] == 'u' ? "ui" + name.substr(1) : name;
}

std::string FloatText(ElementType type, int64_t bits) {
  if (type == ElementType::kF32) {
    const float v = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(v)) return absl::StrFormat("%.9e", v);
    return absl::StrFormat("0x%08X", static_cast<uint32_t>(bits));
  }
  const double v = std::bit_cast<double>(bits);
  if (std::isfinite(v)) return absl::StrFormat("%.17e", v);
  return absl::StrFormat("0x%016X", static_cast<uint64_t>(bits));
}

// The elements of an array of integers, f32 or f64, as MLIR prints them.
bool Elements(const Attribute& a, ElementType type, std::vector<std::string>* out) {
  if (type == ElementType::kInvalid || IsComplex(type)) return false;
  const size_t bytes = static_cast<size_t>(ElementTypeBytes(type));
  if (bytes == 0 || a.data.size() % bytes != 0 || (IsFloat(type) && bytes < 4)) return false;
  for (size_t at = 0; at < a.data.size(); at += bytes) {
    int64_t bits = 0;
    std::memcpy(&bits, a.data.data() + at, bytes);
    const int shift = 64 - 8 * static_cast<int>(bytes);
    if (type == ElementType::kPred) {
      out->push_back(bits != 0 ? "true" : "false");
    } else if (IsFloat(type)) {
      out->push_back(FloatText(type, bits));
    } else if (IsUnsignedInteger(type)) {
      out->push_back(absl::StrCat(static_cast<uint64_t>(bits)));
    } else {
      out->push_back(
          absl::StrCat(static_cast<int64_t>(static_cast<uint64_t>(bits) << shift) >> shift));
    }
  }
  return true;
}

// An attribute as MLIR prints it: numbers, texts, arrays and dictionaries of them.
absl::Status AppendAttribute(const Bytecode& code, const Attribute& a, int depth,
                             std::string* out) {
  if (depth > kMaxNesting) return ModuleReader::Cannot("attributes in too many levels");
  const auto cannot = [] {
    return ModuleReader::Cannot("an attribute of a custom call of an unknown form");
  };
  const ElementType type = code.type(a.type).element;
  switch (a.kind) {
    case Kind::kString: absl::StrAppend(out, "\"", absl::CHexEscape(a.text), "\""); break;
    case Kind::kUnit: *out += "unit"; break;
    case Kind::kInteger:
      if (type == ElementType::kPred) {
        *out += a.integer != 0 ? "true" : "false";
      } else {
        const bool narrow = IsUnsignedInteger(type) && ElementTypeBits(type) < 64;
        const int64_t value =
            narrow ? a.integer & ((int64_t{1} << ElementTypeBits(type)) - 1) : a.integer;
        absl::StrAppend(out, value, " : ", MlirName(type));
      }
      break;
    case Kind::kFloat:
      if (type != ElementType::kF32 && type != ElementType::kF64) return cannot();
      absl::StrAppend(out, FloatText(type, a.integer), " : ", MlirName(type));
      break;
    case Kind::kArray:
      *out += "[";
      for (size_t k = 0; k < a.items.size(); ++k) {
        if (k > 0) *out += ", ";
        SHARDCALL_RETURN_IF_ERROR(
            AppendAttribute(code, code.attribute(a.items[k]), depth + 1, out));
      }
      *out += "]";
      break;
    case Kind::kDictionary:
      *out += "{";
      for (size_t k = 0; k + 1 < a.items.size(); k += 2) {
        absl::StrAppend(out, k > 0 ? ", " : "", code.attribute(a.items[k]).text);
        const Attribute& value = code.attribute(a.items[k + 1]);
        if (value.kind == Kind::kUnit) continue;
        *out += " = ";
        SHARDCALL_RETURN_IF_ERROR(AppendAttribute(code, value, depth + 1, out));
      }
      *out += "}";
      break;
    case Kind::kDenseArray: {
      std::vector<std::string> elements;
      if (!Elements(a, type, &elements)) return cannot();
      absl::StrAppend(out, "array<", MlirName(type), elements.empty() ? "" : ": ",
                      absl::StrJoin(elements, ", "), ">");
      break;
    }
    case Kind::kDense: {  // of one dimension, or of equal elements
      std::vector<std::string> elements;
      const Type& tensor = code.type(a.type);
      if (!Elements(a, type, &elements) || elements.empty() ||
          (elements.size() > 1 && tensor.dims.size() != 1)) {
        return cannot();
      }
      const bool list = elements.size() > 1;
      absl::StrAppend(out, "dense<", list ? "[" : "", absl::StrJoin(elements, ", "),
                      list ? "]" : "", "> : tensor<");
      for (int64_t d : tensor.dims) absl::StrAppend(out, d, "x");
      absl::StrAppend(out, MlirName(type), ">");
      break;
    }
    default: return cannot();
  }
  return absl::OkStatus();
}

// The shape with the layout of a dense tensor of dimensions, minor to major.
absl::StatusOr<const Shape*> WithLayout(ComputationReader& c, const Shape* shape,
                                        const Attribute& layout) {
  if (!shape->IsArray()) return shape;
  const Type& type = c.code().type(layout.type);
  std::vector<int64_t> order;
  for (size_t at = 0; at + 8 <= layout.data.size(); at += 8) {
    int64_t d;
    std::memcpy(&d, layout.data.data() + at, 8);
    order.push_back(d);
  }
  if (layout.kind != Kind::kDense || type.dims.size() != 1 || type.dims[0] != shape->rank() ||
      static_cast<int>(order.size()) != shape->rank()) {
    return ModuleReader::Cannot("a custom call with a layout of an unknown form");
  }
  return c.context().MakeArray(shape->element_type(), shape->dims(), order);
}

absl::StatusOr<std::vector<const Shape*>> WithLayouts(ComputationReader& c,
                                                      std::vector<const Shape*> shapes,
                                                      const Attribute& layouts) {
  if (layouts.items.size() != shapes.size()) {
    return ModuleReader::Cannot("a custom call with another number of layouts than of arrays");
  }
  for (size_t k = 0; k < shapes.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(shapes[k],
                               WithLayout(c, shapes[k], c.code().attribute(layouts.items[k])));
  }
  return shapes;
}

// "{{0}: (1, {})}".
std::string AliasText(const Bytecode& code, const Attribute& aliases) {
  std::string out = "{";
  for (size_t k = 0; k < aliases.items.size(); ++k) {
    const Attribute& a = code.attribute(aliases.items[k]);
    if (a.kind != Kind::kOutputAlias) continue;
    absl::StrAppend(&out, k > 0 ? ", " : "", "{", absl::StrJoin(a.lists[0], ","), "}: (",
                    a.numbers[0], ", {", absl::StrJoin(a.lists[1], ","), "})");
  }
  return out + "}";
}

absl::Status ReadCustomCall(ComputationReader& c, const Operation& op) {
  const Attribute* target = c.Find(op, "call_target_name");
  const Attribute* computations = c.Find(op, "called_computations");
  if (target == nullptr || c.Find(op, "custom_call_schedule") != nullptr) {
    return ModuleReader::Cannot("a custom call with a schedule, or of an unknown form");
  }
  std::vector<const Shape*> results, inputs;
  for (size_t k = 0; k < op.results.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ShapeOf(op, k));
    results.push_back(shape);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const auto operands, c.Operands(op));
  for (InstrId o : operands) inputs.push_back(c.reader().module().instr(o).shape);
  CustomCallAttrs attrs;
  attrs.target = target->text;
  attrs.api_version = c.Integer(op, "api_version", 1);
  const Attribute* config = c.Find(op, "backend_config");
  // Where MLIR's form of the typed interface is not yet known, its dictionary stands beside an
  // empty string.
  constexpr int64_t kTypedFfi = 4;
  if (const Attribute* typed = c.Find(op, "mhlo.backend_config"); typed != nullptr) {
    config = typed;
    attrs.api_version = kTypedFfi;
  }
  attrs.has_side_effect = c.Bool(op, "has_side_effect");
  if (const Attribute* layouts = c.Find(op, "operand_layouts"); layouts != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(inputs, WithLayouts(c, std::move(inputs), *layouts));
    attrs.has_layout_constraints = true;
    attrs.operand_layouts = inputs;
  }
  if (const Attribute* layouts = c.Find(op, "result_layouts"); layouts != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(results, WithLayouts(c, std::move(results), *layouts));
  }
  std::string aliasing;
  if (const Attribute* a = c.Find(op, "output_operand_aliases");
      a != nullptr && !a->items.empty()) {
    aliasing = AliasText(c.code(), *a);
    attrs.output_to_operand_aliasing = aliasing;
  }
  std::vector<CompId> called;
  for (size_t k = 0; computations != nullptr && k < computations->items.size(); ++k) {
    const Attribute& symbol = c.code().attribute(computations->items[k]);
    if (symbol.kind != Kind::kSymbol) {
      return ModuleReader::Cannot("a custom call with a computation of an unknown form");
    }
    SHARDCALL_ASSIGN_OR_RETURN(const CompId comp,
                               c.reader().Function(c.code().attribute(symbol.items[0]).text));
    called.push_back(comp);
  }
  attrs.called_computations = called;
  const Shape* shape = results.size() == 1 ? results[0] : c.context().MakeTuple(results);
  const InstrId id =
      c.Emit(op, Opcode::kCustomCall, shape, operands, InternAttributes(c.context(), attrs));
  if (config != nullptr) {
    std::string text;
    if (config->kind == Kind::kString) {
      text = std::string(config->text);
    } else {
      SHARDCALL_RETURN_IF_ERROR(AppendAttribute(c.code(), *config, 0, &text));
    }
    c.reader().module().mutable_instr(id).backend_config = c.context().Intern(text);
  }
  return c.Finish(op, id);
}

absl::Status ReadConstraint(ComputationReader& c, const Operation& op) {
  const Attribute* sharding = c.Find(op, "sharding");
  if (sharding == nullptr) return ModuleReader::Cannot("a sharding_constraint without a sharding");
  SHARDCALL_ASSIGN_OR_RETURN(const std::string text, ModuleReader::PerValue(*sharding));
  CustomCallAttrs attrs;
  attrs.target = "Sharding";
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, c.ArrayOperand(op, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  const InstrId id =
      c.Emit(op, Opcode::kCustomCall, shape, {x}, InternAttributes(c.context(), attrs));
  c.reader().AddFrontend(id, "xla.sdy.sharding", text);
  return c.Finish(op, id);
}

absl::Status ReadRngBits(ComputationReader& c, const Operation& op) {
  constexpr absl::string_view kWords[] = {"rng_default", "rng_three_fry", "rng_philox"};
  const Attribute* algorithm = c.Find(op, "rng_algorithm");
  if (algorithm == nullptr || algorithm->integer < 0 || algorithm->integer > 2) {
    return ModuleReader::Cannot("an rng_bit_generator of an unknown form");
  }
  RngBitGeneratorAttrs attrs;
  attrs.algorithm = kWords[algorithm->integer];
  return c.EmitWhole(op, Opcode::kRngBitGenerator, InternAttributes(c.context(), attrs));
}

constexpr OpRow kRows[] = {
    {"stablehlo.custom_call", ReadCustomCall},
    {"sdy.sharding_constraint", ReadConstraint},
    {"stablehlo.rng_bit_generator", ReadRngBits},
};

}  // namespace

absl::Span<const OpRow> CallRows() { return kRows; }

}  // namespace shardcall::stablehlo
