// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/load/self_registration.h"

#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/load/loaded_object.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/kernels/ffi/xla/ffi_error.h"
#include "shardcall/kernels/ffi/xla/ffi_table.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/of_this_process.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/synchronized.h"

namespace shardcall {
inline namespace internal {
namespace {

// A registration by a thread that loads nothing, while several others are loading.
struct Unclaimed {
  const void* caller;
  SelfRegistration handler;
};

// What threads of this process load. Never destroyed, since libraries may call at any time.
struct Process {
  std::mutex mutex;
  std::condition_variable load_ended;
  std::vector<LibraryLoad*> open;
  std::vector<Unclaimed> unclaimed;
};
Process& TheProcess() { return *OfThisProcess<Process>(); }

// By handle. A child of fork() has the libraries of its parent.
using Libraries = std::map<const void*, std::shared_ptr<const SelfRegistrations>>;
Synchronized<Libraries>& LoadedLibraries() {
  return MadeAtFirstUse([] { return new Synchronized<Libraries>; });
}

thread_local LibraryLoad* loading = nullptr;

std::string Text(abi::ByteSpan span) {
  return span.ptr == nullptr ? "" : std::string(span.ptr, span.len);
}

absl::Status Refused(absl::string_view target, std::string expected, std::string found,
                     std::string fix) {
  return ToStatus({.code = "E141",
                   .message = absl::StrCat("a handler cannot be registered",
                                           target.empty() ? "" : " as target \"", target,
                                           target.empty() ? "" : "\""),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)});
}

absl::Status ReadArgs(const abi::HandlerRegisterArgs* args, SelfRegistration* out) {
  constexpr char kHeaderFix[] = "register it with XLA_FFI_REGISTER_HANDLER of XLA's headers";
  const size_t size = args == nullptr ? 0 : args->header.struct_size;
  if (size < abi::kHandlerRegisterArgsSize) {
    return Refused("",
                   absl::StrCat("arguments of ", abi::kHandlerRegisterArgsSize, " bytes or more"),
                   args == nullptr ? "null" : absl::StrCat(size), kHeaderFix);
  }
  out->target = Text(args->name);
  out->platform = Text(args->platform);
  out->stages = args->bundle;
  out->traits = size < abi::kHandlerRegisterArgsSize04
                    ? args->traits
                    : reinterpret_cast<const abi::HandlerRegisterArgs04*>(args)->traits;
  if (out->target.empty() || out->platform.empty()) {
    return Refused(out->target, "the name of a target, and of a platform",
                   out->target.empty() ? "a name that is empty" : "a platform that is empty",
                   "give both");
  }
  if (out->stages.execute == nullptr) {
    return Refused(out->target, "a function for stage execute; the others are optional", "null",
                   "give one");
  }
  return absl::OkStatus();
}

}  // namespace

LibraryLoad::LibraryLoad(std::string path) : path_(std::move(path)), before_(loading) {
  struct stat info;
  if (stat(path_.c_str(), &info) == 0) file_ = {info.st_dev, info.st_ino};
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.open.push_back(this);
  loading = this;
}

LibraryLoad::~LibraryLoad() {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  std::erase(process.open, this);  // a child of its start-up code has no open ones
  if (process.open.empty()) process.unclaimed.clear();
  loading = before_;
  process.load_ended.notify_all();
}

bool LibraryLoad::RanStartUpCodeOf(const LibraryLoad& other) const {
  for (const LibraryLoad* own = &other; own != nullptr; own = own->before_) {
    if (own == this) return false;
  }
  return file_ == other.file_ && !found_.empty();
}

void LibraryLoad::Keep(void* handle) {
  Process& process = TheProcess();
  std::vector<const void*> callers;
  {
    const std::lock_guard<std::mutex> lock(process.mutex);
    for (const Unclaimed& u : process.unclaimed) callers.push_back(u.caller);
  }
  // Without our lock, since start-up code that holds the loader's lock may wait for ours.
  callers.erase(std::remove_if(callers.begin(), callers.end(),
                               [&](const void* c) { return HandleAround(c) != handle; }),
                callers.end());
  std::unique_lock<std::mutex> lock(process.mutex);
  // If another thread runs the library's start-up code, dlopen returns to this thread as soon as
  // that is done. The other thread may not have stored the registrations yet.
  process.load_ended.wait(lock, [&] {
    return !found_.empty() ||
           std::none_of(process.open.begin(), process.open.end(),
                        [&](const LibraryLoad* l) { return l->RanStartUpCodeOf(*this); });
  });
  const auto claimed = std::stable_partition(
      process.unclaimed.begin(), process.unclaimed.end(), [&](const Unclaimed& u) {
        return std::find(callers.begin(), callers.end(), u.caller) == callers.end();
      });
  for (auto u = claimed; u != process.unclaimed.end(); ++u) {
    found_.handlers.push_back(std::move(u->handler));
  }
  process.unclaimed.erase(claimed, process.unclaimed.end());
  const auto libraries = LoadedLibraries().Lock();
  std::shared_ptr<const SelfRegistrations>& known = (*libraries)[handle];
  if (known != nullptr && found_.empty()) return;
  auto all = known == nullptr ? std::make_shared<SelfRegistrations>()
                              : std::make_shared<SelfRegistrations>(*known);
  for (SelfRegistration& handler : found_.handlers) all->handlers.push_back(std::move(handler));
  if (all->fault.ok()) all->fault = std::move(found_.fault);
  found_ = {};
  known = std::move(all);
}

bool LoadedByAnotherThread() {
  if (loading != nullptr) return false;
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return !process.open.empty();
}

abi::Error* RegisterHandlerOfLibrary(abi::HandlerRegisterArgs* args) {
  SelfRegistration handler;
  absl::Status status = ReadArgs(args, &handler);
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  LibraryLoad* load = loading;
  if (load == nullptr && process.open.size() == 1) load = process.open[0];
  if (load == nullptr && process.open.empty()) {
    status = Refused(handler.target, "a call while shardcall loads the library",
                     "a call at another time",
                     "register it in the library's start-up code, and name the library in a "
                     "manifest or on --plugin; in a program call RegisterCustomCallTarget");
    return NewFfiError(absl::StatusCode::kFailedPrecondition, status.message());
  }
  if (!status.ok()) {
    abi::Error* const error = NewFfiError(status.code(), status.message());
    if (load != nullptr && load->found_.fault.ok()) {
      load->found_.fault = In(status, absl::StrCat("the start-up code of ", load->path_));
    }
    return error;
  }
  if (load == nullptr) {
    process.unclaimed.push_back({__builtin_return_address(0), std::move(handler)});
  } else {
    load->found_.handlers.push_back(std::move(handler));
  }
  return nullptr;
}

std::shared_ptr<const SelfRegistrations> SelfRegistrationsOf(void* handle) {
  const auto libraries = LoadedLibraries().Lock();
  std::shared_ptr<const SelfRegistrations>& known = (*libraries)[handle];
  if (known == nullptr) known = std::make_shared<const SelfRegistrations>();
  return known;
}

bool RegistersItself(const Library& library, absl::string_view target) {
  const auto& handlers = library.registered().handlers;
  return std::any_of(handlers.begin(), handlers.end(),
                     [&](const SelfRegistration& h) { return h.target == target; });
}

absl::Status RegisterSelfRegistered(const std::shared_ptr<const Library>& library,
                                    HandlerRegistry* handlers) {
  const SelfRegistrations& all = library->registered();
  SHARDCALL_RETURN_IF_ERROR(all.fault);
  for (const SelfRegistration& h : all.handlers) {
    absl::StatusOr<HandlerEntry> made =
        MakeTypedEntry(h.target, h.platform, h.stages, library->path(), library);
    if (!made.ok()) return In(made.status(), absl::StrCat("the library ", library->path()));
    HandlerEntry& entry = *made;
    for (std::string& trait : FfiTraitNames(h.traits)) {
      if (std::find(entry.traits.begin(), entry.traits.end(), trait) == entry.traits.end()) {
        entry.traits.push_back(std::move(trait));
      }
    }
    SHARDCALL_RETURN_IF_ERROR(handlers->Register(std::move(entry)));
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
