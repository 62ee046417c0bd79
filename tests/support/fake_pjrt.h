// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin that records what is registered with it, in PJRT's layout.
#ifndef SHARDCALL_TESTS_SUPPORT_FAKE_PJRT_H_
#define SHARDCALL_TESTS_SUPPORT_FAKE_PJRT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"

namespace shardcall {

class FakePjrt {
 public:
  explicit FakePjrt(bool with_extension = true) {
    api_.extension_start = with_extension ? &extension_ : nullptr;
    extension_.next = &ffi_;
  }
  FakePjrt(const FakePjrt&) = delete;
  FakePjrt& operator=(const FakePjrt&) = delete;
  ~FakePjrt() {
    for (auto& [name, callbacks] : partitioners_) callbacks->dtor(callbacks);
  }

  const void* api() {
    current() = this;  // the arguments do not contain the plugin
    return &api_;
  }
  Shardcall_PjrtCallbacks* Partitioner(const std::string& name) const {
    const auto found = partitioners_.find(name);
    return found == partitioners_.end() ? nullptr : found->second;
  }
  const std::vector<std::string>& batch_names() const { return batch_names_; }
  // The registered handlers, by "name platform traits".
  const std::map<std::string, const void*>& handlers() const { return handlers_; }

 private:
  struct Args {
    size_t struct_size;
    const char* name;
    size_t name_size;
    Shardcall_PjrtCallbacks* callbacks;
  };
  struct Extension {
    size_t struct_size = 40;
    int32_t type = 2;
    void* next = nullptr;
    void* (*partitioner)(Args*) = [](Args* args) -> void* {
      Shardcall_PjrtCallbacks*& at =
          current()->partitioners_[std::string(args->name, args->name_size)];
      if (at != nullptr) at->dtor(at);
      at = args->callbacks;
      return nullptr;
    };
    void* (*batch)(Args*) = [](Args* args) -> void* {
      current()->batch_names_.emplace_back(args->name, args->name_size);
      return nullptr;
    };
  };
  struct HandlerArgs {
    size_t struct_size;
    const char* name;
    size_t name_size;
    const void* handler;
    const char* platform;
    size_t platform_size;
    uint32_t traits;
  };
  struct FfiExtension {
    size_t struct_size = 48;
    int32_t type = 5;
    void* next = nullptr;
    void* unused[2] = {};
    void* (*handler)(HandlerArgs*) = [](HandlerArgs* args) -> void* {
      const std::string key = std::string(args->name, args->name_size) + " " +
                              std::string(args->platform, args->platform_size) + " " +
                              std::to_string(args->traits);
      current()->handlers_[key] = args->struct_size == 52 ? args->handler : nullptr;
      return nullptr;
    };
  };
  struct Api {
    size_t struct_size = sizeof(Api);
    void* extension_start = nullptr;
    struct {
      size_t struct_size = 24;
      void* extension_start = nullptr;
      int32_t major = 0, minor = 112;
    } version;
    void (*error_functions[3])(void*) = {};
  };
  static FakePjrt*& current() {
    static FakePjrt* plugin = nullptr;
    return plugin;
  }
  Extension extension_;
  FfiExtension ffi_;
  std::map<std::string, const void*> handlers_;
  Api api_;
  std::map<std::string, Shardcall_PjrtCallbacks*> partitioners_;
  std::vector<std::string> batch_names_;
};

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_FAKE_PJRT_H_
