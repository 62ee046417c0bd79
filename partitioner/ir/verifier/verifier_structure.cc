// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"

namespace shardcall {
inline namespace internal {
namespace verifier {
namespace {

bool Known(const Module& m, InstrId id) {
  return id.valid() && id.value < static_cast<uint32_t>(m.num_instructions());
}

std::string Name(const Computation& c) { return absl::StrCat("%", c.name); }

// Sets the position of each instruction in its computation's list; UINT32_MAX if it is in none.
bool Place(const Module& m, std::vector<uint32_t>* place, Fault* error) {
  place->assign(m.num_instructions(), UINT32_MAX);
  for (int c = 0; c < m.num_computations(); ++c) {
    const Computation& comp = m.comp(CompId(c));
    for (size_t k = 0; k < comp.instructions.size(); ++k) {
      const InstrId id = comp.instructions[k];
      if (!Known(m, id) || m.instr(id).computation != CompId(c) ||
          (*place)[id.value] != UINT32_MAX) {
        return Fail(error, "E028", "a computation lists an instruction that is not its own",
                    Name(comp), "each instruction once, in its computation",
                    absl::StrCat("entry ", k), "list it once, where it belongs");
      }
      (*place)[id.value] = static_cast<uint32_t>(k);
    }
  }
  return true;
}

bool CheckEdges(const Module& m, const std::vector<uint32_t>& place, InstrId id, Fault* error) {
  const Instruction& i = m.instr(id);
  const auto before = [&](InstrId x, const char* what, size_t k) {
    if (!Known(m, x) || place[x.value] == UINT32_MAX || m.instr(x).computation != i.computation) {
      return Fail(error, "E028",
                  absl::StrCat(what, " ", k, " is not an instruction of the same computation"),
                  Where(m, id), "an instruction of the same computation",
                  Known(m, x) ? Where(m, x) : "none", "pass it in as a parameter");
    }
    if (place[x.value] >= place[id.value]) {
      return Fail(error, "E028", absl::StrCat(what, " ", k, " stands after its user"), Where(m, id),
                  "operands before users", Where(m, x), "list it before its user");
    }
    return true;
  };
  const absl::Span<const InstrId> operands = m.operands(i);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!before(operands[k], "operand", k)) return false;
  }
  if (const RareAttributes* rare = m.rare(i)) {
    for (size_t k = 0; k < rare->control_predecessors.size(); ++k) {
      if (!before(rare->control_predecessors[k], "control predecessor", k)) return false;
    }
  }
  return true;
}

bool CheckParameters(const Module& m, const Computation& comp, Fault* error) {
  size_t count = 0;
  for (InstrId id : comp.instructions) count += m.instr(id).opcode == Opcode::kParameter;
  for (size_t k = 0; k < comp.parameters.size(); ++k) {
    const InstrId id = comp.parameters[k];
    if (!Known(m, id) || m.instr(id).opcode != Opcode::kParameter ||
        m.instr(id).attrs->kind != AttrKind::kParameter ||
        m.instr(id).as<ParameterAttrs>().number != static_cast<int64_t>(k)) {
      return Fail(error, "E028", absl::StrCat("parameter ", k, " is missing"), Name(comp),
                  "numbers dense from 0", Known(m, id) ? Where(m, id) : "none",
                  "number the parameters from 0");
    }
  }
  if (count == comp.parameters.size()) return true;
  return Fail(error, "E028", "two parameters have the same number", Name(comp),
              absl::StrCat(comp.parameters.size(), " parameters"), absl::StrCat(count),
              "number the parameters from 0");
}

// Depth-first over the call graph with an explicit stack; a call to a computation on the stack is a
// cycle.
bool CheckCalls(const Module& m, Fault* error) {
  const int n = m.num_computations();
  struct Call {
    uint32_t callee;
    InstrId from;
  };
  std::vector<uint32_t> first(n + 1, 0);
  std::vector<Call> calls;
  for (int c = 0; c < n; ++c) {
    first[c] = static_cast<uint32_t>(calls.size());
    for (InstrId id : m.comp(CompId(c)).instructions) {
      const Instruction& i = m.instr(id);
      if (!HasTrait(i.opcode, kCallsComputation)) continue;
      for (CompId callee : CalledComputations(m, i)) {
        if (callee.value >= static_cast<uint32_t>(n)) {
          error->at = id;
          return Fail(error, "E024",
                      absl::StrCat(OpcodeText(i.opcode), ": a called computation does not exist"),
                      Where(m, id), absl::StrCat("one of ", n), absl::StrCat(callee.value));
        }
        calls.push_back({callee.value, id});
      }
    }
  }
  first[n] = static_cast<uint32_t>(calls.size());
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(n, kNew);
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // computation, next call
  for (int c = 0; c < n; ++c) {
    if (state[c] != kNew) continue;
    state[c] = kOpen;
    stack.push_back({static_cast<uint32_t>(c), first[c]});
    while (!stack.empty()) {
      auto& [comp, next] = stack.back();
      if (next == first[comp + 1]) {
        state[comp] = kDone;
        stack.pop_back();
        continue;
      }
      const Call call = calls[next++];
      if (state[call.callee] == kOpen) {
        error->at = call.from;
        return Fail(error, "E027", "computations call each other in a cycle", Where(m, call.from),
                    "no computation that reaches itself", Name(m.comp(CompId(call.callee))));
      }
      if (state[call.callee] == kNew) {
        state[call.callee] = kOpen;
        stack.push_back({call.callee, first[call.callee]});
      }
    }
  }
  return true;
}

}  // namespace

std::string ShapeText(const Shape* s) {
  return s->num_leaves() > 32 ? absl::StrCat("a tuple of ", s->num_leaves(), " leaves")
                              : s->ToString(/*with_layout=*/false);
}

std::string Where(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const std::string name = i.name.empty() ? absl::StrCat(OpcodeText(i.opcode), " #", id.value)
                                          : absl::StrCat("%", i.name);
  if (i.computation.value >= static_cast<uint32_t>(m.num_computations())) return name;
  return absl::StrCat(name, " in ", Name(m.comp(i.computation)));
}

bool Fail(Fault* error, absl::string_view code, std::string message, std::string where,
          std::string expected, std::string found, std::string fix) {
  static_cast<Diagnostic&>(*error) = Diagnostic{.code = std::string(code),
                                                .message = std::move(message),
                                                .where = std::move(where),
                                                .expected = std::move(expected),
                                                .found = std::move(found),
                                                .fix = std::move(fix),
                                                .excerpt = ""};
  return false;
}

bool CheckStructure(const Module& m, Fault* error) {
  const int n = m.num_computations();
  if (!m.entry().valid() || m.entry().value >= static_cast<uint32_t>(n)) {
    return Fail(error, "E028", "the module has no entry computation", "", "an ENTRY computation",
                "none", "mark one computation with ENTRY");
  }
  std::vector<uint32_t> place;
  if (!Place(m, &place, error)) return false;
  for (int c = 0; c < n; ++c) {
    const Computation& comp = m.comp(CompId(c));
    for (InstrId id : comp.instructions) {
      const Instruction& i = m.instr(id);
      if (i.shape == nullptr || i.attrs == nullptr) {
        return Fail(error, "E028", "the instruction has no shape or attributes", Where(m, id));
      }
      if (!CheckEdges(m, place, id, error)) {
        error->at = id;
        return false;
      }
    }
    if (!Known(m, comp.root) || place[comp.root.value] == UINT32_MAX ||
        m.instr(comp.root).computation != CompId(c)) {
      return Fail(error, "E028", "the computation has no root of its own", Name(comp),
                  "one of its instructions", Known(m, comp.root) ? Where(m, comp.root) : "none",
                  "make one of its instructions the root");
    }
    if (!CheckParameters(m, comp, error)) return false;
  }
  return CheckCalls(m, error);
}

}  // namespace verifier
}  // namespace internal
}  // namespace shardcall
