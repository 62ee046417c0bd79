// SPDX-License-Identifier: Apache-2.0
// The run-time side of a custom-call target: a handler, which gets dense, row-major local buffers
// (in the layouts that the call states), attributes and a context, and fills its results. Handlers
// are kept in a HandlerRegistry, a value that is passed around. Rules (compile time) are in a
// registry of the partitioner; the target's name connects the two.
//
// Handlers for platform CUDA get device pointers, and their device with its stream in the context.
// The runtime waits for work that they leave on the stream (staged_call.h).
//
// A handler may be called on several devices' threads at once. It must write every element of
// every result, must not read a result before writing it, and reports errors in its operands or
// attributes as a Status, never by throwing.
#ifndef SHARDCALL_KERNELS_FFI_HANDLER_H_
#define SHARDCALL_KERNELS_FFI_HANDLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/kernels/ffi/handler_device.h"
#include "shardcall/kernels/ffi/kept_states.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/base/synchronized.h"
#include "shardcall/sharding/element_type.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall SHARDCALL_PUBLIC {

// Whether XLA has several elements of this type in a byte: those of 1, 2 and 4 bits.
bool IsPackedType(ElementType type);

// A dense buffer in row-major order of `dims`. Not owned. Tokens have rank 0
// and null data. Types narrower than a byte take one byte an element, unless it is packed.
struct BufferView {
  ElementType type = ElementType::kInvalid;
  std::vector<int64_t> dims;
  void* data = nullptr;
  bool packed = false;  // several elements in a byte, see packed_buffers.h

  int64_t num_elements() const;
  int64_t byte_size() const;
  int rank() const { return static_cast<int>(dims.size()); }
  std::string ToString() const;  // "f32[4,8]"
};

// State that handlers keep for one call of one program, such as that of an FFI `instantiate`
// stage: made by the first device that needs it, shared by all.
class CallSite : public KeptStates {};

// Computations attached to a call (called_computations), run on its device.
class AttachedComputations {
 public:
  virtual ~AttachedComputations() = default;
  virtual int size() const = 0;
  // E133 if operands or results do not match the computation.
  virtual absl::Status Call(int index, absl::Span<const BufferView> operands,
                            absl::Span<const BufferView> results) const = 0;
};

// What a handler is told about its call and its device.
struct HandlerContext {
  absl::string_view target = {};
  absl::string_view instruction = {};            // name, for messages
  const AttributeMapView* attributes = nullptr;  // null: there are none
  absl::string_view backend_config = {};         // as in the text
  int device_ordinal = 0;                        // partition id
  int num_devices = 1;
  Communicator* communicator = nullptr;        // null when run on one device
  std::shared_ptr<HandlerDevice> device = {};  // that holds the buffers; null: host memory
  const BaseMesh* mesh = nullptr;              // of the program; null: none. See mesh_view.h
  const AttachedComputations* computations = nullptr;   // null: there are none
  int api_version = 4;                                  // of the call, 1 to 4
  bool tuple_result = false;                            // of the call, even with one leaf
  int64_t run_id = 0;                                   // one for all devices of a run
  absl::Duration deadline = absl::Seconds(60);          // for asynchronous work
  CallSite* call_site = nullptr;                        // null: nothing is kept
  const std::map<int64_t, void*>* user_data = nullptr;  // by FFI type id; null: none
  // Gives an owner of all operands and results, for work that has missed its deadline.
  std::function<std::shared_ptr<const void>()> keep_buffers = {};

  // Never null.
  const AttributeMapView& attribute_map() const;
};

using HostHandler =
    std::function<absl::Status(const HandlerContext& context, absl::Span<const BufferView> operands,
                               absl::Span<const BufferView> results)>;

struct HandlerEntry {
  std::string target = {};
  std::string platform = "Host";  // registered as PlatformFromName spells it
  int api_version = 4;            // as in HLO, 1 to 4; 0: an untyped ABI, that of the call
  bool own_version_only = false;  // calls of other versions are refused, E140
  std::vector<std::string> traits = {};
  std::string source = {};          // "built in" or a library's path
  std::string backend_config = {};  // only calls with this text; empty: any
  // Whether the handler's code takes packed buffers, which the ABIs of libraries do: callers should
  // give it those. `host` converts others.
  bool packed = false;
  HostHandler host = {};
  std::vector<const void*> functions = {};  // of a library; entries with equal ones are equal

  std::string ApiText() const;  // "4", "1 to 3" or, if calls of every version are accepted, "any"
};

// Any threads may register, look up and copy at once; while a watcher is told of an entry, others
// wait. Rewind and SetUserData are for a time when no program that uses the registry runs.
class HandlerRegistry {
 public:
  // kAlreadyExists (E141) if the target is registered for that platform and that backend_config
  // already, unless it is the same: equal functions of a library, with the same API version.
  // kInvalidArgument (E141) for an entry without name, platform or handler, and for a name that
  // begins with $, which XLA reserves.
  absl::Status Register(HandlerEntry entry);
  // The watcher is called with every entry of a platform, the existing ones first. An entry that
  // it refuses is not registered; if it refuses an existing one, the watcher itself is not. It may
  // register more entries. A throw is E121. E141 if the platform has a watcher.
  using Watcher = std::function<absl::Status(const HandlerEntry& entry)>;
  absl::Status Watch(absl::string_view platform, Watcher watcher);
  // Removes all entries except the first `count`.
  void Rewind(size_t count);
  size_t size() const { return state_.Lock()->entries.size(); }
  // The entry for calls with this backend_config, else that for any. E140 if there is none, which
  // lists the platforms that have the target, similar names, and `where` it is called. The pointer
  // stays valid as long as the registry lives and is not moved.
  absl::StatusOr<const HandlerEntry*> Find(absl::string_view target, absl::string_view platform,
                                           absl::string_view backend_config = "",
                                           absl::string_view where = "") const;
  std::vector<const HandlerEntry*> List() const;  // by target, then platform

  // The entry that a run calls: the host's, else one for a platform whose devices can be opened;
  // the other way round with `device_first`. E140 as for Find.
  absl::StatusOr<const HandlerEntry*> FindForRun(absl::string_view target,
                                                 absl::string_view backend_config,
                                                 bool device_first = false) const;
  // Sets how devices of a platform are opened. CUDA devices are available if this build has the
  // toolkit; otherwise, and without a GPU, opening one is E303 (kUnavailable).
  void SetDevices(absl::string_view platform, HandlerDeviceOpener opener) {
    state_.Lock()->devices[PlatformKey(platform)] = std::move(opener);
  }
  HandlerDeviceOpener Devices(absl::string_view platform) const;
  absl::StatusOr<std::shared_ptr<HandlerDevice>> OpenDevice(absl::string_view platform, int ordinal,
                                                            void* stream) const {
    return Devices(platform)(ordinal, stream);  // without a lock, since it may take long
  }

  // The UserData of a type that handlers of the typed FFI get; not owned.
  void SetUserData(int64_t type_id, void* data) { state_.Lock()->user_data[type_id] = data; }
  const std::map<int64_t, void*>& user_data() const { return state_.Lock()->user_data; }

 private:
  // Target, PlatformKey, backend_config.
  using Key = std::tuple<std::string, std::string, std::string>;
  struct State {
    std::map<Key, HandlerEntry> entries;      // pointers to its entries stay valid
    std::vector<Key> order;                   // as registered
    std::map<std::string, Watcher> watchers;  // by PlatformKey
    std::map<int64_t, void*> user_data;
    std::map<std::string, HandlerDeviceOpener> devices;  // those that were set
  };
  absl::Status Tell(const Watcher& watcher, const HandlerEntry& entry) const;

  Synchronized<State> state_;
};

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_HANDLER_H_
