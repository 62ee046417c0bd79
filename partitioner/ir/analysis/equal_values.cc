// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/equal_values.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
inline namespace internal {
namespace {

using Key = absl::InlinedVector<uint64_t, 8>;

uint64_t Bits(const void* p) { return reinterpret_cast<uintptr_t>(p); }

class Numbering {
 public:
  explicit Numbering(const Module& module)
      : module_(module),
        first_(module.num_instructions()),
        of_computation_(module.num_computations()) {}

  std::vector<InstrId> Run() {
    for (const CompId comp : ComputationPostOrder(module_)) Number(comp);
    std::vector<InstrId> out(first_.size());
    for (size_t k = 0; k < out.size(); ++k) {
      if (first_[k].valid() && first_[k].value != k) out[k] = first_[k];
    }
    return out;
  }

 private:
  static constexpr size_t kFewInstructions = 8;

  void Number(CompId comp) {
    const auto& instructions = module_.comp(comp).instructions;
    seen_.clear();
    for (const InstrId id : instructions) {
      first_[id.value] = id;
      Key key;
      if (KeyOf(id, &key)) first_[id.value] = seen_.try_emplace(std::move(key), id).first->second;
    }
    of_computation_[comp.value] = comp;
    if (instructions.size() > kFewInstructions) return;
    // Reducers and comparators are written once for each op that calls them.
    Key key = {module_.comp(comp).root.value - instructions.front().value};
    for (const InstrId id : instructions) {
      if (!AppendOp(id, &key)) return;
      for (const InstrId o : module_.operands(id)) {
        key.push_back(o.value - instructions.front().value);
      }
    }
    of_computation_[comp.value] = computations_.try_emplace(std::move(key), comp).first->second;
  }

  bool KeyOf(InstrId id, Key* key) const {
    const Instruction& instr = module_.instr(id);
    if (instr.opcode == Opcode::kParameter || !AppendOp(id, key)) return false;
    for (const InstrId o : module_.operands(id)) key->push_back(first_[o.value].value);
    return true;
  }

  // What the op is beside its operands. False if it is none that can be compared.
  bool AppendOp(InstrId id, Key* key) const {
    const Instruction& instr = module_.instr(id);
    key->push_back(static_cast<uint64_t>(instr.opcode));
    key->push_back(Bits(instr.shape));
    if (instr.opcode == Opcode::kConstant) {
      const Literal* const literal = ScalarLiteral(module_, id);
      if (literal == nullptr || literal->data.size() > 2 * sizeof(uint64_t)) return false;
      uint64_t words[2] = {};
      std::memcpy(words, literal->data.data(), literal->data.size());
      key->insert(key->end(), {words[0], words[1]});
      return true;
    }
    const bool parameter = instr.opcode == Opcode::kParameter;  // by its number
    const bool draws = HasTrait(instr.opcode, kDrawsNumbers);
    if (!parameter && (!IsPure(instr.opcode) || draws)) return false;
    if (instr.opcode == Opcode::kCustomCall) return false;
    bool known = true;
    const auto first = [&](CompId c) {
      known = known && of_computation_[c.value].valid();
      return known ? of_computation_[c.value] : c;
    };
    const bool calls = !CalledComputations(module_, instr).empty();
    key->push_back(Bits(calls ? MapComputations(module_, instr, first) : instr.attrs));
    return known;
  }

  const Module& module_;
  std::vector<InstrId> first_;          // by instruction: the first that makes its value
  std::vector<CompId> of_computation_;  // by computation: the first that is equal; invalid: not yet
  absl::flat_hash_map<Key, InstrId> seen_;
  absl::flat_hash_map<Key, CompId> computations_;
};

}  // namespace

std::vector<InstrId> EqualValues(const Module& module) { return Numbering(module).Run(); }

}  // namespace internal
}  // namespace shardcall
