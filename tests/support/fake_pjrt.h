// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin that keeps what is registered with it, in PJRT's layout.
#ifndef SHARDCALL_TESTS_SUPPORT_FAKE_PJRT_H_
#define SHARDCALL_TESTS_SUPPORT_FAKE_PJRT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "partitioner/api/pjrt_partitioner.h"

namespace shardcall {

class FakePjrt {
 public:
  explicit FakePjrt(bool with_extension = true) {
    api_.extension_start = with_extension ? &extension_ : nullptr;

  }
  FakePjrt(const FakePjrt&) = delete;
  FakePjrt& operator=(const FakePjrt&) = delete;
  ~FakePjrt() {
    for (auto& [name, callbacks] : partitioners_) callbacks->dtor(callbacks);
  }

  const void* api() {
    current() = this;  // the arguments do not say whose they are
    return &api_;
  }
  Shardcall_PjrtCallbacks* Partitioner(const std::string& name) const {
    const auto found = partitioners_.find(name);
    return found == partitioners_.end() ? nullptr : found->second;
  }
  const std::vector<std::string>& batch_names() const { return batch_names_; }

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
  Api api_;
  std::map<std::string, Shardcall_PjrtCallbacks*> partitioners_;
  std::vector<std::string> batch_names_;
};

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_FAKE_PJRT_H_
