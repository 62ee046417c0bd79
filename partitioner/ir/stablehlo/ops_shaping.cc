// SPDX-License-Identifier: Apache-2.0
// Operations that make or move data.
#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/stablehlo/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::stablehlo {
namespace {

using Kind = Attribute::Kind;

const Attributes* Dimensions(ComputationReader& c, absl::Span<const int64_t> dimensions) {
  DimensionsAttrs attrs;
  attrs.dimensions = dimensions;
  return InternAttributes(c.context(), attrs);
}

// Elements of one bit or less than a byte have a byte each in a Literal; MLIR packs bits, eight to
// a byte, or has a byte for each.
absl::StatusOr<std::string> ElementsOf(const Attribute& a, ElementType type, int64_t count) {
  const size_t bytes = static_cast<size_t>(ElementTypeBytes(type));
  const size_t packed = static_cast<size_t>((count + 7) / 8);
  if (a.data.size() == bytes * static_cast<size_t>(count)) {
    std::string out(a.data);
    if (type == ElementType::kPred) {
      for (char& b : out) b = b != 0;
    }
    return out;
  }
  if (type == ElementType::kPred && a.data.size() == packed) {
    std::string out;
    for (int64_t k = 0; k < count; ++k) {
      out.push_back(static_cast<char>((a.data[k / 8] >> (k % 8)) & 1));
    }
    return out;
  }
  return ModuleReader::Cannot("a constant whose elements are stored in an unknown form");
}

bool IsSplat(const Attribute& a, ElementType type, int64_t count) {
  if (count <= 1) return true;
  if (type == ElementType::kPred) {
    return a.data.size() == 1 && (a.data[0] == 0 || static_cast<uint8_t>(a.data[0]) == 0xff);
  }
  return a.data.size() == static_cast<size_t>(ElementTypeBytes(type));
}

absl::Status ReadConstant(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  const Attribute* value = c.Find(op, "value");
  if (value == nullptr || value->kind != Kind::kDense || !shape->IsArray()) {
    return ModuleReader::Cannot("a constant of an unknown form");
  }
  const ElementType type = shape->element_type();
  const int64_t count = shape->num_elements();
  const bool splat = count > 0 && IsSplat(*value, type, count);
  std::string data;
  if (count == 0) return c.Finish(op, c.Constant(op, shape, ""));
  if (splat && type == ElementType::kPred) {
    data.push_back(static_cast<char>(value->data[0] & 1));
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(data, ElementsOf(*value, type, splat ? 1 : count));
  }
  return c.Finish(op, c.Constant(op, shape, std::move(data)));
}

absl::Status ReadIota(ComputationReader& c, const Operation& op) {
  IotaAttrs attrs;
  attrs.dimension = c.Integer(op, "iota_dimension", 0);
  return c.EmitWhole(op, Opcode::kIota, InternAttributes(c.context(), attrs));
}

// HLO's broadcast does not extend dimensions of size 1: they are dropped first.
absl::Status ReadBroadcast(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(InstrId x, c.ArrayOperand(op, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, c.List(op, "broadcast_dimensions"));
  const Shape* from = c.reader().module().instr(x).shape;
  if (static_cast<int>(dims.size()) != from->rank()) {
    return ModuleReader::Cannot("a broadcast with other dimensions than its operand");
  }
  const Module& m = c.reader().module();
  if (m.instr(x).opcode == Opcode::kBroadcast && m.instr(m.operand(x, 0)).shape->rank() == 0) {
    // Equal elements stay equal.
    return c.Finish(op,
                    c.Emit(op, Opcode::kBroadcast, shape, {m.operand(x, 0)}, Dimensions(c, {})));
  }
  const Attributes* reshape = InternAttributes(c.context(), ReshapeAttrs());
  if (from->num_elements() == shape->num_elements() && std::is_sorted(dims.begin(), dims.end())) {
    if (from->dims() == shape->dims()) {
      c.reader().Set(op.results[0], x);
      return absl::OkStatus();
    }
    if (m.instr(x).opcode == Opcode::kConstant && from->rank() > 0) {
      const absl::Span<const char> data = m.instr(x).as<ConstantAttrs>().literal->data;
      return c.Finish(op, c.Constant(op, shape, std::string(data.begin(), data.end())));
    }
    return c.Finish(op, c.Emit(op, Opcode::kReshape, shape, {x}, reshape));
  }
  std::vector<int64_t> kept, sizes;
  for (int d = 0; d < from->rank(); ++d) {
    if (dims[d] < 0 || dims[d] >= shape->rank()) {
      return ModuleReader::Cannot("a broadcast to a dimension that its result lacks");
    }
    if (from->dim(d) != shape->dim(static_cast<int>(dims[d]))) continue;
    kept.push_back(dims[d]);
    sizes.push_back(from->dim(d));
  }
  if (static_cast<int>(kept.size()) < from->rank()) {
    const Shape* dropped =
        c.context().WithDefaultLayout(c.context().MakeArray(from->element_type(), sizes));
    x = c.Emit(op, Opcode::kReshape, dropped, {x}, reshape);
  }
  return c.Finish(op, c.Emit(op, Opcode::kBroadcast, shape, {x}, Dimensions(c, kept)));
}

absl::Status WithDimensions(ComputationReader& c, const Operation& op, Opcode opcode,
                            absl::string_view name) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, c.List(op, name));
  return c.EmitWhole(op, opcode, Dimensions(c, dims));
}

absl::Status ReadTranspose(ComputationReader& c, const Operation& op) {
  return WithDimensions(c, op, Opcode::kTranspose, "permutation");
}
absl::Status ReadReverse(ComputationReader& c, const Operation& op) {
  return WithDimensions(c, op, Opcode::kReverse, "dimensions");
}

absl::Status ReadConcatenate(ComputationReader& c, const Operation& op) {
  return c.EmitWhole(op, Opcode::kConcatenate, Dimensions(c, {c.Integer(op, "dimension", 0)}));
}

absl::Status ReadSlice(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, c.List(op, "start_indices"));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> limits, c.List(op, "limit_indices"));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, c.List(op, "strides"));
  SliceAttrs attrs;
  attrs.starts = starts;
  attrs.limits = limits;
  attrs.strides = strides;
  return c.EmitWhole(op, Opcode::kSlice, InternAttributes(c.context(), attrs));
}

absl::Status ReadDynamicSlice(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, c.List(op, "slice_sizes"));
  DynamicSliceAttrs attrs;
  attrs.sizes = sizes;
  return c.EmitWhole(op, Opcode::kDynamicSlice, InternAttributes(c.context(), attrs));
}

absl::Status ReadPad(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> low, c.List(op, "edge_padding_low"));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> high, c.List(op, "edge_padding_high"));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> interior, c.List(op, "interior_padding"));
  PadAttrs attrs;
  attrs.low = low;
  attrs.high = high;
  attrs.interior = interior;
  return c.EmitWhole(op, Opcode::kPad, InternAttributes(c.context(), attrs));
}

absl::Status ReadCompare(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, c.ArrayOperand(op, 0));
  const Attribute* direction = c.Find(op, "comparison_direction");
  const Attribute* type = c.Find(op, "compare_type");
  constexpr Direction kDirections[] = {Direction::kEq, Direction::kNe, Direction::kGe,
                                       Direction::kGt, Direction::kLe, Direction::kLt};
  // Code 0 stands for a type that is not written.
  constexpr CompareType kTypes[] = {CompareType::kFloat, CompareType::kFloat,
                                    CompareType::kTotalOrder, CompareType::kSigned,
                                    CompareType::kUnsigned};
  if (direction == nullptr || direction->integer < 0 || direction->integer > 5 ||
      (type != nullptr && (type->integer < 0 || type->integer > 4))) {
    return ModuleReader::Cannot("a comparison of an unknown form");
  }
  CompareAttrs attrs;
  attrs.direction = kDirections[direction->integer];
  attrs.type = type == nullptr || type->integer == 0
                   ? NaturalCompareType(c.reader().module().instr(x).shape->element_type())
                   : kTypes[type->integer];
  return c.EmitWhole(op, Opcode::kCompare, InternAttributes(c.context(), attrs));
}

absl::Status ReadReducePrecision(ComputationReader& c, const Operation& op) {
  ReducePrecisionAttrs attrs;
  attrs.exponent_bits = c.Integer(op, "exponent_bits", 0);
  attrs.mantissa_bits = c.Integer(op, "mantissa_bits", 0);
  return c.EmitWhole(op, Opcode::kReducePrecision, InternAttributes(c.context(), attrs));
}

absl::Status ReadSquare(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, c.ArrayOperand(op, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  return c.Finish(op, c.Emit(op, Opcode::kMultiply, shape, {x, x}));
}

absl::Status ReadErf(ComputationReader& c, const Operation& op) {
  return c.EmitWhole(op, Opcode::kErf, nullptr);
}

constexpr OpRow kRows[] = {
    {"stablehlo.constant", ReadConstant},
    {"stablehlo.iota", ReadIota},
    {"stablehlo.broadcast_in_dim", ReadBroadcast},
    {"stablehlo.transpose", ReadTranspose},
    {"stablehlo.reverse", ReadReverse},
    {"stablehlo.concatenate", ReadConcatenate},
    {"stablehlo.slice", ReadSlice},
    {"stablehlo.dynamic_slice", ReadDynamicSlice},
    {"stablehlo.pad", ReadPad},
    {"stablehlo.compare", ReadCompare},
    {"stablehlo.reduce_precision", ReadReducePrecision},
    {"chlo.square", ReadSquare},
    {"chlo.erf", ReadErf},
};

}  // namespace

absl::Span<const OpRow> ShapingRows() { return kRows; }

}  // namespace shardcall::stablehlo
