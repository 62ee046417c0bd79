// SPDX-License-Identifier: Apache-2.0
// A partitioned program compiled once for a plugin's devices, and global arrays that stay on the
// devices between executions:
//
//   SHARDCALL_ASSIGN_OR_RETURN(auto engine, MakePjrtEngine("libplugin.so"));
//   SHARDCALL_ASSIGN_OR_RETURN(PjrtExecutable step, engine->Compile(program, options));
//   SHARDCALL_ASSIGN_OR_RETURN(PjrtArray weights, step.Put(0, host_weights));
//   SHARDCALL_ASSIGN_OR_RETURN(PjrtArray batch, step.Put(1, host_batch));
//   for (int k = 0; k < 100; ++k) {
//     SHARDCALL_ASSIGN_OR_RETURN(auto out, step.Execute(std::move(weights), batch));
//     weights = std::move(out[0]);
//   }
//   SHARDCALL_ASSIGN_OR_RETURN(Tensor trained, weights.ToHost());
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_EXECUTABLE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_EXECUTABLE_H_

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_buffers.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
struct ExecutableState;
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

// A global array whose shards are on the devices. Copies share the shards, which are freed with
// the last copy. An array that was moved from is empty, and no function accepts it.
class PjrtArray {
 public:
  PjrtArray() = default;
  ElementType type() const { return from_ == nullptr ? ElementType::kInvalid : type_; }
  const Dims& dims() const { return dims_; }  // of the global array
  // The global array. E334 for errors of the plugin, E337 at the program's deadline, E321 if
  // replicas of a shard are compared and differ.
  absl::StatusOr<Tensor> ToHost() const;

 private:
  friend class PjrtExecutable;
  std::shared_ptr<const pjrt::ExecutableState> from_;
  ElementType type_ = ElementType::kInvalid;
  Dims dims_;
  bool is_output_ = false;  // of `from_`, else an input of it
  size_t k_ = 0;            // which one
  std::vector<pjrt::DeviceBuffer::Ref> shards_;
};

// Copies share the program. Thread-safe.
class PjrtExecutable {
 public:
  // For the first devices of the client. Of `options` only `handlers` (which must outlive the
  // program), `deadline` and `check_replicas` are used. Errors as for LoadedProgram::Compile.
  static absl::StatusOr<PjrtExecutable> Compile(std::shared_ptr<const pjrt::Client> client,
                                                std::shared_ptr<const PartitionedProgram> program,
                                                const RunOptions& options);

  size_t num_inputs() const;  // flat leaves of the parameters
  size_t num_outputs() const;
  const std::vector<LeafShape>& inputs() const;  // global shapes
  // Whether the program may overwrite input k: it aliases a result, or is a buffer donor.
  bool Donates(size_t k) const;

  // Shards a global array and puts it on the devices, as input k; without a copy if a device can
  // use host memory directly. E313 if it does not fit.
  absl::StatusOr<PjrtArray> Put(size_t k, const Tensor& input) const;

  // Inputs are results of Put, of any program of the same engine, or results with the sharding
  // that this program requires: E313 otherwise. A donated input is consumed if it has no other
  // owner (std::move it in), and copied otherwise. Results stay on the devices.
  absl::StatusOr<std::vector<PjrtArray>> Execute(std::vector<PjrtArray> inputs) const;
  template <typename... Arrays>
    requires(std::same_as<std::remove_cvref_t<Arrays>, PjrtArray> && ...)
  absl::StatusOr<std::vector<PjrtArray>> Execute(Arrays&&... inputs) const {
    std::vector<PjrtArray> list;
    (list.push_back(std::forward<Arrays>(inputs)), ...);
    return Execute(std::move(list));
  }
  // The checks of Execute on inputs.
  absl::Status CheckInputs(absl::Span<const PjrtArray> inputs) const;
  // Deleted, because an initializer list copies arrays that are moved into it, so they could not
  // be donated.
  absl::StatusOr<std::vector<PjrtArray>> Execute(std::initializer_list<PjrtArray>) const = delete;

 private:
  explicit PjrtExecutable(std::shared_ptr<const pjrt::ExecutableState> state)
      : state_(std::move(state)) {}
  absl::Status CheckInput(size_t k, const PjrtArray& input) const;
  std::shared_ptr<const pjrt::ExecutableState> state_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_EXECUTABLE_H_
