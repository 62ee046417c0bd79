// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Function;
using abi::Padded;

// The option for XLA:CPU's number of devices, which is small by default.
constexpr char kHostDeviceCount[] = "cpu_device_count";
constexpr char kHostPlatform[] = "cpu";

bool Says(const CreateOptions& options, absl::string_view name) {
  for (const auto& [known, value] : options) {
    if (known == name) return true;
  }
  return false;
}

}  // namespace

CreateValue OptionValue(absl::string_view text) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  if (text == "true" || text == "false") return text == "true";
  return std::string(text);
}

std::vector<abi::NamedValue> NamedValues(const CreateOptions& options) {
  std::vector<abi::NamedValue> out;
  for (const auto& [name, value] : options) {
    abi::NamedValue v = {};
    v.header.struct_size = sizeof(v);
    v.name = name.data();
    v.name_size = name.size();
    v.value_size = 1;
    if (const auto* text = absl::get_if<std::string>(&value)) {
      v.type = abi::ValueType::kString;
      v.string_value = text->data();
      v.value_size = text->size();
    } else if (const auto* number = absl::get_if<int64_t>(&value)) {
      v.type = abi::ValueType::kInt64;
      v.int64_value = *number;
    } else {
      v.type = abi::ValueType::kBool;
      v.bool_value = absl::get<bool>(value);
    }
    out.push_back(v);
  }
  return out;
}

absl::Status Client::Open(const CreateOptions& options) {
  const std::vector<abi::NamedValue> values = NamedValues(options);
  Padded<abi::ClientCreateArgs> create;
  create.value.options = values.data();
  create.value.num_options = values.size();
  SHARDCALL_RETURN_IF_ERROR(plugin_->Call(Function::kClientCreate, &create));
  client_ = create.value.client;

  Padded<abi::ClientTextArgs> name;
  name.value.client = client_;
  SHARDCALL_RETURN_IF_ERROR(plugin_->Call(Function::kClientPlatformName, &name));
  platform_.assign(name.value.text, name.value.size);

  Padded<abi::ClientDevicesArgs> devices;
  devices.value.client = client_;
  SHARDCALL_RETURN_IF_ERROR(plugin_->Call(Function::kClientAddressableDevices, &devices));
  devices_.assign(devices.value.devices, devices.value.devices + devices.value.num_devices);
  for (abi::Device* device : devices_) {
    Padded<abi::DeviceDescriptionArgs> description;
    description.value.device = device;
    SHARDCALL_RETURN_IF_ERROR(plugin_->Call(Function::kDeviceGetDescription, &description));
    Padded<abi::DescriptionIdArgs> id;
    id.value.description = description.value.description;
    SHARDCALL_RETURN_IF_ERROR(plugin_->Call(Function::kDeviceDescriptionId, &id));
    ids_.push_back(id.value.id);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Client>> Client::Create(std::shared_ptr<const Plugin> plugin,
                                                             int num_devices,
                                                             const CreateOptions& options) {
  const auto open = [&](const CreateOptions& with) -> absl::StatusOr<std::shared_ptr<Client>> {
    std::shared_ptr<Client> client(new Client(plugin));
    SHARDCALL_RETURN_IF_ERROR(client->Open(with));
    return client;
  };
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<Client> client, open(options));
  const auto found = [&] { return static_cast<int>(client->devices_.size()); };
  if (found() < num_devices && client->platform_ == kHostPlatform &&
      !Says(options, kHostDeviceCount)) {
    CreateOptions more = options;
    more.emplace_back(kHostDeviceCount, int64_t{num_devices});
    client.reset();
    SHARDCALL_ASSIGN_OR_RETURN(client, open(more));
  }
  if (found() < num_devices) {
    return ToStatus(
        {.code = "E335",
         .message = absl::StrCat("the PJRT plugin \"", plugin->name(), "\" has too few devices"),
         .expected = absl::StrCat(num_devices, " or more"),
         .found = absl::StrCat(found(), " of platform ", client->platform_),
         .fix = "Run a program for fewer devices, or on a machine that has more"},
        absl::StatusCode::kUnavailable);
  }
  return std::shared_ptr<const Client>(std::move(client));
}

Client::~Client() {
  if (client_ == nullptr) return;
  Padded<abi::ClientArgs> args;
  args.value.client = client_;
  plugin_->Call(Function::kClientDestroy, &args).IgnoreError();
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
