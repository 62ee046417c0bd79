// SPDX-License-Identifier: Apache-2.0
// A custom call as callbacks see it: global shapes of flat leaves, attributes,
// and the mesh with its named axes.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_CALL_VIEW_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_CALL_VIEW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

struct CustomCallView {
  Context* context = nullptr;  // to make shardings and shapes with
  absl::string_view target, instruction;
  // As the text has it: the dictionary {k = 3 : i64} of a typed call, which AttributeMapView
  // (kernels/ffi/attributes.h) reads; any bytes for an untyped one.
  absl::string_view backend_config;
  const FrontendAttributes* frontend = nullptr;  // or null
  int api_version = 1;                           // 1 to 4, as HLO says
  bool has_side_effect = false;

  std::vector<const Shape*> operands, results;  // with layouts
  // The layouts that the call requires of its operands, one per leaf; empty: any.
  std::vector<const Shape*> operand_layouts;
  struct Alias {
    int result, operand;  // flat leaves that share a buffer
  };
  std::vector<Alias> aliases;

  const BaseMesh* mesh = nullptr;
  absl::Span<const AxisRef> manual_axes;  // axes a callback must leave alone

  // The axes by the program's names, or x0, x1, .. where it has none, major to minor. A callback
  // must not shard over a manual axis.
  struct Axis {
    std::string name;
    int64_t size = 1;
    bool manual = false;
    AxisList refs;  // its parts, major to minor
  };
  std::vector<Axis> axes() const;
  // All axes that a callback may shard over.
  AxisList free_axes() const;
  // E120 for a name that is no axis, or a manual one.
  absl::StatusOr<AxisList> AxesNamed(absl::Span<const std::string> names) const;

  // Converts text to a typed sharding on this mesh: `[{"data"}, {}]` with sub-axes `"data":(1)2`,
  // or an HLO sharding such as {devices=[4,2]<=[8]}. E120 for text that does not parse, another
  // rank, or an axis that is manual.
  absl::StatusOr<const Sharding*> ParseSharding(absl::string_view text, int rank) const;
  // Sharded over nothing.
  const Sharding* Replicated(int rank) const {
    return ReplicatedSharding(*context, mesh, rank, manual_axes);
  }
  // Checks a sharding `s` that a callback gives for a value of that shape, and returns it with the
  // manual axes in force. E120: null, another rank or mesh, maximal, or sharded over a manual
  // axis. `what` names the value in the message ("operand 0").
  absl::StatusOr<const Sharding*> Checked(const Sharding* s, const Shape* shape,
                                          absl::string_view what) const;
  // E120 about this call.
  absl::Status Misfit(std::string message, std::string expected, std::string found) const;
};

// The view of instruction `id`, a custom call.
CustomCallView ViewCustomCall(const Module& module, InstrId id, const BaseMesh* mesh,
                              absl::Span<const AxisRef> manual_axes);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_CALL_VIEW_H_
