// SPDX-License-Identifier: Apache-2.0
// Operands that are kept from XLA's simplifications, by a barrier in front of the op.
//
// - The update of a dynamic-update-slice, or of a scatter by one index, of which XLA makes such an
//   op, if it is made of what it is written to. XLA:CPU makes both one loop, which may read
//   elements that it has overwritten (seen in jaxlib 0.12.0 behind a cumulative sum and behind a
//   reshape; in 0.10.2 behind a reshape, where the barrier is removed too early to help):
//     before:  u = slice(x), r = dynamic-update-slice(x, u, i)
//     after:   u = slice(x), b = opt-barrier(u), r = dynamic-update-slice(x, b, i)
//   An update at the same place as the part that it is made of, element by element, needs none.
// - Complex operands of reductions over devices: XLA dies over constants there (seen in jaxlib
//   0.10.2 and 0.12.0), and what is a constant to XLA cannot be known here.
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
namespace {

// Whether what an update is made of overlaps with what it is written to.
class OwnUpdate {
 public:
  // `part`: which operand of `update` is written into the first one.
  OwnUpdate(const Module& m, const Instruction& update, int part)
      : m_(m), update_(update), part_(m.operands(update)[part]) {
    InstrId x = m.operands(update)[0];
    places_.push_back(x);
    while (absl::c_linear_search(kSameElements, m.instr(x).opcode)) {
      places_.push_back(x = m.operand(x, 0));
    }
  }

  bool Overlaps() {
    todo_ = {{part_, true}};
    while (!todo_.empty()) {
      const auto [id, aligned] = todo_.back();
      todo_.pop_back();
      const auto [seen, is_new] = seen_.try_emplace(id, aligned);
      if (!is_new && (aligned || !seen->second)) continue;
      seen->second = aligned;
      if (Look(id, aligned)) return true;
      if (seen_.size() > kMost) return true;  // perhaps; a barrier is right in any case
    }
    return false;
  }

 private:
  static constexpr size_t kMost = 256;
  // Ops that XLA takes for other names of their operand's memory.
  static constexpr Opcode kSameElements[] = {Opcode::kReshape, Opcode::kBitcast, Opcode::kCopy,
                                             Opcode::kTranspose};
  // Ops that are not in one loop with what is around them.
  static constexpr Opcode kApart[] = {
      Opcode::kOptBarrier, Opcode::kWhile, Opcode::kConditional, Opcode::kCustomCall,
      Opcode::kSort,       Opcode::kFft,   Opcode::kConstant,    Opcode::kConvolution};

  // Whether it is one of the places. Else its operands follow. `aligned`: element by element, the
  // update is made of the elements of `id`.
  bool Look(InstrId id, bool aligned) {
    const Instruction& i = m_.instr(id);
    if (absl::c_any_of(places_, [&](InstrId place) { return Same(place, id); })) {
      return !(aligned && Same(Target(), id));
    }
    if (HasTrait(i.opcode, kCollectiveOp) || absl::c_linear_search(kApart, i.opcode)) return false;
    if (aligned && IsPartInPlace(i)) return false;
    const bool one_by_one = aligned && HasTrait(i.opcode, kElementwise);
    for (InstrId o : m_.operands(i)) todo_.push_back({o, one_by_one});
    return false;
  }

  InstrId Target() const { return m_.operands(update_)[0]; }

  // Programs may take one element of a tuple several times.
  bool Same(InstrId a, InstrId b) const {
    const Instruction& x = m_.instr(a);
    const Instruction& y = m_.instr(b);
    return a == b || (x.opcode == Opcode::kGetTupleElement && y.opcode == x.opcode &&
                      x.attrs == y.attrs && m_.operands(x)[0] == m_.operands(y)[0]);
  }

  // A dynamic-slice of the target at the update's own place.
  bool IsPartInPlace(const Instruction& i) const {
    if (update_.opcode != Opcode::kDynamicUpdateSlice || i.opcode != Opcode::kDynamicSlice ||
        !Same(Target(), m_.operands(i)[0]))
      return false;
    return absl::c_equal(m_.operands(i).subspan(1), m_.operands(update_).subspan(2),
                         [&](InstrId a, InstrId b) { return SameStart(a, b); }) &&
           i.shape->dims() == m_.instr(part_).shape->dims();
  }

  // The pass explicit-starts clamps the start of each op anew.
  bool SameStart(InstrId a, InstrId b) const {
    const Instruction& x = m_.instr(a);
    return a == b || (x.opcode == Opcode::kClamp && m_.instr(b).opcode == x.opcode &&
                      m_.operands(x) == m_.operands(m_.instr(b)));
  }

  const Module& m_;
  const Instruction& update_;
  const InstrId part_;
  std::vector<InstrId> places_;
  struct Step {
    InstrId id;
    bool aligned;
  };
  std::vector<Step> todo_;
  absl::flat_hash_map<InstrId, bool> seen_;  // whether it was met as aligned only
};

bool UpdatesItself(const Module& m, const Instruction& i, int operand) {
  return operand == 1 && OwnUpdate(m, i, operand).Overlaps();
}

bool ScattersItself(const Module& m, const Instruction& i, int operand) {
  return operand == 2 && m.operands(i).size() == 3 &&
         HasOneWindow(*m.instr(m.operands(i)[1]).shape, i.as<ScatterAttrs>().index_vector_dim) &&
         OwnUpdate(m, i, operand).Overlaps();
}

bool OfComplex(const Module& m, const Instruction& i, int operand) {
  const Shape& shape = *m.instr(m.operands(i)[operand]).shape;
  return shape.IsArray() && IsComplex(shape.element_type());
}

struct KeptRow {
  Opcode opcode;
  bool (*keep)(const Module& m, const Instruction& i, int operand);
};
constexpr KeptRow kKept[] = {
    {Opcode::kDynamicUpdateSlice, UpdatesItself},
    {Opcode::kScatter, ScattersItself},
    {Opcode::kAllReduce, OfComplex},
    {Opcode::kAllReduceStart, OfComplex},
    {Opcode::kReduceScatter, OfComplex},
};

class KeptOperands : public Pass {
 public:
  absl::string_view name() const override { return "kept-operands"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    const auto keep = [&](InstrId id, int operand) {
      const KeptRow* const row = RowByOpcode(kKept, m.instr(id).opcode);
      return row != nullptr && row->keep(m, m.instr(id), operand);
    };
    return RewriteInstructions(
        m,
        [&](InstrId id) {
          const int operands = static_cast<int>(m.operands(id).size());
          for (int k = 0; k < operands; ++k) {
            if (keep(id, k)) return true;
          }
          return false;
        },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          auto operands = cloner->OperandsOf(id);
          for (size_t k = 0; k < operands.size(); ++k) {
            if (keep(id, static_cast<int>(k))) operands[k] = b.OptBarrier(operands[k]);
          }
          cloner->CopyRare(id, cloner->Add(id, cloner->CopyOf(id), operands, b.computation()));
        });
  }
};

}  // namespace

std::unique_ptr<Pass> MakeKeptOperands() { return std::make_unique<KeptOperands>(); }

}  // namespace shardcall
