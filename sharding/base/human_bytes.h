// SPDX-License-Identifier: Apache-2.0
// Byte counts as text for people.
#ifndef SHARDCALL_SHARDING_BASE_HUMAN_BYTES_H_
#define SHARDCALL_SHARDING_BASE_HUMAN_BYTES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// "512 B", "1.75 GiB".
std::string HumanBytes(double bytes);

// The reverse of "12", "1.5GiB", "200 MB": units of 1024 and of 1000. Nothing where the text is no
// amount.
absl::optional<double> ParseBytes(absl::string_view text);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_HUMAN_BYTES_H_
