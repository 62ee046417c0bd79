// SPDX-License-Identifier: Apache-2.0
// What a partition callback can see and do: its call (call_view.h), the shardings that propagation
// decided, and a builder for the local program that replaces the call on every device. Implemented
// by the partitioner; the callback sees neither the engine nor the rest of the program.
//
// Misuse never crashes: it returns E120 with target and instruction, and the callback passes that
// status on.
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

// A value of the local program, which is the same code on every device: the device's own shard.
struct LocalValue {
  InstrId id;
};

class PartitionContext {
 public:
  virtual ~PartitionContext() = default;

  virtual const CustomCallView& call() const = 0;
  // Shardings as propagation decided them, on call().mesh; a value on another mesh of the program
  // appears as replicated. Null for tokens and for an index that does not exist.
  virtual const Sharding* operand_sharding(int i) const = 0;
  virtual const Sharding* result_sharding(int i) const = 0;

  // Local operand i (flat) resharded to `sharding`: tiles of ceil(D/n) elements; elements past the
  // end of the dimension are undefined. Tokens: null.
  virtual absl::StatusOr<LocalValue> Operand(int i, const Sharding* sharding) = 0;
  virtual absl::StatusOr<const Shape*> ShapeOf(LocalValue x) = 0;

  // Adds any HLO op at the place of the call; its ids are the ids of LocalValues.
  virtual CheckedBuilder& builder() = 0;
  // The first global index, s32[], of this device's tile in dimension `dim` of an array of shape
  // `global` under `sharding` (canonical tiles).
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
  // The same with other attributes: `backend_config` replaces the call's own. It is a dictionary
  // "{..}" for a typed call (else E120) and any bytes for others.
  virtual absl::StatusOr<std::vector<LocalValue>> CallTargetWith(
      absl::string_view backend_config, absl::Span<const LocalValue> operands,
      absl::Span<const Shape* const> results) = 0;
  // Inlines an HLO module given as text, whose entry takes `operands` as its parameters, and
  // returns the flat leaves of its root. It may contain collectives over the program's devices
  // (global device ids) and custom calls, which stay as they are; a custom call without a written
  // shape gets the one inferred for its target. Errors E0xx as from the parser and the verifier.
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
  // `pairs` are (source, target) coordinates along `axes`, in every group; a device that is not a
  // target gets zeros.
  virtual absl::StatusOr<LocalValue> CollectivePermute(
      LocalValue x, absl::Span<const AxisRef> axes,
      absl::Span<const std::pair<int64_t, int64_t>> pairs) = 0;
  // The cheapest reshard of an array of shape `global` from one sharding to another.
  virtual absl::StatusOr<LocalValue> Reshard(LocalValue x, const Shape* global,
                                             const Sharding* from, const Sharding* to) = 0;

  // Result i (flat), with the sharding it has (partial axes allowed; tokens:
  // null). Its shape must be the local shape of that sharding.
  virtual absl::Status SetResult(int i, LocalValue value, const Sharding* sharding) = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_PARTITION_CONTEXT_H_
