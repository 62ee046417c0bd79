// SPDX-License-Identifier: Apache-2.0
// Operations that are to be written as MLIR bytecode, and the bytes of a module of them.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_BYTECODE_WRITER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_BYTECODE_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_pool.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// Names, attributes and types are numbers of an AttributePool. Values are numbered over the whole
// module, in any order.
struct WrittenRegion;
struct WrittenOperation {
  uint32_t name = 0;
  uint32_t location = 0;
  int64_t attributes = -1;  // a dictionary; -1: none
  bool isolated = false;    // its regions see no values from around them
  absl::InlinedVector<uint32_t, 2> operands, results;
  std::vector<WrittenRegion> regions;
};
struct WrittenBlock {
  std::vector<uint32_t> arguments, argument_locations;
  std::vector<WrittenOperation> operations;
};
struct WrittenRegion {
  WrittenBlock block;  // the only one
};

// The file with `module`, a builtin.module. `value_types`: the type of each value.
std::string WriteBytecode(const WrittenOperation& module, absl::Span<const uint32_t> value_types,
                          AttributePool& pool);

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_BYTECODE_WRITER_H_
