// SPDX-License-Identifier: Apache-2.0
// Elements of dense attributes: `dense<..> : tensor<..>` and `array<..>`.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_DENSE_ELEMENTS_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_DENSE_ELEMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

struct DenseElements {
  ElementType type = ElementType::kInvalid;  // index counts as s64
  std::vector<int64_t> dims;                 // of an array: its length
  int64_t count = 0;                         // the product of `dims`
  bool is_splat = false;                     // all elements are equal, and stand in `data` once
  // In the form of a Literal: a byte or more for each element, narrow integers extended by their
  // sign.
  std::string data;

  // As integers, each one by itself. Integers and booleans only.
  std::vector<int64_t> Integers() const;
};

// E035 (kUnimplemented) if it is no dense attribute, if its type is unknown, or if its bytes do not
// fit its type.
absl::StatusOr<DenseElements> ReadDense(const Bytecode& code, const Attribute& a);

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_DENSE_ELEMENTS_H_
