// SPDX-License-Identifier: Apache-2.0
// Registration under the names of jaxlib and XLA. A Registry holds the rules and the handlers of
// targets; it is a value that options refer to.
//
//   Registry registry;
//   registry.RegisterCustomCallTarget("my_norm", MyNorm, "cpu", kUntypedFfi);
//   registry.RegisterCustomCallAsBatchPartitionable("my_norm");
//   options.partition.targets = &registry.rules;
//   options.handlers = &registry.handlers;
//
// The functions of the same names below use the registry of the process, which independent
// libraries share.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_REGISTRATION_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_REGISTRATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "shardcall/sharding/base/synchronized.h"

struct Shardcall_PjrtCallbacks;  // pjrt_partitioner.h

namespace shardcall SHARDCALL_PUBLIC {

// The ABI of a registered function. HLO and manifests have the numbers 1 to 4.
inline constexpr int kUntypedFfi = 0;  // the ABI, 1 to 3, is what the call says
inline constexpr int kTypedFfi = 1;    // XLA_FFI_Handler

enum class CustomCallTraits : uint32_t { kDefault = 0, kCommandBufferCompatible = 1 };

// A registered target. `function` and `stages` are null for a handler that is not a function of
// XLA's ABIs, such as one in C++; `stages` of a typed one has at least `execute`.
struct CustomCallTarget {
  std::string name = {}, platform = {};  // as PlatformFromName spells it: Host, CUDA, ..
  int api_version = kUntypedFfi;
  CustomCallTraits traits = CustomCallTraits::kDefault;
  const void* function = nullptr;  // untyped, or `execute`
  abi::HandlerBundle stages = {};  // typed
};

// Called with every target of its platform: registered functions, those of manifests and plugins,
// and the shipped ones. Its result is that of the registration; a target that it refuses is not
// registered. A throw is E121.
using CustomCallHandler = std::function<absl::Status(const CustomCallTarget& target)>;
// The same for type ids.
using CustomTypeIdHandler = std::function<absl::Status(absl::string_view name, int64_t type_id)>;

// Any threads may register with it and look things up in it at once, as in its three members. A
// registration with a `c_api` that fails undoes those that others make meanwhile: make it alone.
class Registry {
 public:
  TargetRegistry rules;
  HandlerRegistry handlers;
  LoweringRegistry lowerings;  // for LowerCalls (lower_calls.h)

  // Platforms have any name, as in jaxlib ("cpu", "gpu", "cuda", "rocm") or as in XLA ("Host",
  // "CUDA", "ROCM"; kernels/ffi/platform.h); E141 for an empty one. Functions are not owned and
  // must stay valid as long as the registry. E147 (kUnimplemented) for an api version other than 0
  // and 1, and for traits of an untyped function; E144 for a null function or one whose metadata
  // do not fit; E141 for another function of that name and platform. Registering the same one
  // again is OK.
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
  // A typed handler given by its stages.
  absl::Status RegisterCustomCallTarget(absl::string_view name, const abi::HandlerBundle& stages,
                                        absl::string_view platform = "cpu",
                                        CustomCallTraits traits = CustomCallTraits::kDefault);
  // `handler` is called with each target of the platform, the existing ones first; it is not
  // registered if it refuses one of those. E141 if the platform has a handler already.
  absl::Status RegisterCustomCallHandler(absl::string_view platform, CustomCallHandler handler);
  // All targets that are registered for the platform, by name.
  absl::StatusOr<std::map<std::string, CustomCallTarget>> CustomCallTargets(
      absl::string_view platform) const;

  // E105 if the target has another rule. A partitioner without a `partition` callback only
  // declares that calls with side effects may be replicated.
  //
  // With a `c_api`, a PJRT_Api*, it is also registered with that plugin's XLA (pjrt_serving.h):
  // functions and what they refer to must then live until the process ends. If the plugin refuses
  // (E148), nothing is registered.
  absl::Status RegisterCustomCallPartitioner(
      absl::string_view name, PartitionerCallbacks callbacks,
      bool can_side_effecting_have_replicated_sharding = false, const void* c_api = nullptr);
  // Calls give in the frontend attribute num_batch_dims how many leading dimensions are
  // independent; a call without it is E101. `c_api` as above.
  absl::Status RegisterCustomCallAsBatchPartitionable(absl::string_view name,
                                                      const void* c_api = nullptr);
  // Registers a target of this registry with the plugin, with its present rule: batch dims, a rule
  // string, or callbacks. E101 for one without a rule.
  absl::Status PassToPjrt(absl::string_view name, const void* c_api) const;
  // Registers the function of this registry for `platform` with the plugin: E140 without one, E148
  // for one that a plugin does not accept (untyped, or with more stages than execute).
  absl::Status PassHandlerToPjrt(absl::string_view name, absl::string_view platform,
                                 const void* c_api) const;
  // The callbacks that PassToPjrt would register; the caller calls their dtor.
  absl::StatusOr<Shardcall_PjrtCallbacks*> MakePjrtCallbacks(absl::string_view name) const;

  // The number of a type of the typed FFI; `*type_id` is 0 or the requested number. Numbers are
  // per process (ffi_types.h); type id handlers are per platform.
  absl::Status RegisterCustomTypeId(absl::string_view name, int64_t* type_id,
                                    absl::string_view platform = "cpu",
                                    FfiDeleter deleter = nullptr);
  absl::Status RegisterCustomTypeIdHandler(absl::string_view platform, CustomTypeIdHandler handler);

 private:
  absl::Status Add(CustomCallTarget target);
  absl::StatusOr<Shardcall_PjrtCallbacks*> Serve(const TargetRegistry& from,
                                                 absl::string_view name) const;
  absl::Status Pass(const TargetRegistry& from, absl::string_view name, const void* c_api) const;

  struct Types {
    std::map<std::pair<std::string, std::string>, int64_t> ids;  // PlatformKey, name
    std::map<std::string, CustomTypeIdHandler> handlers;         // by PlatformKey
  };
  Synchronized<Types> types_;
};

// Registers everything that is shipped: rules, handlers and lowerings.
absl::Status RegisterBuiltins(TargetRegistry& targets, HandlerRegistry& handlers,
                              LoweringRegistry& lowerings);

// A registry whose readers get a state that no later registration changes. Any thread may call it.
class SharedRegistry {
 public:
  SharedRegistry();  // with the shipped targets
  SharedRegistry(const SharedRegistry&) = delete;
  SharedRegistry& operator=(const SharedRegistry&) = delete;

  // The present state, without later registrations. Never null.
  std::shared_ptr<const Registry> Snapshot();
  // Runs `change` on the registry, one thread at a time; it may itself register.
  absl::Status Change(const std::function<absl::Status(Registry&)>& change);

 private:
  // Held for a while, also while other threads are waited for. So no fork waits for it; a child
  // has another.
  struct Turn;
  std::shared_ptr<Turn> ForThisProcess();

  std::shared_ptr<Turn> turn_;
  Registry registry_;
  std::shared_ptr<const Registry> snapshot_;  // null where it has changed since
};

// The registry of the process.
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
