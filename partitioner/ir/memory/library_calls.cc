// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/library_calls.h"

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/memory/leaf_views.h"
#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {
namespace {

// Smaller ops are not worth a call.
constexpr int64_t kLeastElements = 4096;
constexpr int kMostOperands = 2;

constexpr Opcode kOps[] = {
    Opcode::kAbs,         Opcode::kAdd,
    Opcode::kCeil,        Opcode::kConvert,
    Opcode::kDivide,      Opcode::kErf,
    Opcode::kExponential, Opcode::kExponentialMinusOne,
    Opcode::kFloor,       Opcode::kLog,
    Opcode::kLogPlusOne,  Opcode::kLogistic,
    Opcode::kMaximum,     Opcode::kMinimum,
    Opcode::kMultiply,    Opcode::kNegate,
    Opcode::kPower,       Opcode::kRoundNearestEven,
    Opcode::kRsqrt,       Opcode::kSign,
    Opcode::kSqrt,        Opcode::kSubtract,
    Opcode::kTanh,
};
constexpr Opcode kMonoids[] = {Opcode::kAdd, Opcode::kMaximum, Opcode::kMinimum};

bool IsOfLibrary(const Shape* shape) {
  if (!shape->IsArray()) return false;
  const ElementType type = shape->element_type();
  return type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kBF16;
}

// Linear in the uses of the module.
class LibraryCallFinder {
 public:
  explicit LibraryCallFinder(const Module& m)
      : m_(m), uses_(m.num_instructions()), call_(m.num_instructions(), -1) {
    for (int k = 0; k < m.num_instructions(); ++k) {
      for (const InstrId o : m.operands(InstrId(k))) {
        Uses& uses = uses_[o.value];
        uses.users += uses.last != InstrId(k);  // once, though it may be several operands
        uses.last = InstrId(k);
      }
    }
  }

  std::vector<InstrId> Find() {
    for (int c = 0; c < m_.num_computations(); ++c) {
      const absl::Span<const InstrId> order = m_.comp(CompId(c)).instructions;
      for (size_t at = order.size(); at-- > 0;) {
        if (call_[order[at].value] < 0 && Starts(order[at])) Grow(order[at]);
      }
    }
    std::vector<InstrId> out(m_.num_instructions());
    for (int k = 0; k < m_.num_instructions(); ++k) {
      if (call_[k] >= 0) out[k] = results_[call_[k]];
    }
    return out;
  }

 private:
  // Of a value: its users, one of them, and how many of them are within the call that was the last
  // one to take any.
  struct Uses {
    int users = 0, within = 0, call = -1;
    InstrId last;
  };

  bool TakesTypes(InstrId id) const {
    return IsOfLibrary(m_.instr(id).shape) && absl::c_all_of(m_.operands(id), [&](InstrId o) {
             return IsOfLibrary(m_.instr(o).shape);
           });
  }
  bool IsLarge(InstrId id) const {
    const auto is_large = [&](InstrId i) {
      return m_.instr(i).shape->num_elements() >= kLeastElements;
    };
    return is_large(id) || absl::c_any_of(m_.operands(id), is_large);
  }
  bool IsRoot(InstrId id) const { return m_.comp(m_.instr(id).computation).root == id; }

  bool Starts(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (i.opcode != Opcode::kReduce || i.operand_count != 2 || !TakesTypes(id) || !IsLarge(id)) {
      return false;
    }
    Opcode op;
    return RecognizeMonoid(m_, i.as<ReduceAttrs>().to_apply, &op) &&
           absl::c_linear_search(kMonoids, op);
  }

  // Whether a call may have it within.
  bool MayBeWithin(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (call_[id.value] >= 0 || i.operand_count > kMostOperands || !TakesTypes(id)) return false;
    if (IsView(m_, id)) return i.opcode != Opcode::kGetTupleElement;
    if (i.opcode == Opcode::kBroadcast) {
      return absl::c_is_sorted(i.as<DimensionsAttrs>().dimensions);
    }
    if (i.opcode == Opcode::kDot) return true;
    if (i.opcode == Opcode::kReduce) return Starts(id);
    return IsLarge(id) && absl::c_linear_search(kOps, i.opcode);
  }

  void Grow(InstrId start) {
    const int call = static_cast<int>(results_.size());
    results_.push_back(start);
    for (InstrId next = start; next.valid(); next = UserOf(results_[call])) {
      results_[call] = next;
      Take(next, call);
    }
    while (IsView(m_, results_[call])) results_[call] = m_.operand(results_[call], 0);
  }

  // The only user of the result, if it may be within; it gives the result then.
  InstrId UserOf(InstrId result) const {
    if (IsRoot(result) || uses_[result.value].users != 1) return InstrId();
    const InstrId user = uses_[result.value].last;
    return MayBeWithin(user) ? user : InstrId();
  }

  // With what is used within the call alone then.
  void Take(InstrId id, int call) {
    std::vector<InstrId> taken = {id};
    while (!taken.empty()) {
      const InstrId member = taken.back();
      taken.pop_back();
      call_[member.value] = call;
      const absl::Span<const InstrId> operands = m_.operands(member);
      for (size_t k = 0; k < operands.size(); ++k) {
        const InstrId o = operands[k];
        if (k > 0 && o == operands[0]) continue;  // there are two at most
        Uses& uses = uses_[o.value];
        if (uses.call != call) uses.within = 0;
        uses.call = call;
        if (++uses.within == uses.users && m_.instr(o).opcode != Opcode::kParameter && !IsRoot(o) &&
            MayBeWithin(o)) {
          taken.push_back(o);
        }
      }
    }
  }

  const Module& m_;
  std::vector<Uses> uses_;        // by instruction
  std::vector<int> call_;         // by instruction; -1: none
  std::vector<InstrId> results_;  // by call
};

}  // namespace

std::vector<InstrId> FindLibraryCalls(const Module& m) { return LibraryCallFinder(m).Find(); }

}  // namespace internal
}  // namespace shardcall
