// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/shared_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<void*> OpenSharedLibrary(const std::string& name) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const reason = dlerror();
  return ToStatus({.code = "E303",
                   .message = absl::StrCat("the library ", name, " cannot be loaded"),
                   .expected = "that of the CUDA toolkit",
                   .found = reason == nullptr ? "no reason" : reason,
                   .fix = "Install it with the CUDA toolkit or from its Python wheel, and name its "
                          "folder in LD_LIBRARY_PATH"},
                  absl::StatusCode::kUnavailable);
}

absl::Status FindAddress(void* library, const std::string& library_name, const char* name,
                         void** address) {
  *address = dlsym(library, name);
  if (*address != nullptr) return absl::OkStatus();
  return ToStatus({.code = "E303",
                   .message = absl::StrCat("the library ", library_name, " has no ", name),
                   .expected = "that of the CUDA toolkit, or a newer one",
                   .fix = "Install the version that shardcall was built with"},
                  absl::StatusCode::kUnavailable);
}

}  // namespace internal
}  // namespace shardcall
