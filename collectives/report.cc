// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// With hundreds of absent ranks the first few are enough.
constexpr size_t kNamedInFull = 8;

}  // namespace

absl::Status LateStatus(const LateReport& report) {
  std::string message =
      absl::StrCat(SignatureText(report.signature), " #", report.number, TagText(report.name), ": ",
                   RanksText(report.waiting), report.waiting.size() == 1 ? " has" : " have",
                   " waited ", absl::FormatDuration(report.waited));
  if (report.last.empty()) {
    absl::StrAppend(&message, "; ", RanksText(report.absent),
                    report.absent.size() == 1 ? " is absent" : " are absent");
  }
  for (size_t i = 0; i < std::min(report.last.size(), kNamedInFull); ++i) {
    absl::StrAppend(&message, "; rank ", report.absent[i], " ", report.last[i]);
  }
  if (report.last.size() > kNamedInFull) {
    absl::StrAppend(&message, "; absent too: ",
                    RanksText(absl::MakeConstSpan(report.absent).subspan(kNamedInFull)));
  }
  if (!report.programs.empty()) absl::StrAppend(&message, "; ", report.programs);
  return ToStatus({.code = "E301",
                   .message = std::move(message),
                   .fix = "See what the absent ranks do, or allow more time (--wait)",
                   .excerpt = report.history},
                  absl::StatusCode::kDeadlineExceeded);
}

absl::Status MismatchStatus(const std::vector<MemberText>& members, const std::string& history) {
  std::vector<std::pair<std::string, std::vector<int>>> kinds;
  for (const MemberText& member : members) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& k) { return k.first == member.text; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {member.text, {}});
    kind->second.push_back(member.rank);
  }
  if (kinds.size() > kNamedInFull) kinds.resize(kNamedInFull);
  return ToStatus(
      {.code = "E305",
       .message = absl::StrCat("members of one collective call different things: ",
                               absl::StrJoin(kinds, "; ",
                                             [](std::string* out, const auto& kind) {
                                               absl::StrAppend(
                                                   out, RanksText(kind.second),
                                                   kind.second.size() == 1 ? " calls " : " call ",
                                                   kind.first);
                                             })),
       .fix = "Run the same partitioned program on every rank",
       .excerpt = history},
      absl::StatusCode::kFailedPrecondition);
}

}  // namespace internal
}  // namespace shardcall
