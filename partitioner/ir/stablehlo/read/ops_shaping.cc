// SPDX-License-Identifier: Apache-2.0
// Operations that make or move data.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/dense_elements.h"
#include "shardcall/partitioner/ir/stablehlo/op_names.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

const Attributes* Dimensions(ComputationReader& c, absl::Span<const int64_t> dimensions) {
  DimensionsAttrs attrs;
  attrs.dimensions = dimensions;
  return InternAttributes(c.context(), attrs);
}

absl::Status ReadConstant(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  const Attribute* value = c.Find(op, "value");
  if (value == nullptr) return ModuleReader::Cannot("a constant without a value");
  SHARDCALL_ASSIGN_OR_RETURN(DenseElements dense, ReadDense(c.code(), *value));
  if (dense.type != shape->element_type() || dense.dims.size() != shape->dims().size() ||
      !std::equal(dense.dims.begin(), dense.dims.end(), shape->dims().begin())) {
    return ModuleReader::Cannot("a constant of another type than its value");
  }
  const size_t one = static_cast<size_t>(ElementTypeBytes(dense.type));
  const bool equal = dense.data.size() > one &&
                     absl::string_view(dense.data).substr(one) ==
                         absl::string_view(dense.data).substr(0, dense.data.size() - one);
  if (equal) dense.data.resize(one);
  return c.Finish(op, c.Constant(op, shape, std::move(dense.data)));
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
    if (from->dims() == shape->dims() && !c.IsAnnotated(op)) {
      c.reader().SetInstr(op.results[0], x);
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

absl::Status ReadGetDimensionSize(ComputationReader& c, const Operation& op) {
  return c.EmitWhole(op, Opcode::kGetDimensionSize, Dimensions(c, {c.Integer(op, "dimension", 0)}));
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
  constexpr Direction kDirections[] = {Direction::kEq, Direction::kNe, Direction::kGe,
                                       Direction::kGt, Direction::kLe, Direction::kLt};
  // Code 0 stands for a type that is not written.
  constexpr CompareType kTypes[] = {CompareType::kFloat, CompareType::kFloat,
                                    CompareType::kTotalOrder, CompareType::kSigned,
                                    CompareType::kUnsigned};
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t direction,
                             c.Enumerator(op, "comparison_direction", 0, 5));
  int64_t type = 0;
  if (c.Find(op, "compare_type") != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(type, c.Enumerator(op, "compare_type", 0, 4));
  }
  CompareAttrs attrs;
  attrs.direction = kDirections[direction];
  attrs.type = type == 0 ? NaturalCompareType(c.reader().module().instr(x).shape->element_type())
                         : kTypes[type];
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

constexpr OpRow kRows[] = {
    {NameOf(Opcode::kConstant), ReadConstant},
    {NameOf(Opcode::kIota), ReadIota},
    {NameOf(Opcode::kBroadcast), ReadBroadcast},
    {NameOf(Opcode::kTranspose), ReadTranspose},
    {NameOf(Opcode::kReverse), ReadReverse},
    {NameOf(Opcode::kConcatenate), ReadConcatenate},
    {NameOf(Opcode::kGetDimensionSize), ReadGetDimensionSize},
    {NameOf(Opcode::kSlice), ReadSlice},
    {NameOf(Opcode::kDynamicSlice), ReadDynamicSlice},
    {NameOf(Opcode::kPad), ReadPad},
    {NameOf(Opcode::kCompare), ReadCompare},
    {NameOf(Opcode::kReducePrecision), ReadReducePrecision},
    {"chlo.square", ReadSquare},
};

}  // namespace

absl::Span<const OpRow> ShapingRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
