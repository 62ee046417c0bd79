// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/side_channel.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/tcp_store.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"

namespace shardcall {
inline namespace internal {
namespace {

class OverCommunicator final : public SideChannel {
 public:
  explicit OverCommunicator(Communicator& communicator) : communicator_(communicator) {}
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }

  absl::StatusOr<std::vector<std::string>> Gather(absl::Span<const int> group,
                                                  const std::string& mine,
                                                  absl::string_view what) override {
    struct Record {
      int64_t bytes;
      char text[kMaxBytes];
    };
    SHARDCALL_CHECK(mine.size() <= kMaxBytes);
    Record record{static_cast<int64_t>(mine.size()), {}};
    std::memcpy(record.text, mine.data(), mine.size());
    std::vector<Record> records(group.size());
    SHARDCALL_RETURN_IF_ERROR(
        communicator_.AllGather(group, &record, records.data(), sizeof(Record), {what}));
    std::vector<std::string> texts;
    for (const Record& other : records) {
      const int64_t bytes = std::clamp<int64_t>(other.bytes, 0, kMaxBytes);
      texts.emplace_back(other.text, bytes);
    }
    return texts;
  }
  absl::Status Told() override { return communicator_.Told(); }
  void BeginWait() override { communicator_.BeginWait(); }
  void EndWait() override { communicator_.EndWait(); }
  Departures FindDeparted(absl::Span<const int> group) override {
    return communicator_.FindDeparted(group);
  }
  void Abort(const absl::Status& reason) override { communicator_.Abort(reason); }

 private:
  Communicator& communicator_;
};

class OverTcp final : public SideChannel {
 public:
  OverTcp(std::unique_ptr<TcpStoreServer> server, std::unique_ptr<TcpStoreClient> client, int rank,
          int size, absl::Duration deadline)
      : server_(std::move(server)),
        client_(std::move(client)),
        rank_(rank),
        size_(size),
        deadline_(deadline) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::StatusOr<std::vector<std::string>> Gather(absl::Span<const int> group,
                                                  const std::string& mine,
                                                  absl::string_view what) override {
    SHARDCALL_CHECK(mine.size() <= kMaxBytes);
    const std::string name = absl::StrJoin(group, ",");
    const std::string prefix = absl::StrCat(name, "#", ++gathered_[name], "/");
    SHARDCALL_RETURN_IF_ERROR(client_->Put(absl::StrCat(prefix, rank_), mine));
    const absl::Duration end = SteadyNow() + deadline_;
    std::vector<std::string> texts;
    std::vector<int> absent;
    for (int member : group) {
      absl::StatusOr<std::string> text = client_->Get(
          absl::StrCat(prefix, member), std::max(absl::Milliseconds(1), end - SteadyNow()));
      if (absl::IsNotFound(text.status())) {
        absent.push_back(member);
        continue;
      }
      if (!text.ok()) return text.status();
      texts.push_back(*std::move(text));
    }
    if (absent.empty()) return texts;
    return ToStatus(
        {.code = "E301",
         .message = absl::StrCat(what, ": rank ", rank_, " has waited ",
                                 absl::FormatDuration(deadline_), "; ", RanksText(absent),
                                 absent.size() == 1 ? " is absent" : " are absent"),
         .fix = "See what the absent ranks do, or allow more time (--wait)"},
        absl::StatusCode::kDeadlineExceeded);
  }

 private:
  const std::unique_ptr<TcpStoreServer> server_;  // rank 0 only
  const std::unique_ptr<TcpStoreClient> client_;
  const int rank_;
  const int size_;
  const absl::Duration deadline_;
  std::map<std::string, int64_t> gathered_;
};

}  // namespace

std::unique_ptr<SideChannel> SideChannelOver(Communicator& communicator) {
  return std::make_unique<OverCommunicator>(communicator);
}

absl::StatusOr<std::unique_ptr<SideChannel>> SideChannelOverTcp(const std::string& address,
                                                                int rank, int size,
                                                                absl::Duration deadline) {
  if (rank < 0 || rank >= size) {
    return ToStatus(
        {.code = "E306",
         .message = absl::StrCat("rank ", rank, " is not one of the ", size, " devices"),
         .fix = "Give a rank of the run"});
  }
  std::unique_ptr<TcpStoreServer> server;
  if (rank == 0) {
    SHARDCALL_ASSIGN_OR_RETURN(server, TcpStoreServer::Listen(address));
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<TcpStoreClient> client,
                             TcpStoreClient::Connect(address, deadline));
  return std::make_unique<OverTcp>(std::move(server), std::move(client), rank, size, deadline);
}

}  // namespace internal
}  // namespace shardcall
