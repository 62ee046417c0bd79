// SPDX-License-Identifier: Apache-2.0
// A loop that converts what it does not change gets it converted (XLA's motion of loop-invariant
// code):
//   before:  w = (bf16[8], ..) while((x, ..)),          its body:  y = f32[8] convert(p0)
//   after:   w = (f32[8], ..) while((convert(x), ..)),  its body:  y = p0
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

class Hoisting {
 public:
  explicit Hoisting(const Module& m) : m_(m), users_(m.num_instructions()) {
    conditions_.resize(m.num_computations());
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& i = m.instr(InstrId(k));
      if (i.opcode == Opcode::kWhile) ++conditions_[i.as<WhileAttrs>().condition.value];
      for (const InstrId o : m.operands(InstrId(k))) users_[o.value].push_back(InstrId(k));
    }
    for (const InstrId loop : LoopsWithOwnBody(m)) Find(loop);
  }

  bool Concerns(InstrId id) const { return wide_.contains(id); }

  void Make(InstrId id, GraphBuilder& b, ModuleCloner* cloner) const {
    const Instruction& i = m_.instr(id);
    const Wide& wide = wide_.at(id);
    auto operands = cloner->OperandsOf(id);
    if (i.opcode == Opcode::kConvert) {
      cloner->Set(id, operands[0]);
    } else if (i.opcode == Opcode::kGetTupleElement) {
      const InstrId now = b.GetTupleElement(operands[0], i.as<TupleIndexAttrs>().index);
      cloner->Set(id, wide.narrows ? b.Convert(now, ElementType::kBF16) : now);
    } else if (i.opcode == Opcode::kTuple) {
      for (const int k : wide.elements) {
        if (wide.widens) operands[k] = b.Convert(operands[k], ElementType::kF32);
      }
      cloner->Set(id, b.Tuple(operands));
    } else {
      Instruction copy = cloner->CopyOf(id);
      std::vector<const Shape*> parts(i.shape->tuple().begin(), i.shape->tuple().end());
      for (const int k : wide.elements) {
        parts[k] = b.context().WithDefaultLayout(
            b.context().MakeArray(ElementType::kF32, parts[k]->dims()));
      }
      copy.shape = b.context().MakeTuple(parts);
      cloner->CopyRare(id, cloner->Add(id, copy, operands, b.computation()));
    }
  }

 private:
  struct Wide {
    absl::flat_hash_set<int> elements;  // of a tuple
    bool widens = false, narrows = false;
  };

  void Find(InstrId loop) {
    const WhileAttrs& attrs = m_.instr(loop).as<WhileAttrs>();
    const InstrId init = m_.operand(loop, 0), root = m_.comp(attrs.body).root;
    const InstrId in_body = m_.comp(attrs.body).parameters[0];
    const InstrId in_condition = m_.comp(attrs.condition).parameters[0];
    if (m_.instr(init).opcode != Opcode::kTuple || users_[init.value].size() != 1 ||
        m_.instr(root).opcode != Opcode::kTuple || conditions_[attrs.condition.value] != 1 ||
        m_.comp(m_.instr(loop).computation).root == loop || !IsReadByElement(loop) ||
        !IsReadByElement(in_body) || !IsReadByElement(in_condition)) {
      return;
    }
    for (uint32_t k = 0; k < m_.instr(root).operand_count; ++k) {
      if (!IsConvertedOnly(in_body, root, static_cast<int>(k)) || IsRead(in_condition, k)) continue;
      for (const InstrId id : {init, loop, root, in_body, in_condition}) {
        wide_[id].elements.insert(static_cast<int>(k));
      }
      wide_[init].widens = true;
      for (const InstrId element : ElementsOf(in_body, k)) {
        wide_[element];
        for (const InstrId user : users_[element.value]) {
          if (user != root) wide_[user];
        }
      }
      for (const InstrId element : ElementsOf(loop, k)) wide_[element].narrows = true;
    }
  }

  bool IsReadByElement(InstrId tuple) const {
    return absl::c_all_of(users_[tuple.value], [&](InstrId user) {
      return m_.instr(user).opcode == Opcode::kGetTupleElement;
    });
  }

  std::vector<InstrId> ElementsOf(InstrId tuple, uint32_t k) const {
    std::vector<InstrId> out;
    for (const InstrId user : users_[tuple.value]) {
      const Instruction& i = m_.instr(user);
      if (i.opcode == Opcode::kGetTupleElement && i.as<TupleIndexAttrs>().index == k) {
        out.push_back(user);
      }
    }
    return out;
  }

  bool IsRead(InstrId parameter, uint32_t k) const {
    return absl::c_any_of(ElementsOf(parameter, k),
                          [&](InstrId id) { return !users_[id.value].empty(); });
  }

  // Whether the body passes the element on, and beside that converts it to f32 and nothing else.
  bool IsConvertedOnly(InstrId parameter, InstrId root, int k) const {
    bool converted = false, passed = false;
    for (const InstrId element : ElementsOf(parameter, k)) {
      if (m_.instr(element).shape->element_type() != ElementType::kBF16) return false;
      for (const InstrId user : users_[element.value]) {
        if (user == root) {
          passed |= m_.operand(root, k) == element;
          continue;
        }
        const Instruction& i = m_.instr(user);
        if (i.opcode != Opcode::kConvert || i.shape->element_type() != ElementType::kF32) {
          return false;
        }
        converted = true;
      }
    }
    return converted && passed;
  }

  const Module& m_;
  std::vector<std::vector<InstrId>> users_;  // by instruction
  std::vector<int> conditions_;              // by computation: of how many loops it is one
  absl::flat_hash_map<InstrId, Wide> wide_;
};

}  // namespace

PassResult HoistConverts(const Module& m) {
  const Hoisting hoisting(m);
  return RewriteInstructions(
      m, [&](InstrId id) { return hoisting.Concerns(id); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) { hoisting.Make(id, b, cloner); });
}

}  // namespace internal
}  // namespace shardcall
