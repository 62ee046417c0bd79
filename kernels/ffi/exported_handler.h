// SPDX-License-Identifier: Apache-2.0
// Makes handlers of a HandlerRegistry callable by another runtime of XLA's typed FFI, the opposite
// of typed_handler.h. A call frame does not name its target, so each target gets its own function
// out of a fixed number of them.
#ifndef SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_
#define SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// Information for the handler that a call frame lacks. The handler has no state between calls, and
// a communicator only in a call with a site.
struct ExportedCall {
  int num_devices = 1;
  int api_version = 4;         // of the call; below 4 its attributes are plain text
  std::string backend_config;  // as text, which a frame lacks
  // Opens the device of a handler for another platform than Host; its calls have the stream and the
  // memory of the frame.
  HandlerDeviceOpener opener = {};
};
struct ExportedFunction {
  abi::Handler* function;
  int number;  // of this function among all
};

// How a device of the other runtime meets those that run the same call.
class SiteDevices {
 public:
  struct Device {
    int partition = 0;
    Communicator* communicator = nullptr;  // null: the others cannot be reached
    std::shared_ptr<void> keeps;           // the communicator
  };
  virtual ~SiteDevices() = default;
  // The device of that ordinal in the other runtime, in a run of that id. Thread-safe.
  virtual absl::StatusOr<Device> Enter(int ordinal, int64_t run_id) = 0;
};

// One call of a program of several devices. The call has `number` as its attribute kSiteAttribute,
// an i64, which the handler does not see.
struct ExportedSite {
  int64_t number = 0;
  std::string instruction;  // its name, for messages
  int num_devices = 1;
  std::shared_ptr<const BaseMesh> mesh;  // null: none
  std::shared_ptr<SiteDevices> devices;  // never null
};
inline constexpr absl::string_view kSiteAttribute = "shardcall.site";
// Kept until the process ends, because it is unknown when programs with it run for the last time.
// A site of a number that is there already is dropped: it must mean the same.
void AddExportedSite(ExportedSite site);

// The function for a target, platform, API version and text. It exists until the process ends,
// because it is unknown when the other runtime stops using it. It calls the entry that was
// exported last. kResourceExhausted (E140) when all functions are in use.
//
// It accepts frames of every version up to 0.5, and declares version 0.1. What a handler throws
// becomes an error of its call, like an error that it returns.
absl::StatusOr<ExportedFunction> ExportHandler(const HandlerEntry& entry, const ExportedCall& call);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_
