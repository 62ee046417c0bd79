// SPDX-License-Identifier: Apache-2.0
// Metadata of instructions as MLIR's locations, which locations.h reads.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITE_LOCATION_WRITER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITE_LOCATION_WRITER_H_

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_pool.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

class LocationWriter {
 public:
  LocationWriter(const Module& module, AttributePool* pool) : module_(module), pool_(*pool) {}

  // The location of instructions with that metadata: the op's name, and the stack of calls that led
  // to it, or its line. `metadata` may be null.
  uint32_t Of(const Metadata* metadata);

 private:
  uint32_t Frame(int32_t frame);

  const Module& module_;
  AttributePool& pool_;
  absl::flat_hash_map<const Metadata*, uint32_t> known_;
  absl::flat_hash_map<int32_t, uint32_t> frames_;
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITE_LOCATION_WRITER_H_
