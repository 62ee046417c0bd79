// SPDX-License-Identifier: Apache-2.0
// In MLIR's generic form, `"stablehlo.op"(%a) {attributes} : (types) -> types`,
// which every version of the dialect reads.
#include "partitioner/api/stablehlo.h"

#include <numeric>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "partitioner/api/stablehlo_names.h"
#include "partitioner/ir/output_aliasing.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int kDeepestRegion = 8;

std::string Array(Ints values) {
  return values.empty() ? "array<i64>"
                        : absl::StrCat("array<i64: ", absl::StrJoin(values, ", "), ">");
}
std::string List(Ints values) { return absl::StrCat("[", absl::StrJoin(values, ", "), "]"); }
// MLIR's strings escape by two hex digits.
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

// Rows of equal length as dense elements.
std::string Dense(const std::vector<std::vector<int64_t>>& rows) {
  const size_t columns = rows.empty() ? 0 : rows[0].size();
  std::vector<std::string> parts;
  for (const auto& row : rows) parts.push_back(List(row));
  const std::string type = absl::StrCat("tensor<", rows.size(), "x", columns, "xi64>");
  if (rows.empty() || columns == 0) return absl::StrCat("dense<> : ", type);
  return absl::StrCat("dense<[", absl::StrJoin(parts, ", "), "]> : ", type);
}

class Writer {
 public:
  explicit Writer(const Module& module) : m_(module) {}

  absl::StatusOr<std::string> Run() {
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

 private:
  static std::string Identifier(absl::string_view name) {
    return name.empty() ? "\"local\"" : MlirString(name);
  }
  absl::Status Cannot(InstrId id, std::string what) const {
    const Instruction& i = m_.instr(id);
    return ToStatus({.code = "E149",
                     .message = absl::StrCat("a local computation has ", what,
                                             ", which is not written as StableHLO"),
                     .where = absl::StrCat("%", i.name.empty() ? OpcodeText(i.opcode) : i.name),
                     .fix = "Build it from elementwise ops, slices, dots, reductions, custom "
                            "calls and collectives"},
                    absl::StatusCode::kUnimplemented);
  }

  absl::StatusOr<std::string> TypeOf(InstrId id, const Shape* shape) const {
    if (shape->IsToken()) return std::string("!stablehlo.token");
    const char* element = shape->IsArray() ? StableHloTypeName(shape->element_type()) : nullptr;
    if (element == nullptr || shape->IsDynamic()) {
      return Cannot(id, absl::StrCat("a value ", shape->ToString(false)));
    }
    std::string out = "tensor<";
    for (int64_t d : shape->dims()) absl::StrAppend(&out, d, "x");
    return absl::StrCat(out, element, ">");
  }
  absl::StatusOr<std::string> TypesOf(InstrId id) const {
    std::vector<std::string> out;
    const Shape* shape = m_.instr(id).shape;
    for (int k = 0; k < shape->num_leaves(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(out.emplace_back(), TypeOf(id, shape->leaf(k)));
    }
    return absl::StrJoin(out, ", ");
  }

  // `"op"(operands) {attributes} regions`; its results become the instruction's.
  absl::Status Emit(InstrId id, absl::string_view op, absl::string_view attributes = "",
                    absl::string_view region = "") {
    std::vector<std::string> operands, types;
    for (InstrId o : m_.operands(id)) {
      operands.insert(operands.end(), values_[o].begin(), values_[o].end());
      SHARDCALL_ASSIGN_OR_RETURN(types.emplace_back(), TypesOf(o));
    }
    SHARDCALL_ASSIGN_OR_RETURN(const std::string results, TypesOf(id));
    const int n = m_.instr(id).shape->num_leaves();
    const std::string name = absl::StrCat("%v", id.value);
    if (n > 0) absl::StrAppend(&out_, indent_, name, n > 1 ? absl::StrCat(":", n) : "", " = ");
    absl::StrAppend(&out_, n > 0 ? "" : indent_, "\"", op, "\"(", absl::StrJoin(operands, ", "),
                    ")", region, attributes.empty() ? "" : absl::StrCat(" {", attributes, "}"),
                    " : (", absl::StrJoin(types, ", "), ") -> ",
                    n == 1 ? results : absl::StrCat("(", results, ")"), "\n");
    std::vector<std::string>& leaves = values_[id];
    for (int k = 0; k < n; ++k) leaves.push_back(n == 1 ? name : absl::StrCat(name, "#", k));
    return absl::OkStatus();
  }

  absl::Status WriteBody(const Computation& computation, const std::string& indent, int depth) {
    const std::string before = std::exchange(indent_, indent);
    for (InstrId id : computation.instructions) {
      if (m_.instr(id).opcode == Opcode::kParameter) continue;
      SHARDCALL_RETURN_IF_ERROR(Write(id, depth));
    }
    indent_ = before;
    return absl::OkStatus();
  }

  // ` ({ ^bb0(..): .. "stablehlo.return" })`
  absl::StatusOr<std::string> Region(InstrId user, CompId comp, int depth) {
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
    // A computation may be called more than once, and names are of one function.
    for (InstrId i : c.instructions) {
      if (m_.instr(i).opcode != Opcode::kParameter) values_.erase(i);
    }
    SHARDCALL_RETURN_IF_ERROR(WriteBody(c, indent_ + "  ", depth + 1));
    SHARDCALL_ASSIGN_OR_RETURN(const std::string results, TypesOf(c.root));
    std::string region =
        absl::StrCat(" ({\n", indent_, "^bb0(", absl::StrJoin(arguments, ", "), "):\n", out_,
                     indent_, "  \"stablehlo.return\"(", absl::StrJoin(values_[c.root], ", "),
                     ") : (", results, ") -> ()\n", indent_, "})");
    out_ = before;
    return region;
  }

  absl::Status Write(InstrId id, int depth);
  absl::Status WriteConstant(InstrId id);
  absl::Status WriteDot(InstrId id);
  absl::Status WriteCustomCall(InstrId id);
  absl::Status WriteCollective(InstrId id, int depth);
  absl::StatusOr<std::string> Groups(InstrId id, const CollectiveAttrs& attrs) const;

  const Module& m_;
  std::string out_, indent_;
  absl::flat_hash_map<InstrId, std::vector<std::string>> values_;  // flat leaves
};

absl::Status Writer::WriteConstant(InstrId id) {
  const Instruction& i = m_.instr(id);
  const Literal* literal = i.as<ConstantAttrs>().literal;
  const int bits = i.shape->IsArray() ? ElementTypeBits(i.shape->element_type()) : 0;
  if (bits < 8 || literal->elided) return Cannot(id, "a constant of that type");
  SHARDCALL_ASSIGN_OR_RETURN(std::string type, TypesOf(id));
  const bool pred = i.shape->element_type() == ElementType::kPred;
  if (pred) type = absl::StrReplaceAll(type, {{"i1", "ui8"}});  // bits are packed, bytes are not
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

absl::Status Writer::WriteDot(InstrId id) {
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

absl::Status Writer::WriteCustomCall(InstrId id) {
  const Instruction& i = m_.instr(id);
  const auto& a = i.as<CustomCallAttrs>();
  if (!a.called_computations.empty() || a.literal != nullptr || a.has_window) {
    return Cannot(id, "a custom call with computations, a literal or a window");
  }
  const auto layout = [](const Shape* s) {
    std::vector<int64_t> order(s->minor_to_major().begin(), s->minor_to_major().end());
    if (static_cast<int>(order.size()) != s->rank()) {
      order.resize(s->rank());
      for (int d = 0; d < s->rank(); ++d) order[d] = s->rank() - 1 - d;
    }
    const std::string type = absl::StrCat(" : tensor<", order.size(), "xindex>");
    return order.empty() ? absl::StrCat("dense<>", type)
                         : absl::StrCat("dense<", List(order), ">", type);
  };
  std::vector<std::string> operands, results, aliases;
  for (size_t k = 0; k < m_.operands(id).size(); ++k) {
    const Shape* s = a.operand_layouts.empty() ? m_.instr(m_.operand(id, static_cast<int>(k))).shape
                                               : a.operand_layouts[k];
    for (int l = 0; l < s->num_leaves(); ++l) operands.push_back(layout(s->leaf(l)));
  }
  for (int l = 0; l < i.shape->num_leaves(); ++l) results.push_back(layout(i.shape->leaf(l)));
  std::vector<OutputAlias> parsed;
  if (!ParseOutputAliasing(a.output_to_operand_aliasing, &parsed)) {
    return Cannot(id, "aliases that do not parse");
  }
  for (const OutputAlias& alias : parsed) {
    aliases.push_back(absl::StrCat(
        "#stablehlo.output_operand_alias<output_tuple_indices = ", List(alias.output),
        ", operand_index = ", alias.operand, ", operand_tuple_indices = ", List(alias.inner), ">"));
  }
  const bool typed = a.api_version == 4;
  const std::string config = typed
                                 ? (i.backend_config.empty() ? "{}" : std::string(i.backend_config))
                                 : MlirString(i.backend_config);
  return Emit(id, "stablehlo.custom_call",
              absl::StrCat("call_target_name = ", MlirString(a.target),
                           ", has_side_effect = ", a.has_side_effect ? "true" : "false",
                           ", backend_config = ", config, ", api_version = ", a.api_version,
                           " : i32, operand_layouts = [", absl::StrJoin(operands, ", "),
                           "], result_layouts = [", absl::StrJoin(results, ", "), "]",
                           aliases.empty() ? ""
                                           : absl::StrCat(", output_operand_aliases = [",
                                                          absl::StrJoin(aliases, ", "), "]")));
}

absl::StatusOr<std::string> Writer::Groups(InstrId id, const CollectiveAttrs& attrs) const {
  const ReplicaGroups& g = attrs.groups;
  std::vector<std::vector<int64_t>> rows;
  switch (g.form) {
    case ReplicaGroups::Form::kAll:
      rows.emplace_back(m_.header.num_partitions);
      std::iota(rows[0].begin(), rows[0].end(), 0);
      break;
    case ReplicaGroups::Form::kLists:
      for (Ints list : g.lists) rows.emplace_back(list.begin(), list.end());
      for (const auto& row : rows) {
        if (row.size() != rows[0].size()) return Cannot(id, "groups of several sizes");
      }
      break;
    case ReplicaGroups::Form::kIota: {
      const int rank = static_cast<int>(g.reshape.size());
      std::vector<int64_t> stride(rank, 1), at(rank, 0), perm(g.perm.begin(), g.perm.end());
      if (perm.empty()) {
        perm.resize(rank);
        std::iota(perm.begin(), perm.end(), 0);
      }
      for (int d = rank - 2; d >= 0; --d) stride[d] = stride[d + 1] * g.reshape[d + 1];
      for (int64_t r = 0; r < g.num_groups; ++r) {
        rows.emplace_back();
        for (int64_t k = 0; k < g.group_size; ++k) {
          int64_t device = 0;
          for (int d = 0; d < rank; ++d) device += at[d] * stride[perm[d]];
          rows.back().push_back(device);
          for (int d = rank - 1; d >= 0 && ++at[d] == g.reshape[perm[d]]; --d) at[d] = 0;
        }
      }
      break;
    }
    case ReplicaGroups::Form::kMesh:
      return Cannot(id, "groups that name mesh axes");
  }
  return absl::StrCat("replica_groups = ", Dense(rows));
}

absl::Status Writer::WriteCollective(InstrId id, int depth) {
  const Instruction& i = m_.instr(id);
  const auto& a = i.as<CollectiveAttrs>();
  SHARDCALL_ASSIGN_OR_RETURN(std::string attributes, Groups(id, a));
  // Channel type 1: from device to device.
  absl::StrAppend(&attributes, ", channel_handle = #stablehlo.channel_handle<handle = ",
                  std::max<int64_t>(a.channel_id, 1), ", type = 1>");
  if (i.opcode != Opcode::kAllToAll) {
    if (!a.use_global_device_ids) return Cannot(id, "a collective over replicas");
    absl::StrAppend(&attributes, ", use_global_device_ids");
  }
  std::string region;
  if (a.to_apply.valid()) {
    SHARDCALL_ASSIGN_OR_RETURN(region, Region(id, a.to_apply, depth));
  }
  const bool one = m_.operands(id).size() == 1 && i.shape->IsArray();
  if (i.opcode == Opcode::kAllReduce) return Emit(id, "stablehlo.all_reduce", attributes, region);
  if (!one) return Cannot(id, "a collective of several arrays");
  switch (i.opcode) {
    case Opcode::kAllGather:
      absl::StrAppend(&attributes, ", all_gather_dim = ", a.dimension, " : i64");
      return Emit(id, "stablehlo.all_gather", attributes);
    case Opcode::kReduceScatter:
      absl::StrAppend(&attributes, ", scatter_dimension = ", a.dimension, " : i64");
      return Emit(id, "stablehlo.reduce_scatter", attributes, region);
    case Opcode::kAllToAll: {
      const int64_t n = a.groups.form == ReplicaGroups::Form::kIota ? a.groups.group_size
                        : a.groups.form == ReplicaGroups::Form::kAll
                            ? m_.header.num_partitions
                            : static_cast<int64_t>(a.groups.lists[0].size());
      absl::StrAppend(&attributes, ", split_dimension = ", a.dimension,
                      " : i64, concat_dimension = ", a.dimension, " : i64, split_count = ", n,
                      " : i64");
      return Emit(id, "stablehlo.all_to_all", attributes);
    }
    default:
      return Cannot(id, absl::StrCat("an op ", OpcodeText(i.opcode)));
  }
}

absl::Status Writer::Write(InstrId id, int depth) {
  const Instruction& i = m_.instr(id);
  const auto operands = m_.operands(id);
  if (m_.rare(i) != nullptr && !m_.rare(i)->control_predecessors.empty()) {
    return Cannot(id, "control edges");
  }
  switch (i.opcode) {
    case Opcode::kTuple: {
      std::vector<std::string> leaves;
      for (InstrId o : operands) leaves.insert(leaves.end(), values_[o].begin(), values_[o].end());
      values_[id] = std::move(leaves);
      return absl::OkStatus();
    }
    case Opcode::kGetTupleElement: {
      const Shape* tuple = m_.instr(operands[0]).shape;
      const int64_t index = i.as<TupleIndexAttrs>().index;
      const int first = FirstLeafAt(tuple, {index});
      const std::vector<std::string>& all = values_[operands[0]];
      std::vector<std::string> leaves(all.begin() + first,
                                      all.begin() + first + i.shape->num_leaves());
      values_[id] = std::move(leaves);
      return absl::OkStatus();
    }
    case Opcode::kCopy: {
      std::vector<std::string> same = values_[operands[0]];
      values_[id] = std::move(same);
      return absl::OkStatus();
    }
    case Opcode::kConstant:
      return WriteConstant(id);
    case Opcode::kIota:
      return Emit(id, "stablehlo.iota",
                  absl::StrCat("iota_dimension = ", i.as<IotaAttrs>().dimension, " : i64"));
    case Opcode::kBroadcast:
      return Emit(
          id, "stablehlo.broadcast_in_dim",
          absl::StrCat("broadcast_dimensions = ", Array(i.as<DimensionsAttrs>().dimensions)));
    case Opcode::kTranspose:
      return Emit(id, "stablehlo.transpose",
                  absl::StrCat("permutation = ", Array(i.as<DimensionsAttrs>().dimensions)));
    case Opcode::kReverse:
      return Emit(id, "stablehlo.reverse",
                  absl::StrCat("dimensions = ", Array(i.as<DimensionsAttrs>().dimensions)));
    case Opcode::kConcatenate:
      return Emit(id, "stablehlo.concatenate",
                  absl::StrCat("dimension = ", i.as<DimensionsAttrs>().dimensions[0], " : i64"));
    case Opcode::kSlice: {
      const auto& a = i.as<SliceAttrs>();
      return Emit(id, "stablehlo.slice",
                  absl::StrCat("start_indices = ", Array(a.starts), ", limit_indices = ",
                               Array(a.limits), ", strides = ", Array(a.strides)));
    }
    case Opcode::kDynamicSlice:
      return Emit(id, "stablehlo.dynamic_slice",
                  absl::StrCat("slice_sizes = ", Array(i.as<DynamicSliceAttrs>().sizes)));
    case Opcode::kPad: {
      const auto& a = i.as<PadAttrs>();
      return Emit(id, "stablehlo.pad",
                  absl::StrCat("edge_padding_low = ", Array(a.low), ", edge_padding_high = ",
                               Array(a.high), ", interior_padding = ", Array(a.interior)));
    }
    case Opcode::kCompare: {
      static constexpr const char* kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
      static constexpr const char* kTypes[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
      const auto& a = i.as<CompareAttrs>();
      return Emit(id, "stablehlo.compare",
                  absl::StrCat("comparison_direction = #stablehlo<comparison_direction ",
                               kDirections[static_cast<int>(a.direction)],
                               ">, compare_type = #stablehlo<comparison_type ",
                               kTypes[static_cast<int>(a.type)], ">"));
    }
    case Opcode::kReduce: {
      const auto& a = i.as<ReduceAttrs>();
      SHARDCALL_ASSIGN_OR_RETURN(const std::string region, Region(id, a.to_apply, depth));
      return Emit(id, "stablehlo.reduce", absl::StrCat("dimensions = ", Array(a.dimensions)),
                  region);
    }
    case Opcode::kReducePrecision: {
      const auto& a = i.as<ReducePrecisionAttrs>();
      return Emit(id, "stablehlo.reduce_precision",
                  absl::StrCat("exponent_bits = ", a.exponent_bits,
                               " : i32, mantissa_bits = ", a.mantissa_bits, " : i32"));
    }
    case Opcode::kDot:
      return WriteDot(id);
    case Opcode::kCustomCall:
      return WriteCustomCall(id);
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
      return WriteCollective(id, depth);
    case Opcode::kCollectivePermute: {
      const auto& a = i.as<PermuteAttrs>();
      if (operands.size() != 1) return Cannot(id, "a collective-permute of parts");
      std::vector<std::vector<int64_t>> pairs;
      for (size_t k = 0; k < a.sources.size(); ++k) pairs.push_back({a.sources[k], a.targets[k]});
      std::string text = Dense(pairs);
      if (pairs.empty()) text = "dense<> : tensor<0x2xi64>";
      return Emit(id, "stablehlo.collective_permute",
                  absl::StrCat("source_target_pairs = ", text,
                               ", channel_handle = #stablehlo.channel_handle<handle = ",
                               std::max<int64_t>(a.channel_id, 1), ", type = 1>"));
    }
    default:
      break;
  }
  const std::string op = StableHloPlainOp(i.opcode);
  if (op.empty()) return Cannot(id, absl::StrCat("an op ", OpcodeText(i.opcode)));
  return Emit(id, op);
}

}  // namespace

absl::StatusOr<std::string> StableHloText(const Module& module) { return Writer(module).Run(); }

}  // namespace shardcall
