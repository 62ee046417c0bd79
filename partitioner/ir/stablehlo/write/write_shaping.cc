// SPDX-License-Identifier: Apache-2.0
// Writes ops that make or move data.
#include "shardcall/partitioner/ir/stablehlo/write/module_writer.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

absl::Span<const int64_t> Dimensions(ModuleWriter& w, InstrId id) {
  return w.module().instr(id).as<DimensionsAttrs>().dimensions;
}

absl::Status WriteConstant(ModuleWriter& w, InstrId id) {
  const Instruction& i = w.module().instr(id);
  const Literal* literal = i.as<ConstantAttrs>().literal;
  if (literal->elided || !i.shape->IsArray() || !AttributePool::HasType(i.shape)) {
    return w.Cannot(id, "a constant of unknown values, or of a type that StableHLO lacks");
  }
  absl::string_view data(literal->data.data(), literal->data.size());
  // Equal elements stand there once.
  const size_t one = static_cast<size_t>(ElementTypeBytes(i.shape->element_type()));
  if (data.size() > one && data.substr(one) == data.substr(0, data.size() - one)) {
    data = data.substr(0, one);
  }
  return w.Emit(id, {{"value", w.pool().Dense(i.shape, data)}});
}

absl::Status WriteIota(ModuleWriter& w, InstrId id) {
  const int64_t dimension = w.module().instr(id).as<IotaAttrs>().dimension;
  return w.Emit(id, {{"iota_dimension", w.pool().I64(dimension)}});
}

absl::Status WriteBroadcast(ModuleWriter& w, InstrId id) {
  return w.Emit(id, {{"broadcast_dimensions", w.pool().I64s(Dimensions(w, id))}});
}

absl::Status WriteTranspose(ModuleWriter& w, InstrId id) {
  return w.Emit(id, {{"permutation", w.pool().I64s(Dimensions(w, id))}});
}

absl::Status WriteReverse(ModuleWriter& w, InstrId id) {
  return w.Emit(id, {{"dimensions", w.pool().I64s(Dimensions(w, id))}});
}

absl::Status WriteConcatenate(ModuleWriter& w, InstrId id) {
  return w.Emit(id, {{"dimension", w.pool().I64(Dimensions(w, id)[0])}});
}

absl::Status WriteGetDimensionSize(ModuleWriter& w, InstrId id) {
  return w.Emit(id, {{"dimension", w.pool().I64(Dimensions(w, id)[0])}});
}

absl::Status WriteSlice(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<SliceAttrs>();
  return w.Emit(id, {{"start_indices", w.pool().I64s(a.starts)},
                     {"limit_indices", w.pool().I64s(a.limits)},
                     {"strides", w.pool().I64s(a.strides)}});
}

absl::Status WriteDynamicSlice(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<DynamicSliceAttrs>();
  return w.Emit(id, {{"slice_sizes", w.pool().I64s(a.sizes)}});
}

absl::Status WritePad(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<PadAttrs>();
  return w.Emit(id, {{"edge_padding_low", w.pool().I64s(a.low)},
                     {"edge_padding_high", w.pool().I64s(a.high)},
                     {"interior_padding", w.pool().I64s(a.interior)}});
}

absl::Status WriteCompare(ModuleWriter& w, InstrId id) {
  // StableHLO's order of directions; the codes of types start at 1, since 0 is none.
  constexpr uint64_t kDirections[] = {0, 1, 2, 3, 4, 5}, kTypes[] = {1, 2, 3, 4};
  static_assert(static_cast<int>(Direction::kLt) == 5 &&
                static_cast<int>(CompareType::kUnsigned) == 3);
  const auto& a = w.module().instr(id).as<CompareAttrs>();
  return w.Emit(
      id,
      {{"comparison_direction",
        w.pool().Enum(codes::kComparisonDirection, kDirections[static_cast<int>(a.direction)])},
       {"compare_type", w.pool().Enum(codes::kComparisonType, kTypes[static_cast<int>(a.type)])}});
}

absl::Status WriteReducePrecision(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<ReducePrecisionAttrs>();
  return w.Emit(id, {{"exponent_bits", w.pool().I32(a.exponent_bits)},
                     {"mantissa_bits", w.pool().I32(a.mantissa_bits)}});
}

// A value that is copied is that value: StableHLO has no copies. XLA puts in those that layouts
// need.
absl::Status WriteCopy(ModuleWriter& w, InstrId id) {
  const Instruction& i = w.module().instr(id);
  if (i.sharding != nullptr || i.frontend != nullptr) return w.Cannot(id, "a copy with a sharding");
  w.SetValues(id, ModuleWriter::Values(w.values(w.module().operand(id, 0))));
  return absl::OkStatus();
}

constexpr WriteRow kRows[] = {
    {Opcode::kConstant, WriteConstant},
    {Opcode::kIota, WriteIota},
    {Opcode::kBroadcast, WriteBroadcast},
    {Opcode::kTranspose, WriteTranspose},
    {Opcode::kReverse, WriteReverse},
    {Opcode::kConcatenate, WriteConcatenate},
    {Opcode::kGetDimensionSize, WriteGetDimensionSize},
    {Opcode::kSlice, WriteSlice},
    {Opcode::kDynamicSlice, WriteDynamicSlice},
    {Opcode::kPad, WritePad},
    {Opcode::kCompare, WriteCompare},
    {Opcode::kReducePrecision, WriteReducePrecision},
    {Opcode::kCopy, WriteCopy},
};

}  // namespace

absl::Span<const WriteRow> WriteShapingRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
