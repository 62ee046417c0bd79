// SPDX-License-Identifier: Apache-2.0
// The devices of a PJRT plugin in this process.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_CLIENT_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_plugin.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

using CreateValue = absl::variant<std::string, int64_t, bool>;
// By name, as documented by the plugin.
using CreateOptions = std::vector<std::pair<std::string, CreateValue>>;
// The value for a text: a number, true or false, or else a string.
CreateValue OptionValue(absl::string_view text);
// The same in PJRT's form; refers to `options`.
std::vector<abi::NamedValue> NamedValues(const CreateOptions& options);

class Client {
 public:
  // A client with at least `num_devices` devices; a platform of host devices is requested to make
  // so many if it has fewer by default. E334 for errors of the plugin, E335 for too few devices.
  static absl::StatusOr<std::shared_ptr<const Client>> Create(std::shared_ptr<const Plugin> plugin,
                                                              int num_devices,
                                                              const CreateOptions& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Plugin& plugin() const { return *plugin_; }
  const std::string& platform() const { return platform_; }  // "cpu", "cuda"
  abi::Client* handle() const { return client_; }
  absl::Span<abi::Device* const> devices() const { return devices_; }
  absl::Span<const int64_t> device_ids() const { return ids_; }

 private:
  explicit Client(std::shared_ptr<const Plugin> plugin) : plugin_(std::move(plugin)) {}
  absl::Status Open(const CreateOptions& options);

  std::shared_ptr<const Plugin> plugin_;
  abi::Client* client_ = nullptr;
  std::string platform_;
  std::vector<abi::Device*> devices_;
  std::vector<int64_t> ids_;
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_CLIENT_H_
