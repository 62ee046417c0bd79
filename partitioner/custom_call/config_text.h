// SPDX-License-Identifier: Apache-2.0
// What rules read of a call's attributes, without the parser that the kernels have.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_CONFIG_TEXT_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_CONFIG_TEXT_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The text behind `key = ` in a dictionary `{key = value, ...}`, else empty.
absl::string_view AttributeText(absl::string_view dictionary, absl::string_view key);

// The integers of `dense<[1, 2]> : tensor<2xi64>` or `array<i64: 1, 2>`, or one
// integer. False if that is not what stands there.
bool AttributeInts(absl::string_view dictionary, absl::string_view key, std::vector<int64_t>* out);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_CONFIG_TEXT_H_
