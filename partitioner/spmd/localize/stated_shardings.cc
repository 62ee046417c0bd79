// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/stated_shardings.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
inline namespace internal {

const std::string& StatedShardings::TextOf(const Sharding* sharding) {
  const auto [it, is_new] = texts_.try_emplace(sharding);
  if (!is_new) return it->second;
  if (sharding == nullptr) return it->second = "{replicated}";
  const absl::StatusOr<HloSharding> text = ToHloShardingOrV3(*sharding);
  return it->second = text.ok() ? text->Print() : "{unknown}";
}

const FrontendAttributes* StatedShardings::With(const FrontendAttributes* given,
                                                absl::string_view prefix, const Shape* global,
                                                absl::Span<const Sharding* const> shardings) {
  const FrontendAttributes* own = WithoutSdy(context_, given);
  if (!several_devices_) return own;
  const std::string shards_key = absl::StrCat(prefix, "shards");
  const std::string shape_key = absl::StrCat(prefix, "global_shape");
  std::string text = global->IsTuple() ? "{" : "";
  for (size_t k = 0; k < shardings.size(); ++k) {
    absl::StrAppend(&text, k == 0 ? "" : ", ", TextOf(shardings[k]));
  }
  if (global->IsTuple()) text += "}";
  const std::string shape = global->ToString(/*with_layout=*/false);
  std::vector<std::pair<absl::string_view, absl::string_view>> entries = {{shards_key, text},
                                                                          {shape_key, shape}};
  if (own != nullptr) {
    entries.insert(entries.end(), own->entries.begin(), own->entries.end());
  }
  return InternFrontendAttributes(context_, entries);
}

}  // namespace internal
}  // namespace shardcall
