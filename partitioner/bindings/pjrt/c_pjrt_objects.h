// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of shardcall_c_pjrt.h.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_C_PJRT_OBJECTS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_C_PJRT_OBJECTS_H_

#include <memory>
#include <mutex>

#include "shardcall/partitioner/bindings/c/c_objects.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_engine.h"
#include "shardcall/partitioner/bindings/pjrt/shardcall_c_pjrt.h"

struct Shardcall_PjrtEngine {
  std::unique_ptr<shardcall::PjrtEngine> engine;
  std::mutex mutex;
};

struct Shardcall_PjrtExecutable {
  std::shared_ptr<const shardcall::Registry> registry;  // holds the handlers
  shardcall::PjrtExecutable executable;
};

struct Shardcall_PjrtArray {
  shardcall::PjrtArray array;
};

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_C_PJRT_OBJECTS_H_
