// SPDX-License-Identifier: Apache-2.0
// What the boundary of one of Shardy's manual regions says, in either form that XLA writes.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_MANUAL_BOUNDARY_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_MANUAL_BOUNDARY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// As the attributes xla.sdy.in_shardings or out_shardings, and xla.sdy.manual_axes, have it; empty
// if the boundary does not say it.
struct ManualBoundaryText {
  std::string shardings, manual_axes;
};

// `boundary`: a call of xla.sdy.GlobalToLocalShape or LocalToGlobalShape of `module`. It has these
// attributes, or, since jaxlib 0.12 with named shardings, annotations `sharding=`:
//   g = f32[16,8] custom-call(x), custom_call_target="Sharding",
//       sharding={mesh['data'=4,'model'=2], [{?}, {'model', ?}]}
//   l = f32[16,4] custom-call(g), custom_call_target="xla.sdy.GlobalToLocalShape",
//       sharding={mesh['data'=4,'model'=2], [{?}, {?}], manual={'model'}}
// The global side is that of the operands on entry, and that of the results on exit. The manual
// axes are those of the other side.
ManualBoundaryText ManualBoundaryOf(const Module& module, const Instruction& boundary);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_MANUAL_BOUNDARY_H_
