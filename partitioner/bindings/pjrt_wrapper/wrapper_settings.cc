// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_settings.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/api/lower_calls.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/version.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "shardcall/partitioner/bindings/pjrt/find_plugin.h"
#include "shardcall/sharding/base/stable_hash.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

std::string FileName(absl::string_view module) {
  std::string name(module.substr(0, 100));
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '-' && c != '.') c = '_';
  }
  return name;
}

}  // namespace

WrapperSettings SettingsOfEnvironment() {
  return {
      .wrapped = EnvironmentVariable("SHARDCALL_WRAPPED_PLUGIN"),
      .plugins = absl::StrSplit(EnvironmentVariable("SHARDCALL_PLUGINS"), ':', absl::SkipEmpty()),
      .allow_replicate =
          absl::StrSplit(EnvironmentVariable("SHARDCALL_ALLOW_REPLICATE"), ',', absl::SkipEmpty()),
      .report = EnvironmentVariable("SHARDCALL_REPORT")};
}

absl::Status FillRegistry(const WrapperSettings& settings, Registry* registry) {
  SHARDCALL_RETURN_IF_ERROR(
      RegisterBuiltins(registry->rules, registry->handlers, registry->lowerings));
  SHARDCALL_RETURN_IF_ERROR(registry->lowerings.Register(
      "", "Host", LowerToHandlers(&registry->handlers, &registry->rules), "built in"));
  for (const std::string& plugin : settings.plugins) {
    SHARDCALL_RETURN_IF_ERROR(
        LoadPlugin(plugin, &registry->rules, &registry->handlers, &registry->lowerings));
  }
  return absl::OkStatus();
}

std::string RulesVersion(const WrapperSettings& settings) {
  StableHash hash;
  const auto add = [&](absl::string_view text) {
    hash.Add(text).AddWord(text.size());  // so that "a", "b" is not "ab"
  };
  for (const std::string& plugin : settings.plugins) {
    // Loading it reports what cannot be read.
    add(ReadWholeFile(plugin).value_or(std::string()));
  }
  for (const std::string& target : settings.allow_replicate) add(target);
  return absl::StrCat("shardcall ", kVersion, " rules ", absl::StrFormat("%016x", hash.value()));
}

absl::Status WriteReport(const WrapperSettings& settings, const PartitionedProgram& program) {
  static std::atomic<int> number{0};
  std::error_code ignored;  // errors are reported by the first write
  std::filesystem::create_directories(settings.report, ignored);
  const std::string path =
      absl::StrCat(settings.report, "/", FileName(program.local.module.header.name), ".", getpid(),
                   ".", number.fetch_add(1));
  const SpmdOptions options;
  SHARDCALL_RETURN_IF_ERROR(
      WriteWholeFile(absl::StrCat(path, ".json"), ReportJson(program, options) + "\n"));
  return WriteWholeFile(absl::StrCat(path, ".html"),
                        Explain(program, options, ExplainFormat::kHtml));
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
