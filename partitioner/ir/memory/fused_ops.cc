// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/fused_ops.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/memory/leaf_views.h"
#include "shardcall/partitioner/ir/memory/library_calls.h"

namespace shardcall {
inline namespace internal {
namespace {

// Ops that make many elements of few, which are rather done twice than kept.
bool IsDoneTwice(const Instruction& i) {
  return HasTrait(i.opcode, kCheap) && !HasTrait(i.opcode, kMapsElements);
}

class FusedOpFinder {
 public:
  FusedOpFinder(const Module& m, const MemoryRules& rules)
      : m_(m), rules_(rules), users_(m.num_instructions()) {
    out_.fused.resize(m.num_instructions());
    out_.takes.resize(m.num_instructions());
    out_.recomputed.resize(m.num_instructions());
    out_.called.resize(m.num_instructions());
    if (!rules.reduces_by_library) return;
    calls_ = FindLibraryCalls(m);
    for (int k = 0; k < m.num_instructions(); ++k) out_.called[k] = calls_[k] == InstrId(k);
  }

  FusedOps Find() {
    for (int c = 0; c < m_.num_computations(); ++c) {
      const absl::Span<const InstrId> order = m_.comp(CompId(c)).instructions;
      users_[m_.comp(CompId(c)).root.value].kept = true;
      for (size_t at = order.size(); at-- > 0;) {
        const InstrId id = order[at];
        out_.fused[id.value] = IsFused(id);
        out_.takes[id.value] = TakesFused(id);
        out_.recomputed[id.value] = rules_.recomputes_beside_storing && !out_.fused[id.value] &&
                                    IsByElement(m_, id) && !IsOwnKernel(id) && IsRecomputed(id, 0);
        Use(id);
      }
    }
    return std::move(out_);
  }

 private:
  // Of a value: how often it is read, whether one of its users needs it in memory, or reads its
  // elements several times, and the op that it is computed with; invalid if there are several.
  struct Users {
    int count = 0;
    bool kept = false, reused = false;
    bool multiplied = false;  // on the way to a product
    bool epilogue = false;    // the last user can be computed with a product that it reads
    InstrId with;
  };

  // The result of the library call that it is within.
  InstrId CallOf(InstrId id) const { return calls_.empty() ? InstrId() : calls_[id.value]; }

  bool IsFused(InstrId id) const {
    if (CallOf(id).valid()) return CallOf(id) != id && !IsView(m_, id);
    const Users& users = users_[id.value];
    if (rules_.fuses_into_products && IsBeforeEpilogue(id)) return true;
    if (!IsByElement(m_, id) || users.kept || users.count == 0 || IsOwnKernel(id)) return false;
    if (users.reused && IsDear(id)) return false;
    return users.with.valid() || IsRecomputed(id, users.count);
  }

  // Whether it is a product of which its only user, and what that is computed with, make something
  // that is no larger.
  bool IsBeforeEpilogue(InstrId id) const {
    const Users& users = users_[id.value];
    return m_.instr(id).opcode == Opcode::kDot && users.count == 1 && !users.kept &&
           users.epilogue && users.with.valid() &&
           m_.instr(users.with).shape->byte_size() <= m_.instr(id).shape->byte_size();
  }

  // Whether it can be computed block by block beside a product.
  bool IsTiled(InstrId id) const {
    const Opcode opcode = m_.instr(id).opcode;
    return IsByElement(m_, id) && opcode != Opcode::kReverse && opcode != Opcode::kGather;
  }

  // Whether the op can be computed with a product that it reads.
  bool FollowsProducts(InstrId id) const {
    const Users& users = users_[id.value];
    const bool goes_on = users.epilogue && !users.multiplied && !users.reused;
    return IsTiled(id) && LargeOperands(id) <= 1 && (goes_on || !out_.fused[id.value]);
  }

  // Tells the operands of `id` of their user. All users of `id` are known.
  void Use(InstrId id) {
    if (CallOf(id).valid()) return UseByCall(id);
    const Instruction& i = m_.instr(id);
    const bool view = IsView(m_, id);
    const Users& own = users_[id.value];
    const bool kept = view ? own.kept : !TakesFused(id);
    const bool passes = view || out_.fused[id.value];
    const InstrId with = passes ? own.with : id;
    const bool epilogue = view ? own.epilogue : FollowsProducts(id);
    const bool scatters = i.opcode == Opcode::kScatter;  // into the memory of its first operands
    int into = scatters ? i.operand_count / 2 : 0;
    for (const InstrId o : m_.operands(id)) {
      Users& users = users_[o.value];
      const bool repeats = i.opcode == Opcode::kReduceWindow ||
                           ((i.opcode == Opcode::kBroadcast || i.opcode == Opcode::kDot) &&
                            m_.instr(o).shape->num_elements() < i.shape->num_elements());
      users.reused |= repeats || (passes && own.reused);
      users.with = users.count == 0 || users.with == with ? with : InstrId();
      const bool multiplied =
          rules_.fuses_into_products && (i.opcode == Opcode::kDot || (passes && own.multiplied));
      users.multiplied |= multiplied;
      users.epilogue = epilogue;
      users.kept |= kept || into-- > 0 || (multiplied && !IsMultipliedOnTheWay(o));
      users.count += view ? std::max(own.count, 1) : 1;
    }
  }

  // The same of what is within a library call, which reads all else from memory.
  void UseByCall(InstrId id) {
    for (const InstrId o : m_.operands(id)) {
      ++users_[o.value].count;
      users_[o.value].kept |= CallOf(o) != CallOf(id);
    }
  }

  bool IsOwnKernel(InstrId id) const {
    return CallOf(id).valid() || (m_.instr(id).opcode == Opcode::kGather && !rules_.fuses_gathers);
  }

  // Whether the op reads an operand that is computed on the way.
  bool TakesFused(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (CallOf(id).valid()) return false;
    if (i.opcode == Opcode::kReduce) return ReducesOnTheWay(id);
    if (i.opcode == Opcode::kDot && rules_.fuses_into_products) return true;
    if (i.opcode == Opcode::kReduceWindow || i.opcode == Opcode::kScatter) {
      return rules_.fuses_windows_and_updates;
    }
    return IsByElement(m_, id) && !IsOwnKernel(id);
  }

  // Whether a product can compute it on the way, and reads hardly more for it.
  bool IsMultipliedOnTheWay(InstrId id) const {
    if (IsView(m_, id)) return true;
    constexpr int64_t kHardly = 1024;
    const Instruction& i = m_.instr(id);
    int64_t read = 0;
    for (const InstrId o : m_.operands(id)) {
      if (!IsOfOneElement(m_, o)) read += m_.instr(o).shape->byte_size();
    }
    return IsTiled(id) && read - i.shape->byte_size() <= kHardly;
  }

  bool ReducesOnTheWay(InstrId id) const {
    const absl::Span<const int64_t> reduced = m_.instr(id).as<ReduceAttrs>().dimensions;
    const Shape* const shape = m_.instr(m_.operand(id, 0)).shape;
    const bool minor = absl::c_linear_search(reduced, shape->rank() - 1);
    return (minor || rules_.fuses_major_reductions) && absl::c_all_of(reduced, [&](int64_t d) {
             return shape->dims()[d] <= rules_.most_reduced_at_once;
           });
  }

  bool IsDear(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (!IsFloat(i.shape->element_type())) return false;
    if (i.opcode != Opcode::kConvert) return HasTrait(i.opcode, kManyOperations);
    const ElementType from = m_.instr(m_.operand(id, 0)).shape->element_type();
    return IsFloat(from) &&
           ElementTypeBits(from) > ElementTypeBits(i.shape->element_type());  // rounds
  }

  // Those that are no smaller than the result.
  int LargeOperands(InstrId id) const {
    int large = 0;
    for (const InstrId o : m_.operands(id)) {
      const Instruction& operand = m_.instr(o);
      large += !IsDoneTwice(operand) &&
               2 * operand.shape->num_elements() > m_.instr(id).shape->num_elements();
    }
    return large;
  }

  // Whether it is cheaper to compute it for each of its users than to store it.
  bool IsRecomputed(InstrId id, int users) const {
    const Instruction& i = m_.instr(id);
    if (IsDoneTwice(i)) return true;
    if (!rules_.recomputes_to_read_less && IsDear(id)) return false;
    const int large = LargeOperands(id);
    return large <= 1 || (rules_.recomputes_to_read_less && large * users <= large + 1 + users);
  }

  const Module& m_;
  const MemoryRules& rules_;
  FusedOps out_;
  std::vector<Users> users_;    // by instruction
  std::vector<InstrId> calls_;  // FindLibraryCalls; empty: none are made
};

}  // namespace

bool IsByElement(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const bool product = i.opcode == Opcode::kDot && i.as<DotAttrs>().lhs_contracting.empty();
  const bool by_element = HasTrait(i.opcode, kElementwise | kCheap | kReadsPart | kReplacesPart) ||
                          i.opcode == Opcode::kGather || product;
  return i.shape->IsArray() && by_element && !IsView(m, id);
}

bool IsOfOneElement(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  return i.opcode == Opcode::kBroadcast && m.instr(m.operand(id, 0)).shape->num_elements() == 1;
}

FusedOps FindFusedOps(const Module& m, const MemoryRules& rules) {
  return FusedOpFinder(m, rules).Find();
}

}  // namespace internal
}  // namespace shardcall
