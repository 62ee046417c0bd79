// SPDX-License-Identifier: Apache-2.0
// What a fuzz target demands of the product. A broken demand ends the process,
// which libFuzzer and the replay driver both take for a finding.
#ifndef SHARDCALL_TESTS_FUZZ_REQUIRE_H_
#define SHARDCALL_TESTS_FUZZ_REQUIRE_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

inline void FuzzRequire(bool holds, absl::string_view demand, absl::string_view shown) {
  if (holds) return;
  std::fprintf(stderr, "demand broken: %s\n%s\n", std::string(demand).c_str(),
               std::string(shown).c_str());
  std::abort();
}

// An error of bad input: it has a code, and is no bug of ours.
inline void FuzzRequireDiagnosed(const absl::Status& status, absl::string_view shown = "") {
  if (status.ok()) return;
  FuzzRequire(!DiagnosticCode(status).empty() && status.code() != absl::StatusCode::kInternal,
              "an error has a code and is the input's fault",
              std::string(status.ToString()) + "\n" + std::string(shown));
}

// Both are equal; if not, shows where they part.
inline void FuzzRequireSame(absl::string_view a, absl::string_view b, absl::string_view demand) {
  if (a == b) return;
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const size_t from = at < 200 ? 0 : at - 200;
  FuzzRequire(false, demand,
              "they part at byte " + std::to_string(at) + "\n--- first\n" +
                  std::string(a.substr(from, 600)) + "\n--- second\n" +
                  std::string(b.substr(from, 600)));
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_FUZZ_REQUIRE_H_
