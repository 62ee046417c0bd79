// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_TESTS_PARTITIONER_PASS_PASS_TESTING_H_
#define SHARDCALL_TESTS_PARTITIONER_PASS_PASS_TESTING_H_

#include <gtest/gtest.h>

#include <string>

#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/pass/pass.h"
#include "tests/support/verify_text.h"

namespace shardcall {

// The text after the pass of a module for four devices with these computations; empty if the pass
// leaves it as it is.
inline std::string TextAfter(Pass& pass, const std::string& computations) {
  absl::StatusOr<Module> m = ParseText("HloModule m, num_partitions=4\n" + computations);
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return "";
  absl::StatusOr<PassResult> r = pass.Run(*m);
  EXPECT_TRUE(r.ok()) << r.status();
  if (!r.ok() || !r->changed) return "";
  AssignNames(&r->module);
  EXPECT_TRUE(VerifyModule(r->module, "").ok()) << VerifyModule(r->module, "");
  return PrintModule(r->module);
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_PASS_PASS_TESTING_H_
