// SPDX-License-Identifier: Apache-2.0
// What holds for every valid program, and a shrinker for programs where it does
// not.
#ifndef SHARDCALL_TESTS_FUZZ_PROGRAM_CHECKS_H_
#define SHARDCALL_TESTS_FUZZ_PROGRAM_CHECKS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

struct CheckCounts {
  int programs = 0, instructions = 0, partitioned = 0;
  int unsupported = 0;  // refused with a code as not done; no failure
};

// "" if all holds, else what does not:
//   the program verifies; it prints the same after it is read again;
//   it runs twice, and once read again, to the same bytes;
//   partitioned over its devices, with and without propagation, it gives the
//   same numbers, and all copies of a part are equal;
//   propagated text partitioned without propagation is the same module.
// Inputs are small whole numbers from `seed`, which also chooses the machine of the plans.
// `reference`, if not empty, is a program with the same parameters that means the same on one
// device, for a program that needs all of its devices (manual regions).
std::string CheckProgram(const std::string& text, uint64_t seed, CheckCounts* counts,
                         const std::string& reference = "");

// A smaller program for which `fails` still holds (it holds for `text`):
// instructions become parameters or constants, or give way to an operand; results
// and shardings are dropped.
std::string ShrinkProgram(const std::string& text,
                          const std::function<bool(const std::string& text)>& fails);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_FUZZ_PROGRAM_CHECKS_H_
