// SPDX-License-Identifier: Apache-2.0
// Rules of the LAPACK targets: only batch dimensions are sharded, since each matrix must be whole,
// whatever its layout is. Strategies take those of matrix_calls.h by blocks.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Routine {
  absl::string_view real, complex;  // complex: empty where the name is the same
  absl::string_view rule, whole;
  // Types in terms of T, the routine's own type. A check calls the routine with `config`.
  absl::string_view types, config = {};
  absl::string_view complex_rule = {}, complex_types = {};  // where the results differ
};

constexpr Routine kRoutines[] = {
    {"getrf", "", "... m n -> ... m n, ... k, ...", "mnk", "T -> T, s32, s32"},
    {"geqrf", "", "... m n -> ... m n, ... k", "mnk", "T -> T, T"},
    {"geqp3", "", "... m n, ... n -> ... m n, ... n, ... k", "mnk", "T, s32 -> T, s32, T"},
    {"orgqr", "ungqr", "... m n, ... k -> ... m n", "mnk", "T, T -> T"},
    {"ormqr", "unmqr", "... a k, ... k, ... m n -> ... m n", "akmn", "T, T, T -> T"},
    {"potrf", "", "... m n -> ... m n, ...", "mn", "T -> T, s32", "{uplo = 76 : ui8}"},
    {"trsm", "", "... a c, ... m n -> ... m n", "acmn", "T, T -> T",
     "{side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 85 : ui8}"},
    {"gtsv", "", "... m, ... m, ... m, ... m n -> ... m, ... m, ... m, ... m n, ...", "mn",
     "T, T, T, T -> T, T, T, T, s32"},
    {"syevd", "heevd", "... m n -> ... m n, ... k, ...", "mnk", "T -> T, real(T), s32",
     "{mode = 86 : ui8, uplo = 76 : ui8}"},
    {"geev", "", "... m n -> ... k, ... k, ... m a, ... m c, ...", "mnkac",
     "T -> T, T, complex(T), complex(T), s32",
     "{compute_left = 86 : ui8, compute_right = 86 : ui8}",
     "... m n -> ... k, ... m a, ... m c, ...", "T -> T, T, T, s32"},
    {"gees", "", "... m n -> ... m n, ... a c, ... k, ... k, ..., ...", "mnkac",
     "T -> T, T, T, T, s32, s32", "{mode = 86 : ui8, sort = 78 : ui8}",
     "... m n -> ... m n, ... a c, ... k, ..., ...", "T -> T, T, T, s32, s32"},
    {"gehrd", "", "... m n -> ... m n, ... k, ...", "mnk", "T -> T, T, s32",
     "{low = 1 : i32, high = 4 : i32}"},
    {"sytrd", "hetrd", "... m n -> ... m n, ... a, ... k, ... k, ...", "mnka",
     "T -> T, real(T), real(T), T, s32", "{uplo = 76 : ui8}"},
    {"gesdd", "", "... m n -> ... m n, ... k, ... m a, ... c n, ...", "mnkac",
     "T -> T, real(T), T, T, s32", "{mode = 83 : ui8}"},
    {"gesvd", "", "... m n -> ... m n, ... k, ... m a, ... c n, ...", "mnkac",
     "T -> T, real(T), T, T, s32", "{mode = 83 : ui8}"},
};

absl::string_view Or(absl::string_view a, absl::string_view b) { return a.empty() ? b : a; }

// The signatures of `types` for the routines of `letter`: T is replaced by their type.
std::string TypesFor(absl::string_view types, char letter) {
  const absl::string_view name = letter == 's'   ? "f32"
                                 : letter == 'd' ? "f64"
                                 : letter == 'c' ? "c64"
                                                 : "c128";
  const absl::string_view part = letter == 's' || letter == 'c' ? "f32" : "f64";
  const absl::string_view whole = letter == 's' || letter == 'c' ? "c64" : "c128";
  return absl::StrReplaceAll(types, {{"real(T)", part}, {"complex(T)", whole}, {"T", name}});
}

}  // namespace

absl::Status RegisterLapackTargets(TargetRegistry& registry) {
  for (const Routine& routine : kRoutines) {
    for (const char type : {'s', 'd', 'c', 'z'}) {
      const bool complex = type == 'c' || type == 'z';
      RuleAlternative one;
      one.text.rule = std::string(complex ? Or(routine.complex_rule, routine.rule) : routine.rule);
      for (char f : routine.whole) one.text.need_replication.push_back(std::string(1, f));
      one.types =
          TypesFor(complex ? Or(routine.complex_types, routine.types) : routine.types, type);
      if (!routine.config.empty()) one.example_configs.emplace_back(routine.config);
      const absl::string_view name = complex ? Or(routine.complex, routine.real) : routine.real;
      SHARDCALL_RETURN_IF_ERROR(
          registry.RegisterRules(absl::StrCat("lapack_", std::string(1, type), name, "_ffi"),
                                 {std::move(one)}, "", "built in"));
    }
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
