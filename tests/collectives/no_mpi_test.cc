// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

TEST(NoMpi, ConnectingIsATypedError) {
  const auto communicator = ConnectMpi(absl::Seconds(1));
  EXPECT_EQ(communicator.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DiagnosticCode(communicator.status()), "E302");
}

}  // namespace
}  // namespace shardcall
