// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/pass/pass.h"
#include "tests/fuzz/program_checks.h"

namespace shardcall {
namespace {

// What becomes of each instruction of a program.
struct Edit {
  enum class Kind { kKeep, kLeaf, kOperand } kind = Kind::kKeep;
  int operand = 0;  // kOperand: which stands in for it
  bool drop_sharding = false;
};

class Rebuilder {
 public:
  Rebuilder(const Module& from, const std::vector<Edit>& edits, std::vector<int> results)
      : from_(from),
        edits_(edits),
        results_(std::move(results)),
        to_(from.shared_context()),
        monoids_(&to_),
        moved_(from.num_instructions()) {}

  // `results`: which of the root tuple's elements stay; empty: all.
  std::string Text() {
    to_.header = from_.header;
    for (int c = 0; c < from_.num_computations(); ++c) {
      to_.AddComputation(from_.comp(CompId(c)).name);
    }
    to_.set_entry(from_.entry());
    for (int c = 0; c < from_.num_computations(); ++c) Copy(CompId(c));
    to_.header.aliases.clear();
    to_.header.donors.clear();
    if (to_.header.propagate_to_parameters.size() > 1) to_.header.propagate_to_parameters = {false};
    if (to_.header.propagate_to_output.size() > 1) to_.header.propagate_to_output = {false};
    std::vector<std::unique_ptr<Pass>> passes;
    passes.push_back(MakeDeadCodeElimination());
    auto cleaned = RunPipeline(std::move(to_), passes, {});
    if (!cleaned.ok()) return "";
    return WithoutUnusedParameters(cleaned->module);
  }

 private:
  void Copy(CompId c) {
    GraphBuilder b(&to_, c, &monoids_);
    const Computation& comp = from_.comp(c);
    const bool entry = c == from_.entry();
    int64_t parameters = static_cast<int64_t>(comp.parameters.size());
    for (InstrId id : comp.instructions) {
      const Instruction& i = from_.instr(id);
      const Edit& edit = edits_[id.value];
      if (edit.kind == Edit::Kind::kOperand) {
        moved_[id.value] = moved_[from_.operand(id, edit.operand).value];
        continue;
      }
      if (edit.kind == Edit::Kind::kLeaf) {
        moved_[id.value] = entry
                               ? b.Parameter(parameters++, to_.context().WithDefaultLayout(i.shape))
                               : Constant(b, i.shape);
        continue;
      }
      std::vector<InstrId> operands;
      for (InstrId x : from_.operands(id)) operands.push_back(moved_[x.value]);
      Instruction proto = i;
      proto.extra = -1;
      proto.metadata = nullptr;
      if (edit.drop_sharding) proto.sharding = nullptr;
      moved_[id.value] = to_.Add(c, proto, operands);
    }
    InstrId root = moved_[comp.root.value];
    if (entry && !results_.empty()) {
      std::vector<InstrId> kept;
      for (int k : results_) kept.push_back(moved_[from_.operand(comp.root, k).value]);
      root = kept.size() == 1 ? kept[0] : b.Tuple(kept);
    }
    to_.SetRoot(c, root);
  }

  InstrId Constant(GraphBuilder& b, const Shape* shape) {
    if (shape->IsTuple()) {
      std::vector<InstrId> parts;
      for (const Shape* part : shape->tuple()) parts.push_back(Constant(b, part));
      return b.Tuple(parts);
    }
    return b.BroadcastScalar(b.One(shape->element_type()), shape);
  }

  // The entry's parameters renumbered without those that nothing reads.
  static std::string WithoutUnusedParameters(const Module& m) {
    std::vector<bool> read(m.num_instructions(), false);
    for (int k = 0; k < m.num_instructions(); ++k) {
      for (InstrId x : m.operands(InstrId(k))) read[x.value] = true;
    }
    const Computation& entry = m.comp(m.entry());
    read[entry.root.value] = true;
    Module out(m.shared_context());
    out.header = m.header;
    out.header.entry_parameter_layouts.clear();
    std::vector<InstrId> moved(m.num_instructions());
    int64_t number = 0;
    for (int c = 0; c < m.num_computations(); ++c) out.AddComputation(m.comp(CompId(c)).name);
    out.set_entry(m.entry());
    for (int c = 0; c < m.num_computations(); ++c) {
      for (InstrId id : m.comp(CompId(c)).instructions) {
        Instruction proto = m.instr(id);
        proto.extra = -1;
        if (CompId(c) == m.entry() && proto.opcode == Opcode::kParameter) {
          if (!read[id.value]) continue;
          ParameterAttrs a;
          a.number = number++;
          proto.attrs = InternAttributes(out.context(), a);
          out.header.entry_parameter_layouts.push_back(proto.shape);
        }
        std::vector<InstrId> operands;
        for (InstrId x : m.operands(id)) operands.push_back(moved[x.value]);
        moved[id.value] = out.Add(CompId(c), proto, operands);
      }
      out.SetRoot(CompId(c), moved[m.comp(CompId(c)).root.value]);
    }
    out.header.entry_result_layout = out.instr(out.comp(out.entry()).root).shape;
    return PrintModule(out);
  }

  const Module& from_;
  const std::vector<Edit>& edits_;
  std::vector<int> results_;
  Module to_;
  MonoidTable monoids_;
  std::vector<InstrId> moved_;
};

// Instructions that may change: not those of scalar computations (a reduction
// would be none any more), of loop conditions, and those that count a loop's
// turns, which are the first of what it carries.
std::vector<bool> Free(const Module& m) {
  std::vector<bool> free(m.num_instructions(), false), open(m.num_computations(), false);
  std::vector<bool> is_body(m.num_computations(), false);
  open[m.entry().value] = true;
  const std::vector<CompId> order = ComputationPostOrder(m);
  for (size_t k = order.size(); k-- > 0;) {
    if (!open[order[k].value]) continue;
    for (InstrId id : m.comp(order[k]).instructions) {
      const Instruction& i = m.instr(id);
      free[id.value] = true;
      if (i.opcode == Opcode::kWhile) {
        const CompId body = i.as<WhileAttrs>().body;
        open[body.value] = is_body[body.value] = true;
      } else if (i.opcode == Opcode::kConditional || i.opcode == Opcode::kCall) {
        for (CompId callee : CalledComputations(m, i)) open[callee.value] = true;
      }
    }
  }
  for (int c = 0; c < m.num_computations(); ++c) {
    if (!is_body[c]) continue;
    const Computation& body = m.comp(CompId(c));
    free[body.root.value] = false;
    if (m.instr(body.root).operand_count > 0) free[m.operand(body.root, 0).value] = false;
    for (InstrId id : body.instructions) {
      const Instruction& i = m.instr(id);
      if (i.opcode == Opcode::kGetTupleElement && i.as<TupleIndexAttrs>().index == 0) {
        free[id.value] = false;
      }
    }
  }
  return free;
}

class Shrinker {
 public:
  Shrinker(std::string text, const std::function<bool(const std::string&)>& fails)
      : text_(std::move(text)), fails_(fails) {}

  std::string Run() {
    for (bool changed = true; changed && tries_ < kMaxTries;) {
      changed = DropResults();
      changed |= Pieces([](const Module& m, InstrId id, Edit* e) {
        const Instruction& i = m.instr(id);
        if (i.opcode == Opcode::kParameter || i.opcode == Opcode::kConstant) return false;
        if (!i.shape->IsArray()) return false;
        e->kind = Edit::Kind::kLeaf;
        return true;
      });
      for (int k = 0; k < 3; ++k) {
        changed |= Pieces([k](const Module& m, InstrId id, Edit* e) {
          const Instruction& i = m.instr(id);
          if (static_cast<int>(i.operand_count) <= k ||
              m.instr(m.operand(id, k)).shape->bare() != i.shape->bare()) {
            return false;
          }
          e->kind = Edit::Kind::kOperand;
          e->operand = k;
          return true;
        });
      }
      changed |= Pieces([](const Module& m, InstrId id, Edit* e) {
        e->drop_sharding = m.instr(id).sharding != nullptr;
        return e->drop_sharding;
      });
    }
    return text_;
  }

 private:
  static constexpr int kMaxTries = 3000;

  absl::StatusOr<Module> Read() const {
    return ParseModule(std::make_shared<const std::string>(text_), std::make_shared<Context>(),
                       "s");
  }

  bool Take(const std::string& candidate) {
    if (candidate.empty() || candidate == text_ || ++tries_ > kMaxTries) return false;
    const auto module = ParseModule(std::make_shared<const std::string>(candidate),
                                    std::make_shared<Context>(), "s");
    if (!module.ok() || !VerifyModule(*module, "s").ok() || !fails_(candidate)) return false;
    text_ = candidate;
    return true;
  }

  // Applies an edit to runs of instructions, halving the runs.
  template <typename F>
  bool Pieces(F edit) {
    bool any = false;
    const absl::StatusOr<Module> whole = Read();
    if (!whole.ok()) return false;
    for (int length = std::max(whole->num_instructions() / 2, 1); length >= 1; length /= 2) {
      bool changed = true;
      while (changed) {
        changed = false;
        const absl::StatusOr<Module> module = Read();
        if (!module.ok()) return any;
        const int n = module->num_instructions();
        const std::vector<bool> free = Free(*module);
        for (int end = n; end > 0 && !changed; end -= length) {
          std::vector<Edit> edits(n);
          bool some = false;
          for (int k = std::max(0, end - length); k < end; ++k) {
            if (free[k]) some |= edit(*module, InstrId(k), &edits[k]);
          }
          changed = some && Take(Rebuilder(*module, edits, {}).Text());
        }
        any |= changed;
      }
    }
    return any;
  }

  bool DropResults() {
    bool any = false;
    for (bool changed = true; changed;) {
      changed = false;
      const absl::StatusOr<Module> module = Read();
      if (!module.ok()) return any;
      const Instruction& root = module->instr(module->comp(module->entry()).root);
      if (root.opcode != Opcode::kTuple) return any;
      const int n = static_cast<int>(root.operand_count);
      const std::vector<Edit> edits(module->num_instructions());
      for (int k = 0; k < n && !changed; ++k) changed = Take(Rebuilder(*module, edits, {k}).Text());
      for (int k = 0; k < n && !changed && n > 2; ++k) {
        std::vector<int> rest;
        for (int j = 0; j < n; ++j) {
          if (j != k) rest.push_back(j);
        }
        changed = Take(Rebuilder(*module, edits, rest).Text());
      }
      any |= changed;
    }
    return any;
  }

  std::string text_;
  const std::function<bool(const std::string&)>& fails_;
  int tries_ = 0;
};

}  // namespace

std::string ShrinkProgram(const std::string& text,
                          const std::function<bool(const std::string& text)>& fails) {
  return Shrinker(text, fails).Run();
}

}  // namespace shardcall
