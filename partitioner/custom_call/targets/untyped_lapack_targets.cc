// SPDX-License-Identifier: Apache-2.0
// Rules of LAPACK's targets by their older names, which take sizes as operands. Only batch
// dimensions are sharded, and each device passes the size of its local batch.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// An older target with T, the routine's type, in place of `?`. Workspaces are results too; their
// sizes are factors of their own.
struct Routine {
  absl::string_view real, complex;  // complex: empty where the name is the same
  int num_scalars, batch_at;        // index of the batch size, -1 if it is not an operand
  absl::string_view arrays;         // operands after the scalars
  absl::string_view real_results, complex_results = {};
};

constexpr Routine kRoutines[] = {
    {"lapack_?getrf", "", 3, 0, "... m n", "... m n, ... k, ..."},
    {"lapack_?geqrf", "", 4, 0, "... m n", "... m n, ... k, ..., w"},
    {"lapack_?geqp3", "", 4, 0, "... m n, ... n", "... m n, ... n, ... k, ..., w",
     "... m n, ... n, ... k, ..., w, x"},
    {"lapack_?orgqr", "lapack_?ungqr", 5, 0, "... m n, ... k", "... m n, ..., w"},
    {"lapack_?potrf", "", 3, 1, "... m n", "... m n, ..."},
    {"lapack_?syevd", "lapack_?heevd", 3, 1, "... m n", "... m n, ... k, ..., w, x",
     "... m n, ... k, ..., w, x, y"},
    {"lapack_?geev", "", 4, 0, "... m n", "w x, w x, w x, ... k, ... k, ... m a, ... m c, ...",
     "w x, y, ... k, ... m a, ... m c, ..."},
    {"lapack_?gees", "", 4, 0, "... m n", "... m n, ... k, ... k, ... a c, ..., ...",
     "... m n, w, ... k, ... a c, ..., ..."},
    {"lapack_?gehrd", "", 6, 4, "... m n", "... m n, ... k, ..., w"},
    {"lapack_?sytrd", "lapack_?hetrd", 5, 3, "... m n", "... m n, ... a, ... k, ... k, ..., w"},
    {"lapack_?gesdd", "", 6, 2, "... m n", "... m n, ... k, ... m a, ... c n, ..., w, x",
     "... m n, ... k, ... m a, ... c n, ..., w, x, y"},
    {"blas_?trsm", "", 8, 6, "... a c, ... m n", "... m n"},
};

absl::StatusOr<std::vector<InstrId>> WithLocalBatch(LocalCall& call,
                                                    absl::Span<const InstrId> operands,
                                                    int num_scalars, int batch_at) {
  std::vector<InstrId> local(operands.begin(), operands.end());
  const Shape* matrix = call.shape(local[num_scalars]);
  if (matrix->dims() == call.call().operands[num_scalars]->dims()) return call.CallTarget(local);
  if (batch_at >= 0) {
    int64_t batch = 1;
    for (int d = 0; d + 2 < matrix->rank(); ++d) batch *= matrix->dim(d);
    SHARDCALL_ASSIGN_OR_RETURN(local[batch_at],
                               call.builder().ConstantInt(ElementType::kS32, batch));
    return call.CallTarget(local);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> made, call.CallTarget(local));
  // The opaque config contains the global batch size. It is removed, so that no kernel reads it and
  // writes past the end of the shard.
  Module& m = call.builder().module();
  InstrId id = made[0];
  while (m.instr(id).opcode == Opcode::kGetTupleElement) id = m.operand(id, 0);
  m.mutable_instr(id).backend_config = absl::string_view();
  return made;
}

}  // namespace

absl::Status RegisterUntypedLapackTargets(TargetRegistry& registry) {
  for (const Routine& routine : kRoutines) {
    for (const char type : {'s', 'd', 'c', 'z'}) {
      const bool complex = type == 'c' || type == 'z';
      RuleAlternative one;
      for (int k = 0; k < routine.num_scalars; ++k) one.text.rule += ", ";
      absl::StrAppend(&one.text.rule, routine.arrays, " -> ",
                      complex && !routine.complex_results.empty() ? routine.complex_results
                                                                  : routine.real_results);
      for (const char* f : {"m", "n", "k", "a", "c", "w", "x", "y"}) {
        if (one.text.rule.find(*f) != std::string::npos) one.text.need_replication.push_back(f);
      }
      std::string name(complex && !routine.complex.empty() ? routine.complex : routine.real);
      name[name.find('?')] = type;
      const int scalars = routine.num_scalars, batch_at = routine.batch_at;
      SHARDCALL_RETURN_IF_ERROR(RegisterRuleWithBody(
          registry, std::move(name), {std::move(one)},
          [scalars, batch_at](LocalCall& call, absl::Span<const InstrId> operands) {
            return WithLocalBatch(call, operands, scalars, batch_at);
          },
          "built in"));
    }
  }
  return RegisterRuleWithBody(
      registry, "cublas_getrf_batched",
      {{.text = {.rule = "... m n -> ... m n, ... k, ..., w",
                 .need_replication = {"m", "n", "k", "w"}},
        .types = "T -> T, s32, s32, s8"}},
      [](LocalCall& call, absl::Span<const InstrId> operands) {
        return WithLocalBatch(call, operands, 0, /*batch_at=*/-1);
      },
      "built in");
}

}  // namespace internal
}  // namespace shardcall
