// SPDX-License-Identifier: Apache-2.0
// GraphBuilder: appends instructions to one computation of a module, inferring
// their shapes. For code of the engine: what does not fit together is a bug and
// stops the program; TryAdd is for operands that come from outside.
//
// Results have descending layouts but for elementwise ops and their like, which
// keep their operand's (shape_inference.h). New instructions inherit the
// current metadata. Constants are value-numbered always; other instructions
// only while value numbering is on, against those that this builder made while
// it was on.
//
//   GraphBuilder b(&module, computation, &monoids);
//   InstrId sum = b.Reduce(x, b.Zero(type), {1}, Opcode::kAdd);
#ifndef SHARDCALL_PARTITIONER_IR_BUILDER_H_
#define SHARDCALL_PARTITIONER_IR_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "partitioner/ir/module.h"
#include "partitioner/ir/monoid.h"
#include "sharding/status.h"

namespace shardcall {

class GraphBuilder {
 public:
  using Ids = absl::Span<const InstrId>;
  using Shapes = absl::Span<const Shape* const>;

  // `monoids` belongs to the same module and outlives the builder.
  GraphBuilder(Module* module, CompId computation, MonoidTable* monoids)
      : module_(*module), context_(module->context()), comp_(computation), monoids_(*monoids) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  Module& module() const { return module_; }
  Context& context() const { return context_; }
  CompId computation() const { return comp_; }
  const Shape* shape(InstrId id) const { return module_.instr(id).shape; }
  ElementType type(InstrId id) const { return shape(id)->element_type(); }

  const Metadata* metadata() const { return metadata_; }
  void set_metadata(const Metadata* metadata) { metadata_ = metadata; }
  bool value_numbering() const { return value_numbering_; }
  void set_value_numbering(bool on) { value_numbering_ = on; }

  // Any op. `declared` is the written shape for ops that need one; where it is
  // given the instruction has it, layout and all.
  InstrId Add(Opcode op, Ids operands, const Attributes* attrs = nullptr,
              const Shape* declared = nullptr);
  absl::StatusOr<InstrId> TryAdd(Opcode op, Ids operands, const Attributes* attrs = nullptr,
                                 const Shape* declared = nullptr);
  // Without inference: the shape is the caller's responsibility.
  InstrId AddWithShape(Opcode op, const Shape* shape, Ids operands,
                       const Attributes* attrs = nullptr);
  void SetRoot(InstrId id) { module_.SetRoot(comp_, id); }

  InstrId Parameter(int64_t number, const Shape* shape);
  InstrId Unary(Opcode op, InstrId x);
  InstrId Binary(Opcode op, InstrId a, InstrId b);
  // With the comparison that is natural for the type.
  InstrId Compare(Direction direction, InstrId a, InstrId b);
  InstrId Select(InstrId predicate, InstrId on_true, InstrId on_false);
  InstrId Clamp(InstrId low, InstrId x, InstrId high);
  InstrId Convert(InstrId x, ElementType type);  // x itself if it has the type
  InstrId BitcastConvert(InstrId x, ElementType type);
  InstrId Copy(InstrId x);
  InstrId OptBarrier(InstrId x);

  // Result dimension dimensions[i] is operand dimension i.
  InstrId Broadcast(InstrId x, absl::Span<const int64_t> dims, absl::Span<const int64_t> dimensions);
  InstrId BroadcastScalar(InstrId scalar, const Shape* like);
  InstrId Reshape(InstrId x, absl::Span<const int64_t> dims);  // x itself if it has the dims
  InstrId Transpose(InstrId x, absl::Span<const int64_t> permutation);
  InstrId Reverse(InstrId x, absl::Span<const int64_t> dimensions);
  InstrId Slice(InstrId x, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
                absl::Span<const int64_t> strides = {});  // strides empty: 1
  InstrId Pad(InstrId x, InstrId value, absl::Span<const int64_t> low,
              absl::Span<const int64_t> high, absl::Span<const int64_t> interior = {});
  InstrId Concatenate(Ids operands, int64_t dimension);  // one operand: itself
  InstrId DynamicSlice(InstrId x, Ids starts, absl::Span<const int64_t> sizes);
  InstrId DynamicUpdateSlice(InstrId x, InstrId update, Ids starts);

  InstrId Iota(ElementType type, absl::Span<const int64_t> dims, int64_t dimension);
  InstrId Constant(const Literal* literal);
  InstrId ConstantInt(ElementType type, int64_t value);
  InstrId ConstantDouble(ElementType type, double value);
  InstrId ConstantBits(ElementType type, uint64_t bits);  // as in a host buffer; types up to 8 bytes
  InstrId Zero(ElementType type) { return ConstantInt(type, 0); }
  InstrId One(ElementType type) { return ConstantInt(type, 1); }
  // Requires that the monoid has an identity for the type.
  InstrId Identity(Opcode monoid, ElementType type, ZeroSign zero = ZeroSign::kPositive);

  InstrId Tuple(Ids operands);
  // An element of a Tuple instruction is that operand, without a new op.
  InstrId GetTupleElement(InstrId tuple, int64_t index);
  InstrId Reduce(InstrId x, InstrId init, absl::Span<const int64_t> dimensions, Opcode monoid);
  // `type` kInvalid: that of the operands.
  InstrId Dot(InstrId lhs, InstrId rhs, const DotAttrs& attrs,
              ElementType type = ElementType::kInvalid);
  InstrId Call(CompId callee, Ids operands);
  InstrId While(CompId condition, CompId body, InstrId init);
  InstrId CustomCall(const CustomCallAttrs& attrs, Ids operands, const Shape* shape);

  InstrId PartitionId();
  // Collectives over global device ids; the channel is given by the caller.
  InstrId AllReduce(InstrId x, const ReplicaGroups& groups, int64_t channel, Opcode monoid);
  InstrId AllGather(InstrId x, int64_t dimension, const ReplicaGroups& groups, int64_t channel);
  InstrId ReduceScatter(InstrId x, int64_t dimension, const ReplicaGroups& groups,
                        int64_t channel, Opcode monoid);
  // The array form: dimension `split` of size group * n is exchanged in n-slices.
  InstrId AllToAll(InstrId x, int64_t split, const ReplicaGroups& groups, int64_t channel);
  InstrId CollectivePermute(InstrId x, absl::Span<const int64_t> sources,
                            absl::Span<const int64_t> targets, int64_t channel);

 private:
  struct Slot {
    uint64_t hash = 0;
    InstrId id;
  };
  const Shape* Infer(Opcode op, Ids operands, const Attributes* attrs, const Shape* declared);
  InstrId Append(Opcode op, const Shape* shape, Ids operands, const Attributes* attrs,
                 bool number);
  void Grow();
  const Shape* Array(ElementType type, absl::Span<const int64_t> dims);
  template <typename T>
  const Attributes* Intern(const T& value);

  Module& module_;
  Context& context_;
  CompId comp_;
  MonoidTable& monoids_;
  const Metadata* metadata_ = nullptr;
  bool value_numbering_ = false;
  std::vector<Slot> slots_;  // open addressing; empty where id is not valid
  size_t used_ = 0;
  Diagnostic error_;         // kept, so that inference makes no strings when it succeeds
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILDER_H_
