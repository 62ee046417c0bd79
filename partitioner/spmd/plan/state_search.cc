// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/state_search.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr StateSearch kSearches[] = {StateSearch::kNone, StateSearch::kSmall, StateSearch::kAll};

}  // namespace

absl::string_view StateSearchName(StateSearch search) {
  switch (search) {
    case StateSearch::kNone: return "none";
    case StateSearch::kSmall: return "small";
    case StateSearch::kAll: return "all";
  }
  return "";
}

absl::StatusOr<StateSearch> ParseStateSearch(absl::string_view text) {
  for (StateSearch search : kSearches) {
    if (text == StateSearchName(search)) return search;
  }
  return ToStatus({.code = "E213",
                   .message = absl::StrCat("there is no search of shardings \"", text, "\""),
                   .expected = "none, small or all",
                   .found = std::string(text),
                   .fix = "leave --search out for one in small programs"});
}

bool LooksAhead(const Program& program, const SpmdOptions& options) {
  const bool small = program.module.num_instructions() <= kMostInSmallProgram;
  return program.num_partitions > 1 &&
         (options.search == StateSearch::kAll || (options.search == StateSearch::kSmall && small));
}

}  // namespace internal
}  // namespace shardcall
