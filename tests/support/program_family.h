// SPDX-License-Identifier: Apache-2.0
// Families of small programs that differ in sizes and shardings only, each of
// which is verified. The text holds
//   @A, @(A*2+1)   sizes, arithmetic from left to right
//   <0:2>          the sharding of slot 0, of rank 2: `, sharding={...}` or nothing
// and stands in an entry computation `ENTRY main {`, or holds one of its own.
//
// What the partitioned programs of a family send in all is held against its row of
// tests/data/spmd/families.txt: `NAME cases=.. bytes=.. local=.. fallbacks=.. all-gather=..`,
// bytes that a device sends, and bytes of the values that it makes (whoever gathers all to
// compute all makes more). Less of any is fine, more is a failure. With
// SHARDCALL_UPDATE_GOLDENS=1 the rows of the families that run are written anew.
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
  // Cases beyond this are drawn, the same number of each mesh (as far as it has as
  // many), evenly from its sizes and shardings, and always the same ones.
  int max_cases = 300;
  TextOptions options = {};
  bool no_fallback = false;  // a fallback is a failure
};

// One program of a family, by the numbers of its mesh, its sizes, and what stands in its
// slots (0: nothing).
struct ProgramCase {
  size_t mesh = 0, sizes = 0;
  std::vector<size_t> slots;
};
std::vector<ProgramCase> CasesOf(const ProgramFamily& family);

// Every combination of sizes, meshes and shardings of the slots (each slot also
// without one), at most max_cases of them. A failure shows the program; after
// three the rest of the family is only counted.
void VerifyFamily(const ProgramFamily& family);

// The program of one case.
std::string Instantiate(const std::string& text, const Sizes& sizes, const TestMesh& mesh,
                        const std::vector<std::string>& shardings);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_PROGRAM_FAMILY_H_
