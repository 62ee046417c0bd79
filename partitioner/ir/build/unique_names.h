// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_UNIQUE_NAMES_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_UNIQUE_NAMES_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Names not yet taken: `add` stays `add` or becomes `add.7`. A new name is none
// that an instruction (or computation) of `module` has.
class UniqueNames {
 public:
  enum Of { kInstructions, kComputations };
  UniqueNames(const Module& module, Of of);
  absl::string_view Take(absl::string_view name);

 private:
  const Module& module_;
  const Of of_;
  absl::flat_hash_set<absl::string_view> taken_;
  absl::flat_hash_set<absl::string_view> reserved_;  // filled when first needed
  absl::flat_hash_map<absl::string_view, int64_t> next_;
};

// A computation whose name no other of the module has: `name`, or that with a number.
CompId AddNamedComputation(absl::string_view name, Module* module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_UNIQUE_NAMES_H_
