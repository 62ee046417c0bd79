// SPDX-License-Identifier: Apache-2.0
// The parser of MLIR dictionary text behind AttributeMapView::Parse.
#ifndef SHARDCALL_KERNELS_FFI_ATTRIBUTE_PARSER_H_
#define SHARDCALL_KERNELS_FFI_ATTRIBUTE_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/attributes.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<Attribute::Dictionary> ParseAttributeDictionary(absl::string_view text);

// Where a number stands in the text: "n", "more.n" in a dictionary of a dictionary, "grid[0]" in a
// list. A splat, dense<1> : tensor<3xi32>, is one number.
struct NumberPlace {
  std::string name;
  ElementType type = ElementType::kInvalid;
  int64_t value = 0;  // of integer types
  size_t begin = 0, size = 0;
};
absl::StatusOr<std::vector<NumberPlace>> NumbersOfAttributes(absl::string_view text);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_ATTRIBUTE_PARSER_H_
