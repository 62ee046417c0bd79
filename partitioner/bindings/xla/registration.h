// SPDX-License-Identifier: Apache-2.0
// Registration under the names that jaxlib and XLA have for it. A Registry holds
// the rules and the handlers of targets; it is a value that options point into.
//
//   Registry registry;
//   registry.RegisterCustomCallTarget("my_norm", MyNorm, "cpu", kUntypedFfi);
//   registry.RegisterCustomCallAsBatchPartitionable("my_norm");
//   options.partition.targets = &registry.rules;
//   options.handlers = &registry.handlers;
//
// The functions of the same names below fill the registry of the process, which
// libraries share that know nothing of each other.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_REGISTRATION_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_REGISTRATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

struct Shardcall_PjrtCallbacks;  // pjrt_partitioner.h

namespace shardcall SHARDCALL_PUBLIC {

// What a registration says of its function. HLO and manifests say 1 to 4.
inline constexpr int kUntypedFfi = 0;  // the ABI, 1 to 3, is what the call says
inline constexpr int kTypedFfi = 1;    // XLA_FFI_Handler

enum class CustomCallTraits : uint32_t { kDefault = 0, kCommandBufferCompatible = 1 };

// A target as it was registered, whichever way: `function` and `stages` are null for
// one that is no function of XLA's ABIs, such as a handler in C++; `stages` of a typed
// one has `execute` at least.
struct CustomCallTarget {
  std::string name = {}, platform = {};  // as PlatformFromName spells it: Host, CUDA, ..
  int api_version = kUntypedFfi;
  CustomCallTraits traits = CustomCallTraits::kDefault;
  const void* function = nullptr;  // untyped, or `execute`
  abi::HandlerBundle stages = {};  // typed
};

// Is given every target of its platform: functions, those of manifests and plugins,
// and the shipped ones. What it returns is what the registration returns; a target
// that it refuses is not registered. A throw is E121.
using CustomCallHandler = std::function<absl::Status(const CustomCallTarget& target)>;
// Likewise for type ids.
using CustomTypeIdHandler = std::function<absl::Status(absl::string_view name, int64_t type_id)>;

class Registry {
 public:
  TargetRegistry rules;
  HandlerRegistry handlers;
  LoweringRegistry lowerings;  // for LowerCalls (lower_calls.h)

  // Platforms have any name, as in jaxlib ("cpu", "gpu", "cuda", "rocm") or as in XLA
  // ("Host", "CUDA", "ROCM"; kernels/ffi/platform.h); E141 for an empty one. Functions
  // are not owned and stay valid as long as the registry. E147 (kUnimplemented) for an api version
  // other than 0 and 1, E147 for traits of an untyped function, E144 for a null function or one
  // whose metadata do not fit, E141 for another function of that name and platform; the same one
  // again passes.
  absl::Status RegisterCustomCallTarget(absl::string_view name, const void* function,
                                        absl::string_view platform = "cpu",
                                        int api_version = kUntypedFfi,
                                        CustomCallTraits traits = CustomCallTraits::kDefault);
  template <typename R, typename... A>
  absl::Status RegisterCustomCallTarget(absl::string_view name, R (*function)(A...),
                                        absl::string_view platform = "cpu",
                                        int api_version = kUntypedFfi,
                                        CustomCallTraits traits = CustomCallTraits::kDefault) {
    return RegisterCustomCallTarget(name, reinterpret_cast<const void*>(function), platform,
                                    api_version, traits);
  }
  // A typed handler by stages.
  absl::Status RegisterCustomCallTarget(absl::string_view name, const abi::HandlerBundle& stages,
                                        absl::string_view platform = "cpu",
                                        CustomCallTraits traits = CustomCallTraits::kDefault);
  // `handler` is called with each target of the platform, those registered before
  // it came first; it is not registered if it refuses one of them. E141 if the
  // platform has one.
  absl::Status RegisterCustomCallHandler(absl::string_view platform, CustomCallHandler handler);
  // By name, all that are registered for the platform.
  absl::StatusOr<std::map<std::string, CustomCallTarget>> CustomCallTargets(
      absl::string_view platform) const;

  // E105 where the target has another rule; a partitioner without a `partition`
  // callback only says that calls with side effects may be replicated.
  //
  // With a `c_api`, a PJRT_Api*, that plugin's XLA has the registration, too
  // (pjrt_serving.h): functions and what they refer to then live as long as the
  // process. Where the plugin refuses (E148), nothing is registered.
  absl::Status RegisterCustomCallPartitioner(
      absl::string_view name, PartitionerCallbacks callbacks,
      bool can_side_effecting_have_replicated_sharding = false, const void* c_api = nullptr);
  // Calls say in the frontend attribute num_batch_dims how many leading
  // dimensions are independent; one that does not is E101. `c_api` as above.
  absl::Status RegisterCustomCallAsBatchPartitionable(absl::string_view name,
                                                      const void* c_api = nullptr);
  // Gives the plugin a target that is registered here, whatever its rule is: batch
  // dims, a rule string, callbacks. As they are now; E101 for one without a rule.
  absl::Status PassToPjrt(absl::string_view name, const void* c_api) const;
  // Gives the plugin the function that is registered here for `platform`: E140 without
  // one, E148 for one that a plugin does not take (untyped, or with more stages than
  // execute).
  absl::Status PassHandlerToPjrt(absl::string_view name, absl::string_view platform,
                                 const void* c_api) const;
  // The callbacks that it would have; the caller calls their dtor.
  absl::StatusOr<Shardcall_PjrtCallbacks*> MakePjrtCallbacks(absl::string_view name) const;

  // The number of a type of the typed FFI, `*type_id` being 0 or the one wanted.
  // Numbers are of the process (ffi_types.h); handlers are told per platform.
  absl::Status RegisterCustomTypeId(absl::string_view name, int64_t* type_id,
                                    absl::string_view platform = "cpu",
                                    FfiDeleter deleter = nullptr);
  absl::Status RegisterCustomTypeIdHandler(absl::string_view platform, CustomTypeIdHandler handler);

 private:
  absl::Status Add(CustomCallTarget target);
  absl::StatusOr<Shardcall_PjrtCallbacks*> Serve(const TargetRegistry& from,
                                                 absl::string_view name) const;
  absl::Status Pass(const TargetRegistry& from, absl::string_view name, const void* c_api) const;

  std::map<std::pair<std::string, std::string>, int64_t> types_;  // PlatformKey, name
  std::map<std::string, CustomTypeIdHandler> type_handlers_;      // by PlatformKey
};

// What is shipped: rules, handlers and lowerings.
absl::Status RegisterBuiltins(TargetRegistry& targets, HandlerRegistry& handlers,
                              LoweringRegistry& lowerings);

// A registry that several threads fill and read.
class SharedRegistry {
 public:
  SharedRegistry();  // with the shipped targets

  // As it is now; later registrations are not in it. Never null.
  std::shared_ptr<const Registry> Snapshot();
  // Runs `change` on the registry, one thread at a time; it may register more.
  absl::Status Change(const std::function<absl::Status(Registry&)>& change);

 private:
  std::recursive_mutex mutex_;
  Registry registry_;
  std::shared_ptr<const Registry> snapshot_;  // null where it has changed since
};

// That of the process.
SharedRegistry& ProcessRegistry();
inline std::shared_ptr<const Registry> DefaultRegistry() { return ProcessRegistry().Snapshot(); }

template <typename Function>
absl::Status RegisterCustomCallTarget(absl::string_view name, Function function,
                                      absl::string_view platform = "cpu",
                                      int api_version = kUntypedFfi,
                                      CustomCallTraits traits = CustomCallTraits::kDefault) {
  return ProcessRegistry().Change([&](Registry& r) {
    return r.RegisterCustomCallTarget(name, function, platform, api_version, traits);
  });
}
absl::Status RegisterCustomCallHandler(absl::string_view platform, CustomCallHandler handler);
absl::StatusOr<std::map<std::string, CustomCallTarget>> CustomCallTargets(
    absl::string_view platform);
absl::Status RegisterCustomCallPartitioner(absl::string_view name, PartitionerCallbacks callbacks,
                                           bool can_side_effecting_have_replicated_sharding = false,
                                           const void* c_api = nullptr);
absl::Status RegisterCustomCallAsBatchPartitionable(absl::string_view name,
                                                    const void* c_api = nullptr);
absl::Status PassToPjrt(absl::string_view name, const void* c_api);
absl::Status RegisterCustomTypeId(absl::string_view name, int64_t* type_id,
                                  absl::string_view platform = "cpu", FfiDeleter deleter = nullptr);
absl::Status RegisterCustomTypeIdHandler(absl::string_view platform, CustomTypeIdHandler handler);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_REGISTRATION_H_
