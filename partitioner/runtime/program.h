// SPDX-License-Identifier: Apache-2.0
// A DeviceProgram: the immutable program that every device executes. Computations are lists of
// steps over slots; a slot holds one leaf (array or token). Tuples need no steps: tuple,
// get-tuple-element and similar ops only rename slots. A step knows which operand slots it reads
// for the last time, so buffers are freed, or reused in place, as early as possible. The program
// refers to no Module and no Context; many threads may run it at once.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_PROGRAM_H_
#define SHARDCALL_PARTITIONER_RUNTIME_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
class StepRun;
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

using OpFn = absl::Status (*)(StepRun& run);

// A leaf's type, dims and layout (empty: descending). A dynamic dimension may be
// smaller at run time (dynamic_sizes.h).
struct LeafShape {
  ElementType type = ElementType::kInvalid;
  Dims dims;
  Dims minor_to_major;
  absl::InlinedVector<bool, 4> dynamic = {};  // empty: none

  bool IsDynamicDim(size_t d) const { return d < dynamic.size() && dynamic[d]; }

  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  bool HasDescendingLayout() const {
    for (size_t i = 0; i < minor_to_major.size(); ++i) {
      if (minor_to_major[i] != static_cast<int64_t>(minor_to_major.size() - 1 - i)) return false;
    }
    return true;
  }
};

// The data of an op function beside its operands; each family derives its own.
struct OpData {
  virtual ~OpData() = default;
};

struct OperandRef {
  int32_t slot = -1;
  bool last = false;  // no later step or operand reads the slot
};

struct Step {
  OpFn fn = nullptr;
  Opcode opcode;
  absl::InlinedVector<OperandRef, 3> operands;  // one per leaf, in flat order
  absl::InlinedVector<int32_t, 1> results;      // one slot per leaf
  absl::InlinedVector<LeafShape, 1> shapes;     // of the results
  absl::InlinedVector<int32_t, 1> unread;       // results that no step reads
  std::unique_ptr<const OpData> data;
  std::string name;    // instruction's, for messages
  bool sized = false;  // results have the sizes of their tensors, not of `shapes`
};

struct ProgramComputation {
  std::string name;
  int num_slots = 0;
  std::vector<int32_t> parameters;  // slots by flat leaf; -1 if never read
  std::vector<std::pair<int32_t, Tensor>> constants;
  std::vector<Step> steps;
  std::vector<OperandRef> root;  // `last`: may be moved out
};

class DeviceProgram {
 public:
  std::string name;
  std::vector<ProgramComputation> computations;
  int entry = -1;
  std::vector<LeafShape> parameters;  // entry's, by flat leaf
  std::vector<LeafShape> results;
  int64_t num_partitions = 1;  // as the module says
  // Custom-call targets that need a handler, each with an instruction.
  struct TargetUse {
    std::string target, instruction, backend_config;
  };
  std::vector<TargetUse> targets;
  bool has_starts = false;  // of asynchronous collectives
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_PROGRAM_H_
