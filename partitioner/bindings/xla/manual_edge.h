// SPDX-License-Identifier: Apache-2.0
// The boundary of a manual computation, in each of the forms that XLA reads.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_EDGE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_EDGE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/spmd/localize/localize.h"

namespace shardcall {
inline namespace internal {

class ManualEdge {
 public:
  using Ids = std::vector<InstrId>;
  virtual ~ManualEdge() = default;

  // `module` contains the body only.
  virtual absl::Status Start(CompId body, Module* module) = 0;
  // Enter converts the parameters, which get their shardings, to shards of these shapes; Leave
  // converts shards to results of these shapes, with their shardings. One for each flat leaf.
  virtual absl::StatusOr<Ids> Enter(absl::Span<const InstrId> wholes,
                                    absl::Span<const Shape* const> shards, GraphBuilder* b) = 0;
  virtual absl::StatusOr<Ids> Leave(absl::Span<const InstrId> shards,
                                    absl::Span<const Shape* const> wholes, GraphBuilder* b) = 0;
};

// Null where Shardy does not accept it: no results, or values on several meshes.
std::unique_ptr<ManualEdge> MakeShardyEdge(const LocalProgram& local);
std::unique_ptr<ManualEdge> MakeGspmdEdge(const LocalProgram& local);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_EDGE_H_
