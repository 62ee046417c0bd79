// SPDX-License-Identifier: Apache-2.0
// Families of small programs that differ in sizes and shardings only, each of
// which is verified. The text holds
//   @A, @(A*2+1)   sizes, arithmetic from left to right
//   <0:2>          the sharding of slot 0, of rank 2: `, sharding={...}` or nothing
// and stands in an entry computation `ENTRY main {`, or holds one of its own.
//
// The totals over the partitioned programs of a family are compared with its row of
// tests/data/spmd/families.txt: `NAME cases=.. bytes=.. local=.. fallbacks=.. all-gather=..`.
// `bytes` are those that a device sends, and `local` those of the values that it computes (a
// partitioner that gathers everything computes more). Smaller numbers pass, larger ones fail. With
// SHARDCALL_UPDATE_GOLDENS=1 the rows of the families that run are rewritten.
#ifndef SHARDCALL_TESTS_SUPPORT_PROGRAM_FAMILY_H_
#define SHARDCALL_TESTS_SUPPORT_PROGRAM_FAMILY_H_

#include <map>
#include <string>
#include <vector>

#include "tests/support/test_mesh.h"
#include "tests/support/verify_text.h"

namespace shardcall {

using Sizes = std::map<char, int64_t>;

struct ProgramFamily {
  std::string text;
  std::vector<Sizes> sizes = {{}};
  std::vector<TestMesh> meshes = {{{2, 2}}, {{4, 2}}, {{3, 2}}, {{2, 2, 2}}};
  // The limit on cases. If there are more, cases are drawn deterministically, the same number for
  // each mesh (as far as it has as many), evenly over sizes and shardings.
  int max_cases = 300;
  TextOptions options = {};
  bool no_fallback = false;  // a fallback is a failure
};

// One program of a family: the indices of its mesh, of its sizes, and of the sharding in each slot
// (0: none).
struct ProgramCase {
  size_t mesh = 0, sizes = 0;
  std::vector<size_t> slots;
};
std::vector<ProgramCase> CasesOf(const ProgramFamily& family);

// Verifies every combination of sizes, meshes and shardings of the slots (each slot also without
// one), at most max_cases of them. A failure shows the program; after three failures the rest is
// only counted.
void VerifyFamily(const ProgramFamily& family);

// The program of one case.
std::string Instantiate(const std::string& text, const Sizes& sizes, const TestMesh& mesh,
                        const std::vector<std::string>& shardings);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_PROGRAM_FAMILY_H_
