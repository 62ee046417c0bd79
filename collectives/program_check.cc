// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/program_check.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/collectives/call.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

struct Record {
  uint64_t program_hash;
  int64_t world_size;
  char version[48];
};

std::string RecordText(const Record& record) {
  return absl::StrCat("program ", absl::Hex(record.program_hash, absl::kZeroPad16), " for ",
                      record.world_size, " devices, version ", record.version);
}

}  // namespace

absl::Status CheckProgram(Communicator& communicator, const ProgramIdentity& identity) {
  Record mine{};
  mine.program_hash = identity.program_hash;
  mine.world_size = identity.world_size;
  std::copy_n(identity.version.begin(), std::min(identity.version.size(), sizeof(mine.version) - 1),
              mine.version);

  std::vector<int> all(communicator.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<Record> records(all.size());
  SHARDCALL_RETURN_IF_ERROR(
      communicator.AllGather(all, &mine, records.data(), sizeof(Record), {"program check"}));

  std::map<std::string, std::vector<int>> ranks_by_text;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    records[rank].version[sizeof(mine.version) - 1] = '\0';
    ranks_by_text[RecordText(records[rank])].push_back(static_cast<int>(rank));
  }
  if (ranks_by_text.size() > 1) {
    return ToStatus(
        {.code = "E308",
         .message = absl::StrCat("the ranks run different programs: ",
                                 absl::StrJoin(ranks_by_text, "; ",
                                               [](std::string* out, const auto& entry) {
                                                 absl::StrAppend(
                                                     out, RanksText(entry.second),
                                                     entry.second.size() == 1 ? " has " : " have ",
                                                     entry.first);
                                               })),
         .fix = "Start every rank with the same input, flags and version"},
        absl::StatusCode::kFailedPrecondition);
  }
  if (identity.world_size != communicator.size()) {
    return ToStatus({.code = "E051",
                     .message = "the program is partitioned for another number of devices",
                     .expected = absl::StrCat(identity.world_size, " ranks"),
                     .found = absl::StrCat(communicator.size()),
                     .fix = absl::StrCat("Start ", identity.world_size, " ranks")},
                    absl::StatusCode::kFailedPrecondition);
  }
  communicator.SetProgramNote(
      absl::StrCat("all ranks run program ", absl::Hex(identity.program_hash, absl::kZeroPad16)));
  return absl::OkStatus();
}

}  // namespace shardcall::inline internal
