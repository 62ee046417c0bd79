// SPDX-License-Identifier: Apache-2.0
// What JAX registers for its plugins' XLA, partitioners of targets and targets with batch
// dims, registered with us: JAX is given a table of PJRT that has that extension and nothing
// else.
#include <nanobind/stl/string.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "partitioner/api/pjrt_partitioner.h"
#include "partitioner/bindings/pjrt/pjrt_abi.h"
#include "partitioner/bindings/pjrt_wrapper/framework_partitioners.h"
#include "partitioner/bindings/python/core.h"
#include "sharding/status.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace shardcall::python {
namespace {

// Of the process, as JAX's own.
struct Registered {
  std::mutex mutex;
  // Null: calls of the target say their batch dims.
  std::vector<std::pair<std::string, std::shared_ptr<Shardcall_PjrtCallbacks>>> targets;
  nb::object to_hlo;  // StableHLO as bytes -> a serialised HloModuleProto

  static Registered& OfProcess() {
    static auto* const registered = new Registered;  // Python's objects end before statics
    return *registered;
  }
};

pjrt::abi::Error* RegisterPartitioner(pjrt::abi::PartitionerArgs* args) {
  Registered& r = Registered::OfProcess();
  const std::lock_guard<std::mutex> lock(r.mutex);
  // They live as long as the process: programs in JAX's caches may ask them.
  r.targets.emplace_back(
      std::string(args->name, args->name_size),
      std::shared_ptr<Shardcall_PjrtCallbacks>(args->callbacks, [](Shardcall_PjrtCallbacks*) {}));
  return nullptr;
}

pjrt::abi::Error* RegisterBatchPartitionable(pjrt::abi::RegistrationArgs* args) {
  Registered& r = Registered::OfProcess();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.targets.emplace_back(std::string(args->name, args->name_size), nullptr);
  return nullptr;
}

// JAX's Python code, from a thread that partitions.
absl::StatusOr<std::string> StablehloToHlo(absl::string_view program) {
  const nb::gil_scoped_acquire acquire;
  try {
    const nb::object made =
        Registered::OfProcess().to_hlo(nb::bytes(program.data(), program.size()));
    const nb::bytes bytes = nb::cast<nb::bytes>(made);
    return std::string(bytes.c_str(), bytes.size());
  } catch (const std::exception& e) {
    return ToStatus({.code = "E120",
                     .message = absl::StrCat("a partitioner gave a program that cannot be read: ",
                                             e.what()),
                     .fix = "Give a module of StableHLO"});
  }
}

const void* Table() {
  static pjrt::abi::PartitionerExtension extension = {
      {sizeof(extension), pjrt::abi::kPartitionerExtension, nullptr},
      RegisterPartitioner,
      RegisterBatchPartitionable};
  static const pjrt::abi::Api table = {
      {offsetof(pjrt::abi::Api, functions), &extension.base},
      {{sizeof(pjrt::abi::Version), nullptr}, pjrt::abi::kMajorVersion,
       pjrt::abi::kIotaGroupsMinorVersion},
      {nullptr}};
  return &table;
}

}  // namespace

absl::Status AddFrameworkTargets(TargetRegistry* rules) {
  Registered& r = Registered::OfProcess();
  const std::lock_guard<std::mutex> lock(r.mutex);
  for (const auto& [name, callbacks] : r.targets) {
    if (rules->Find(name, "") != nullptr) continue;  // the user's own rule, or a shipped one
    SHARDCALL_RETURN_IF_ERROR(
        callbacks == nullptr
            ? rules->RegisterBatchPartitionable(name, kBatchDimsOfCall, "", "framework")
            : rules->RegisterCustomCallPartitioner(
                  name, pjrt::CallbacksOfFramework(callbacks, StablehloToHlo), "", "framework"));
  }
  return absl::OkStatus();
}

void DefineFramework(nb::module_& m) {
  // Of a plugin whose PJRT_Api* the capsule has.
  m.def("register_handler",
        [](const nb::capsule& c_api, const std::string& name, const std::string& platform,
           uintptr_t function) {
          Check(RegisterHandlerWithPjrt(c_api.data(), name, platform,
                                        reinterpret_cast<const void*>(function)));
        },
        "c_api"_a, "name"_a, "platform"_a, "function"_a);
  // A PJRT_Api*, as JAX has those of plugins.
  m.def("framework_api", [] { return nb::capsule(Table(), "pjrt_c_api"); });
  m.def("set_stablehlo_to_hlo",
        [](nb::object to_hlo) { Registered::OfProcess().to_hlo = std::move(to_hlo); });
}

}  // namespace shardcall::python
