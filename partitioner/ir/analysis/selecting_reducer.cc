// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/selecting_reducer.h"

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {
namespace {

// Which of the two values that result number k of a reduction of n values combines `id` may be, by
// selection: bit 0 for parameter k, bit 1 for parameter k + n. 0 if it is something else.
int Selected(const Module& m, InstrId id, int64_t k, int64_t n) {
  const Instruction& i = m.instr(id);
  const auto operands = m.operands(id);
  if (i.opcode == Opcode::kParameter) {
    const int64_t number = i.as<ParameterAttrs>().number;
    return number == k ? 1 : number == k + n ? 2 : 0;
  }
  const size_t first = i.opcode == Opcode::kSelect ? 1 : 0;
  if (first == 0 && i.opcode != Opcode::kMaximum && i.opcode != Opcode::kMinimum) return 0;
  const int x = Selected(m, operands[first], k, n), y = Selected(m, operands[first + 1], k, n);
  return x == 0 || y == 0 ? 0 : x | y;
}

// A reducer that always takes one side has no neutral value.
bool SelectsEither(const Module& m, InstrId id, int64_t k, int64_t n) {
  return Selected(m, id, k, n) == 3;
}

// What conditions are made of.
bool IsCondition(Opcode op) {
  constexpr Opcode kConditions[] = {Opcode::kParameter, Opcode::kConstant, Opcode::kCompare,
                                    Opcode::kSelect,    Opcode::kMaximum,  Opcode::kMinimum,
                                    Opcode::kAnd,       Opcode::kOr,       Opcode::kNot,
                                    Opcode::kTuple,     Opcode::kIsFinite};
  return absl::c_linear_search(kConditions, op);
}

}  // namespace

bool IsSelectingReducer(const Module& m, CompId computation) {
  if (!computation.valid()) return false;
  const Computation& c = m.comp(computation);
  // Long ones are none that anybody writes, and Selected looks at a value once for each path.
  constexpr size_t kMost = 32;
  if (c.instructions.size() > kMost || c.parameters.size() % 2 != 0) return false;
  if (!absl::c_all_of(c.instructions, [&](InstrId i) { return IsCondition(m.instr(i).opcode); })) {
    return false;
  }
  const int64_t n = static_cast<int64_t>(c.parameters.size()) / 2;
  if (m.instr(c.root).opcode != Opcode::kTuple) return n == 1 && SelectsEither(m, c.root, 0, 1);
  const auto results = m.operands(c.root);
  if (static_cast<int64_t>(results.size()) != n) return false;
  for (int64_t k = 0; k < n; ++k) {
    if (!SelectsEither(m, results[k], k, n)) return false;
  }
  return true;
}

}  // namespace internal
}  // namespace shardcall
