// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/buffers.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/memory/donations.h"
#include "shardcall/partitioner/ir/memory/in_place.h"
#include "shardcall/partitioner/ir/memory/joint_kernels.h"
#include "shardcall/partitioner/ir/memory/leaf_lifetimes.h"
#include "shardcall/partitioner/ir/memory/leaf_views.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kAddressBytes = 8;

class BufferLister {
 public:
  BufferLister(const Module& m, const MemoryRules& rules)
      : m_(m),
        rules_(rules),
        lifetimes_(m, rules),
        enter_(m.num_instructions()),
        leave_(m.num_instructions()),
        buffer_(lifetimes_.num_leaves(), -1),
        output_(lifetimes_.num_leaves()),
        crowded_(lifetimes_.num_leaves()),
        read_whole_(m.num_instructions()),
        is_body_(m.num_computations()),
        callers_(m.num_computations()),
        length_(m.num_computations()),
        shared_bytes_(m.num_computations()) {
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& i = m.instr(InstrId(k));
      if (i.opcode == Opcode::kWhile) is_body_[i.as<WhileAttrs>().body.value] = true;
      for (const CompId called : CalledComputations(m, i)) ++callers_[called.value];
      if (i.opcode == Opcode::kGetTupleElement || i.opcode == Opcode::kOptBarrier) continue;
      for (const InstrId o : m.operands(InstrId(k))) read_whole_[o.value] = true;
    }
  }

  BufferList List(absl::FunctionRef<int64_t(const BufferList&)> shared_peak) {
    for (const CompId c : ComputationPostOrder(m_)) {
      FindOutputs(c);
      length_[c.value] = static_cast<int>(m_.comp(c).instructions.size());
      for (const InstrId id : m_.comp(c).instructions) {
        for (const CompId inner : InnerOf(m_.instr(id))) length_[c.value] += length_[inner.value];
      }
      if (callers_[c.value] > 1) shared_bytes_[c.value] = shared_peak(ListTree(c));
    }
    BufferList out = ListTree(m_.entry());
    ListResults(&out);
    return out;
  }

 private:
  int64_t BytesOf(ValueLeaf l) const { return m_.instr(l.value).shape->leaf(l.leaf)->byte_size(); }
  int NumLeaves(InstrId id) const { return m_.instr(id).shape->num_leaves(); }

  // The computations that are listed where `i` calls them.
  absl::InlinedVector<CompId, 2> InnerOf(const Instruction& i) const {
    absl::InlinedVector<CompId, 2> inner;
    for (const CompId c : CalledComputations(m_, i)) {
      if (callers_[c.value] == 1) inner.push_back(c);
    }
    return inner;
  }

  // Marks the results of a computation, which its caller has memory for.
  void FindOutputs(CompId c) {
    const InstrId root = m_.comp(c).root;
    for (int k = 0; k < NumLeaves(root); ++k) {
      const ValueLeaf made = MakerOf(m_, {root, k}, [&](ValueLeaf loop) {
        loop_outputs_.insert(loop);
        if (is_body_[c.value] && OldIsUsedFrom(c, k, lifetimes_.PlaceOf(loop.value))) {
          crowded_loops_.insert(loop);
        }
      });
      output_[lifetimes_.NumberOf(made)] = true;
      if (is_body_[c.value]) FindCrowded(c, made, k);
    }
  }

  // Whether the old value of what the body of a loop makes is used at a place in it, or later.
  bool OldIsUsedFrom(CompId body, int k, int place) const {
    return lifetimes_.LastUse({m_.comp(body).parameters[0], k}) >= place;
  }

  // Marks the new value `made` of a body if it is made while the old one is still used.
  void FindCrowded(CompId body, ValueLeaf made, int k) {
    const int at = lifetimes_.PlaceOf(made.value);
    if (OldIsUsedFrom(body, k, at + 1) ||
        (OldIsUsedFrom(body, k, at) && !MayOverwrite(m_, made.value))) {
      crowded_[lifetimes_.NumberOf(made)] = true;
    }
  }

  // The buffers of a computation and of those that run within it.
  BufferList ListTree(CompId root) {
    BufferList out;
    std::vector<std::pair<CompId, int>> tree = {{root, 0}};  // and when it begins
    for (size_t k = 0; k < tree.size(); ++k) {
      auto [c, now] = tree[k];
      for (const InstrId id : lifetimes_.OrderOf(c)) {
        enter_[id.value] = now;
        for (const CompId inner : InnerOf(m_.instr(id))) {
          tree.push_back({inner, now});
          now += length_[inner.value];
        }
        leave_[id.value] = now++;
      }
      out.end = std::max(out.end, now);
    }
    for (const auto& [c, begin] : tree) ListBuffersOf(c, &out.temporaries);
    for (const auto& [c, begin] : tree) ListJointTables(c, &out.temporaries);
    return out;
  }

  void ListBuffersOf(CompId c, std::vector<Buffer>* out) {
    const absl::Span<const InstrId> order = lifetimes_.OrderOf(c);
    // When the op at a place, or all of them, have run.
    const auto end = [&](int place) {
      return leave_[order[std::min(place, static_cast<int>(order.size()) - 1)].value];
    };
    std::vector<std::vector<ValueLeaf>> dying(order.size() + 1);
    for (int at = 0; at < static_cast<int>(order.size()); ++at) {
      const InstrId id = order[at];
      const Instruction& i = m_.instr(id);
      const int now = enter_[id.value];
      for (const CompId called : CalledComputations(m_, i)) {
        const int64_t within = shared_bytes_[called.value];
        if (within > 0) out->push_back({id, within, now, leave_[id.value], Buffer::kWithin});
      }
      if (HasTable(c, id)) {
        const auto elements = static_cast<int64_t>(i.shape->tuple().size());
        out->push_back({id, kAddressBytes * elements, now,
                        end(std::max(at, lifetimes_.LastReader(id))), Buffer::kTable});
      }
      if (lifetimes_.IsStarted(id) && !HasTrait(i.opcode, kAsyncForm)) {
        ListStart(id, now, end(static_cast<int>(order.size())), out);
      }
      if (!lifetimes_.HasOwnMemory(id) || i.opcode == Opcode::kParameter) continue;
      Overwrite(id, dying[at], out);
      for (const int k : LeavesWithBuffer(id)) {
        const int last = std::max(at, lifetimes_.LastUse({id, k}));
        buffer_[lifetimes_.NumberOf({id, k})] = static_cast<int>(out->size());
        out->push_back({id, BytesOf({id, k}), now, end(last), k});
        dying[last].push_back({id, k});
      }
    }
  }

  // The addresses of the operands, of several results, of these two lists, and of the operands
  // again within the computation that is started.
  void ListStart(InstrId id, int begin, int end, std::vector<Buffer>* out) const {
    const int64_t list = kAddressBytes * m_.instr(id).operand_count;
    const auto add = [&](int64_t bytes) {
      out->push_back({id, bytes, begin, end, Buffer::kTable});
    };
    add(2 * kAddressBytes);
    add(list);
    if (!m_.instr(id).shape->IsTuple()) return;
    add(list);
    add(list);
  }

  // Of kernels with several results.
  void ListJointTables(CompId c, std::vector<Buffer>* out) const {
    if (!rules_.keeps_tables) return;
    const RunSteps steps(m_, c, lifetimes_.fusion());
    for (const std::vector<int>& kernel : FindJointKernels(m_, steps)) {
      const InstrId first = steps.At(kernel.front());
      out->push_back({first, kAddressBytes * static_cast<int64_t>(kernel.size()),
                      enter_[first.value], leave_[first.value], Buffer::kTable});
    }
  }

  // Whether it makes a tuple that is not that of its caller; loops have that of what they begin
  // with. Of what nobody reads as a tuple, and of a generator, which it expands, XLA:GPU has none.
  bool HasTable(CompId c, InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (!i.shape->IsTuple() || id == m_.comp(c).root) return false;
    if (i.opcode == Opcode::kTuple) return read_whole_[id.value] || !rules_.keeps_tables;
    if (i.opcode == Opcode::kRngBitGenerator && rules_.keeps_tables) return false;
    return lifetimes_.HasOwnMemory(id) && i.opcode != Opcode::kWhile &&
           i.opcode != Opcode::kParameter;
  }

  // Those that neither the operands nor the caller have memory for.
  std::vector<int> LeavesWithBuffer(InstrId id) const {
    if (m_.instr(id).opcode == Opcode::kWhile) return CopiedLeaves(id);
    std::vector<int> out;
    for (int k = 0; k < NumLeaves(id); ++k) {
      const int leaf = lifetimes_.NumberOf({id, k});
      if (!output_[leaf] || crowded_[leaf]) out.push_back(k);
    }
    return out;
  }

  // Of the leaves that a loop changes, those that begin as a parameter or a constant, as what
  // another of them begins with, too, or as what is used after the loop.
  std::vector<int> CopiedLeaves(InstrId loop) const {
    const CompId body = m_.instr(loop).as<WhileAttrs>().body;
    std::vector<int> out;
    absl::flat_hash_set<ValueLeaf> begun;
    for (int k = 0; k < NumLeaves(loop); ++k) {
      const ValueLeaf from = SourceOf(m_, {m_.operand(loop, 0), k});
      const bool shared = !begun.insert(from).second;
      if (SourceOf(m_, {m_.comp(body).root, k}) == ValueLeaf{m_.comp(body).parameters[0], k}) {
        continue;
      }
      const bool kept =
          IsKept(from) || lifetimes_.LastUseBesideLoops(from) > lifetimes_.PlaceOf(loop);
      const bool of_caller =
          loop_outputs_.contains({loop, k}) && !(shared && crowded_loops_.contains({loop, k}));
      if ((kept || shared) && !of_caller) out.push_back(k);
    }
    return out;
  }

  bool IsKept(ValueLeaf leaf) const {
    const Opcode opcode = m_.instr(leaf.value).opcode;
    return opcode == Opcode::kParameter || opcode == Opcode::kConstant;
  }

  // Whether it is an all-reduce over its operands: one that is started, or that makes a result.
  bool ReducesInPlace(InstrId id) const {
    return m_.instr(id).opcode == Opcode::kAllReduce && rules_.reduces_in_place &&
           (lifetimes_.IsStarted(id) || output_[lifetimes_.NumberOf({id, 0})]);
  }

  // Those that a call says, or that a reduction in place reads.
  std::vector<ValueLeaf> LeavesOverwritten(InstrId id) const {
    if (!ReducesInPlace(id)) return LeavesOverwrittenByCall(m_, id);
    std::vector<ValueLeaf> out;
    for (const InstrId o : m_.operands(id)) out.push_back(SourceOf(m_, {o, 0}));
    return out;
  }

  // From here on `id` has the memory of one of the leaves of which it is the last user, or of those
  // that a call says.
  void Overwrite(InstrId id, absl::Span<const ValueLeaf> dying, std::vector<Buffer>* out) const {
    if (dying.empty()) return;
    const auto buffer_of = [&](ValueLeaf leaf) -> Buffer& {
      return (*out)[buffer_[lifetimes_.NumberOf(leaf)]];
    };
    for (const ValueLeaf& leaf : LeavesOverwritten(id)) {
      if (absl::c_linear_search(dying, leaf)) buffer_of(leaf).end = enter_[id.value] - 1;
    }
    if (!MayOverwrite(m_, id) || lifetimes_.WritesBeside(id)) return;
    const absl::flat_hash_set<ValueLeaf> in_place = LeavesReadInPlace(m_, lifetimes_.fused(), id);
    for (const ValueLeaf& leaf : dying) {
      Buffer& buffer = buffer_of(leaf);
      if (buffer.bytes != BytesOf({id, 0}) || buffer.begin >= enter_[id.value] ||
          !in_place.contains(leaf)) {
        continue;
      }
      buffer.end = enter_[id.value] - 1;
      return;
    }
  }

  // When each result of the entry is written. One that is a parameter, or another result, is a
  // copy of it.
  void ListResults(BufferList* out) const {
    const InstrId root = m_.comp(m_.entry()).root;
    absl::flat_hash_set<ValueLeaf> written;
    for (int k = 0; k < NumLeaves(root); ++k) {
      InstrId loop;  // the first of those that it goes through
      const ValueLeaf made = MakerOf(m_, {root, k}, [&](ValueLeaf l) { loop = l.value; });
      ResultBuffer result = {.bytes = BytesOf({root, k}), .written = out->end - 1};
      if (!IsKept(made) && written.insert(made).second) {
        result.written = enter_[made.value.value];
      } else if (loop.valid()) {
        result.written = enter_[loop.value];
      }
      out->results.push_back(result);
    }
    for (const AliasEntry& alias : ResultsInParameters(m_)) {
      const InstrId parameter = m_.comp(m_.entry()).parameters[alias.parameter];
      const int k = FirstLeafAt(m_.instr(root).shape, alias.output_index);
      const int from = FirstLeafAt(m_.instr(parameter).shape, alias.parameter_index);
      const int last = lifetimes_.LastUse({parameter, from});
      const absl::Span<const InstrId> order = lifetimes_.OrderOf(m_.entry());
      if (last >= static_cast<int>(order.size())) continue;
      out->results[k].free_from = leave_[order[last].value] + 1;
    }
  }

  const Module& m_;
  const MemoryRules& rules_;
  const LeafLifetimes lifetimes_;
  std::vector<int> enter_, leave_;  // by instruction: when it begins, and when all within has run
  // By leaf: its buffer in the list of its tree of computations, whether it is a result of its
  // computation, and whether it is made while the old value of a loop is used.
  std::vector<int> buffer_;
  std::vector<bool> output_, crowded_;
  // Of loops, what are results of a computation, and of these what is made while the old value of
  // an outer loop is used.
  absl::flat_hash_set<ValueLeaf> loop_outputs_, crowded_loops_;
  std::vector<bool> read_whole_;  // by instruction: a tuple that somebody reads as one
  // By computation: how many times are within, and what it needs if several instructions call it.
  std::vector<bool> is_body_;
  std::vector<int> callers_, length_;
  std::vector<int64_t> shared_bytes_;
};

}  // namespace

BufferList ListBuffers(const Module& module, const MemoryRules& rules,
                       absl::FunctionRef<int64_t(const BufferList&)> shared_peak) {
  return BufferLister(module, rules).List(shared_peak);
}

}  // namespace internal
}  // namespace shardcall
