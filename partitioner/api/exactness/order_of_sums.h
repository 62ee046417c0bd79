// SPDX-License-Identifier: Apache-2.0
// What the order in which an op sums can change of its results, by its opcode and by the
// computation that it combines with.
#ifndef SHARDCALL_PARTITIONER_API_EXACTNESS_ORDER_OF_SUMS_H_
#define SHARDCALL_PARTITIONER_API_EXACTNESS_ORDER_OF_SUMS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

enum class Sums : uint8_t {
  kNone,      // nothing
  kLinear,    // terms are its operands' elements
  kBilinear,  // terms are products of two operands' elements
  kProduct,   // it multiplies
  kHandler,   // a handler does what it likes
  kUnknown
};

// Of every instruction of a module, by name.
class OrderOfSums {
 public:
  explicit OrderOfSums(const Module& module);
  // `name` of the step that stands for the instruction. What lowering made of a module
  // has names that no instruction has.
  Sums Of(Opcode opcode, const std::string& name) const;

 private:
  absl::flat_hash_map<std::string, Sums> by_name_;  // of those that may sum
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_EXACTNESS_ORDER_OF_SUMS_H_
