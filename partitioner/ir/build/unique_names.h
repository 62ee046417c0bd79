// SPDX-License-Identifier: Apache-2.0
// Makes names unique.
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

// Take returns the requested name, or else the first unused one of `add.1`, `add.2`, ... Names that
// are passed in must outlive this object; generated names live in the arena.
class UniqueNames {
 public:
  enum Of { kInstructions, kComputations };
  // For about `expected` names.
  UniqueNames(Arena& arena, size_t expected);
  // Generated names live in the arena of the module's Context and differ from all names of
  // instructions (or computations) in `module`. A name of `module` is returned unchanged the first
  // time that it is requested.
  UniqueNames(const Module& module, Of of);

  // Marks `name` as used.
  void Reserve(absl::string_view name) { taken_.insert(name); }
  // `name` if it is unused. Else `name` with a new number, which replaces the one that it may end
  // in.
  absl::string_view Take(absl::string_view name);

 private:
  bool IsOfModule(absl::string_view name);
  // Whether Take made `name` by a number.
  bool IsMade(absl::string_view name);

  Arena& arena_;
  const Module* const module_;  // may be null
  const Of of_;
  // Names that were reserved or given as requested. Those with a new number are not here, since the
  // last number of each stem tells them: one entry for a name that thousands of instructions have.
  absl::flat_hash_set<absl::string_view> taken_;
  absl::flat_hash_set<absl::string_view> of_module_;      // filled at first use
  absl::flat_hash_map<absl::string_view, int64_t> last_;  // by stem
};

// Adds a computation called `name`, with a number if the module has one of that name.
CompId AddNamedComputation(absl::string_view name, Module* module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_UNIQUE_NAMES_H_
