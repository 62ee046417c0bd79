// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/call.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "shardcall/collectives/reduce.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status BadArgument(std::string message) {
  return ToStatus({.code = "E306",
                   .message = std::move(message),
                   .fix = "Give the call what its declaration in communicator.h says"});
}

absl::Status RankOutOfRange(int rank, int size) {
  return BadArgument(absl::StrCat("rank ", rank, " is not one of the ", size, " devices"));
}

}  // namespace

absl::string_view CollectiveOpName(CollectiveOp op) {
  constexpr absl::string_view kNames[] = {
      "barrier",           "all-reduce",         "reduce-scatter",       "all-gather", "all-to-all",
      "ragged-all-to-all", "collective-permute", "collective-broadcast", "send",       "recv"};
  return kNames[static_cast<int>(op)];
}

std::string SignatureText(const CallSignature& signature) {
  const absl::string_view name = CollectiveOpName(signature.op);
  switch (signature.op) {
    case CollectiveOp::kBarrier:
    case CollectiveOp::kAllToAllV: return std::string(name);
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kReduceScatter:
      return absl::StrCat(name, "(", ReduceKindName(signature.kind), ", ",
                          ElementTypeName(signature.type), "[", signature.amount, "])");
    case CollectiveOp::kBroadcast:
      return absl::StrCat(name, "(", signature.amount, " bytes from member ", signature.root, ")");
    default: return absl::StrCat(name, "(", signature.amount, " bytes)");
  }
}

std::string RankListText(absl::Span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ",", sorted[i]);
    if (end - i > 1) absl::StrAppend(&text, end - i == 2 ? "," : "-", sorted[end - 1]);
    i = end;
  }
  return text;
}

std::string RanksText(absl::Span<const int> ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RankListText(ranks));
}

std::string TagText(absl::string_view name) {
  return name.empty() ? std::string() : absl::StrCat(" (", name, ")");
}

std::vector<int> EveryRank(const Communicator& communicator) {
  std::vector<int> ranks(communicator.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

absl::Status CheckGroup(Communicator::Group group, int rank, int size) {
  if (group.empty()) return BadArgument("the group of a collective is empty");
  absl::InlinedVector<int, 32> sorted(group.begin(), group.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0) return RankOutOfRange(sorted.front(), size);
  if (sorted.back() >= size) return RankOutOfRange(sorted.back(), size);
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return BadArgument(absl::StrCat("rank ", *twice, " stands twice in one group"));
  }
  if (!std::binary_search(sorted.begin(), sorted.end(), rank)) {
    return BadArgument(absl::StrCat("rank ", rank, " calls a collective of the group ",
                                    RankListText(group), ", which does not hold it"));
  }
  return absl::OkStatus();
}

absl::Status CheckSignature(const CallSignature& signature, int64_t group_size) {
  if (signature.op == CollectiveOp::kAllReduce || signature.op == CollectiveOp::kReduceScatter) {
    SHARDCALL_RETURN_IF_ERROR(CheckReduction(signature.kind, signature.type));
  }
  const int64_t unit =
      signature.type == ElementType::kInvalid ? 1 : ElementTypeBytes(signature.type);
  if (signature.amount < 0 ||
      signature.amount > std::numeric_limits<int64_t>::max() / unit / group_size) {
    return BadArgument(absl::StrCat(SignatureText(signature), " has no possible size"));
  }
  if (signature.op == CollectiveOp::kBroadcast &&
      (signature.root < 0 || signature.root >= group_size)) {
    return BadArgument(absl::StrCat("root ", signature.root, " is not one of the ", group_size,
                                    " members of the group"));
  }
  return absl::OkStatus();
}

absl::Status CheckBuffer(const void* data, int64_t bytes, absl::string_view what,
                         const CallSignature& signature) {
  if (data != nullptr || bytes == 0) return absl::OkStatus();
  return BadArgument(absl::StrCat("the ", what, " of ", SignatureText(signature), " is null"));
}

absl::Status CheckBlocks(size_t group_size, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes) {
  for (absl::Span<const int64_t> list : {send_offsets, send_sizes, recv_offsets, recv_sizes}) {
    if (list.size() != group_size) {
      return BadArgument(absl::StrCat("ragged-all-to-all over ", group_size,
                                      " members has a list of ", list.size(), " blocks"));
    }
    for (int64_t value : list) {
      if (value < 0) {
        return BadArgument(
            absl::StrCat("ragged-all-to-all has a negative offset or size, ", value));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status FindPartners(absl::Span<const std::pair<int, int>> pairs, int rank, int size,
                          int* source, int* target) {
  *source = *target = -1;
  absl::InlinedVector<bool, 64> is_source(size, false);
  absl::InlinedVector<bool, 64> is_target(size, false);
  for (const auto& [from, to] : pairs) {
    if (from < 0 || from >= size) return RankOutOfRange(from, size);
    if (to < 0 || to >= size) return RankOutOfRange(to, size);
    if (is_source[from] || is_target[to]) {
      return BadArgument(absl::StrCat("rank ", is_source[from] ? from : to, " stands twice as ",
                                      is_source[from] ? "source" : "target",
                                      " of a collective-permute"));
    }
    is_source[from] = is_target[to] = true;
    if (from == rank) *target = to;
    if (to == rank) *source = from;
  }
  return absl::OkStatus();
}

absl::Status AbortedStatus(const absl::Status& reason) {
  if (!DiagnosticCode(reason).empty()) return absl::AbortedError(reason.message());
  return ToStatus(
      {.code = "E304", .message = absl::StrCat("the collectives were aborted: ", reason.message())},
      absl::StatusCode::kAborted);
}

}  // namespace internal
}  // namespace shardcall
