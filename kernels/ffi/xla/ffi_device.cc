// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/xla/ffi_device.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/packed_buffers.h"

namespace shardcall {
inline namespace internal {
namespace {

FfiDevice& Self(const Shardcall_FfiDevice* c) { return *static_cast<FfiDevice*>(c->reserved); }

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(message); }

// Checks that elements are aligned for their type.
absl::Status CheckElements(int32_t reduction, int32_t type, const void* in, const void* out,
                           int64_t count) {
  if (reduction < SHARDCALL_FFI_SUM || reduction > SHARDCALL_FFI_XOR) {
    return Invalid(absl::StrCat("there is no reduction ", reduction));
  }
  const auto element = static_cast<ElementType>(type);
  if (type <= 0 || type > 64 || !IsArrayType(element)) {
    return Invalid(absl::StrCat("there is no element type ", type));
  }
  if (count < 0 || (count > 0 && (in == nullptr || out == nullptr))) {
    return Invalid(absl::StrCat(count, " elements, and a null pointer among the buffers"));
  }
  return absl::OkStatus();
}

absl::Status CheckBytes(const void* in, const void* out, int64_t bytes) {
  if (bytes < 0 || (bytes > 0 && (in == nullptr || out == nullptr))) {
    return Invalid(absl::StrCat(bytes, " bytes, and a null pointer among the buffers"));
  }
  return absl::OkStatus();
}

absl::Status Copy(const HandlerContext& context, const void* in, void* out, int64_t bytes) {
  if (bytes == 0 || in == out) return absl::OkStatus();
  if (context.device != nullptr) return context.device->CopyWithin(out, in, bytes);
  std::memcpy(out, in, bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> ReadGroup(const HandlerContext& context, const int32_t* group,
                                           int32_t size) {
  if (group == nullptr) {
    std::vector<int> all(context.num_devices);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (size < 1 || size > context.num_devices) {
    return Invalid(absl::StrCat("a group of ", size, " among ", context.num_devices, " devices"));
  }
  std::vector<int> devices(group, group + size);
  std::vector<int> sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0 || sorted.back() >= context.num_devices ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
      !std::binary_search(sorted.begin(), sorted.end(), context.device_ordinal)) {
    return Invalid("a group lists devices of the program, once each, and this one among them");
  }
  return devices;
}

int32_t DevicesAlongAxis(const Shardcall_FfiDevice* c, const char* axis, int32_t* devices,
                         int32_t capacity) {
  int32_t count = -1;
  Self(c).Guarded([&]() -> absl::Status {
    const HandlerContext& context = *Self(c).context();
    if (axis == nullptr || context.mesh == nullptr) return absl::OkStatus();
    const std::vector<int> found = DevicesAlong(*context.mesh, context.device_ordinal, axis);
    if (found.empty()) return absl::OkStatus();
    count = static_cast<int32_t>(found.size());
    for (int32_t k = 0; devices != nullptr && k < std::min(capacity, count); ++k) {
      devices[k] = found[k];
    }
    return absl::OkStatus();
  });
  return count;
}

// Whether the backend accepts the kind of memory (host or device) of the call's buffers.
absl::Status CheckMemory(const HandlerContext& context, const Communicator& comm) {
  if (context.device == nullptr || comm.stream() != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("a collective of device memory on backend ",
                                               comm.backend(),
                                               ", which takes host memory; use --backend=nccl"));
}

int32_t Barrier(const Shardcall_FfiDevice* c, const int32_t* group, int32_t size) {
  return Self(c).Collective(
      group, size,
      [&](Communicator& comm, Communicator::Group g) { return comm.Barrier(g, Self(c).tag()); },
      [] { return absl::OkStatus(); });
}

// A collective. It copies `bytes` from `in` to `out` if the device is alone, else calls
// `meet(communicator, group)`. It does neither if `ok` is an error.
template <typename Meet>
int32_t CopyingCollective(const Shardcall_FfiDevice* c, const int32_t* group, int32_t size,
                          const absl::Status& ok, const void* in, void* out, int64_t bytes,
                          const Meet& meet) {
  return Self(c).Collective(
      group, size,
      [&](Communicator& comm, Communicator::Group g) {
        const absl::Status status = ok.ok() ? CheckMemory(*Self(c).context(), comm) : ok;
        return status.ok() ? meet(comm, g) : status;
      },
      [&] { return ok.ok() ? Copy(*Self(c).context(), in, out, bytes) : ok; });
}

static_assert(SHARDCALL_FFI_SUM == static_cast<int>(ReduceKind::kSum) &&
              SHARDCALL_FFI_PRODUCT == static_cast<int>(ReduceKind::kProduct) &&
              SHARDCALL_FFI_MAX == static_cast<int>(ReduceKind::kMax) &&
              SHARDCALL_FFI_MIN == static_cast<int>(ReduceKind::kMin) &&
              SHARDCALL_FFI_AND == static_cast<int>(ReduceKind::kAnd) &&
              SHARDCALL_FFI_OR == static_cast<int>(ReduceKind::kOr) &&
              SHARDCALL_FFI_XOR == static_cast<int>(ReduceKind::kXor));

// AllReduce and ReduceScatter have the same parameters.
template <typename Method>
int32_t Reducing(Method method, const Shardcall_FfiDevice* c, const int32_t* group, int32_t size,
                 int32_t reduction, int32_t type, const void* in, void* out, int64_t count) {
  const absl::Status ok = CheckElements(reduction, type, in, out, count);
  const auto element = static_cast<ElementType>(type);
  const auto reduce = [&](Communicator& comm, Communicator::Group g, const void* from, void* to) {
    return (comm.*method)(g, static_cast<ReduceKind>(reduction), element, from, to, count,
                          Self(c).tag());
  };
  return CopyingCollective(
      c, group, size, ok, in, out, ok.ok() ? PackedBytes(element, count) : 0,
      [&](Communicator& comm, Communicator::Group g) -> absl::Status {
        if (!IsPackedType(element)) return reduce(comm, g, in, out);
        if (Self(c).context()->device != nullptr) {
          return absl::UnimplementedError(
              absl::StrCat("a reduction of ", ElementTypeName(element), " in device memory"));
        }
        // The communicator takes one element in a byte, the handler has them packed.
        const bool scatters = method == &Communicator::ReduceScatter;
        const int64_t blocks = scatters ? static_cast<int64_t>(g.size()) : 1;
        std::vector<char> from(blocks * count), to(count);
        UnpackElements(element, blocks * count, in, from.data());
        const absl::Status status = reduce(comm, g, from.data(), to.data());
        if (status.ok()) PackElements(element, count, to.data(), out);
        return status;
      });
}

int32_t AllReduce(const Shardcall_FfiDevice* c, const int32_t* group, int32_t size,
                  int32_t reduction, int32_t type, const void* in, void* out, int64_t count) {
  return Reducing(&Communicator::AllReduce, c, group, size, reduction, type, in, out, count);
}

int32_t ReduceScatter(const Shardcall_FfiDevice* c, const int32_t* group, int32_t size,
                      int32_t reduction, int32_t type, const void* in, void* out, int64_t count) {
  return Reducing(&Communicator::ReduceScatter, c, group, size, reduction, type, in, out, count);
}

int32_t AllGather(const Shardcall_FfiDevice* c, const int32_t* group, int32_t size, const void* in,
                  void* out, int64_t bytes) {
  return CopyingCollective(c, group, size, CheckBytes(in, out, bytes), in, out, bytes,
                           [&](Communicator& comm, Communicator::Group g) {
                             return comm.AllGather(g, in, out, bytes, Self(c).tag());
                           });
}

int32_t AllToAll(const Shardcall_FfiDevice* c, const int32_t* group, int32_t size, const void* in,
                 void* out, int64_t bytes) {
  return CopyingCollective(c, group, size, CheckBytes(in, out, bytes), in, out, bytes,
                           [&](Communicator& comm, Communicator::Group g) {
                             return comm.AllToAll(g, in, out, bytes, Self(c).tag());
                           });
}

int32_t Broadcast(const Shardcall_FfiDevice* c, const int32_t* group, int32_t size, int32_t root,
                  void* buffer, int64_t bytes) {
  const absl::Status ok = CheckBytes(buffer, buffer, bytes);
  return Self(c).Collective(
      group, size,
      [&](Communicator& comm, Communicator::Group g) -> absl::Status {
        if (root < 0 || root >= static_cast<int32_t>(g.size())) {
          return Invalid(absl::StrCat("root ", root, " of a group of ", g.size()));
        }
        const absl::Status status = ok.ok() ? CheckMemory(*Self(c).context(), comm) : ok;
        return status.ok() ? comm.Broadcast(g, root, buffer, bytes, Self(c).tag()) : status;
      },
      [&] { return root == 0 ? ok : Invalid(absl::StrCat("root ", root, " of a group of 1")); });
}

absl::Status CheckPeer(const HandlerContext& context, int32_t peer) {
  if (peer >= 0 && peer < context.num_devices && context.communicator != nullptr) {
    return CheckMemory(context, *context.communicator);
  }
  return Invalid(absl::StrCat("there is no device ", peer, " to meet"));
}

int32_t Send(const Shardcall_FfiDevice* c, int32_t to, const void* data, int64_t bytes) {
  return Self(c).Guarded([&]() -> absl::Status {
    const HandlerContext& context = *Self(c).context();
    absl::Status ok = CheckBytes(data, data, bytes);
    if (ok.ok()) ok = CheckPeer(context, to);
    return ok.ok() ? context.communicator->Send(to, data, bytes, Self(c).tag()) : ok;
  });
}

int32_t Recv(const Shardcall_FfiDevice* c, int32_t from, void* data, int64_t bytes) {
  return Self(c).Guarded([&]() -> absl::Status {
    const HandlerContext& context = *Self(c).context();
    absl::Status ok = CheckBytes(data, data, bytes);
    if (ok.ok()) ok = CheckPeer(context, from);
    return ok.ok() ? context.communicator->Recv(from, data, bytes, Self(c).tag()) : ok;
  });
}

absl::Status ReadBuffers(const Shardcall_FfiBuffer* buffers, int32_t count,
                         std::vector<BufferView>* views) {
  constexpr int32_t kMost = 1 << 16, kHighestRank = 64;
  if (count < 0 || count > kMost || (count > 0 && buffers == nullptr)) {
    return Invalid(absl::StrCat(count, " buffers, or none given"));
  }
  for (int32_t k = 0; k < count; ++k) {
    const Shardcall_FfiBuffer& b = buffers[k];
    if (b.rank < 0 || b.rank > kHighestRank || (b.rank > 0 && b.dims == nullptr)) {
      return Invalid(absl::StrCat("buffer ", k, " has rank ", b.rank, " and ",
                                  b.dims == nullptr ? "no dims" : "dims"));
    }
    const auto type = static_cast<ElementType>(b.type);
    views->push_back({type, {b.dims, b.dims + b.rank}, b.data, IsPackedType(type)});
  }
  return absl::OkStatus();
}

int32_t CallComputation(const Shardcall_FfiDevice* c, int32_t index,
                        const Shardcall_FfiBuffer* operands, int32_t num_operands,
                        const Shardcall_FfiBuffer* results, int32_t num_results) {
  return Self(c).Guarded([&]() -> absl::Status {
    const AttachedComputations* called = Self(c).context()->computations;
    if (called == nullptr || index < 0 || index >= called->size()) {
      return Invalid(
          absl::StrCat("computation ", index, " of ", called == nullptr ? 0 : called->size()));
    }
    std::vector<BufferView> in, out;
    absl::Status status = ReadBuffers(operands, num_operands, &in);
    if (status.ok()) status = ReadBuffers(results, num_results, &out);
    return status.ok() ? called->Call(index, in, out) : status;
  });
}

}  // namespace

template <typename Work>
int32_t FfiDevice::Guarded(Work work) {
  absl::Status status;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (context_ == nullptr) {
    status = absl::FailedPreconditionError("the call has ended");
  } else {
    try {
      status = work();
    } catch (const std::exception& e) {
      status = absl::InternalError(e.what());
    } catch (...) {
      status = absl::InternalError("an exception");
    }
  }
  if (status.ok()) return 0;
  if (first_error_.ok()) first_error_ = status;
  message_ = std::string(status.message());
  return static_cast<int32_t>(status.code());
}

template <typename Work, typename Alone>
int32_t FfiDevice::Collective(const int32_t* group, int32_t size, Work work, Alone alone) {
  return Guarded([&]() -> absl::Status {
    const absl::StatusOr<std::vector<int>> devices = ReadGroup(*context_, group, size);
    if (!devices.ok()) return devices.status();
    Communicator* const comm = context_->communicator;
    const bool alone_on_device = context_->device != nullptr && devices->size() == 1;
    if (comm != nullptr && !alone_on_device) return work(*comm, *devices);
    if (devices->size() == 1) return alone();
    return absl::FailedPreconditionError("this program runs without a communicator");
  });
}

FfiDevice::FfiDevice(const HandlerContext& context)
    : context_(&context), tag_(absl::StrCat("%", context.instruction)) {
  if (context.mesh != nullptr && context.mesh->num_devices() == context.num_devices) {
    axes_ = MeshAxesOf(*context.mesh, context.device_ordinal);
  }
  for (const MeshAxisView& axis : axes_) {
    names_.push_back(axis.name.c_str());
    sizes_.push_back(axis.size);
    coordinates_.push_back(axis.coordinate);
  }
  c_.struct_size = sizeof(Shardcall_FfiDevice);
  c_.extension_type = SHARDCALL_FFI_DEVICE;
  c_.version_major = SHARDCALL_FFI_DEVICE_MAJOR;
  c_.version_minor = SHARDCALL_FFI_DEVICE_MINOR;
  c_.device = context.device_ordinal;
  c_.num_devices = context.num_devices;
  c_.num_axes = static_cast<int32_t>(axes_.size());
  c_.num_computations = context.computations == nullptr ? 0 : context.computations->size();
  c_.axis_names = names_.data();
  c_.axis_sizes = sizes_.data();
  c_.axis_coordinates = coordinates_.data();
  c_.devices_along = DevicesAlongAxis;
  c_.barrier = Barrier;
  c_.all_reduce = AllReduce;
  c_.reduce_scatter = ReduceScatter;
  c_.all_gather = AllGather;
  c_.all_to_all = AllToAll;
  c_.broadcast = Broadcast;
  c_.send = Send;
  c_.recv = Recv;
  c_.call_computation = CallComputation;
  c_.message = Message;
  c_.reserved = this;
}

void FfiDevice::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  context_ = nullptr;
}

absl::Status FfiDevice::first_error() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return first_error_;
}

const char* FfiDevice::Message(const Shardcall_FfiDevice* c) { return Self(c).message_.c_str(); }

}  // namespace internal
}  // namespace shardcall
