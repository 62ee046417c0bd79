// SPDX-License-Identifier: Apache-2.0
// What a partition callback may see and do: its call (call_view.h), the
// shardings that propagation decided, and a builder of the local program that
// takes the call's place on every device. Implemented by the partitioner; the
// callback sees neither the engine nor the rest of the program.
//
// Nothing here crashes on misuse: it is E120 with target and instruction, and
// the callback passes the status on.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_PARTITION_CONTEXT_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_PARTITION_CONTEXT_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/call_view.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

// A value of the local program: the same code on every device, with the
// device's own shard.
struct LocalValue {
  InstrId id;
};

class PartitionContext {
 public:
  virtual ~PartitionContext() = default;

  virtual const CustomCallView& call() const = 0;
  // Shardings as propagation decided them, on call().mesh; what lies on another
  // mesh of the program shows as replicated. Null for tokens and for an index
  // that does not exist.
  virtual const Sharding* operand_sharding(int i) const = 0;
  virtual const Sharding* result_sharding(int i) const = 0;

  // Local operand i (flat) resharded to `sharding`: tiles of ceil(D/n) elements,
  // what lies past the end of the dimension is undefined. Tokens: null.
  virtual absl::StatusOr<LocalValue> Operand(int i, const Sharding* sharding) = 0;
  virtual absl::StatusOr<const Shape*> ShapeOf(LocalValue x) = 0;

  // Any HLO op, at the place of the call: values are ids of LocalValues.
  virtual CheckedBuilder& builder() = 0;
  // The first global index that this device's tile has in dimension `dim` of an
  // array `global` under `sharding` (canonical tiles): s32[].
  virtual absl::StatusOr<LocalValue> TileStart(const Shape* global, const Sharding* sharding,
                                               int dim) = 0;
  // x, a shard of `global`, with the scalar `fill` past the valid extent of any of
  // `dims`; x itself where they divide evenly.
  virtual absl::StatusOr<LocalValue> MaskPadding(LocalValue x, const Shape* global,
                                                 const Sharding* sharding,
                                                 absl::Span<const int> dims, LocalValue fill) = 0;
  // The same custom call (attributes, side effects, aliasing, layouts kept) on
  // local operands, with given local leaf shapes of the results.
  virtual absl::StatusOr<std::vector<LocalValue>> CallTarget(
      absl::Span<const LocalValue> operands, absl::Span<const Shape* const> results) = 0;
  // The same with other attributes: `backend_config` in place of the call's own, a
  // dictionary "{..}" for a typed call, any bytes for others. E120 for what is none.
  virtual absl::StatusOr<std::vector<LocalValue>> CallTargetWith(
      absl::string_view backend_config, absl::Span<const LocalValue> operands,
      absl::Span<const Shape* const> results) = 0;
  // An HLO module as text, whose entry takes `operands` as its parameters; gives
  // the flat leaves of its root. It may hold collectives over the program's
  // devices (global device ids) and custom calls, which stay as they are; one
  // that is written without its shape has what its target gives. E0xx of the text as
  // the parser and the verifier give them.
  virtual absl::StatusOr<std::vector<LocalValue>> AddProgram(
      absl::string_view hlo, absl::Span<const LocalValue> operands) = 0;

  virtual LocalValue PartitionId() = 0;  // u32[]
  // This device's coordinate along axes, major to minor, s32[].
  virtual absl::StatusOr<LocalValue> AxisIndex(absl::Span<const AxisRef> axes) = 0;

  // Collectives over free axes of the mesh; groups in mesh order.
  virtual absl::StatusOr<LocalValue> AllReduce(LocalValue x, PartialOp op,
                                               absl::Span<const AxisRef> axes) = 0;
  virtual absl::StatusOr<LocalValue> AllGather(LocalValue x, int dim,
                                               absl::Span<const AxisRef> axes) = 0;
  // Dimension `dim` must be a multiple of the group.
  virtual absl::StatusOr<LocalValue> ReduceScatter(LocalValue x, int dim, PartialOp op,
                                                   absl::Span<const AxisRef> axes) = 0;
  // Dimension `split` is cut in as many parts as the group has devices, part i
  // goes to device i, and what arrives is joined along `join`, in group order.
  virtual absl::StatusOr<LocalValue> AllToAll(LocalValue x, int split, int join,
                                              absl::Span<const AxisRef> axes) = 0;
  // Pairs of coordinates along `axes`, (source, target), in every group; a
  // device that is no target gets zeros.
  virtual absl::StatusOr<LocalValue> CollectivePermute(
      LocalValue x, absl::Span<const AxisRef> axes,
      absl::Span<const std::pair<int64_t, int64_t>> pairs) = 0;
  // The cheapest way from one sharding of an array of shape `global` to another.
  virtual absl::StatusOr<LocalValue> Reshard(LocalValue x, const Shape* global,
                                             const Sharding* from, const Sharding* to) = 0;

  // Result i (flat), with the sharding it has (partial axes allowed; tokens:
  // null). Its shape must be the local shape of that sharding.
  virtual absl::Status SetResult(int i, LocalValue value, const Sharding* sharding) = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_PARTITION_CONTEXT_H_
