// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_extensions.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Error;
using abi::Extension;
using abi::PartitionerArgs;
using abi::RegistrationArgs;
using Register = Error* (*)(RegistrationArgs*);

struct GpuCustomCalls {
  Extension base;
  Register custom_call;
};
using Partitioners = abi::PartitionerExtension;

// The functions of the wrapped plugin; null if it has none.
Error* (*real_partitioner)(PartitionerArgs*) = nullptr;
Register real_batch_partitionable = nullptr;
Register real_custom_call = nullptr;
Error* (*real_handler)(abi::RegisterHandlerArgs*) = nullptr;

// Forwards the registration, and records whether the plugin accepts it.
template <typename Args>
Error* PassOn(Error* (*real)(Args*), Args* args) {
  Error* const error = real(args);
  if (error == nullptr && args != nullptr && args->name != nullptr) {
    Wrapper::OfProcess().NoteHandler(std::string(args->name, args->name_size));
  }
  return error;
}

Error* RegisterCustomCall(RegistrationArgs* args) { return PassOn(real_custom_call, args); }
Error* RegisterHandler(abi::RegisterHandlerArgs* args) { return PassOn(real_handler, args); }

// If the wrapped plugin takes partitioners, it owns the callbacks for the life of the process;
// otherwise we own them.
Error* RegisterPartitioner(PartitionerArgs* args) {
  if (real_partitioner != nullptr) {
    if (Error* const error = real_partitioner(args)) return error;
  }
  Wrapper& wrapper = Wrapper::OfProcess();
  if (args->name == nullptr || args->callbacks == nullptr) {
    return wrapper.errors().Make(ToStatus(
        {.code = "E148", .message = "a partitioner has no name or callbacks", .fix = "Give both"}));
  }
  const bool owned = real_partitioner == nullptr;
  std::shared_ptr<Shardcall_PjrtCallbacks> callbacks(args->callbacks,
                                                     [owned](Shardcall_PjrtCallbacks* c) {
                                                       if (owned && c->dtor != nullptr) c->dtor(c);
                                                     });
  return wrapper.errors().Make(
      wrapper.AddPartitioner(std::string(args->name, args->name_size), std::move(callbacks)));
}
Error* RegisterBatchPartitionable(RegistrationArgs* args) {
  if (real_batch_partitionable != nullptr) {
    if (Error* const error = real_batch_partitionable(args)) return error;
  }
  Wrapper& wrapper = Wrapper::OfProcess();
  return wrapper.errors().Make(
      wrapper.AddBatchPartitionable(std::string(args->name, args->name_size)));
}

// A permanent copy of the extension, of any version, linked before `next`.
template <typename Known>
Known* Copy(const Extension* real, Extension* next) {
  if (real->struct_size < sizeof(Known)) return nullptr;
  auto* const copy = static_cast<Known*>(std::malloc(real->struct_size));
  std::memcpy(static_cast<void*>(copy), real, real->struct_size);
  copy->base.next = next;
  return copy;
}

}  // namespace

abi::Extension* WrapExtensions(abi::Extension* real) {
  static Partitioners partitioners = {{sizeof(Partitioners), abi::kPartitionerExtension, nullptr},
                                      RegisterPartitioner,
                                      RegisterBatchPartitionable};
  partitioners.base.next = real;
  Extension* first = &partitioners.base;
  for (Extension* e = real; e != nullptr; e = e->next) {
    if (e->type == abi::kPartitionerExtension && e->struct_size >= sizeof(Partitioners)) {
      const auto* const known = reinterpret_cast<const Partitioners*>(e);
      real_partitioner = known->partitioner;
      real_batch_partitionable = known->batch_partitionable;
    } else if (e->type == abi::kGpuCustomCallExtension) {
      auto* const copy = Copy<GpuCustomCalls>(e, first);
      if (copy == nullptr || copy->custom_call == nullptr) continue;
      real_custom_call = copy->custom_call;
      copy->custom_call = RegisterCustomCall;
      first = &copy->base;
    } else if (e->type == abi::kFfiExtension) {
      auto* const copy = Copy<abi::FfiExtension>(e, first);
      if (copy == nullptr || copy->register_handler == nullptr) continue;
      real_handler = copy->register_handler;
      copy->register_handler = RegisterHandler;
      first = &copy->base;
    }
  }
  return first;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
