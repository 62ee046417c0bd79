// SPDX-License-Identifier: Apache-2.0
// XLA:CPU has no arithmetic of bf16, nor moves it by collectives (its float normalization):
//   before:  c = bf16[8] add(a, b)
//   after:   c = bf16[8] convert(f32[8] add(f32[8] convert(a), f32[8] convert(b)))
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsNarrow(const Shape* s) { return s->IsArray() && s->element_type() == ElementType::kBF16; }

// What moves numbers in their type, beside views, control flow and asynchronous forms.
constexpr Opcode kTakeNarrow[] = {Opcode::kConvert,    Opcode::kBitcastConvert, Opcode::kConstant,
                                  Opcode::kCustomCall, Opcode::kCall,           Opcode::kTranspose,
                                  Opcode::kBroadcast};

bool TakesNarrow(const Instruction& i) {
  return HasTrait(i.opcode, kFree | kAliases | kControlFlow | kAsyncForm) ||
         absl::c_linear_search(kTakeNarrow, i.opcode);
}

class Widening {
 public:
  explicit Widening(const Module& m) : m_(m) {}

  bool Concerns(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (!i.shape->IsArray() || TakesNarrow(i)) return false;
    bool narrow = IsNarrow(i.shape);
    for (const InstrId o : m_.operands(id)) {
      if (!m_.instr(o).shape->IsArray()) return false;
      narrow |= IsNarrow(m_.instr(o).shape);
    }
    const auto called = CalledComputations(m_, i);
    return narrow && (called.empty() || (called.size() == 1 && MonoidOf(called[0]).has_value()));
  }

  void Make(InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
    if (!monoids_.has_value()) monoids_.emplace(&b.module());
    b.set_value_numbering(true);
    auto operands = cloner->OperandsOf(id);
    for (InstrId& o : operands) {
      if (IsNarrow(b.shape(o))) o = b.Convert(o, ElementType::kF32);
    }
    const Instruction& i = m_.instr(id);
    Instruction copy = cloner->CopyOf(id);
    const auto called = CalledComputations(m_, i);
    if (!called.empty()) {
      const CompId wide = monoids_->Get(*MonoidOf(called[0]), ElementType::kF32);
      copy.attrs = MapComputations(m_, i, [&](CompId) { return wide; });
    }
    if (IsNarrow(i.shape)) {
      copy.shape =
          b.context().WithDefaultLayout(b.context().MakeArray(ElementType::kF32, i.shape->dims()));
    }
    const InstrId now = cloner->Add(id, copy, operands, b.computation());
    cloner->CopyRare(id, now);
    cloner->Set(id, IsNarrow(i.shape) ? b.Convert(now, ElementType::kBF16) : now);
  }

 private:
  std::optional<Opcode> MonoidOf(CompId c) const {
    Opcode op;
    return RecognizeMonoid(m_, c, &op) ? std::optional<Opcode>(op) : std::nullopt;
  }

  const Module& m_;
  std::optional<MonoidTable> monoids_;
};

}  // namespace

PassResult WidenNarrowFloats(const Module& m) {
  Widening widening(m);
  return RewriteInstructions(
      m, [&](InstrId id) { return widening.Concerns(id); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) { widening.Make(id, b, cloner); });
}

}  // namespace internal
}  // namespace shardcall
