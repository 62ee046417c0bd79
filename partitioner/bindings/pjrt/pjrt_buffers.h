// SPDX-License-Identifier: Apache-2.0
// Arrays on a PJRT plugin's devices.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_BUFFERS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_BUFFERS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// Waits for an event and destroys it; null counts as done. Its failure is E334.
absl::Status Await(const Plugin& plugin, abi::Event* event);

// One array on one device, destroyed with its last owner.
class DeviceBuffer {
 public:
  using Ref = std::shared_ptr<const DeviceBuffer>;

  // Puts the tensor on a device, without a copy if the plugin can use the host memory directly:
  // the tensor is then kept alive. `minor_to_major`: the layout on the device; empty: the plugin's
  // default.
  static absl::StatusOr<Ref> FromHost(std::shared_ptr<const Client> client, const Tensor& tensor,
                                      abi::Device* device,
                                      absl::Span<const int64_t> minor_to_major);
  // Takes ownership of a buffer that the plugin has made.
  static Ref Own(std::shared_ptr<const Client> client, abi::Buffer* buffer);

  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  const Client& client() const { return *client_; }
  abi::Buffer* handle() const { return buffer_; }

 private:
  DeviceBuffer(std::shared_ptr<const Client> client, abi::Buffer* buffer)
      : client_(std::move(client)), buffer_(buffer) {}

  const std::shared_ptr<const Client> client_;
  abi::Buffer* const buffer_;
  abi::Event* host_done_ = nullptr;  // the plugin no longer uses tensor_
  Tensor tensor_;
};

// Copies of arrays to the host, which run concurrently.
class HostCopies {
 public:
  explicit HostCopies(const Plugin& plugin) : plugin_(plugin) {}
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Starts the next copy: in row-major order, with the array's actual size.
  absl::Status Start(const DeviceBuffer& buffer, ElementType type);
  // All results, in the order of the starts.
  absl::StatusOr<std::vector<Tensor>> Finish();

 private:
  const Plugin& plugin_;
  std::vector<Tensor> tensors_;
  std::vector<abi::Event*> done_;
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_BUFFERS_H_
