// SPDX-License-Identifier: Apache-2.0
// The made-up backend as a plugin's library. Who has loaded it finds the backend by
// FakePjrtBackend, and tells it where to fail.
#include "tests/partitioner/bindings/pjrt/fake_backend.h"

namespace {

shardcall::pjrt::FakeBackend& Backend() {
  static shardcall::pjrt::FakeBackend* const backend = new shardcall::pjrt::FakeBackend;
  return *backend;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const void* GetPjrtApi() { return Backend().api(); }
__attribute__((visibility("default"))) void* FakePjrtBackend() { return &Backend(); }

}  // extern "C"
