// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt/pjrt_buffers.h"

#include <algorithm>
#include <numeric>

#include "partitioner/bindings/pjrt/pjrt_types.h"
#include "sharding/status.h"

namespace shardcall::pjrt {

using abi::Function;
using abi::Padded;

absl::Status Await(const Plugin& plugin, abi::Event* event) {
  if (event == nullptr) return absl::OkStatus();
  Padded<abi::EventArgs> args;
  args.value.event = event;
  const absl::Status status = plugin.Call(Function::kEventAwait, &args);
  Padded<abi::EventArgs> destroy;
  destroy.value.event = event;
  plugin.Call(Function::kEventDestroy, &destroy).IgnoreError();
  return status;
}

DeviceBuffers::~DeviceBuffers() {
  for (abi::Buffer* buffer : buffers_) {
    if (buffer == nullptr) continue;
    Padded<abi::BufferArgs> args;
    args.value.buffer = buffer;
    client_.plugin().Call(Function::kBufferDestroy, &args).IgnoreError();
  }
  // Only then does a plugin that took the memory as it lies give it back.
  for (abi::Event* event : done_) Await(client_.plugin(), event).IgnoreError();
}

namespace {

Padded<abi::MemoryLayout> LayoutOf(absl::Span<const int64_t> minor_to_major) {
  Padded<abi::MemoryLayout> layout;
  layout.value.tiled.header.struct_size = sizeof(abi::TiledLayout);
  layout.value.tiled.minor_to_major = minor_to_major.data();
  layout.value.tiled.minor_to_major_size = minor_to_major.size();
  return layout;
}

}  // namespace

absl::Status DeviceBuffers::Add(const Tensor& tensor, abi::Device* device,
                                absl::Span<const int64_t> minor_to_major) {
  static const char kNothing = 0;  // where an empty array lies
  Padded<abi::FromHostArgs> args;
  args.value.client = client_.handle();
  args.value.data = tensor.data() == nullptr ? &kNothing : tensor.data();
  args.value.type = BufferType(tensor.type());
  args.value.dims = tensor.dims().data();
  args.value.num_dims = tensor.dims().size();
  args.value.semantics = abi::HostBufferSemantics::kImmutableZeroCopy;
  args.value.device = device;
  Padded<abi::MemoryLayout> layout = LayoutOf(minor_to_major);
  if (!minor_to_major.empty()) args.value.device_layout = &layout.value;
  SHARDCALL_RETURN_IF_ERROR(
      client_.plugin().Call(Function::kClientBufferFromHostBuffer, &args));
  tensors_.push_back(tensor);
  done_.push_back(args.value.done);
  buffers_.push_back(args.value.buffer);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DeviceBuffers::ToHost(size_t k, ElementType type) const {
  const Plugin& plugin = client_.plugin();
  Padded<abi::BufferDimsArgs> dims;
  dims.value.buffer = buffers_[k];
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kBufferDimensions, &dims));
  Tensor tensor(type, absl::MakeConstSpan(dims.value.dims, dims.value.num_dims));
  if (tensor.num_elements() == 0) return tensor;

  std::vector<int64_t> minor_to_major(dims.value.num_dims);
  std::iota(minor_to_major.rbegin(), minor_to_major.rend(), 0);
  Padded<abi::MemoryLayout> layout = LayoutOf(minor_to_major);
  Padded<abi::ToHostArgs> args;
  args.value.buffer = buffers_[k];
  args.value.layout = &layout.value;
  args.value.dst = tensor.MutableData();
  args.value.dst_size = static_cast<size_t>(tensor.byte_size());
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kBufferToHostBuffer, &args));
  SHARDCALL_RETURN_IF_ERROR(Await(plugin, args.value.event));
  // Bits beside those of an element that is narrower than a byte may be anything.
  NormalizeElements(type, tensor.MutableData(), tensor.num_elements());
  return tensor;
}

}  // namespace shardcall::pjrt
