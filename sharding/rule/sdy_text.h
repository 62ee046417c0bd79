// SPDX-License-Identifier: Apache-2.0
// Shardy's attributes as JAX writes them into HLO frontend attributes, already
// unescaped:
//   #sdy.sharding<@mesh, [{"data"}, {?}, {"a", "b":(1)2, ?}p1], replicated={"c"}>
//   #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>, <@mesh, [{}]>]>
//   #sdy<manual_axes{"a"}>
//   {mesh = #sdy.mesh<["a"=2, "b"=4]>, maximal_mesh_0 = #sdy.mesh<[], device_ids=[0]>}
// Printing gives the text that Shardy prints. Errors are E161 with a caret,
// E160 for meshes. Axes are checked against their mesh when a sharding is
// converted (CheckAndNormalize), since `@mesh` is known only to its reader.
#ifndef SHARDCALL_SHARDING_RULE_SDY_TEXT_H_
#define SHARDCALL_SHARDING_RULE_SDY_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/named_sharding.h"

namespace shardcall {
inline namespace internal {

// One `#sdy.sharding<..>`, or the entries of `#sdy.sharding_per_value<[..]>`.
absl::StatusOr<std::vector<NamedSharding>> ParseSdyShardings(absl::string_view text);
// Exactly one sharding, in either form.
absl::StatusOr<NamedSharding> ParseSdySharding(absl::string_view text);
absl::StatusOr<std::vector<std::string>> ParseSdyManualAxes(absl::string_view text);
// The dictionary, in its order; each mesh has its name.
absl::StatusOr<std::vector<Mesh>> ParseSdyMeshes(absl::string_view text);

// The letters of Shardy's rules, by number: i, j, .., z, z_1, z_2, ..
std::string SdyFactorName(int64_t factor);

std::string SdyShardingText(const NamedSharding& sharding);
std::string SdyShardingPerValueText(absl::Span<const NamedSharding> shardings);
std::string SdyManualAxesText(absl::Span<const std::string> axes);
std::string SdyMeshText(const Mesh& mesh);  // `#sdy.mesh<["a"=2]>`
std::string SdyMeshesText(absl::Span<const Mesh> meshes);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RULE_SDY_TEXT_H_
