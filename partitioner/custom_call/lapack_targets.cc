// SPDX-License-Identifier: Apache-2.0
// Rules of the LAPACK targets: matrices of a batch are independent, and each is
// whole.
#include "partitioner/custom_call/lapack_targets.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

struct Routine {
  absl::string_view real, complex;  // complex: empty where the name is the same
  absl::string_view rule, whole;    // complex_rule: where the results differ
  absl::string_view complex_rule = {};
};

constexpr Routine kRoutines[] = {
    {"getrf", "", "... m n -> ... m n, ... k, ...", "mnk"},
    {"geqrf", "", "... m n -> ... m n, ... k", "mnk"},
    {"geqp3", "", "... m n, ... n -> ... m n, ... n, ... k", "mnk"},
    {"orgqr", "ungqr", "... m n, ... k -> ... m n", "mnk"},
    {"ormqr", "unmqr", "... a k, ... k, ... m n -> ... m n", "akmn"},
    {"potrf", "", "... m n -> ... m n, ...", "mn"},
    {"trsm", "", "... a c, ... m n -> ... m n", "acmn"},
    {"gtsv", "", "... m, ... m, ... m, ... m n -> ... m, ... m, ... m, ... m n, ...", "mn"},
    {"syevd", "heevd", "... m n -> ... m n, ... k, ...", "mnk"},
    {"geev", "", "... m n -> ... k, ... k, ... m a, ... m c, ...", "mnkac",
     "... m n -> ... k, ... m a, ... m c, ..."},
    {"gees", "", "... m n -> ... m n, ... a c, ... k, ... k, ..., ...", "mnkac",
     "... m n -> ... m n, ... a c, ... k, ..., ..."},
    {"gehrd", "", "... m n -> ... m n, ... k, ...", "mnk"},
    {"sytrd", "hetrd", "... m n -> ... m n, ... a, ... k, ... k, ...", "mnka"},
    {"gesdd", "", "... m n -> ... m n, ... k, ... m a, ... c n, ...", "mnkac"},
    {"gesvd", "", "... m n -> ... m n, ... k, ... m a, ... c n, ...", "mnkac"},
};

}  // namespace

absl::Status RegisterLapackTargets(TargetRegistry& registry) {
  for (const Routine& routine : kRoutines) {
    for (const char type : {'s', 'd', 'c', 'z'}) {
      const bool complex = type == 'c' || type == 'z';
      RuleText text;
      text.rule = std::string(complex && !routine.complex_rule.empty() ? routine.complex_rule
                                                                       : routine.rule);
      for (char factor : routine.whole) text.need_replication.push_back(std::string(1, factor));
      const absl::string_view name =
          complex && !routine.complex.empty() ? routine.complex : routine.real;
      SHARDCALL_RETURN_IF_ERROR(
          registry.RegisterRule(absl::StrCat("lapack_", std::string(1, type), name, "_ffi"),
                                std::move(text), "", "built in"));
    }
  }
  return absl::OkStatus();
}

}  // namespace shardcall
