// SPDX-License-Identifier: Apache-2.0
// GraphBuilder: CheckedBuilder for the engine's own code, where a misuse is a bug and stops the
// program. The functions are documented there, and are as many, one for each op.
//
//   GraphBuilder b(&module, computation, &monoids);
//   InstrId sum = b.Reduce(x, b.Zero(type), {1}, Opcode::kAdd);
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_BUILDER_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_BUILDER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class GraphBuilder {
 public:
  using Ids = absl::Span<const InstrId>;
  using Ints = absl::Span<const int64_t>;

  // `monoids` belongs to the same module and outlives the builder.
  GraphBuilder(Module* module, CompId computation, MonoidTable* monoids)
      : b_(module, computation, monoids) {}

  Module& module() const { return b_.module(); }
  Context& context() const { return b_.context(); }
  CompId computation() const { return b_.computation(); }
  const Shape* shape(InstrId id) const { return b_.shape(id); }
  ElementType type(InstrId id) const { return b_.type(id); }

  const Metadata* metadata() const { return b_.metadata(); }
  void set_metadata(const Metadata* metadata) { b_.set_metadata(metadata); }
  bool value_numbering() const { return b_.value_numbering(); }
  void set_value_numbering(bool on) { b_.set_value_numbering(on); }

  InstrId Add(Opcode op, Ids operands, const Attributes* attrs = nullptr,
              const Shape* declared = nullptr) {
    return Must(b_.Add(op, operands, attrs, declared));
  }
  // For operands that a user gives, which may not fit.
  absl::StatusOr<InstrId> TryAdd(Opcode op, Ids operands, const Attributes* attrs = nullptr,
                                 const Shape* declared = nullptr) {
    return b_.Add(op, operands, attrs, declared);
  }
  void SetRoot(InstrId id) { module().SetRoot(computation(), id); }

  InstrId Parameter(int64_t number, const Shape* s) { return Must(b_.Parameter(number, s)); }
  InstrId Unary(Opcode op, InstrId x) { return Add(op, {x}); }
  InstrId Binary(Opcode op, InstrId x, InstrId y) { return Add(op, {x, y}); }
  InstrId Compare(Direction d, InstrId x, InstrId y) { return Must(b_.Compare(d, x, y)); }
  InstrId Select(InstrId p, InstrId x, InstrId y) { return Add(Opcode::kSelect, {p, x, y}); }
  InstrId Clamp(InstrId low, InstrId x, InstrId high) {
    return Add(Opcode::kClamp, {low, x, high});
  }
  InstrId Convert(InstrId x, ElementType to) { return Must(b_.Convert(x, to)); }
  InstrId BitcastConvert(InstrId x, ElementType to) { return Must(b_.BitcastConvert(x, to)); }
  InstrId Copy(InstrId x) { return Add(Opcode::kCopy, {x}); }
  InstrId OptBarrier(InstrId x) { return Add(Opcode::kOptBarrier, {x}); }

  InstrId Broadcast(InstrId x, Ints dims, Ints dimensions) {
    return Must(b_.Broadcast(x, dims, dimensions));
  }
  InstrId BroadcastScalar(InstrId x, const Shape* like) {
    return Must(b_.BroadcastScalar(x, like));
  }
  InstrId Reshape(InstrId x, Ints dims) { return Must(b_.Reshape(x, dims)); }
  InstrId Transpose(InstrId x, Ints permutation) { return Must(b_.Transpose(x, permutation)); }
  InstrId Reverse(InstrId x, Ints dimensions) { return Must(b_.Reverse(x, dimensions)); }
  InstrId Slice(InstrId x, Ints starts, Ints limits, Ints strides = {}) {
    return Must(b_.Slice(x, starts, limits, strides));
  }
  InstrId Pad(InstrId x, InstrId value, Ints low, Ints high, Ints interior = {}) {
    return Must(b_.Pad(x, value, low, high, interior));
  }
  InstrId Concatenate(Ids operands, int64_t dimension) {
    return Must(b_.Concatenate(operands, dimension));
  }
  InstrId DynamicSlice(InstrId x, Ids starts, Ints sizes) {
    return Must(b_.DynamicSlice(x, starts, sizes));
  }
  InstrId DynamicUpdateSlice(InstrId x, InstrId update, Ids starts) {
    return Must(b_.DynamicUpdateSlice(x, update, starts));
  }

  InstrId Iota(ElementType type, Ints dims, int64_t dimension) {
    return Must(b_.Iota(type, dims, dimension));
  }
  InstrId Constant(const Literal* literal) { return Must(b_.Constant(literal)); }
  InstrId ConstantInt(ElementType type, int64_t v) { return Must(b_.ConstantInt(type, v)); }
  InstrId ConstantDouble(ElementType type, double v) { return Must(b_.ConstantDouble(type, v)); }
  InstrId ConstantBits(ElementType type, uint64_t v) { return Must(b_.ConstantBits(type, v)); }
  InstrId Zero(ElementType type) { return ConstantInt(type, 0); }
  InstrId One(ElementType type) { return ConstantInt(type, 1); }
  InstrId Identity(Opcode monoid, ElementType type, ZeroSign zero = ZeroSign::kPositive) {
    return Must(b_.Identity(monoid, type, zero));
  }

  InstrId Tuple(Ids operands) { return Add(Opcode::kTuple, operands); }
  InstrId GetTupleElement(InstrId tuple, int64_t index) {
    return Must(b_.GetTupleElement(tuple, index));
  }
  InstrId Reduce(InstrId x, InstrId init, Ints dimensions, Opcode monoid) {
    return Must(b_.Reduce(x, init, dimensions, monoid));
  }
  InstrId Dot(InstrId lhs, InstrId rhs, const DotAttrs& attrs,
              ElementType type = ElementType::kInvalid) {
    return Must(b_.Dot(lhs, rhs, attrs, type));
  }
  InstrId Call(CompId callee, Ids operands) { return Must(b_.Call(callee, operands)); }
  InstrId While(CompId condition, CompId body, InstrId init) {
    return Must(b_.While(condition, body, init));
  }
  InstrId CustomCall(const CustomCallAttrs& attrs, Ids operands, const Shape* shape) {
    return Must(b_.CustomCall(attrs, operands, shape));
  }

  InstrId PartitionId() { return Add(Opcode::kPartitionId, {}); }
  InstrId AllReduce(InstrId x, const ReplicaGroups& groups, int64_t channel, Opcode monoid) {
    return Must(b_.AllReduce(x, groups, channel, monoid));
  }
  InstrId AllGather(InstrId x, int64_t dimension, const ReplicaGroups& groups, int64_t channel) {
    return Must(b_.AllGather(x, dimension, groups, channel));
  }
  InstrId ReduceScatter(InstrId x, int64_t dimension, const ReplicaGroups& groups, int64_t channel,
                        Opcode monoid) {
    return Must(b_.ReduceScatter(x, dimension, groups, channel, monoid));
  }
  InstrId AllToAll(InstrId x, int64_t split, const ReplicaGroups& groups, int64_t channel) {
    return Must(b_.AllToAll(x, split, groups, channel));
  }
  InstrId CollectivePermute(InstrId x, Ints sources, Ints targets, int64_t channel) {
    return Must(b_.CollectivePermute(x, sources, targets, channel));
  }

 private:
  static InstrId Must(const absl::StatusOr<InstrId>& id) {
    if (!id.ok()) Stop(id.status());
    return *id;
  }
  [[noreturn]] static void Stop(const absl::Status& status);

  CheckedBuilder b_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_BUILDER_H_
