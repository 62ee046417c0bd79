// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/trip_count.h"

#include <optional>

#include "shardcall/partitioner/ir/analysis/value_range.h"
#include "shardcall/partitioner/ir/known_targets.h"

namespace shardcall {
inline namespace internal {
namespace {

// Skips copies, reshapes, annotations, and elements of tuples that are in the same computation.
InstrId LookThrough(const Module& m, InstrId id) {
  for (;;) {
    const Instruction& i = m.instr(id);
    // On meshes with explicit axes JAX annotates the counters of its loops, too.
    const bool is_same = i.opcode == Opcode::kCopy || i.opcode == Opcode::kReshape ||
                         HasTrait(KnownTargetOf(i), kIsIdentity);
    if (is_same && !m.operands(i).empty()) {
      id = m.operand(id, 0);
    } else if (i.opcode == Opcode::kGetTupleElement &&
               m.instr(m.operand(id, 0)).opcode == Opcode::kTuple) {
      id = m.operand(m.operand(id, 0), static_cast<int>(i.as<TupleIndexAttrs>().index));
    } else {
      return id;
    }
  }
}

std::optional<int64_t> ScalarConstant(const Module& m, InstrId id) {
  const Instruction& i = m.instr(LookThrough(m, id));
  if (i.opcode != Opcode::kConstant || !i.shape->IsArray() || i.shape->num_elements() != 1 ||
      !IsInteger(i.shape->element_type())) {
    return std::nullopt;
  }
  const Literal* l = i.as<ConstantAttrs>().literal;
  if (l->elided ||
      l->data.size() < static_cast<size_t>(ElementTypeBytes(i.shape->element_type()))) {
    return std::nullopt;
  }
  return IntegerAt(*l, 0);
}

// Index of the loop-carried element that `id` reads, or -1.
int64_t CarryIndex(const Module& m, InstrId id) {
  const Instruction& i = m.instr(LookThrough(m, id));
  if (i.opcode != Opcode::kGetTupleElement) return -1;
  const Instruction& source = m.instr(m.operands(i)[0]);
  return source.opcode == Opcode::kParameter ? i.as<TupleIndexAttrs>().index : -1;
}

}  // namespace

int64_t KnownTripCount(const Module& m, InstrId loop) {
  const Instruction& w = m.instr(loop);
  const auto& attrs = w.as<WhileAttrs>();
  const InstrId test = LookThrough(m, m.comp(attrs.condition).root);
  const Instruction& compare = m.instr(test);
  if (compare.opcode != Opcode::kCompare) return -1;
  const Direction direction = compare.as<CompareAttrs>().direction;
  if (direction != Direction::kLt && direction != Direction::kLe) return -1;
  const int64_t carry = CarryIndex(m, m.operand(test, 0));
  if (carry < 0) return -1;

  const InstrId init = LookThrough(m, m.operand(loop, 0));
  const InstrId root = LookThrough(m, m.comp(attrs.body).root);
  if (m.instr(init).opcode != Opcode::kTuple || m.instr(root).opcode != Opcode::kTuple) return -1;
  if (carry >= static_cast<int64_t>(m.operands(init).size()) ||
      carry >= static_cast<int64_t>(m.operands(root).size())) {
    return -1;
  }
  const std::optional<int64_t> start = ScalarConstant(m, m.operand(init, static_cast<int>(carry)));
  std::optional<int64_t> limit = ScalarConstant(m, m.operand(test, 1));
  if (!limit.has_value()) {  // a loop-carried bound that the body does not change
    const int64_t bound = CarryIndex(m, m.operand(test, 1));
    if (bound >= 0 && bound < static_cast<int64_t>(m.operands(root).size()) &&
        CarryIndex(m, m.operand(root, static_cast<int>(bound))) == bound) {
      limit = ScalarConstant(m, m.operand(init, static_cast<int>(bound)));
    }
  }
  const InstrId next = LookThrough(m, m.operand(root, static_cast<int>(carry)));
  if (!start.has_value() || !limit.has_value() || m.instr(next).opcode != Opcode::kAdd) return -1;
  std::optional<int64_t> step;
  for (int k = 0; k < 2; ++k) {
    if (CarryIndex(m, m.operand(next, k)) == carry) {
      step = ScalarConstant(m, m.operand(next, 1 - k));
    }
  }
  if (!step.has_value() || *step <= 0) return -1;
  const int64_t last = *limit + (direction == Direction::kLe ? 1 : 0);
  return last <= *start ? 0 : (last - *start + *step - 1) / *step;
}

double RunsOfComputations(const Module& module, InstrId instr, double otherwise) {
  if (module.instr(instr).opcode != Opcode::kWhile) return 1;
  const int64_t n = KnownTripCount(module, instr);
  return n < 0 ? otherwise : static_cast<double>(n);
}

double ExpectedRuns(const Module& module, InstrId instr, double otherwise) {
  const Instruction& i = module.instr(instr);
  if (i.opcode != Opcode::kConditional) return RunsOfComputations(module, instr, otherwise);
  return 1 / static_cast<double>(CalledComputations(module, i).size());
}

std::vector<double> RunsByComputation(const Module& module, absl::Span<const CompId> order,
                                      double otherwise, BranchRuns branches) {
  std::vector<double> runs(module.num_computations(), 0);
  runs[module.entry().value] = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {  // callers first
    const double times = runs[it->value];
    for (const InstrId id : module.comp(*it).instructions) {
      const double each = branches == BranchRuns::kExpected
                              ? ExpectedRuns(module, id, otherwise)
                              : RunsOfComputations(module, id, otherwise);
      for (const CompId callee : CalledComputations(module, module.instr(id))) {
        runs[callee.value] += times * each;
      }
    }
  }
  return runs;
}

}  // namespace internal
}  // namespace shardcall
