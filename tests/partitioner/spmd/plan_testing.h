// SPDX-License-Identifier: Apache-2.0
// Programs of an entry's body over so many devices in a row.
#ifndef SHARDCALL_TESTS_PARTITIONER_SPMD_PLAN_TESTING_H_
#define SHARDCALL_TESTS_PARTITIONER_SPMD_PLAN_TESTING_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/program_family.h"

namespace shardcall {

inline std::unique_ptr<PartitionedProgram> Done(const std::string& body, int64_t devices,
                                                TextOptions options = {}) {
  const std::string text = Instantiate(body, {}, TestMesh{{devices}}, {});
  absl::StatusOr<std::unique_ptr<PartitionedProgram>> p = PartitionText(text, options);
  EXPECT_TRUE(p.ok()) << p.status();
  return p.ok() ? *std::move(p) : nullptr;
}

// Bytes that a device sends in a program over so many devices, in all iterations of its loops,
// where only these count.
inline double BytesMoved(const std::string& body, int64_t devices = 8, TextOptions options = {}) {
  options.spmd.cost.latency = 1e-15;
  const auto p = Done(body, devices, options);
  if (p == nullptr) return -1;
  double bytes = 0;
  for (const CollectiveRecord& r : p->local.collectives) bytes += r.bytes_moved * r.trip_count;
  return bytes;
}

inline absl::Status Refused(const std::string& body, int64_t devices, TextOptions options = {}) {
  return PartitionText(Instantiate(body, {}, TestMesh{{devices}}, {}), options).status();
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_SPMD_PLAN_TESTING_H_
