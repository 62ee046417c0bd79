// SPDX-License-Identifier: Apache-2.0
// The narrow view that callbacks get: of the call (CustomCallView), and, in
// `partition`, of the local program being made (PartitionContext, implemented
// by the partitioner). Values are opaque handles.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_PARTITION_CONTEXT_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_PARTITION_CONTEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "partitioner/ir/checked_builder.h"
#include "partitioner/ir/module.h"
#include "sharding/sharding.h"

namespace shardcall {

// A custom call as callbacks see it: global shapes, flat leaves.
struct CustomCallView {
  Context* context = nullptr;           // to make shardings and shapes with
  absl::string_view target, instruction, backend_config;
  const FrontendAttributes* frontend = nullptr;
  std::vector<const Shape*> operands, results;
  const BaseMesh* mesh = nullptr;       // names() gives the user's axes
  absl::Span<const AxisRef> manual_axes;  // axes a callback must leave alone
};

// A value of the local program.
struct LocalValue {
  InstrId id;
};

class PartitionContext {
 public:
  virtual ~PartitionContext() = default;

  virtual const CustomCallView& call() const = 0;
  // Shardings as propagation decided them, on call().mesh; what lies on another
  // mesh of the program shows as replicated.
  virtual const Sharding* operand_sharding(int i) const = 0;
  virtual const Sharding* result_sharding(int i) const = 0;

  // Local operand i resharded to `sharding` (canonical tiles).
  virtual absl::StatusOr<LocalValue> Operand(int i, const Sharding* sharding) = 0;

  // The local computation: into this computation of this module, operands
  // before users. Instructions take the call's metadata.
  virtual Module& module() = 0;
  virtual CompId computation() = 0;
  virtual CheckedBuilder& builder() = 0;  // appends to it
  // The first global index that this device's tile has in dimension `dim` of an
  // array `global` under `sharding` (canonical tiles): s32[].
  virtual absl::StatusOr<LocalValue> TileStart(const Shape* global, const Sharding* sharding,
                                               int dim) = 0;
  // x, a shard of `global`, with the scalar `fill` past the valid extent of any of
  // `dims`; x itself where they divide evenly.
  virtual absl::StatusOr<LocalValue> MaskPadding(LocalValue x, const Shape* global,
                                                 const Sharding* sharding,
                                                 absl::Span<const int> dims, LocalValue fill) = 0;
  // The same custom call (attributes, side effects, aliasing kept) on local
  // operands, with given local leaf shapes of the results.
  virtual absl::StatusOr<std::vector<LocalValue>> CallTarget(
      absl::Span<const LocalValue> operands, absl::Span<const Shape* const> results) = 0;
  virtual LocalValue PartitionId() = 0;  // u32[]
  // Collectives over mesh axes, groups in mesh order.
  virtual absl::StatusOr<LocalValue> AllReduce(LocalValue x, PartialOp op,
                                               absl::Span<const AxisRef> axes) = 0;
  virtual absl::StatusOr<LocalValue> AllGather(LocalValue x, int dim,
                                               absl::Span<const AxisRef> axes) = 0;

  // Result i, with the sharding it has (partial axes allowed). Its shape must be
  // the local shape of that sharding, else the call fails with E120.
  virtual absl::Status SetResult(int i, LocalValue value, const Sharding* sharding) = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_PARTITION_CONTEXT_H_
