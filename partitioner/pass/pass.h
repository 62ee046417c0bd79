// SPDX-License-Identifier: Apache-2.0
// Passes over modules, and the pipeline that runs them, with the verifier and an optional dump
// after each. A pass makes a new module and maps each old instruction to its new id, so that
// records kept beside the module can follow.
#ifndef SHARDCALL_PARTITIONER_PASS_PASS_H_
#define SHARDCALL_PARTITIONER_PASS_PASS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct PassResult {
  explicit PassResult(Module m) : module(std::move(m)) {}
  Module module;
  std::vector<InstrId> moved_to;      // by old instruction; invalid if removed
  std::vector<CompId> comp_moved_to;  // by old computation
  bool changed = false;
};

class Pass {
 public:
  virtual ~Pass() = default;
  virtual absl::string_view name() const = 0;
  virtual absl::StatusOr<PassResult> Run(const Module& module) = 0;
};

struct PipelineOptions {
  bool verify = false;  // after every pass; an error names the pass
  // Called after each pass with its name and the module.
  std::function<void(absl::string_view, const Module&)> dump;
};

// Runs the passes in order; moved_to is the composition of all of them.
absl::StatusOr<PassResult> RunPipeline(Module module,
                                       const std::vector<std::unique_ptr<Pass>>& passes,
                                       const PipelineOptions& options);

// Drops instructions without live users and side effects, and computations that nothing calls. The
// rest keeps its order. Parameters stay.
std::unique_ptr<Pass> MakeDeadCodeElimination();

// Clamps starts of slices that read what other slices give (explicit_starts.cc), so that XLA's
// simplifier may merge them.
std::unique_ptr<Pass> MakeExplicitStarts();

// Constrains the results of ops that XLA:CPU runs on row-major arrays only to that layout
// (row_major_results.cc).
std::unique_ptr<Pass> MakeRowMajorResults();

// Lets reductions start from the identity, and combines other inits with their results
// (separate_inits.cc).
std::unique_ptr<Pass> MakeSeparateInits();

// Puts barriers in front of operands that XLA makes wrong programs of (kept_operands.cc).
std::unique_ptr<Pass> MakeKeptOperands();

// Runs collectives of values that a loop does not change once, before the loop
// (loop_invariants.cc), as long as what they give takes no more bytes than `room`, which is asked
// only where there are some.
std::unique_ptr<Pass> MakeLoopInvariants(std::function<int64_t(const Module&)> room);

// Reduces floats by maximum and minimum across devices as integers of the same order
// (ordered_extrema.cc), so that engines that lose a NaN in them keep it.
std::unique_ptr<Pass> MakeOrderedExtrema();

// Lets products of f32 that state no precision have that of their type (full_precision.cc), where
// results are compared with those of another engine.
std::unique_ptr<Pass> MakeFullPrecision();

// Names every instruction and computation, uniquely in the module: given names
// stay where they are unique, others are the opcode's with a number.
void AssignNames(Module* module);

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// Computes products that are transposed as they are wanted (transposed_products.cc).
std::unique_ptr<Pass> MakeTransposedProducts();

// Runs a permute of what a permute gives as one (composed_permutes.cc).
std::unique_ptr<Pass> MakeComposedPermutes();

// Sends rows of a value that several permutes send between the same devices once
// (shared_permutes.cc).
std::unique_ptr<Pass> MakeSharedPermutes();

// Runs small all-reduces over the same devices as one (combined_reductions.cc).
std::unique_ptr<Pass> MakeCombinedReductions();

// Runs gathers, reduce-scatters and all-to-alls along an inner dimension along a new outermost one,
// which XLA:CPU does several times faster (outer_collectives.cc).
std::unique_ptr<Pass> MakeOuterCollectives();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_PASS_H_
