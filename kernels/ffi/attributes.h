// SPDX-License-Identifier: Apache-2.0
// Attributes of a typed-FFI call (API version 4), read from the MLIR dictionary
// that stands in its backend_config:
//   {causal = true, window = -1 : i64, scale = 1.000000e-01 : f32,
//    block = dense<128> : tensor<2xi64>, layout = "bshd", more = {a = 1 : i64}}
// As in the typed FFI, an element of a tensor or array attribute loses its
// shape: the values are a flat list in row-major order.
#ifndef SHARDCALL_KERNELS_FFI_ATTRIBUTES_H_
#define SHARDCALL_KERNELS_FFI_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall SHARDCALL_PUBLIC {

struct AttributeArray {
  ElementType type = ElementType::kInvalid;
  std::vector<int64_t> ints;   // for integer and pred types; u64 by its bits
  std::vector<double> floats;  // for float types
};

struct AttributeScalar {
  ElementType type = ElementType::kInvalid;
  int64_t i = 0;  // integers and pred; u64 by its bits
  double f = 0;   // floats
};

struct Attribute {
  using Dictionary = std::vector<std::pair<std::string, Attribute>>;  // sorted by name
  absl::variant<AttributeScalar, AttributeArray, std::string, Dictionary> value;
};

// "an i64", "an array of f32", "a string", "a dictionary".
std::string DescribeAttribute(const Attribute& attribute);

class AttributeMapView {
 public:
  // Parses `{...}`, or the JSON of XLA:GPU that contains it (gpu_backend_config.h); blank text
  // gives an empty map. Errors are E131 with the column in the text. Attributes that typed-FFI
  // handlers cannot receive are rejected: unit attributes, arrays of mixed types, resources,
  // symbols.
  static absl::StatusOr<AttributeMapView> Parse(absl::string_view text);

  // From parsed attributes, which must be sorted by name.
  explicit AttributeMapView(Attribute::Dictionary entries) : entries_(std::move(entries)) {}
  AttributeMapView() = default;

  // Null if there is none.
  const Attribute* Find(absl::string_view name) const;

  // Returns `fallback` if there is none; E131 if it has another kind or is out of range. GetInt
  // accepts integers of every width, GetFloat floats of every width; kinds are not converted.
  absl::StatusOr<int64_t> GetInt(absl::string_view name, int64_t fallback) const;
  absl::StatusOr<double> GetFloat(absl::string_view name, double fallback) const;
  absl::StatusOr<bool> GetBool(absl::string_view name, bool fallback) const;
  absl::StatusOr<std::string> GetString(absl::string_view name, absl::string_view fallback) const;
  // An array of integers, or one integer for a list of one.
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view name,
                                               absl::Span<const int64_t> fallback) const;

  // E131 for the first attribute whose name is not among `known`, with the nearest known name, so
  // that misspelt attributes are not silently ignored.
  absl::Status OnlyKnown(absl::Span<const absl::string_view> known) const;

  const Attribute::Dictionary& entries() const { return entries_; }

 private:
  Attribute::Dictionary entries_;
};

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_ATTRIBUTES_H_
