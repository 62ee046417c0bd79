// SPDX-License-Identifier: Apache-2.0
// Takes over JAX's registrations for XLA plugins: partitioners of targets, and targets with batch
// dims. JAX gets a PJRT table that has only the extension for these registrations.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/read_program.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/framework_partitioners.h"
#include "shardcall/partitioner/bindings/python/core.h"
#include "shardcall/partitioner/bindings/python/interpreter.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/status.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

// One per process, like JAX's own registrations.
struct Registered {
  // These two under the lock of the process.
  // Null: calls of the target specify their batch dims. The last registration of a name counts, as
  // in XLA.
  std::map<std::string, std::shared_ptr<Shardcall_PjrtCallbacks>> targets;
  int64_t changes = 0;
  nb::object to_hlo;  // converts StableHLO bytes to a serialised HloModuleProto

  static Registered& OfProcess() {
    return MadeAtFirstUse([] { return new Registered; });  // Python ends before statics
  }
};

// Callbacks are never freed: programs in JAX's caches may call them.
void Set(std::string name, Shardcall_PjrtCallbacks* callbacks) {
  Registered& r = Registered::OfProcess();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  r.targets[std::move(name)] =
      std::shared_ptr<Shardcall_PjrtCallbacks>(callbacks, [](Shardcall_PjrtCallbacks*) {});
  ++r.changes;
}

pjrt::abi::Error* RegisterPartitioner(pjrt::abi::PartitionerArgs* args) {
  Set(std::string(args->name, args->name_size), args->callbacks);
  return nullptr;
}

pjrt::abi::Error* RegisterBatchPartitionable(pjrt::abi::RegistrationArgs* args) {
  Set(std::string(args->name, args->name_size), nullptr);
  return nullptr;
}

// The program that a partitioner returns, as a serialised HloModuleProto. StableHLO is converted by
// JAX's Python code or by a plugin that is found; HLO is unchanged. Called from a thread that
// partitions.
absl::StatusOr<std::string> ToHlo(absl::string_view program) {
  if (!LooksLikeStablehlo(program) || !Registered::OfProcess().to_hlo.is_valid()) {
    SHARDCALL_ASSIGN_OR_RETURN(const Module module,
                               pjrt::ReadProgram(std::make_shared<const std::string>(program),
                                                 "a local computation", TargetRegistry()));
    return WriteModuleProto(module);
  }
  const GilAcquire acquire;
  try {
    const nb::object made =
        Registered::OfProcess().to_hlo(nb::bytes(program.data(), program.size()));
    const nb::bytes bytes = nb::cast<nb::bytes>(made);
    return std::string(bytes.c_str(), bytes.size());
  } catch (const std::exception& e) {
    return ToStatus(
        {.code = "E120",
         .message = absl::StrCat("a partitioner gave a program that cannot be read: ", e.what()),
         .fix = "Give a module of StableHLO"});
  }
}

// A program as StableHLO, which XLA reads where it asks a partitioner.
absl::StatusOr<std::string> ToStablehlo(absl::string_view program) {
  if (LooksLikeStablehlo(program)) return std::string(program);
  SHARDCALL_ASSIGN_OR_RETURN(const Module module,
                             pjrt::ReadProgram(std::make_shared<const std::string>(program),
                                               "a local computation", TargetRegistry()));
  return WriteStablehloBytecode(module, {.all_call_layouts = true});
}

}  // namespace

const void* FrameworkTable() {
  static pjrt::abi::PartitionerExtension extension = {
      {sizeof(extension), pjrt::abi::kPartitionerExtension, nullptr},
      RegisterPartitioner,
      RegisterBatchPartitionable};
  static const pjrt::abi::Api table = {{offsetof(pjrt::abi::Api, functions), &extension.base},
                                       {{sizeof(pjrt::abi::Version), nullptr},
                                        pjrt::abi::kMajorVersion,
                                        pjrt::abi::kIotaGroupsMinorVersion},
                                       {nullptr}};
  return &table;
}

absl::Status AddPartitioner(const std::string& name, Shardcall_PjrtCallbacks* callbacks) {
  // Report it here: a shipped rule would otherwise take precedence silently.
  const std::shared_ptr<const Registry> shipped = DefaultRegistry();
  if (name.empty() || (callbacks != nullptr && shipped->rules.Find(name, "") != nullptr)) {
    return ToStatus(
        {.code = "E105",
         .message = name.empty() ? std::string("a target without a name")
                                 : absl::StrCat("target \"", name, "\" has a shipped rule"),
         .fix = "Give the target a name of its own"},
        absl::StatusCode::kAlreadyExists);
  }
  Set(name, callbacks);
  return absl::OkStatus();
}

void ChangedRegistrations() {
  Registered& r = Registered::OfProcess();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  ++r.changes;
}

absl::Status AddFrameworkTargets(TargetRegistry* rules) {
  Registered& r = Registered::OfProcess();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  for (const auto& [name, callbacks] : r.targets) {
    if (rules->Find(name, "") != nullptr) continue;  // the user's own rule, or a shipped one
    SHARDCALL_RETURN_IF_ERROR(
        callbacks == nullptr
            ? rules->RegisterBatchPartitionable(name, kBatchDimsOfCall, "", "framework")
            : rules->RegisterCustomCallPartitioner(
                  name, pjrt::CallbacksOfFramework(callbacks, ToHlo), "", "framework"));
  }
  return absl::OkStatus();
}

void DefineFramework(nb::module_& m) {
  // For the plugin whose PJRT_Api* is in the capsule.
  m.def(
      "register_handler",
      [](const nb::capsule& c_api, const std::string& name, const std::string& platform,
         uintptr_t function) {
        Check(RegisterHandlerWithPjrt(c_api.data(), name, platform,
                                      reinterpret_cast<const void*>(function)));
      },
      "c_api"_a, "name"_a, "platform"_a, "function"_a);
  // A PJRT_Api* in a capsule, as JAX has for plugins.
  m.def("framework_api", [] { return nb::capsule(FrameworkTable(), "pjrt_c_api"); });
  m.def("set_stablehlo_to_hlo",
        [](nb::object to_hlo) { Registered::OfProcess().to_hlo = std::move(to_hlo); });
  m.def(
      "to_stablehlo",
      [](const nb::bytes& program) { return ToBytes(Take(ToStablehlo(ViewOf(program)))); },
      "program"_a);
  // The targets that have a partitioner.
  m.def("partitioned_targets", [] {
    Registered& r = Registered::OfProcess();
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    std::vector<std::string> names;
    for (const auto& [name, callbacks] : r.targets) {
      if (callbacks != nullptr) names.push_back(name);
    }
    return names;
  });
  // The number of changes, which grows with each registration.
  m.def("registrations", [] {
    Registered& r = Registered::OfProcess();
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    return r.changes;
  });
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
