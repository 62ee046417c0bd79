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

inline absl::Status Refused(const std::string& body, int64_t devices, TextOptions options = {}) {
  return PartitionText(Instantiate(body, {}, TestMesh{{devices}}, {}), options).status();
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_SPMD_PLAN_TESTING_H_
