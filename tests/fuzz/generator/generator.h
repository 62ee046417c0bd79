// SPDX-License-Identifier: Apache-2.0
// Valid HLO programs at random: typed graphs with control flow, tuples, custom
// calls with rules, and shardings over a random mesh. The same seed gives the
// same program.
//
// All numbers stay whole and small enough to be exact in their type, whatever
// the order of sums, so that partitioned and unpartitioned runs can be compared
// bit by bit. Functions that make fractions (exponential, sine, ..) are applied
// once and only moved, compared by maximum and negated after that.
#ifndef SHARDCALL_TESTS_FUZZ_GENERATOR_GENERATOR_H_
#define SHARDCALL_TESTS_FUZZ_GENERATOR_GENERATOR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

struct GeneratorOptions {
  int steps = 12;       // ops of the entry that are tried
  int num_devices = 0;  // 0: at random, 2 to 8
  bool shardings = true;
  bool control_flow = true;
  // What manual regions mean, in place of them: the same program for one device.
  bool reference = false;
};

// An error is a fault of the generator or of shape inference.
absl::StatusOr<Module> GenerateModule(uint64_t seed, const GeneratorOptions& options);

// Random `sharding=` texts over `devices`, or over some of them, in V1, V2 and named form.
class Random;
std::string RandomShardingText(Random& random, int rank, int64_t all_devices);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_FUZZ_GENERATOR_GENERATOR_H_
