// SPDX-License-Identifier: Apache-2.0
// Arrays on a PJRT plugin's devices.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_BUFFERS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_BUFFERS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "partitioner/bindings/pjrt/pjrt_client.h"
#include "partitioner/runtime/tensor.h"

namespace shardcall::pjrt {

// Waits for an event and lets go of it; null is over. What it failed with is E334.
absl::Status Await(const Plugin& plugin, abi::Event* event);

// Buffers of a device, let go of at the end.
class DeviceBuffers {
 public:
  explicit DeviceBuffers(const Client& client) : client_(client) {}
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  // Puts the tensor on a device, without a copy where the plugin can use host memory as
  // it lies. The tensor is kept until no buffer refers to it.
  // `minor_to_major`: the layout there; empty: the plugin's default.
  absl::Status Add(const Tensor& tensor, abi::Device* device,
                   absl::Span<const int64_t> minor_to_major);
  // Room for what an execution writes.
  void Resize(size_t size) { buffers_.resize(size, nullptr); }

  // The array in row-major order, as large as it is.
  absl::StatusOr<Tensor> ToHost(size_t k, ElementType type) const;

  abi::Buffer** data() { return buffers_.data(); }
  size_t size() const { return buffers_.size(); }

 private:
  const Client& client_;
  std::vector<abi::Buffer*> buffers_;
  std::vector<abi::Event*> done_;  // with the memory of tensors_
  std::vector<Tensor> tensors_;
};

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_BUFFERS_H_
