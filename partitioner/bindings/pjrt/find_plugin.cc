// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/find_plugin.h"

#include <glob.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

constexpr const char* kNamedBy[] = {"SHARDCALL_CONVERTER", "SHARDCALL_WRAPPED_PLUGIN"};
// Python's package folders, in an environment and in the system.
constexpr const char* kPackages[] = {"/lib/python3*/site-packages", "/lib/python3*/dist-packages",
                                     "/lib/python3/dist-packages"};
constexpr const char* kPlugins[] = {"/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
                                    "/jax_plugins/xla_cuda1[23]/xla_cuda_plugin.so"};

// The last of the matching files by name, which is the one of the newest Python; empty if there is
// none.
std::string Last(const std::string& pattern) {
  glob_t found;
  std::string path;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0) {
    path = found.gl_pathv[found.gl_pathc - 1];
  }
  globfree(&found);
  return path;
}

std::vector<std::string> PackageFolders() {
  std::vector<std::string> folders;
  for (absl::string_view entry :
       absl::StrSplit(EnvironmentVariable("PYTHONPATH"), ':', absl::SkipEmpty())) {
    folders.emplace_back(entry);
  }
  for (const std::string& prefix :
       {EnvironmentVariable("VIRTUAL_ENV"), EnvironmentVariable("CONDA_PREFIX"),
        absl::StrCat(EnvironmentVariable("HOME"), "/.local"), std::string("/usr/local"),
        std::string("/usr")}) {
    if (prefix.empty()) continue;
    for (const char* packages : kPackages) folders.push_back(absl::StrCat(prefix, packages));
  }
  return folders;
}

}  // namespace

std::string EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FindConverter() {
  for (const char* variable : kNamedBy) {
    if (std::string path = EnvironmentVariable(variable); !path.empty()) return path;
  }
  const std::vector<std::string> folders = PackageFolders();
  for (const char* plugin : kPlugins) {
    for (const std::string& folder : folders) {
      if (std::string path = Last(absl::StrCat(folder, plugin)); !path.empty()) return path;
    }
  }
  return "";
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
