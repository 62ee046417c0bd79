// SPDX-License-Identifier: Apache-2.0
// Command-line flags: --name=value and --name, each declared by its verb.
#ifndef SHARDCALL_PARTITIONER_TOOLS_FLAGS_H_
#define SHARDCALL_PARTITIONER_TOOLS_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

struct FlagSpec {
  absl::string_view name;   // "num-partitions"; "o" is written -o FILE or -o=FILE
  absl::string_view value;  // "N"; empty: a switch without value
  absl::string_view help;
  enum class Kind { kText, kInteger, kNumber, kBytes } kind = Kind::kText;
};

class Flags {
 public:
  // Errors (usage): a flag that is not in `specs`, a switch with a value, another flag without one,
  // or a value of the wrong kind.
  static absl::StatusOr<Flags> Parse(absl::Span<const std::string> args,
                                     absl::Span<const FlagSpec> specs);

  const std::vector<std::string>& positional() const { return positional_; }
  bool Has(absl::string_view name) const { return values_.contains(name); }
  // The last given value, or `fallback`.
  std::string Get(absl::string_view name, absl::string_view fallback = "") const;
  const std::vector<std::string>& All(absl::string_view name) const;
  // For flags whose value is a number.
  absl::StatusOr<int64_t> Int(absl::string_view name, int64_t fallback) const;
  absl::StatusOr<double> Double(absl::string_view name, double fallback) const;
  // Of kind kBytes: "1000", "200MB", "1.5GiB".
  absl::StatusOr<int64_t> Bytes(absl::string_view name, int64_t fallback) const;

 private:
  std::vector<std::string> positional_;
  absl::flat_hash_map<std::string, std::vector<std::string>> values_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_TOOLS_FLAGS_H_
