// SPDX-License-Identifier: Apache-2.0
// The conformance suite on this process's rank; run by mpirun, with --async
// through a thread that makes the calls. Ends with status 1 on every rank if any
// rank failed.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "shardcall/collectives/async.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "tests/collectives/conformance.h"

namespace shardcall::testing {
namespace {

Communicator* communicator = nullptr;

class Mpi : public ::testing::TestWithParam<size_t> {};

TEST_P(Mpi, Conforms) { ConformanceCases()[GetParam()].body(*communicator); }

INSTANTIATE_TEST_SUITE_P(AllCases, Mpi, ::testing::Range<size_t>(0, ConformanceCases().size()),
                         [](const auto& info) { return ConformanceCases()[info.param].name; });

TEST(MpiSession, ASecondConnectionWorksTheSame) {
  auto second = ConnectMpi(absl::Seconds(60));
  ASSERT_TRUE(second.ok()) << second.status();
  std::vector<int> all((*second)->size());
  std::iota(all.begin(), all.end(), 0);
  // The others wait long enough to tell what they call, which must not be held
  // against calls of the first connection.
  if (communicator->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE((*second)->Barrier(all, {"%again"}).ok());
}

// One rank prints what passes; each prints its own failures, with its rank.
class RankPrinter : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed()) {
      std::cerr << "rank " << communicator->rank() << ": " << result.file_name() << ":"
                << result.line_number() << ": " << result.message() << std::endl;
    }
  }
};

int RunAll(bool async) {
  auto connected = ConnectMpi(absl::Seconds(60));
  if (!connected.ok()) {
    std::cerr << connected.status() << std::endl;
    return 1;
  }
  const std::unique_ptr<Communicator> owned = *std::move(connected);
  AsyncCommunicator wrapped(*owned);
  communicator = async ? &wrapped : owned.get();
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (communicator->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankPrinter);
  int32_t failed = RUN_ALL_TESTS();
  std::vector<int> all(communicator->size());
  std::iota(all.begin(), all.end(), 0);
  const absl::Status status = communicator->AllReduce(all, ReduceKind::kMax, ElementType::kS32,
                                                      &failed, &failed, 1, {"exit status"});
  return status.ok() ? failed : 1;
}

}  // namespace
}  // namespace shardcall::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return shardcall::testing::RunAll(argc == 2 && std::string(argv[1]) == "--async");
}
