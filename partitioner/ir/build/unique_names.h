// SPDX-License-Identifier: Apache-2.0
// The one way in which names are made unique.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_UNIQUE_NAMES_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_UNIQUE_NAMES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Gives each caller its name, or the first of `add.1`, `add.2`, .. that nobody has. Names that
// are passed in must outlive it; those that it makes up live in the arena.
class UniqueNames {
 public:
  enum Of { kInstructions, kComputations };
  // For about `expected` names.
  UniqueNames(Arena& arena, size_t expected);
  // In the arena of the module's Context. A name of an instruction (or computation) of
  // `module` goes to the first that asks for it, and is never made up for another.
  UniqueNames(const Module& module, Of of);

  // Nobody is given `name` from now on.
  void Reserve(absl::string_view name) { taken_.insert(name); }
  // `name`, or that with a number in place of the one that it may end in.
  absl::string_view Take(absl::string_view name);

 private:
  bool IsOfModule(absl::string_view name);

  Arena& arena_;
  const Module* const module_;  // or null
  const Of of_;
  absl::flat_hash_set<absl::string_view> taken_;
  absl::flat_hash_set<absl::string_view> of_module_;  // filled when first needed
  absl::flat_hash_map<absl::string_view, int64_t> next_;
};

// A computation whose name no other of the module has: `name`, or that with a number.
CompId AddNamedComputation(absl::string_view name, Module* module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_UNIQUE_NAMES_H_
