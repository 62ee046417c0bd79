// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/side_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/collectives/tcp_store.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A port that was free a moment ago.
std::string FreeAddress() {
  auto server = TcpStoreServer::Listen("127.0.0.1:0");
  EXPECT_TRUE(server.ok()) << server.status();
  return absl::StrCat("127.0.0.1:", (*server)->port());
}

void OnRanks(int size, const std::function<void(int)>& body) {
  std::vector<std::thread> ranks;
  for (int r = 0; r < size; ++r) ranks.emplace_back(body, r);
  for (std::thread& rank : ranks) rank.join();
}

void GathersInGroupsOfAnyOrder(SideChannel& side) {
  const std::string mine = absl::StrCat("text of ", side.rank());
  for (int round = 0; round < 20; ++round) {
    const auto all = side.Gather({2, 0, 1}, absl::StrCat(mine, " #", round), "test");
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(*all,
                ElementsAre(absl::StrCat("text of 2 #", round), absl::StrCat("text of 0 #", round),
                            absl::StrCat("text of 1 #", round)));
    if (side.rank() == 0) continue;
    const auto pair = side.Gather({1, 2}, side.rank() == 1 ? "" : std::string(240, '\0'), "pair");
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_THAT(*pair, ElementsAre("", std::string(240, '\0')));
  }
}

TEST(SideChannel, GathersOverACommunicator) {
  InProcessWorld world(3, absl::Seconds(30));
  OnRanks(3, [&](int r) {
    const auto c = world.Rank(r);
    GathersInGroupsOfAnyOrder(*SideChannelOver(*c));
  });
}

TEST(SideChannel, GathersOverTcpWhoeverStartsFirst) {
  const std::string address = FreeAddress();
  // The server goes with rank 0, so nobody leaves before all are through.
  InProcessWorld world(3, absl::Seconds(30));
  OnRanks(3, [&](int r) {
    const auto c = world.Rank(r);
    if (r == 0) absl::SleepFor(absl::Milliseconds(100));
    auto side = SideChannelOverTcp(address, r, 3, absl::Seconds(30));
    ASSERT_TRUE(side.ok()) << side.status();
    EXPECT_EQ((*side)->rank(), r);
    EXPECT_EQ((*side)->size(), 3);
    GathersInGroupsOfAnyOrder(**side);
    EXPECT_TRUE(c->Barrier({0, 1, 2}, {"%end"}).ok());
  });
}

TEST(SideChannel, TcpNamesWhoIsAbsent) {
  const std::string address = FreeAddress();
  InProcessWorld world(3, absl::Seconds(30));
  OnRanks(3, [&](int r) {
    const auto c = world.Rank(r);
    auto side = SideChannelOverTcp(address, r, 3, absl::Milliseconds(300));
    ASSERT_TRUE(side.ok()) << side.status();
    if (r != 1) {
      const absl::Status status = (*side)->Gather({0, 1, 2}, "x", "id of a group").status();
      EXPECT_EQ(DiagnosticCode(status), "E301") << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("id of a group: rank "));
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 is absent"));
    }
    EXPECT_TRUE(c->Barrier({0, 1, 2}, {"%end"}).ok());
  });
}

TEST(SideChannel, TcpWithoutAServerIsATimeOut) {
  const absl::Status status =
      SideChannelOverTcp(FreeAddress(), 1, 2, absl::Milliseconds(200)).status();
  EXPECT_EQ(DiagnosticCode(status), "E301") << status;
}

TEST(SideChannel, AnAddressThatIsNoneIsRefused) {
  for (const char* address : {"", "localhost", "127.0.0.1:x", "127.0.0.1:70000", ":"}) {
    const absl::Status status = SideChannelOverTcp(address, 0, 1, absl::Seconds(1)).status();
    EXPECT_EQ(DiagnosticCode(status), "E306") << address << ": " << status;
  }
  EXPECT_EQ(DiagnosticCode(SideChannelOverTcp("127.0.0.1:0", 3, 2, absl::Seconds(1)).status()),
            "E306");
}

TEST(TcpStore, KeepsWhatWasPutAndForgetsWhoLeft) {
  auto server = TcpStoreServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());
  auto client = TcpStoreClient::Connect(address, absl::Seconds(5));
  ASSERT_TRUE(client.ok()) << client.status();
  // Another one leaves in the middle of its wait.
  std::thread impatient([&] {
    auto other = TcpStoreClient::Connect(address, absl::Seconds(5));
    ASSERT_TRUE(other.ok());
    EXPECT_EQ((*other)->Get("never", absl::Milliseconds(50)).status().code(),
              absl::StatusCode::kNotFound);
  });
  impatient.join();
  EXPECT_TRUE((*client)->Put("key", "value").ok());
  EXPECT_EQ(*(*client)->Get("key", absl::Seconds(5)), "value");
  EXPECT_TRUE((*client)->Put("key", std::string(60000, 'x')).ok());
  EXPECT_EQ((*client)->Get("key", absl::Seconds(5))->size(), 60000u);
}

}  // namespace
}  // namespace shardcall
