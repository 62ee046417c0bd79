// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/crash_guard.h"
#include "shardcall/kernels/ffi/load/library.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/framework_partitioners.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/refusing_table.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_extensions.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_functions.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/terminal_text.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

// The converter for the program that this thread partitions.
thread_local const Converter* compiling = nullptr;

// The state of this thread, since loading the wrapped library may lead back here.
enum class Making { kNot, kNow, kLedBack };
thread_local Making making = Making::kNot;

absl::StatusOr<const abi::Api*> LoadWrapped(const std::string& path) {
  if (path.empty()) {
    return ToStatus({.code = "E341",
                     .message = "this PJRT plugin wraps another one, and none is named",
                     .fix = "Name it in SHARDCALL_WRAPPED_PLUGIN, such as the xla_cpu_pjrt.so of "
                            "the wheel xla-cpu-pjrt"},
                    absl::StatusCode::kFailedPrecondition);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const Library> library, Library::Open(path));
  const abi::Api* api = nullptr;
  void* const entry = library->Find("GetPjrtApi");
  const bool called = entry != nullptr && CallCatchingSignals([&] {
                        api = reinterpret_cast<const abi::Api* (*)()>(entry)();
                      });
  const bool itself = making == Making::kLedBack;
  if (called && !itself) return api;
  return ToStatus({.code = "E333",
                   .message = absl::StrCat("\"", path, "\" is no PJRT plugin to wrap"),
                   .expected = "a library that exports GetPjrtApi",
                   .found = entry == nullptr ? "none"
                            : itself         ? "this library"
                                             : "a crash in it",
                   .fix = "Name the plugin of a backend in SHARDCALL_WRAPPED_PLUGIN"},
                  absl::StatusCode::kFailedPrecondition);
}

}  // namespace

Wrapper& Wrapper::OfProcess() {
  static Wrapper* const wrapper = new Wrapper;
  return *wrapper;
}

const void* Wrapper::ApiOfProcess() {
  if (making == Making::kNot) return OfProcess().api();
  making = Making::kLedBack;
  return nullptr;
}

Wrapper::Wrapper() : settings_(SettingsOfEnvironment()) {
  making = Making::kNow;
  opened_ = Open();
  making = Making::kNot;
  if (!opened_.ok()) RefuseEverything();
  api_ = table_.data();
}

absl::Status Wrapper::Open() {
  SHARDCALL_ASSIGN_OR_RETURN(const abi::Api* const real, LoadWrapped(settings_.wrapped));
  // The framework initialises it, through our table.
  SHARDCALL_ASSIGN_OR_RETURN(plugin_, Plugin::FromApi(real, settings_.wrapped, false));
  auto registry = std::make_shared<Registry>();
  SHARDCALL_RETURN_IF_ERROR(FillRegistry(settings_, registry.get()));
  registry_ = registry;
  first_registry_ = registry_;
  rules_version_ = RulesVersion(settings_);
  FillTable(real);
  return absl::OkStatus();
}

void Wrapper::FillTable(const void* real) {
  const auto* const table = static_cast<const abi::Api*>(real);
  table_.resize(table->header.struct_size);
  std::memcpy(table_.data(), table, table_.size());
  for (const Replaced& r : ReplacedFunctions()) {
    SetFunction(table_, r.place, r.function);
  }
  abi::Extension* const extensions = WrapExtensions(table->header.extension_start);
  std::memcpy(table_.data() + offsetof(abi::Header, extension_start), &extensions,
              sizeof(extensions));
}

void Wrapper::RefuseEverything() {
  table_ = RefusingTable(RefusingFunction());
  for (const Replaced& r : ReplacedFunctions()) {
    if (r.of_errors) SetFunction(table_, r.place, r.function);
  }
}

const void* Wrapper::Real(int place) const {
  if (plugin_ == nullptr) return nullptr;
  const auto* const table = static_cast<const abi::Api*>(plugin_->c_api());
  if (OffsetOf(place) + sizeof(void*) > table->header.struct_size) return nullptr;
  return *(table->functions + place);
}

absl::StatusOr<absl::variant<PassedThrough, Replacement>> Wrapper::Replace(
    const FrameworkProgram& program, const std::string& platform, abi::Client* client,
    const abi::Topology* topology) {
  const Converter converter(plugin_.get(), platform, client, topology);
  std::shared_ptr<const Registry> registry;
  TakeOverContext context{.plugin = plugin_.get(),
                          .converter = &converter,
                          .platform = platform,
                          .registry = nullptr,
                          .allow_replicate = settings_.allow_replicate,
                          .framework_handlers = {}};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    registry = registry_;
    context.framework_handlers = framework_handlers_;
  }
  context.registry = registry.get();
  const absl::Cleanup done = [before = std::exchange(compiling, &converter)] {
    compiling = before;
  };
  SHARDCALL_ASSIGN_OR_RETURN(auto taken, TakeOver(program, context));
  if (const auto* passed = absl::get_if<PassedThrough>(&taken)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!passed->why.empty() && told_.insert(passed->why).second) {
      std::fprintf(stderr, "W205 a program is left to the partitioner of \"%s\": %s\n",
                   settings_.wrapped.c_str(), passed->why.c_str());
    }
  } else if (!settings_.report.empty()) {
    TellUnwritten(WriteReport(settings_, *absl::get<Replacement>(taken).program));
  }
  return taken;
}

// A program that nobody reports is worth more than none.
void Wrapper::TellUnwritten(const absl::Status& report) {
  if (report.ok()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(told_of_report_, true)) return;
  const absl::string_view code = DiagnosticCode(report);
  const std::string why(absl::StripLeadingAsciiWhitespace(report.message().substr(code.size())));
  std::fprintf(stderr, "W209 no report is written: %s\n", WithoutControls(why).c_str());
}

absl::Status Wrapper::Change(const std::string& target,
                             const std::function<absl::Status(TargetRegistry&)>& change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const TargetRule* rule : registry_->rules.List()) {
    if (rule->target == target) return absl::OkStatus();
  }
  auto changed = std::make_shared<Registry>(*registry_);
  SHARDCALL_RETURN_IF_ERROR(change(changed->rules));
  registry_ = std::move(changed);
  return absl::OkStatus();
}

absl::Status Wrapper::AddPartitioner(std::string target,
                                     std::shared_ptr<Shardcall_PjrtCallbacks> callbacks) {
  return Change(target, [&](TargetRegistry& rules) {
    // A callback runs in the thread that compiles.
    const auto to_hlo = [](absl::string_view program) -> absl::StatusOr<std::string> {
      SHARDCALL_CHECK(compiling != nullptr);
      return compiling->ToHlo(program);
    };
    return rules.RegisterCustomCallPartitioner(
        target, CallbacksOfFramework(std::move(callbacks), to_hlo), "", "the framework");
  });
}

absl::Status Wrapper::AddBatchPartitionable(std::string target) {
  return Change(target, [&](TargetRegistry& rules) {
    return rules.RegisterBatchPartitionable(target, kBatchDimsOfCall, "", "the framework");
  });
}

void Wrapper::NoteHandler(std::string target) {
  const std::lock_guard<std::mutex> lock(mutex_);
  framework_handlers_.insert(std::move(target));
}

const std::string& Wrapper::VersionText(absl::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return *version_texts_.insert(absl::StrCat(text, "\n", rules_version_)).first;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
