// SPDX-License-Identifier: Apache-2.0
// Writes StableHLO in MLIR's generic form, `"stablehlo.op"(%a) {attributes} : (types) -> types`,
// which every version of the dialect reads.
#include "shardcall/partitioner/bindings/xla/stablehlo.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/bindings/xla/stablehlo_names.h"
#include "shardcall/partitioner/bindings/xla/stablehlo_writer.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/partitioner/ir/output_aliasing.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace stablehlo {
namespace {

constexpr int kDeepestRegion = 8;

std::string Array(Ints values) {
  return values.empty() ? "array<i64>"
                        : absl::StrCat("array<i64: ", absl::StrJoin(values, ", "), ">");
}

std::string Identifier(absl::string_view name) {
  return name.empty() ? "\"local\"" : MlirString(name);
}

}  // namespace

std::string List(Ints values) { return absl::StrCat("[", absl::StrJoin(values, ", "), "]"); }

std::string MlirString(absl::string_view text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      out.push_back(static_cast<char>(c));
    } else {
      absl::StrAppend(&out, "\\", absl::Hex(c, absl::kZeroPad2));
    }
  }
  return out + "\"";
}

absl::StatusOr<std::string> Writer::Run() {
  const Computation& entry = m_.comp(m_.entry());
  std::vector<std::string> parameters;
  for (InstrId p : entry.parameters) {
    const Shape* shape = m_.instr(p).shape;
    std::vector<std::string>& leaves = values_[p];
    for (int k = 0; k < shape->num_leaves(); ++k) {
      leaves.push_back(absl::StrCat("%arg", parameters.size()));
      SHARDCALL_ASSIGN_OR_RETURN(const std::string type, TypeOf(p, shape->leaf(k)));
      parameters.push_back(absl::StrCat(leaves.back(), ": ", type));
    }
  }
  SHARDCALL_RETURN_IF_ERROR(WriteBody(entry, "    ", 0));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string results, TypesOf(entry.root));
  const std::vector<std::string>& root = values_[entry.root];
  return absl::StrCat("module @", Identifier(m_.header.name), " {\n  func.func @main(",
                      absl::StrJoin(parameters, ", "), ") -> (", results, ") {\n", out_,
                      "    \"func.return\"(", absl::StrJoin(root, ", "), ") : (", results,
                      ") -> ()\n  }\n}\n");
}

absl::Status Writer::Cannot(InstrId id, std::string what) const {
  const Instruction& i = m_.instr(id);
  return ToStatus({.code = "E149",
                   .message = absl::StrCat("a local computation has ", what,
                                           ", which is not written as StableHLO"),
                   .where = absl::StrCat("%", i.name.empty() ? OpcodeText(i.opcode) : i.name),
                   .fix = "Build it from elementwise ops, slices, dots, reductions, custom "
                          "calls and collectives"},
                  absl::StatusCode::kUnimplemented);
}

absl::StatusOr<std::string> Writer::TypeOf(InstrId id, const Shape* shape) const {
  if (shape->IsToken()) return std::string("!stablehlo.token");
  const char* element = shape->IsArray() ? StableHloTypeName(shape->element_type()) : nullptr;
  if (element == nullptr || shape->IsDynamic()) {
    return Cannot(id, absl::StrCat("a value ", shape->ToString(false)));
  }
  std::string out = "tensor<";
  for (int64_t d : shape->dims()) absl::StrAppend(&out, d, "x");
  return absl::StrCat(out, element, ">");
}

absl::StatusOr<std::string> Writer::TypesOf(InstrId id) const {
  std::vector<std::string> out;
  const Shape* shape = m_.instr(id).shape;
  for (int k = 0; k < shape->num_leaves(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(out.emplace_back(), TypeOf(id, shape->leaf(k)));
  }
  return absl::StrJoin(out, ", ");
}

absl::Status Writer::Emit(InstrId id, absl::string_view op, absl::string_view attributes,
                          absl::string_view region) {
  std::vector<std::string> operands, types;
  for (InstrId o : m_.operands(id)) {
    operands.insert(operands.end(), values_[o].begin(), values_[o].end());
    SHARDCALL_ASSIGN_OR_RETURN(types.emplace_back(), TypesOf(o));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string results, TypesOf(id));
  const int n = m_.instr(id).shape->num_leaves();
  const std::string name = absl::StrCat("%v", id.value);
  if (n > 0) absl::StrAppend(&out_, indent_, name, n > 1 ? absl::StrCat(":", n) : "", " = ");
  absl::StrAppend(&out_, n > 0 ? "" : indent_, "\"", op, "\"(", absl::StrJoin(operands, ", "), ")",
                  region, attributes.empty() ? "" : absl::StrCat(" {", attributes, "}"), " : (",
                  absl::StrJoin(types, ", "), ") -> ",
                  n == 1 ? results : absl::StrCat("(", results, ")"), "\n");
  std::vector<std::string>& leaves = values_[id];
  for (int k = 0; k < n; ++k) leaves.push_back(n == 1 ? name : absl::StrCat(name, "#", k));
  return absl::OkStatus();
}

absl::Status Writer::WriteBody(const Computation& computation, const std::string& indent,
                               int depth) {
  const std::string before = std::exchange(indent_, indent);
  for (InstrId id : computation.instructions) {
    if (m_.instr(id).opcode == Opcode::kParameter) continue;
    SHARDCALL_RETURN_IF_ERROR(Write(id, depth));
  }
  indent_ = before;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Writer::Region(InstrId user, CompId comp, int depth) {
  if (depth >= kDeepestRegion) return Cannot(user, "computations nested too deeply");
  const Computation& c = m_.comp(comp);
  const std::string before = std::exchange(out_, "");
  std::vector<std::string> arguments;
  for (size_t k = 0; k < c.parameters.size(); ++k) {
    const InstrId p = c.parameters[k];
    const std::string name = absl::StrCat("%r", user.value, "_", k);
    values_[p] = {name};
    SHARDCALL_ASSIGN_OR_RETURN(const std::string type, TypesOf(p));
    arguments.push_back(absl::StrCat(name, ": ", type));
  }
  // A computation may be called more than once, and its value names are local to one function.
  for (InstrId i : c.instructions) {
    if (m_.instr(i).opcode != Opcode::kParameter) values_.erase(i);
  }
  SHARDCALL_RETURN_IF_ERROR(WriteBody(c, indent_ + "  ", depth + 1));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string results, TypesOf(c.root));
  std::string region =
      absl::StrCat(" ({\n", indent_, "^bb0(", absl::StrJoin(arguments, ", "), "):\n", out_, indent_,
                   "  \"stablehlo.return\"(", absl::StrJoin(values_[c.root], ", "), ") : (",
                   results, ") -> ()\n", indent_, "})");
  out_ = before;
  return region;
}

absl::Status Writer::WriteConstant(InstrId id, int) {
  const Instruction& i = m_.instr(id);
  const Literal* literal = i.as<ConstantAttrs>().literal;
  const int bits = i.shape->IsArray() ? ElementTypeBits(i.shape->element_type()) : 0;
  if (bits < 8 || literal->elided) return Cannot(id, "a constant of that type");
  SHARDCALL_ASSIGN_OR_RETURN(std::string type, TypesOf(id));
  const bool pred = i.shape->element_type() == ElementType::kPred;
  if (pred) type = absl::StrReplaceAll(type, {{"i1", "ui8"}});  // i1 is packed to bits
  const std::string value =
      literal->data.empty()
          ? ""
          : absl::StrCat(
                "\"0x", absl::BytesToHexString({literal->data.data(), literal->data.size()}), "\"");
  const std::string name = absl::StrCat("%v", id.value), bytes = pred ? name + "b" : name;
  absl::StrAppend(&out_, indent_, bytes, " = \"stablehlo.constant\"() {value = dense<", value,
                  "> : ", type, "} : () -> ", type, "\n");
  if (pred) {
    SHARDCALL_ASSIGN_OR_RETURN(const std::string truth, TypesOf(id));
    absl::StrAppend(&out_, indent_, name, " = \"stablehlo.convert\"(", bytes, ") : (", type,
                    ") -> ", truth, "\n");
  }
  values_[id] = {name};
  return absl::OkStatus();
}

absl::Status Writer::WriteDot(InstrId id, int) {
  const auto& a = m_.instr(id).as<DotAttrs>();
  if (!a.algorithm.empty()) return Cannot(id, "a dot by an algorithm");
  std::string precision;
  if (!a.operand_precision.empty()) {
    const std::string words =
        absl::StrReplaceAll(a.operand_precision, {{"{", ""},
                                                  {"}", ""},
                                                  {"default", "#stablehlo<precision DEFAULT>"},
                                                  {"highest", "#stablehlo<precision HIGHEST>"},
                                                  {"high", "#stablehlo<precision HIGH>"},
                                                  {",", ", "}});
    precision = absl::StrCat(", precision_config = [", words, "]");
  }
  return Emit(
      id, "stablehlo.dot_general",
      absl::StrCat("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = ",
                   List(a.lhs_batch), ", rhs_batching_dimensions = ", List(a.rhs_batch),
                   ", lhs_contracting_dimensions = ", List(a.lhs_contracting),
                   ", rhs_contracting_dimensions = ", List(a.rhs_contracting), ">", precision));
}

absl::Status Writer::Write(InstrId id, int depth) {
  static constexpr Row kRows[] = {
      {Opcode::kTuple, &Writer::WriteTuple},
      {Opcode::kGetTupleElement, &Writer::WriteTupleElement},
      {Opcode::kCopy, &Writer::WriteCopy},
      {Opcode::kConstant, &Writer::WriteConstant},
      {Opcode::kIota, &Writer::WriteIota},
      {Opcode::kBroadcast, &Writer::WriteBroadcast},
      {Opcode::kTranspose, &Writer::WriteTranspose},
      {Opcode::kReverse, &Writer::WriteReverse},
      {Opcode::kConcatenate, &Writer::WriteConcatenate},
      {Opcode::kSlice, &Writer::WriteSlice},
      {Opcode::kDynamicSlice, &Writer::WriteDynamicSlice},
      {Opcode::kPad, &Writer::WritePad},
      {Opcode::kCompare, &Writer::WriteCompare},
      {Opcode::kReduce, &Writer::WriteReduce},
      {Opcode::kReducePrecision, &Writer::WriteReducePrecision},
      {Opcode::kDot, &Writer::WriteDot},
      {Opcode::kCustomCall, &Writer::WriteCustomCall},
      {Opcode::kAllReduce, &Writer::WriteCollective},
      {Opcode::kAllGather, &Writer::WriteCollective},
      {Opcode::kReduceScatter, &Writer::WriteCollective},
      {Opcode::kAllToAll, &Writer::WriteCollective},
      {Opcode::kCollectivePermute, &Writer::WritePermute},
  };
  const Instruction& i = m_.instr(id);
  if (m_.rare(i) != nullptr && !m_.rare(i)->control_predecessors.empty()) {
    return Cannot(id, "control edges");
  }
  if (const Row* row = RowByOpcode(kRows, i.opcode)) return (this->*row->write)(id, depth);
  const std::string op = StableHloPlainOp(i.opcode);
  if (op.empty()) return Cannot(id, absl::StrCat("an op ", OpcodeText(i.opcode)));
  return Emit(id, op);
}

absl::Status Writer::WriteTuple(InstrId id, int) {
  std::vector<std::string> leaves;
  for (InstrId o : m_.operands(id)) {
    leaves.insert(leaves.end(), values_[o].begin(), values_[o].end());
  }
  values_[id] = std::move(leaves);
  return absl::OkStatus();
}

absl::Status Writer::WriteTupleElement(InstrId id, int) {
  const Instruction& i = m_.instr(id);
  const InstrId tuple = m_.operand(id, 0);
  const auto first =
      values_[tuple].begin() + FirstLeafAt(m_.instr(tuple).shape, {i.as<TupleIndexAttrs>().index});
  std::vector<std::string> leaves(first, first + i.shape->num_leaves());
  values_[id] = std::move(leaves);
  return absl::OkStatus();
}

absl::Status Writer::WriteCopy(InstrId id, int) {
  std::vector<std::string> same = values_[m_.operand(id, 0)];
  values_[id] = std::move(same);
  return absl::OkStatus();
}

absl::Status Writer::WriteIota(InstrId id, int) {
  return Emit(id, "stablehlo.iota",
              absl::StrCat("iota_dimension = ", m_.instr(id).as<IotaAttrs>().dimension, " : i64"));
}

absl::Status Writer::WriteBroadcast(InstrId id, int) {
  return Emit(id, "stablehlo.broadcast_in_dim",
              absl::StrCat("broadcast_dimensions = ", Array(Dimensions(id))));
}

absl::Status Writer::WriteTranspose(InstrId id, int) {
  return Emit(id, "stablehlo.transpose", absl::StrCat("permutation = ", Array(Dimensions(id))));
}

absl::Status Writer::WriteReverse(InstrId id, int) {
  return Emit(id, "stablehlo.reverse", absl::StrCat("dimensions = ", Array(Dimensions(id))));
}

absl::Status Writer::WriteConcatenate(InstrId id, int) {
  return Emit(id, "stablehlo.concatenate",
              absl::StrCat("dimension = ", Dimensions(id)[0], " : i64"));
}

absl::Status Writer::WriteSlice(InstrId id, int) {
  const auto& a = m_.instr(id).as<SliceAttrs>();
  return Emit(id, "stablehlo.slice",
              absl::StrCat("start_indices = ", Array(a.starts), ", limit_indices = ",
                           Array(a.limits), ", strides = ", Array(a.strides)));
}

absl::Status Writer::WriteDynamicSlice(InstrId id, int) {
  return Emit(id, "stablehlo.dynamic_slice",
              absl::StrCat("slice_sizes = ", Array(m_.instr(id).as<DynamicSliceAttrs>().sizes)));
}

absl::Status Writer::WritePad(InstrId id, int) {
  const auto& a = m_.instr(id).as<PadAttrs>();
  return Emit(id, "stablehlo.pad",
              absl::StrCat("edge_padding_low = ", Array(a.low), ", edge_padding_high = ",
                           Array(a.high), ", interior_padding = ", Array(a.interior)));
}

absl::Status Writer::WriteCompare(InstrId id, int) {
  static constexpr const char* kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  static constexpr const char* kTypes[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  const auto& a = m_.instr(id).as<CompareAttrs>();
  return Emit(id, "stablehlo.compare",
              absl::StrCat("comparison_direction = #stablehlo<comparison_direction ",
                           kDirections[static_cast<int>(a.direction)],
                           ">, compare_type = #stablehlo<comparison_type ",
                           kTypes[static_cast<int>(a.type)], ">"));
}

absl::Status Writer::WriteReduce(InstrId id, int depth) {
  const auto& a = m_.instr(id).as<ReduceAttrs>();
  SHARDCALL_ASSIGN_OR_RETURN(const std::string region, Region(id, a.to_apply, depth));
  return Emit(id, "stablehlo.reduce", absl::StrCat("dimensions = ", Array(a.dimensions)), region);
}

absl::Status Writer::WriteReducePrecision(InstrId id, int) {
  const auto& a = m_.instr(id).as<ReducePrecisionAttrs>();
  return Emit(id, "stablehlo.reduce_precision",
              absl::StrCat("exponent_bits = ", a.exponent_bits,
                           " : i32, mantissa_bits = ", a.mantissa_bits, " : i32"));
}

}  // namespace stablehlo

absl::StatusOr<std::string> StableHloText(const Module& module) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(module));
  return stablehlo::Writer(module).Run();
}

}  // namespace shardcall
