// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/peak_memory.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace shardcall {
inline namespace internal {
namespace {

// Ops whose result shares the memory of their operands, or has none of its own.
bool IsView(const Instruction& i) {
  return HasTrait(i.opcode, kFree | kAliases) || i.opcode == Opcode::kConstant;
}

// Ops that are computed element by element, from elements of their operands.
bool IsByElement(const Instruction& i) {
  const bool by_element = HasTrait(i.opcode, kElementwise | kCheap) || i.opcode == Opcode::kGather;
  return i.shape->IsArray() && by_element && !IsView(i);
}

// Whether the op reads an operand that is computed on the way.
bool Absorbs(const Instruction& i) {
  return IsByElement(i) || i.opcode == Opcode::kReduce || i.opcode == Opcode::kDynamicUpdateSlice ||
         HasTrait(i.opcode, kFree);
}

// Ops that make many elements of few, which are rather done twice than kept.
bool IsDoneTwice(const Instruction& i) {
  return HasTrait(i.opcode, kCheap) && !HasTrait(i.opcode, kMapsElements);
}

class PeakFinder {
 public:
  PeakFinder(const Module& m, absl::FunctionRef<int64_t(InstrId)> bytes_of)
      : m_(m),
        bytes_of_(bytes_of),
        position_(m.num_instructions()),
        last_use_(m.num_instructions()),
        held_(m.num_instructions()),
        absorbed_(m.num_instructions()),
        output_(m.num_instructions()),
        crowded_(m.num_instructions()),
        is_body_(m.num_computations()),
        peaks_(m.num_computations()) {
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& i = m.instr(InstrId(k));
      if (i.opcode == Opcode::kWhile) is_body_[i.as<WhileAttrs>().body.value] = true;
    }
    for (const CompId c : ComputationPostOrder(m)) Walk(c);
  }

  PeakMemory Peak(bool list) const {
    PeakMemory out;
    out.temporaries = peaks_[m_.entry().value].bytes;
    for (CompId c = m_.entry(); c.valid();) {
      const InstrId at = peaks_[c.value].at;
      if (!at.valid()) break;
      out.at = at;
      if (list) AddHeld(c, position_[at.value], &out.held);
      CompId inner;
      for (const CompId called : CalledComputations(m_, m_.instr(at))) {
        if (!inner.valid() || peaks_[called.value].bytes > peaks_[inner.value].bytes)
          inner = called;
      }
      c = inner;
    }
    std::stable_sort(out.held.begin(), out.held.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return out;
  }

 private:
  struct CompPeak {
    int64_t bytes = 0;
    InstrId at;
  };

  bool HasOwnMemory(InstrId id) const { return !IsView(m_.instr(id)) && !absorbed_[id.value]; }

  void Walk(CompId c) {
    const absl::Span<const InstrId> order = m_.comp(c).instructions;
    for (size_t at = 0; at < order.size(); ++at) position_[order[at].value] = at;
    FindAbsorbed(c);
    FindLastUses(c);
    FindOutputs(c);
    if (is_body_[c.value]) FindCrowded(c);
    std::vector<std::vector<InstrId>> dying(order.size() + 1);
    int64_t held = 0;
    CompPeak& peak = peaks_[c.value];
    for (size_t at = 0; at < order.size(); ++at) {
      const InstrId id = order[at];
      const Instruction& i = m_.instr(id);
      int64_t within = 0;
      for (const CompId called : CalledComputations(m_, i)) {
        within = std::max(within, peaks_[called.value].bytes);
      }
      const int64_t bytes = OwnBytes(id);
      if (bytes > 0) {
        if (const InstrId over = Overwritten(i, bytes, dying[at]); over.valid()) {
          held -= held_[over.value];
          std::erase(dying[at], over);
          last_use_[over.value] = at - 1;  // from here on its memory is that of `id`
        }
        held_[id.value] = bytes;
        held += bytes;
        dying[std::max(at, last_use_[id.value])].push_back(id);
      }
      if (held + within > peak.bytes) peak = {held + within, id};
      for (const InstrId gone : dying[at]) held -= held_[gone.value];
    }
  }

  // Marks what is computed where it is used.
  void FindAbsorbed(CompId c) {
    const absl::Span<const InstrId> order = m_.comp(c).instructions;
    std::vector<int> users(order.size());
    std::vector<bool> kept(order.size());
    for (const InstrId id : order) {
      const bool absorbs = Absorbs(m_.instr(id));
      for (const InstrId o : m_.operands(id)) {
        ++users[position_[o.value]];
        if (!absorbs) kept[position_[o.value]] = true;
      }
    }
    kept[position_[m_.comp(c).root.value]] = true;
    // Backwards: what a view is kept for, its operand is kept for.
    for (size_t at = order.size(); at-- > 0;) {
      const Instruction& i = m_.instr(order[at]);
      if (IsView(i) && kept[at]) {
        for (const InstrId o : m_.operands(order[at])) kept[position_[o.value]] = true;
      }
    }
    for (size_t at = 0; at < order.size(); ++at) {
      const Instruction& i = m_.instr(order[at]);
      absorbed_[order[at].value] =
          IsByElement(i) && !kept[at] && users[at] > 0 && (users[at] == 1 || IsDoneTwice(i));
    }
  }

  void FindLastUses(CompId c) {
    const absl::Span<const InstrId> order = m_.comp(c).instructions;
    last_use_[m_.comp(c).root.value] = order.size();
    for (size_t at = order.size(); at-- > 0;) {
      const InstrId id = order[at];
      // What stands for its operands keeps them.
      const bool passes = !HasOwnMemory(id) || m_.instr(id).opcode == Opcode::kWhile;
      const size_t until = passes ? std::max(at, last_use_[id.value]) : at;
      for (const InstrId o : m_.operands(id)) {
        last_use_[o.value] = std::max(last_use_[o.value], until);
      }
    }
  }

  // Marks the values that are the computation's result, which the caller has memory for.
  void FindOutputs(CompId c) {
    const InstrId root = m_.comp(c).root;
    if (m_.instr(root).opcode != Opcode::kTuple) return FindOutput(root);
    for (const InstrId o : m_.operands(root)) FindOutput(o);
  }
  void FindOutput(InstrId id) { output_[Maker(id, &loop_outputs_).value] = true; }

  // Whose memory `id` has, through views and loops, which keep that of what they begin with. Adds
  // the elements of loops on the way to `loops`, if that is not null.
  InstrId Maker(InstrId id, absl::flat_hash_set<std::pair<InstrId, int64_t>>* loops) const {
    std::vector<int64_t> path;  // the element of `id` that is meant, from the innermost index on
    for (;;) {
      const Instruction& i = m_.instr(id);
      if (i.opcode == Opcode::kGetTupleElement) {
        path.push_back(i.as<TupleIndexAttrs>().index);
      } else if (i.opcode == Opcode::kTuple && !path.empty()) {
        id = m_.operand(id, path.back());
        path.pop_back();
        continue;
      } else if (i.opcode == Opcode::kWhile && !path.empty()) {
        if (loops != nullptr) loops->insert({id, path.back()});
      } else if (!IsView(i) || i.operand_count == 0) {
        return id;
      }
      id = m_.operand(id, 0);
    }
  }

  // What the result needs beside what its operands and the caller have.
  int64_t OwnBytes(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (!HasOwnMemory(id) || i.opcode == Opcode::kParameter) return 0;
    if (i.opcode == Opcode::kWhile) return CopiedBytes(id);
    return output_[id.value] && !crowded_[id.value] ? 0 : bytes_of_(id);
  }

  // Of the values that a loop changes, those that begin as parameters, as constants, or as what
  // another of its values begins with, too.
  int64_t CopiedBytes(InstrId loop) const {
    const InstrId init = m_.operand(loop, 0);
    if (m_.instr(init).opcode != Opcode::kTuple) return 0;
    const CompId body = m_.instr(loop).as<WhileAttrs>().body;
    int64_t bytes = 0;
    absl::flat_hash_set<std::pair<InstrId, int64_t>> begun;
    for (uint32_t k = 0; k < m_.instr(init).operand_count; ++k) {
      if (!Changes(body, k)) continue;
      const auto [from, element] = Source(m_.operand(init, k));
      const Opcode opcode = m_.instr(from).opcode;
      const bool kept = opcode == Opcode::kParameter || opcode == Opcode::kConstant;
      const bool shared = !begun.insert(element).second;
      const bool of_caller = loop_outputs_.contains({loop, k}) && !(shared && crowded_[from.value]);
      if ((kept || shared) && !of_caller) bytes += bytes_of_(m_.operand(init, k));
    }
    return bytes;
  }

  // What a view is a name of, and which: an element of a value, or the value itself (-1).
  std::pair<InstrId, std::pair<InstrId, int64_t>> Source(InstrId id) const {
    std::pair<InstrId, int64_t> element;
    for (;;) {
      const Instruction& i = m_.instr(id);
      if (!IsView(i) || i.opcode == Opcode::kTuple || i.operand_count == 0) break;
      if (i.opcode == Opcode::kGetTupleElement && !element.first.valid()) {
        element = {m_.operand(id, 0), i.as<TupleIndexAttrs>().index};
      }
      id = m_.operand(id, 0);
    }
    if (!element.first.valid()) element = {id, -1};
    return {id, element};
  }

  bool Changes(CompId body, uint32_t k) const {
    const InstrId root = m_.comp(body).root;
    if (m_.instr(root).opcode != Opcode::kTuple) return true;
    return !IsElement(body, m_.operand(root, k), k);
  }

  // Whether `id` is element k of the parameter.
  bool IsElement(CompId body, InstrId id, uint32_t k) const {
    const Instruction& i = m_.instr(id);
    return i.opcode == Opcode::kGetTupleElement && i.as<TupleIndexAttrs>().index == k &&
           m_.operand(id, 0) == m_.comp(body).parameters[0];
  }

  // Marks the new values of a body that are made while the old ones are still used.
  void FindCrowded(CompId body) {
    const InstrId root = m_.comp(body).root;
    if (m_.instr(root).opcode != Opcode::kTuple) return;
    std::vector<size_t> old(m_.instr(root).operand_count);  // the last use, by element
    for (const InstrId id : m_.comp(body).instructions) {
      const Instruction& i = m_.instr(id);
      if (i.opcode != Opcode::kGetTupleElement ||
          m_.operand(id, 0) != m_.comp(body).parameters[0]) {
        continue;
      }
      size_t& last = old[i.as<TupleIndexAttrs>().index];
      last = std::max(last, last_use_[id.value]);
    }
    for (size_t k = 0; k < old.size(); ++k) {
      const InstrId made = Maker(m_.operand(root, k), nullptr);
      const size_t at = position_[made.value];
      if (old[k] > at || (old[k] == at && !Overwrites(m_.instr(made)))) crowded_[made.value] = true;
    }
  }

  static bool Overwrites(const Instruction& i) {
    return IsByElement(i) || i.opcode == Opcode::kDynamicUpdateSlice ||
           i.opcode == Opcode::kScatter;
  }

  // Of the values whose last user is `i`, one that it may overwrite.
  InstrId Overwritten(const Instruction& i, int64_t bytes, absl::Span<const InstrId> dying) const {
    if (!Overwrites(i)) return InstrId();
    for (const InstrId id : dying) {
      if (held_[id.value] == bytes) return id;
    }
    return InstrId();
  }

  void AddHeld(CompId c, size_t at, std::vector<PeakMemory::Held>* out) const {
    for (const InstrId id : m_.comp(c).instructions) {
      const size_t begin = position_[id.value];
      if (held_[id.value] > 0 && begin <= at && std::max(begin, last_use_[id.value]) >= at) {
        out->push_back({id, held_[id.value]});
      }
    }
  }

  const Module& m_;
  const absl::FunctionRef<int64_t(InstrId)> bytes_of_;
  // By instruction: its place in its computation, that of its last use, the bytes that it is held
  // with, and whether it is computed where it is used.
  std::vector<size_t> position_, last_use_;
  std::vector<int64_t> held_;
  std::vector<bool> absorbed_;
  std::vector<bool> output_;  // is the result of its computation, or a part of it
  absl::flat_hash_set<std::pair<InstrId, int64_t>> loop_outputs_;  // such elements of loops
  std::vector<bool> crowded_;    // of the root of a body: made while the old value is used
  std::vector<bool> is_body_;    // by computation
  std::vector<CompPeak> peaks_;  // likewise
};

}  // namespace

PeakMemory FindPeakMemory(const Module& module, absl::FunctionRef<int64_t(InstrId)> bytes_of,
                          bool list) {
  return PeakFinder(module, bytes_of).Peak(list);
}

}  // namespace internal
}  // namespace shardcall
