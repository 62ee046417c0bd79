// SPDX-License-Identifier: Apache-2.0
// How the results of an op depend on the order in which it sums, by its opcode and by the
// computation that it combines with.
#ifndef SHARDCALL_PARTITIONER_EXACTNESS_ORDER_OF_SUMS_H_
#define SHARDCALL_PARTITIONER_EXACTNESS_ORDER_OF_SUMS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

enum class Sums : uint8_t {
  kNone,      // not at all
  kLinear,    // its terms are elements of its operands
  kBilinear,  // its terms are products of elements of two operands
  kProduct,   // it multiplies
  kHandler,   // a handler, which may sum anything
  kUnknown
};

// For every instruction of a module, by name.
class OrderOfSums {
 public:
  explicit OrderOfSums(const Module& module);
  // `name` is that of the instruction a step was lowered from. Steps that lowering adds have names
  // that no instruction has.
  Sums Of(Opcode opcode, const std::string& name) const;

 private:
  absl::flat_hash_map<std::string, Sums> by_name_;  // only instructions that may sum
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_EXACTNESS_ORDER_OF_SUMS_H_
