// SPDX-License-Identifier: Apache-2.0
// Makes the instructions of one computation from the operations of a block. Many short functions,
// because the rows of all families of operations (ops_*.cc) are written with them.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_COMPUTATION_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_COMPUTATION_READER_H_

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/stablehlo/read/module_reader.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

class ComputationReader {
 public:
  ComputationReader(ModuleReader* reader, CompId comp) : r_(*reader), comp_(comp) {}

  // Reads the operations, and gives the operands of the terminator.
  absl::StatusOr<std::vector<InstrId>> Read(const Block& block);

  CompId comp() const { return comp_; }
  ModuleReader& reader() { return r_; }
  Context& context() { return r_.context(); }
  const Bytecode& code() const { return r_.code(); }

  // Operands and results of an operation.
  absl::StatusOr<InstrId> Operand(const Operation& op, size_t k);
  absl::StatusOr<absl::InlinedVector<InstrId, 8>> Operands(const Operation& op, size_t first = 0);
  absl::StatusOr<const Shape*> ShapeOf(const Operation& op, size_t result = 0);
  // The only result, or an operand, which must be an array.
  absl::StatusOr<const Shape*> ArrayOf(const Operation& op);
  absl::StatusOr<InstrId> ArrayOperand(const Operation& op, size_t k);
  // A tuple of the results' shapes, or the shape of the only one.
  absl::StatusOr<const Shape*> ShapeOfAll(const Operation& op);
  // The instruction of a value, which may be a constant of a computation around this one.
  absl::StatusOr<InstrId> Value(uint32_t value);

  bool IsAnnotated(const Operation& op) const;
  // Appends an instruction with the operation's metadata. A pure one that the computation has
  // already is not made again, as XLA's conversion does: JAX repeats operations in derivatives.
  InstrId Emit(const Operation& op, Opcode opcode, const Shape* shape,
               absl::Span<const InstrId> operands, const Attributes* attrs = nullptr);
  // Makes it the only result, or its elements the results, and annotates it. `always_tuple`: it is
  // a tuple even of one result.
  absl::Status Finish(const Operation& op, InstrId id, bool always_tuple = false);
  // Emits and finishes what has all operands and results of the operation.
  absl::Status EmitWhole(const Operation& op, Opcode opcode, const Attributes* attrs);
  InstrId Tuple(const Operation& op, absl::Span<const InstrId> elements);
  // One that nothing else uses.
  InstrId NewTuple(const Operation& op, absl::Span<const InstrId> elements);
  absl::StatusOr<InstrId> Element(const Operation& op, InstrId tuple, int64_t index);
  // The scalar or array whose elements are these bytes, made once in the computation. With fewer
  // bytes than the shape needs, all elements are equal.
  InstrId Constant(const Operation& op, const Shape* shape, std::string elements);
  // The root of a computation that gives these values.
  InstrId Root(const Operation& op, absl::Span<const InstrId> values);

  // The computation of a region with a parameter for each argument, as of a reduction.
  absl::StatusOr<CompId> RegionOf(const Operation& op, size_t region,
                                  absl::string_view name = "region");
  // That of a region over a tuple of its arguments and the `captured` values, which also follow its
  // results if `pass_on` is set. The root is a tuple, except that of a loop's condition.
  absl::StatusOr<CompId> OverTuple(const Operation& op, size_t region,
                                   absl::Span<const uint32_t> captured, bool pass_on = false);
  // Values that regions use and that are given outside them, except constants.
  std::vector<uint32_t> Captured(absl::Span<const Region> regions) const;

  // Attributes by name, with defaults. Lists are dense arrays or dense tensors of integers. An
  // attribute that is no integer is noted, and the operation is not converted.
  const Attribute* Find(const Operation& op, absl::string_view name) {
    asked_for_.push_back(name);
    return code().Find(op, name);
  }
  absl::StatusOr<std::vector<int64_t>> List(const Operation& op, absl::string_view name);
  int64_t Integer(const Operation& op, absl::string_view name, int64_t otherwise);
  bool Bool(const Operation& op, absl::string_view name) { return Integer(op, name, 0) != 0; }
  // The number of an enumerator, which must stand there, from `least` to `most`.
  absl::StatusOr<int64_t> Enumerator(const Operation& op, absl::string_view name, int64_t least,
                                     int64_t most);

 private:
  absl::Status ReadOperation(const Operation& op);
  // E035 (kUnimplemented) if the operation has an attribute that nothing has asked for.
  absl::Status CheckAllRead(const Operation& op) const;

  ModuleReader& r_;
  const CompId comp_;
  std::vector<absl::string_view> asked_for_;       // names of attributes
  bool other_kind_ = false;                        // of an attribute that was asked for
  absl::flat_hash_map<uint32_t, InstrId> copies_;  // of constants around this computation
  absl::flat_hash_map<std::pair<std::string, const Shape*>, InstrId> constants_;
  using PureKey = std::tuple<Opcode, const Shape*, const Attributes*, std::vector<uint32_t>>;
  absl::flat_hash_map<PureKey, InstrId> pure_;
};

// Converts one operation.
using ReadFn = absl::Status (*)(ComputationReader& c, const Operation& op);
// Null if the operation is not converted.
ReadFn FindReader(absl::string_view name);

// The rows of the families of operations (ops_*.cc).
struct OpRow {
  absl::string_view name;
  ReadFn read;
};
absl::Span<const OpRow> ShapingRows();
absl::Span<const OpRow> CombiningRows();
absl::Span<const OpRow> ControlRows();
absl::Span<const OpRow> CallRows();
absl::Span<const OpRow> CollectiveRows();

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_COMPUTATION_READER_H_
