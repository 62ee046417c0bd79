// SPDX-License-Identifier: Apache-2.0
// The numbers that a call's backend_config states, and the same text with others in their place.
// A backend_config is the dictionary of a typed call, JSON with such a dictionary in it
// (gpu_backend_config.h), or any other JSON object.
#ifndef SHARDCALL_KERNELS_FFI_CONFIG_NUMBERS_H_
#define SHARDCALL_KERNELS_FFI_CONFIG_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/attribute_parser.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

class ConfigNumbers {
 public:
  // E131 for text of no such form.
  static absl::StatusOr<ConfigNumbers> Read(absl::string_view config);

  // Their names are "n", "more.n" in an inner dictionary or object, "grid[0]" in a list. Integers
  // in JSON have the type s64, its other numbers f64.
  const std::vector<NumberPlace>& numbers() const { return numbers_; }
  // Null if there is none of that name.
  const NumberPlace* Find(absl::string_view name) const;
  // The text with other values, by index into `numbers`. All else of a dictionary stays as it is,
  // to the byte; JSON is written anew.
  std::string With(absl::Span<const std::pair<size_t, int64_t>> values) const;

 private:
  enum class Form { kDictionary, kDictionaryInJson, kJson };
  Form form_ = Form::kDictionary;
  std::string text_;   // the dictionary
  std::string outer_;  // the JSON
  std::vector<NumberPlace> numbers_;
  std::vector<std::string> pointers_;  // into the JSON, by number
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_CONFIG_NUMBERS_H_
