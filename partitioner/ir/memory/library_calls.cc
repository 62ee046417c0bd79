// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/library_calls.h"

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/memory/leaf_views.h"
#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {
namespace {

// Smaller ops are not worth a call.
constexpr int64_t kLeastElements = 4096;

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

class LibraryCallFinder {
 public:
  explicit LibraryCallFinder(const Module& m)
      : m_(m), users_(m.num_instructions()), call_(m.num_instructions(), -1) {
    for (int k = 0; k < m.num_instructions(); ++k) {
      for (const InstrId o : m.operands(InstrId(k))) {
        if (!absl::c_linear_search(users_[o.value], InstrId(k))) {
          users_[o.value].push_back(InstrId(k));
        }
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
  static bool IsFloatArray(const Shape* shape) {
    return shape->IsArray() && IsFloat(shape->element_type());
  }
  bool HasFloats(InstrId id) const {
    return IsFloatArray(m_.instr(id).shape) && absl::c_all_of(m_.operands(id), [&](InstrId o) {
             return IsFloatArray(m_.instr(o).shape);
           });
  }
  bool IsLarge(InstrId id) const {
    const auto is_large = [&](InstrId i) {
      return m_.instr(i).shape->num_elements() >= kLeastElements;
    };
    return is_large(id) || absl::c_any_of(m_.operands(id), is_large);
  }

  bool Starts(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (i.opcode != Opcode::kReduce || i.operand_count != 2 || !HasFloats(id) || !IsLarge(id)) {
      return false;
    }
    Opcode op;
    return RecognizeMonoid(m_, i.as<ReduceAttrs>().to_apply, &op) &&
           absl::c_linear_search(kMonoids, op);
  }

  // Whether a call may have it within.
  bool MayBeWithin(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (!HasFloats(id)) return false;
    if (IsView(m_, id)) return i.opcode != Opcode::kGetTupleElement;
    if (i.opcode == Opcode::kBroadcast) {
      return absl::c_is_sorted(i.as<DimensionsAttrs>().dimensions);
    }
    if (i.opcode == Opcode::kDot) return true;
    if (i.opcode == Opcode::kReduce) return Starts(id);
    return IsLarge(id) && absl::c_linear_search(kOps, i.opcode);
  }

  bool IsWithin(InstrId id, int call) const { return call_[id.value] == call; }

  void Add(InstrId id, int call) {
    call_[id.value] = call;
    members_.push_back(id);
  }

  void Grow(InstrId start) {
    const int call = static_cast<int>(results_.size());
    results_.push_back(start);
    members_.clear();
    Add(start, call);
    for (bool grows = true; grows;) {
      grows = false;
      for (size_t k = 0; k < members_.size(); ++k) {
        for (const InstrId o : m_.operands(members_[k])) grows |= TakeOperand(o, call);
      }
      grows |= TakeUser(call);
    }
    while (IsView(m_, results_[call])) results_[call] = m_.operand(results_[call], 0);
  }

  // What is used within the call alone is computed within it.
  bool TakeOperand(InstrId o, int call) {
    if (call_[o.value] >= 0 || m_.instr(o).opcode == Opcode::kParameter || IsRoot(o) ||
        !MayBeWithin(o) ||
        !absl::c_all_of(users_[o.value], [&](InstrId u) { return IsWithin(u, call); })) {
      return false;
    }
    Add(o, call);
    return true;
  }

  // The only user of the result gives the result.
  bool TakeUser(int call) {
    const InstrId result = results_[call];
    if (IsRoot(result) || users_[result.value].size() != 1) return false;
    const InstrId user = users_[result.value][0];
    if (call_[user.value] >= 0 || !MayBeWithin(user)) return false;
    Add(user, call);
    results_[call] = user;
    return true;
  }

  bool IsRoot(InstrId id) const { return m_.comp(m_.instr(id).computation).root == id; }

  const Module& m_;
  std::vector<absl::InlinedVector<InstrId, 2>> users_;  // by instruction
  std::vector<int> call_;                               // by instruction; -1: none
  std::vector<InstrId> results_;                        // by call
  std::vector<InstrId> members_;                        // of the call that grows
};

}  // namespace

std::vector<InstrId> FindLibraryCalls(const Module& m) { return LibraryCallFinder(m).Find(); }

}  // namespace internal
}  // namespace shardcall
