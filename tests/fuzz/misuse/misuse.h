// SPDX-License-Identifier: Apache-2.0
// Random misuse of the entry points: calls in any order, with null, wrong ranks, ids
// out of range, empty and huge names, functions that answer nonsense or throw. Each
// family below is a sequence of calls. What is demanded is that nothing crashes, that
// every refusal has a code, and that what is not refused holds together.
#ifndef SHARDCALL_TESTS_FUZZ_MISUSE_MISUSE_H_
#define SHARDCALL_TESTS_FUZZ_MISUSE_MISUSE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/element_type.h"
#include "tests/fuzz/generator/random.h"

struct Shardcall_Error;

namespace shardcall::misuse {

// What was called, and what came of it.
struct Tally {
  int64_t sequences = 0, calls = 0, refused = 0;
  std::map<std::string, int64_t> codes;
};

class Caller {
 public:
  Caller(uint64_t seed, Tally* tally) : random_(seed), tally_(*tally) {}

  Random& random() { return random_; }
  bool Chance(int percent) { return random_.Chance(percent); }
  int64_t Int(int64_t low, int64_t high) { return random_.Int(low, high); }

  // Counts a call; a refusal must have a code. True for OK.
  bool Ok(const absl::Status& status);
  template <typename T>
  bool Ok(const absl::StatusOr<T>& made) {
    return Ok(made.status());
  }
  // Of the C interface: counts and destroys; the parts of an error must be texts.
  bool Ok(Shardcall_Error* error);

  // Mostly small and right, at times not.
  int64_t Number();
  std::vector<int64_t> Dims();
  std::vector<int64_t> Numbers(size_t most);
  ElementType Type();
  std::string Name();
  std::string Rule();
  std::string ShardingText();
  // A program over 4 devices with a call of `target`, or text that is none.
  std::string Program(const std::string& target);
  // At times one that no module has.
  CompId Computation(const Module& module);
  InstrId Instr(const std::vector<InstrId>& known);
  // What an author's function does instead of answering: throws, or says false.
  bool MayThrow();

 private:
  Random random_;
  Tally& tally_;
};

// Prints and reads a module that verified; both must say the same.
void DemandRoundTrip(const Module& module);

void MisuseBuilders(Caller& c);
void MisuseCallbacks(Caller& c);
void MisuseRegistries(Caller& c);
void MisuseCInterface(Caller& c);
void MisuseRuns(Caller& c);
void MisuseShardings(Caller& c);
void MisuseEntries(Caller& c);
void MisuseCEntries(Caller& c);
void MisuseCPjrt(Caller& c);
void MisuseCollectives(Caller& c);

}  // namespace shardcall::misuse

#endif  // SHARDCALL_TESTS_FUZZ_MISUSE_MISUSE_H_
