// SPDX-License-Identifier: Apache-2.0
// CheckedBuilder: appends instructions to one computation of a module. Every function checks its
// arguments by the shape inference of the parser and the verifier. If they do not fit, it returns
// an error (E021 to E025, as in shape_inference.h) and leaves the computation unchanged. It is for
// callbacks and for programs that link the library. The engine uses GraphBuilder (builder.h),
// which has the same functions and treats a misuse as a bug. They are many because there is one for
// each op that a program is built from.
//
// Results have descending layouts, except that elementwise ops and similar ones keep the layout of
// their operand. New instructions inherit the current metadata. Constants are always
// value-numbered; other instructions only while value numbering is on, against those that this
// builder made while it was on.
//
//   CheckedBuilder b(&module, computation, &monoids);
//   SHARDCALL_ASSIGN_OR_RETURN(InstrId zero, b.ConstantInt(type, 0));
//   SHARDCALL_ASSIGN_OR_RETURN(InstrId sum, b.Reduce(x, zero, {1}, Opcode::kAdd));
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_CHECKED_BUILDER_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_CHECKED_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/monoid_table.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall SHARDCALL_PUBLIC {

// The dimension numbers of a dot, owned; DotAttrs only refers to its values.
struct DotDimensions {
  absl::InlinedVector<int64_t, 2> lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
};

class CheckedBuilder {
 public:
  using Id = absl::StatusOr<InstrId>;
  using Ids = absl::Span<const InstrId>;
  using Ints = absl::Span<const int64_t>;

  // `monoids` belongs to the same module and outlives the builder.
  CheckedBuilder(Module* module, CompId computation, MonoidTable* monoids)
      : module_(*module), context_(module->context()), comp_(computation), monoids_(*monoids) {}
  CheckedBuilder(const CheckedBuilder&) = delete;
  CheckedBuilder& operator=(const CheckedBuilder&) = delete;

  Module& module() const {
    structure_open_ = true;
    return module_;
  }
  Context& context() const { return context_; }
  CompId computation() const { return comp_; }
  // Null, or kInvalid, if `id` is not an instruction of the module.
  const Shape* shape(InstrId id) const {
    const bool known = id.valid() && id.value < static_cast<uint32_t>(module_.num_instructions());
    return known ? module_.instr(id).shape : nullptr;
  }
  ElementType type(InstrId id) const {
    const Shape* s = shape(id);
    return s == nullptr ? ElementType::kInvalid : s->element_type();
  }

  // From here on parameters, a new root and calls of the computation itself are refused: the
  // builder is for a part of a program that has a root already.
  void Seal() { sealed_ = true; }
  // Whether, since Seal, calls of computations were added or the module was accessed directly:
  // then its structure may be invalid.
  bool structure_open() const { return structure_open_; }

  const Metadata* metadata() const { return metadata_; }
  void set_metadata(const Metadata* metadata) { metadata_ = metadata; }
  bool value_numbering() const { return value_numbering_; }
  void set_value_numbering(bool on) { value_numbering_ = on; }
  // The computation belongs to a per-device program, so its values have no shardings.
  void set_local() { local_ = true; }

  // The shape of an array with a descending layout, or with `minor_to_major`.
  absl::StatusOr<const Shape*> ArrayShape(ElementType type, Ints dims);
  absl::StatusOr<const Shape*> ArrayShape(ElementType type, Ints dims, Ints minor_to_major);

  // Adds any op. `declared` is the written shape, for custom calls and other ops that need one; if
  // given, it is the instruction's shape, including the layout.
  Id Add(Opcode op, Ids operands, const Attributes* attrs = nullptr,
         const Shape* declared = nullptr);
  absl::Status SetRoot(InstrId id);
  // Sets the sharding of a value, in any form of HLO text; "" removes it. Equal constants are one
  // value. Errors E160 to E162 for text that is not a sharding; E025 if it does not fit the
  // value's shape, or the module's num_partitions if that is above 1; E120 in a partition
  // callback, whose values are local.
  //   b.SetSharding(x, "{devices=[4,1]<=[4]}")
  //   b.SetSharding(x, "{mesh['data'=4,'model'=2], [{'data'}, {}]}")
  absl::Status SetSharding(InstrId id, absl::string_view sharding);

  Id Parameter(int64_t number, const Shape* shape);
  Id Compare(Direction direction, InstrId a, InstrId b);  // compared as usual for the type
  Id Convert(InstrId x, ElementType type);                // x itself if it has the type
  Id BitcastConvert(InstrId x, ElementType type);

  // Result dimension dimensions[i] is operand dimension i.
  Id Broadcast(InstrId x, Ints dims, Ints dimensions);
  Id BroadcastScalar(InstrId scalar, const Shape* like);
  Id Reshape(InstrId x, Ints dims);  // x itself if it has the dims
  Id Transpose(InstrId x, Ints permutation);
  Id Reverse(InstrId x, Ints dimensions);
  Id Slice(InstrId x, Ints starts, Ints limits, Ints strides = {});  // strides empty: 1
  Id Pad(InstrId x, InstrId value, Ints low, Ints high, Ints interior = {});
  Id Concatenate(Ids operands, int64_t dimension);  // of one operand: that operand
  Id DynamicSlice(InstrId x, Ids starts, Ints sizes);
  Id DynamicUpdateSlice(InstrId x, InstrId update, Ids starts);

  Id Iota(ElementType type, Ints dims, int64_t dimension);
  Id Constant(const Literal* literal);
  Id ConstantInt(ElementType type, int64_t value);
  Id ConstantDouble(ElementType type, double value);
  Id ConstantBits(ElementType type, uint64_t bits);  // as in a host buffer; types up to 8 bytes
  Id Identity(Opcode monoid, ElementType type, ZeroSign zero = ZeroSign::kPositive);

  // An element of a tuple instruction is that operand; no new op is made.
  Id GetTupleElement(InstrId tuple, int64_t index);
  Id Reduce(InstrId x, InstrId init, Ints dimensions, Opcode monoid);
  // `type` kInvalid: that of the operands.
  //   b.Dot(x, w, DotDimensions{.lhs_contracting = {1}, .rhs_contracting = {0}});
  Id Dot(InstrId lhs, InstrId rhs, const DotAttrs& attrs, ElementType type = ElementType::kInvalid);
  Id Dot(InstrId lhs, InstrId rhs, const DotDimensions& dimensions,
         ElementType type = ElementType::kInvalid);
  Id Call(CompId callee, Ids operands);
  Id While(CompId condition, CompId body, InstrId init);
  Id CustomCall(const CustomCallAttrs& attrs, Ids operands, const Shape* shape,
                absl::string_view backend_config = "");
  // A custom call with the inferred shape. Errors E112, and E121 of the target's own shape
  // function.
  Id CustomCall(const CustomCallAttrs& attrs, Ids operands, const TargetShapes& targets,
                absl::string_view backend_config = "");

  // Collectives over global device ids; the channel is given by the caller.
  Id AllReduce(InstrId x, const ReplicaGroups& groups, int64_t channel, Opcode monoid);
  Id AllGather(InstrId x, int64_t dimension, const ReplicaGroups& groups, int64_t channel);
  Id ReduceScatter(InstrId x, int64_t dimension, const ReplicaGroups& groups, int64_t channel,
                   Opcode monoid);
  // The array form: dimension `split` of size group * n is exchanged in n-slices.
  Id AllToAll(InstrId x, int64_t split, const ReplicaGroups& groups, int64_t channel);
  Id CollectivePermute(InstrId x, Ints sources, Ints targets, int64_t channel);

 private:
  struct Slot {
    uint64_t hash = 0;
    InstrId id;
  };
  // Error unless each is an instruction of this computation.
  absl::Status Own(Ids operands);
  // Error for a parameter whose number is taken or too large.
  absl::Status NewParameter(const Attributes* attrs);
  // An error for an op that a sealed computation refuses.
  absl::Status Unsealed(Opcode op, const Attributes* attrs);
  Id Misuse(absl::string_view code, std::string message, std::string expected, std::string found,
            std::string fix);
  absl::StatusOr<CompId> Reducer(Opcode monoid, ElementType type);
  // The array's shape; null after filling error_ if a dimension is invalid.
  const Shape* Array(ElementType type, Ints dims);
  Id Append(Opcode op, const Shape* shape, Ids operands, const Attributes* attrs);
  InstrId AppendNumbered(Opcode op, const Shape* shape, Ids operands, const Attributes* attrs);
  void Grow();
  template <typename T>
  const Attributes* Intern(const T& value);

  Module& module_;
  Context& context_;
  CompId comp_;
  MonoidTable& monoids_;
  const Metadata* metadata_ = nullptr;
  bool value_numbering_ = false;
  bool local_ = false;
  bool sealed_ = false;
  mutable bool structure_open_ = false;
  std::vector<Slot> slots_;  // open addressing; empty where id is not valid
  size_t used_ = 0;
  Diagnostic error_;  // a member, so that inference allocates no strings on success
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_CHECKED_BUILDER_H_
