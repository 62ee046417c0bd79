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

namespace shardcall::pjrt {

// Waits for an event and lets go of it; null is over. What it failed with is E334.
absl::Status Await(const Plugin& plugin, abi::Event* event);

// One array on one device, which its last owner lets go of.
class DeviceBuffer {
 public:
  using Ref = std::shared_ptr<const DeviceBuffer>;

  // Puts the tensor on a device, without a copy where the plugin can use host memory as
  // it lies: the tensor is kept as long.
  // `minor_to_major`: the layout there; empty: the plugin's default.
  static absl::StatusOr<Ref> FromHost(std::shared_ptr<const Client> client, const Tensor& tensor,
                                      abi::Device* device,
                                      absl::Span<const int64_t> minor_to_major);
  // What the plugin has made, which becomes the result's.
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
  abi::Event* host_done_ = nullptr;  // with the memory of tensor_
  Tensor tensor_;
};

// Copies of arrays to the host, which all go on at once.
class HostCopies {
 public:
  explicit HostCopies(const Plugin& plugin) : plugin_(plugin) {}
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Starts the next one: in row-major order, as large as the array is.
  absl::Status Start(const DeviceBuffer& buffer, ElementType type);
  // All that were started, in their order.
  absl::StatusOr<std::vector<Tensor>> Finish();

 private:
  const Plugin& plugin_;
  std::vector<Tensor> tensors_;
  std::vector<abi::Event*> done_;
};

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_BUFFERS_H_
