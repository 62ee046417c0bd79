// SPDX-License-Identifier: Apache-2.0
// A library that exports GetPjrtApi: one of XLA's backends. A plugin stays loaded until the
// process ends, as PJRT requires.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PLUGIN_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PLUGIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// Formats of programs.
inline constexpr absl::string_view kHloFormat = "hlo";    // a serialised HloModuleProto
inline constexpr absl::string_view kMlirFormat = "mlir";  // a module, as text or bytecode

// PJRT_Program, which refers to both texts.
abi::Padded<abi::Program> ProgramOf(absl::string_view format, absl::string_view code);

class Plugin {
 public:
  // E333 for a file that is not a plugin, or has an unsupported version; E334 for errors during
  // its initialisation.
  static absl::StatusOr<std::shared_ptr<const Plugin>> Open(const std::string& path);
  // The same for an existing PJRT_Api*, which must stay valid. `name` is for messages. Without
  // `initialize` its owner initialises it (PJRT_Plugin_Initialize).
  static absl::StatusOr<std::shared_ptr<const Plugin>> FromApi(const void* api, std::string name,
                                                               bool initialize = true);

  const std::string& name() const { return name_; }  // the path
  int minor_version() const { return api_->version.minor; }
  const void* c_api() const { return api_; }

  // Calls `function` of the table. E334, with the plugin's code and message, if it fails, or if
  // the plugin does not have it.
  template <typename Args>
  absl::Status Call(abi::Function function, abi::Padded<Args>* args) const {
    return CallAny(function, args);
  }
  void Destroy(abi::Executable* executable) const;
  void Destroy(abi::LoadedExecutable* executable) const;

 private:
  Plugin(const abi::Api* api, std::string name) : api_(api), name_(std::move(name)) {}
  const void* Find(abi::Function function) const;
  absl::Status CallAny(abi::Function function, void* args) const;
  absl::Status Take(const abi::Error* error, abi::Function function) const;

  const abi::Api* api_;
  std::string name_;
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PLUGIN_H_
