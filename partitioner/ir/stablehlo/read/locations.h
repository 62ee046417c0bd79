// SPDX-License-Identifier: Apache-2.0
// Locations of MLIR as HLO's metadata and stack frames.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_LOCATIONS_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_LOCATIONS_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// Fills the module's stack tables as locations are asked for.
class Locations {
 public:
  Locations(const Bytecode& bytecode, Module* module) : code_(bytecode), module_(*module) {}

  // The metadata of an operation there; null if the location is unknown.
  const Metadata* Of(uint32_t location);

 private:
  // The number of the frame; 0 for a location without a file.
  int32_t Frame(uint32_t location, int32_t parent);
  int32_t IdOf(absl::string_view text, std::vector<absl::string_view>* table,
               absl::flat_hash_map<absl::string_view, int32_t>* ids);

  const Bytecode& code_;
  Module& module_;
  std::vector<const Metadata*> metadata_;
  std::vector<bool> known_;
  int frames_left_ = 0;  // of the location that is being read
  absl::flat_hash_map<absl::string_view, int32_t> files_, functions_;
  absl::flat_hash_map<std::tuple<int32_t, int32_t, int64_t, int64_t, int64_t, int64_t>, int32_t>
      places_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> frames_;
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_LOCATIONS_H_
