// SPDX-License-Identifier: Apache-2.0
// Dynamic shapes. At run time an array has its actual size, up to the bound in its shape. An op
// over such arrays is compiled for the actual sizes, as a program of its own, which is kept for
// the next time.
//
//   d = f32[<=4] set-dimension-size(x, n), dimensions={0}      n = 3: 3 elements
//   e = f32[<=4] add(d, y)                                     the first 3 of y
//   r = f32[] reduce(e, zero), ..                              their sum
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_DYNAMIC_SIZES_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_DYNAMIC_SIZES_H_

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/monoid_table.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

// Whether an array of the module has a dynamic dimension, or an op makes one.
bool HasDynamicSizes(const Module& module);

// Compiles ops for actual sizes; thread-safe.
class DynamicSource {
 public:
  // Copies the module, with a Context of its own. E311 where a dynamic value is used as a static
  // one through a tuple, a loop or a call.
  static absl::StatusOr<std::shared_ptr<DynamicSource>> Create(const Module& module);

  const Module& module() const { return module_; }

  // The program of one instruction, for operands of these sizes. An error says why the sizes are
  // impossible.
  absl::StatusOr<std::shared_ptr<const DeviceProgram>> For(InstrId id,
                                                           absl::Span<const Dims> operands);

 private:
  explicit DynamicSource(Module module) : module_(std::move(module)), monoids_(&module_) {}

  // Under the lock of the process.
  Module module_;
  MonoidTable monoids_;
  absl::flat_hash_map<std::string, std::shared_ptr<const DeviceProgram>> made_;
};

// How an instruction of such a program is lowered.
enum class SizedKind {
  kNot,       // it involves no dynamic dimension
  kMade,      // LowerSized
  kPasses,    // a loop, branch or call, whose values have their actual sizes
  kFullOnly,  // only if all sizes equal the bounds, which LowerFullSizes checks
};
SizedKind SizedKindOf(const Module& module, const Instruction& instr);

absl::Status LowerSized(const LowerContext& context, Step* step);
// A step without results, over the instruction's operands.
absl::Status LowerFullSizes(const LowerContext& context, Step* step);

// Lower without the creation of a DynamicSource.
absl::StatusOr<std::shared_ptr<const DeviceProgram>> LowerAll(const Module& module,
                                                              const LowerOptions& options);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_DYNAMIC_SIZES_H_
