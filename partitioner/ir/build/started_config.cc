// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/started_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/text_cursor.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr StartedCollective kStarted[] = {
    {Opcode::kAllGather, "all_gather_dimension"},
    {Opcode::kAllReduce, ""},
    {Opcode::kReduceScatter, "scatter_dimension"},
    {Opcode::kAllToAll, "split_dimension"},
    {Opcode::kCollectivePermute, ""},
};
constexpr absl::string_view kGroups = "replica_groups", kPairs = "permutation",
                            kConcat = "concat_dimension", kCount = "split_count",
                            kChannel = "channel_id", kGlobalIds = "use_global_device_ids",
                            kTiled = "tiled";

absl::string_view ListsKey(Opcode op) {
  return op == Opcode::kCollectivePermute ? kPairs : kGroups;
}

class Parser {
 public:
  Parser(const StartedCollective& of, absl::string_view json)
      : of_(of), in_(json, kAsyncCollectiveConfig, "E165") {}

  absl::StatusOr<StartedConfig> Run() {
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Consume("}")) {
      if (!seen_.empty()) SHARDCALL_RETURN_IF_ERROR(in_.Expect(","));
      in_.SkipSpace();
      const size_t at = in_.position();
      SHARDCALL_ASSIGN_OR_RETURN(std::string key, in_.Quoted());
      for (const std::string& other : seen_) {
        if (other == key)
          return in_.ErrorAt(at, "a key stands twice", "", key, "remove one of the two");
      }
      SHARDCALL_RETURN_IF_ERROR(in_.Expect(":"));
      SHARDCALL_RETURN_IF_ERROR(Value(key, at));
      seen_.push_back(std::move(key));
    }
    SHARDCALL_RETURN_IF_ERROR(in_.ExpectEnd());
    for (absl::string_view key : Needed()) {
      bool found = key.empty();
      for (const std::string& other : seen_) found |= other == key;
      if (!found) return in_.ErrorAt(0, "a key is missing", key, "", "write it as JAX does");
    }
    return std::move(out_);
  }

 private:
  std::vector<absl::string_view> Needed() const {
    std::vector<absl::string_view> keys = {ListsKey(of_.op), of_.dimension};
    if (of_.op == Opcode::kAllToAll) keys.insert(keys.end(), {kConcat, kCount});
    return keys;
  }

  absl::Status Value(absl::string_view key, size_t at) {
    int64_t* number = key == of_.dimension                            ? &out_.dimension
                      : key == kConcat && of_.op == Opcode::kAllToAll ? &out_.concat_dimension
                      : key == kCount && of_.op == Opcode::kAllToAll  ? &out_.split_count
                      : key == kChannel                               ? &out_.channel_id
                                                                      : nullptr;
    if (number != nullptr) {
      SHARDCALL_ASSIGN_OR_RETURN(*number, in_.Integer());
      return absl::OkStatus();
    }
    if (key == ListsKey(of_.op)) return Lists();
    if (key == kGlobalIds) {
      out_.use_global_device_ids = in_.ConsumeWord("true");
      if (out_.use_global_device_ids || in_.ConsumeWord("false")) return absl::OkStatus();
      return in_.Error("true or false");
    }
    // A scatter that is not tiled has no calls of this form.
    if (key == kTiled && of_.op == Opcode::kReduceScatter) {
      return in_.ConsumeWord("true") ? absl::OkStatus() : in_.Error("true");
    }
    return in_.ErrorAt(
        at, absl::StrCat("unknown key of ", OpcodeText(of_.op), "-start"),
        absl::StrCat("one of ", absl::StrJoin(Needed(), " "), " ", kChannel, " ", kGlobalIds), key,
        "use a version of shardcall that knows it");
  }

  // [[0, 1], [2, 3]]
  absl::Status Lists() {
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Consume("]")) {
      if (!out_.lists.empty()) SHARDCALL_RETURN_IF_ERROR(in_.Expect(","));
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("["));
      std::vector<int64_t>& list = out_.lists.emplace_back();
      while (!in_.Consume("]")) {
        if (!list.empty()) SHARDCALL_RETURN_IF_ERROR(in_.Expect(","));
        SHARDCALL_ASSIGN_OR_RETURN(list.emplace_back(), in_.Integer());
      }
      if (of_.op == Opcode::kCollectivePermute && list.size() != 2) {
        return in_.Error("two devices in each of the pairs");
      }
    }
    return absl::OkStatus();
  }

  const StartedCollective& of_;
  TextCursor in_;
  StartedConfig out_;
  std::vector<std::string> seen_;
};

}  // namespace

const StartedCollective* FindStarted(Opcode op) {
  for (const StartedCollective& s : kStarted) {
    if (s.op == op) return &s;
  }
  return nullptr;
}

const StartedCollective* FindStarted(absl::string_view target, absl::string_view suffix) {
  if (!absl::ConsumeSuffix(&target, suffix)) return nullptr;
  Opcode op;
  return OpcodeFromText(target, &op) ? FindStarted(op) : nullptr;
}

absl::StatusOr<StartedConfig> ParseStartedConfig(const StartedCollective& of,
                                                 absl::string_view json, absl::string_view where) {
  absl::StatusOr<StartedConfig> read = Parser(of, json).Run();
  if (!read.ok()) return In(read.status(), where);
  return read;
}

std::string StartedConfigText(const StartedCollective& of, const StartedConfig& c) {
  std::string out = "{";
  const auto add = [&](absl::string_view key, absl::string_view value) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", "\"", key, "\": ", value);
  };
  if (!of.dimension.empty()) add(of.dimension, absl::StrCat(c.dimension));
  if (of.op == Opcode::kAllToAll) {
    add(kConcat, absl::StrCat(c.concat_dimension));
    add(kCount, absl::StrCat(c.split_count));
  }
  add(ListsKey(of.op), absl::StrCat("[",
                                    absl::StrJoin(c.lists, ", ",
                                                  [](std::string* o, const auto& list) {
                                                    absl::StrAppend(o, "[",
                                                                    absl::StrJoin(list, ", "), "]");
                                                  }),
                                    "]"));
  if (of.op == Opcode::kReduceScatter) add(kTiled, "true");
  if (c.use_global_device_ids) add(kGlobalIds, "true");
  if (c.channel_id > 0) add(kChannel, absl::StrCat(c.channel_id));
  return out + "}";
}

}  // namespace internal
}  // namespace shardcall
