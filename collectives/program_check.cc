// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/program_check.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "shardcall/collectives/call.h"
#include "shardcall/sharding/base/stable_hash.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Record {
  uint64_t program_hash;
  int64_t world_size;
  char version[48];
  uint64_t values_hash;
  int64_t values_bytes;  // of ValuesText
};

std::string RecordText(const Record& record) {
  return absl::StrCat("program ", absl::Hex(record.program_hash, absl::kZeroPad16), " for ",
                      record.world_size, " devices, version ", record.version);
}

using RanksByText = std::map<std::string, std::vector<int>>;

// "rank 0 has A; ranks 1-3 have B".
std::string WhoHasWhat(const RanksByText& ranks_by_text) {
  std::map<int, std::string> by_first_rank;
  for (const auto& [text, ranks] : ranks_by_text) {
    by_first_rank[ranks.front()] =
        absl::StrCat(RanksText(ranks), ranks.size() == 1 ? " has " : " have ", text);
  }
  return absl::StrJoin(by_first_rank, "; ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second);
  });
}

absl::Status Differ(std::string message, std::string fix) {
  return ToStatus({.code = "E308", .message = std::move(message), .fix = std::move(fix)},
                  absl::StatusCode::kFailedPrecondition);
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\t", "\\t"}, {"\n", "\\n"}});
}

// A line for each value: what, a tab, the value, both escaped.
std::string ValuesText(const std::vector<SharedValue>& values) {
  std::string text;
  for (const SharedValue& v : values) {
    absl::StrAppend(&text, Escaped(v.what), "\t", Escaped(v.value), "\n");
  }
  return text;
}

// How many values a message lists; differing inputs tend to differ in all arrays.
constexpr size_t kMostListed = 3;

// E308 that lists the values that differ, if there are any. Collective over all ranks.
absl::Status CompareValues(Communicator& communicator, const std::vector<SharedValue>& mine,
                           const std::vector<Record>& records) {
  int64_t bytes = 0;
  for (const Record& record : records) bytes = std::max(bytes, record.values_bytes);
  std::string text = ValuesText(mine);
  text.resize(bytes);
  std::string texts(bytes * records.size(), '\0');
  SHARDCALL_RETURN_IF_ERROR(communicator.AllGather(EveryRank(communicator), text.data(),
                                                   texts.data(), bytes, {"program check"}));
  std::vector<std::string> order;  // of `what`, as ranks have them
  std::map<std::string, RanksByText> values;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    const absl::string_view own(texts.data() + bytes * rank, records[rank].values_bytes);
    for (const absl::string_view line : absl::StrSplit(own, '\n', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> entry =
          absl::StrSplit(line, absl::MaxSplits('\t', 1));
      const auto [it, is_new] = values.try_emplace(entry.first);
      if (is_new) order.push_back(entry.first);
      it->second[entry.second].push_back(static_cast<int>(rank));
    }
  }
  std::vector<std::string> listed;
  size_t differing = 0;
  std::string first;
  for (const std::string& what : order) {
    if (values[what].size() == 1 || ++differing > kMostListed) continue;
    if (differing == 1) first = what;
    listed.push_back(absl::StrCat(what, " (", WhoHasWhat(values[what]), ")"));
  }
  if (differing == 0) return absl::OkStatus();
  if (differing > kMostListed) {
    listed.push_back(absl::StrCat("in ", differing - kMostListed, " more"));
  }
  const auto is_first = [&](const SharedValue& v) { return Escaped(v.what) == first; };
  const auto own = std::find_if(mine.begin(), mine.end(), is_first);
  return Differ(absl::StrCat("the ranks would compute a mixture, because they differ in ",
                             absl::StrJoin(listed, " and ")),
                own == mine.end() ? "Start every rank with the same inputs and plugins" : own->fix);
}

}  // namespace

absl::Status CheckProgram(Communicator& communicator, const ProgramIdentity& identity) {
  Record mine{};
  mine.program_hash = identity.program_hash;
  mine.world_size = identity.world_size;
  std::copy_n(identity.version.begin(), std::min(identity.version.size(), sizeof(mine.version) - 1),
              mine.version);

  const std::string values = ValuesText(identity.values);
  mine.values_hash = StableHash().Add(values).value();
  mine.values_bytes = static_cast<int64_t>(values.size());

  std::vector<Record> records(communicator.size());
  SHARDCALL_RETURN_IF_ERROR(communicator.AllGather(EveryRank(communicator), &mine, records.data(),
                                                   sizeof(Record), {"program check"}));
  RanksByText ranks_by_text;
  bool same_values = true;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    Record& record = records[rank];
    record.version[sizeof(mine.version) - 1] = '\0';
    ranks_by_text[RecordText(record)].push_back(static_cast<int>(rank));
    same_values = same_values && record.values_hash == mine.values_hash &&
                  record.values_bytes == mine.values_bytes;
  }
  if (ranks_by_text.size() > 1) {
    return Differ(absl::StrCat("the ranks run different programs: ", WhoHasWhat(ranks_by_text)),
                  "Start every rank with the same input, flags and version");
  }
  if (identity.world_size != communicator.size()) {
    return ToStatus({.code = "E051",
                     .message = "the program is partitioned for another number of devices",
                     .expected = absl::StrCat(identity.world_size, " ranks"),
                     .found = absl::StrCat(communicator.size()),
                     .fix = absl::StrCat("Start ", identity.world_size, " ranks")},
                    absl::StatusCode::kFailedPrecondition);
  }
  if (!same_values) {
    SHARDCALL_RETURN_IF_ERROR(CompareValues(communicator, identity.values, records));
  }
  communicator.SetProgramNote(
      absl::StrCat("all ranks run program ", absl::Hex(identity.program_hash, absl::kZeroPad16)));
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
