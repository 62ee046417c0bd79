// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_buffers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shardcall/partitioner/bindings/pjrt/pjrt_types.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

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

namespace {

Padded<abi::MemoryLayout> LayoutOf(absl::Span<const int64_t> minor_to_major) {
  Padded<abi::MemoryLayout> layout;
  layout.value.tiled.header.struct_size = sizeof(abi::TiledLayout);
  layout.value.tiled.minor_to_major = minor_to_major.data();
  layout.value.tiled.minor_to_major_size = minor_to_major.size();
  return layout;
}

}  // namespace

absl::StatusOr<DeviceBuffer::Ref> DeviceBuffer::FromHost(std::shared_ptr<const Client> client,
                                                         const Tensor& tensor, abi::Device* device,
                                                         absl::Span<const int64_t> minor_to_major) {
  static const char kNothing = 0;  // the address of empty arrays
  Padded<abi::FromHostArgs> args;
  args.value.client = client->handle();
  args.value.data = tensor.data() == nullptr ? &kNothing : tensor.data();
  args.value.type = BufferType(tensor.type());
  args.value.dims = tensor.dims().data();
  args.value.num_dims = tensor.dims().size();
  args.value.semantics = abi::HostBufferSemantics::kImmutableZeroCopy;
  args.value.device = device;
  Padded<abi::MemoryLayout> layout = LayoutOf(minor_to_major);
  if (!minor_to_major.empty()) args.value.device_layout = &layout.value;
  SHARDCALL_RETURN_IF_ERROR(client->plugin().Call(Function::kClientBufferFromHostBuffer, &args));
  std::shared_ptr<DeviceBuffer> made(new DeviceBuffer(std::move(client), args.value.buffer));
  made->host_done_ = args.value.done;
  made->tensor_ = tensor;
  return made;
}

DeviceBuffer::Ref DeviceBuffer::Own(std::shared_ptr<const Client> client, abi::Buffer* buffer) {
  return Ref(new DeviceBuffer(std::move(client), buffer));
}

DeviceBuffer::~DeviceBuffer() {
  const Plugin& plugin = client_->plugin();
  Padded<abi::BufferArgs> args;
  args.value.buffer = buffer_;
  plugin.Call(Function::kBufferDestroy, &args).IgnoreError();
  // Until then a plugin that uses the host memory in place may still read it.
  Await(plugin, host_done_).IgnoreError();
}

HostCopies::~HostCopies() {
  for (abi::Event* event : done_) Await(plugin_, event).IgnoreError();
}

absl::Status HostCopies::Start(const DeviceBuffer& buffer, ElementType type) {
  Padded<abi::BufferDimsArgs> dims;
  dims.value.buffer = buffer.handle();
  SHARDCALL_RETURN_IF_ERROR(plugin_.Call(Function::kBufferDimensions, &dims));
  Tensor tensor(type, absl::MakeConstSpan(dims.value.dims, dims.value.num_dims));
  abi::Event* done = nullptr;
  if (tensor.num_elements() > 0) {
    std::vector<int64_t> minor_to_major(dims.value.num_dims);
    std::iota(minor_to_major.rbegin(), minor_to_major.rend(), 0);
    Padded<abi::MemoryLayout> layout = LayoutOf(minor_to_major);
    Padded<abi::ToHostArgs> args;
    args.value.buffer = buffer.handle();
    args.value.layout = &layout.value;
    args.value.dst = tensor.MutableData();
    args.value.dst_size = static_cast<size_t>(tensor.byte_size());
    SHARDCALL_RETURN_IF_ERROR(plugin_.Call(Function::kBufferToHostBuffer, &args));
    done = args.value.event;
  }
  tensors_.push_back(std::move(tensor));
  done_.push_back(done);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> HostCopies::Finish() {
  absl::Status status;
  for (abi::Event*& event : done_) status.Update(Await(plugin_, std::exchange(event, nullptr)));
  done_.clear();
  std::vector<Tensor> tensors = std::exchange(tensors_, {});
  SHARDCALL_RETURN_IF_ERROR(status);
  for (Tensor& t : tensors) {
    // The unused bits of elements narrower than a byte are undefined.
    if (t.num_elements() > 0) NormalizeElements(t.type(), t.MutableData(), t.num_elements());
  }
  return tensors;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
