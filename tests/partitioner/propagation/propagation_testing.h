// SPDX-License-Identifier: Apache-2.0
// Propagates shardings over programs that are written over the mesh a=4, b=2.
#ifndef SHARDCALL_TESTS_PARTITIONER_PROPAGATION_PROPAGATION_TESTING_H_
#define SHARDCALL_TESTS_PARTITIONER_PROPAGATION_PROPAGATION_TESTING_H_

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {

// `@[..]` in a text stands for a sharding over the mesh a=4, b=2.
inline std::string Expand(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '@' && text[i + 1] == '[') {
      absl::StrAppend(&out, "sharding={mesh['a'=4,'b'=2], ");
      int depth = 0;
      for (++i;; ++i) {
        out += text[i];
        depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
        if (depth == 0) break;
      }
      if (text[i + 1] == '+') {  // `@[..]+, replicated={'a'}+` adds subgroups
        const size_t end = text.find('+', i + 2);
        out += text.substr(i + 2, end - i - 2);
        i = end;
      }
      out += "}";
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Propagated {
  Program program;
  PropagationResult result;
  std::string Of(absl::string_view name, int flat = 0) const {
    return result.sharding[program.leaves.leaf(FindInstr(program, name), flat).value]->ToString();
  }
  std::string Explain(absl::string_view name) const {
    return result.Explain(program, program.leaves.leaf(FindInstr(program, name)));
  }
};

inline Propagated PropagateModule(const std::string& module,
                                  const TargetRegistry* targets = nullptr, bool propagate = true) {
  Program program = Import(Expand(module), {.num_partitions = 8});
  RuleTable rules(program, {.targets = targets});
  absl::StatusOr<PropagationResult> result = Propagate(program, rules, {.propagate = propagate});
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    std::abort();
  }
  return {std::move(program), *std::move(result)};
}

constexpr char kOpen[] =
    "num_partitions=8, allow_spmd_sharding_propagation_to_parameters={true}, "
    "allow_spmd_sharding_propagation_to_output={true}";

inline Propagated PropagateEntry(const std::string& body, const TargetRegistry* targets = nullptr,
                                 bool propagate = true) {
  return PropagateModule(EntryModule(body, kOpen), targets, propagate);
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_PROPAGATION_PROPAGATION_TESTING_H_
