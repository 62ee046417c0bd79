// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/buffers.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/analysis/fused_ops.h"
#include "shardcall/partitioner/ir/analysis/leaf_views.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/analysis/run_order.h"

namespace shardcall {
inline namespace internal {
namespace {

// Of what is computed on the way to an op, so much is looked at.
constexpr int kMostFusedOps = 64;

// Ops that may write their result over an operand.
bool Overwrites(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  return IsByElement(m, id) || i.opcode == Opcode::kDynamicUpdateSlice || i.opcode == Opcode::kScatter;
}

class BufferLister {
 public:
  BufferLister(const Module& m, const MemoryRules& rules, absl::FunctionRef<int64_t(InstrId, int)> bytes_of)
      : m_(m),
        bytes_of_(bytes_of),
        fused_(FindFusedOps(m, rules)),
        position_(m.num_instructions()),
        enter_(m.num_instructions()),
        leave_(m.num_instructions()),
        first_(m.num_instructions()),
        is_body_(m.num_computations()),
        callers_(m.num_computations()),
        length_(m.num_computations()),
        shared_bytes_(m.num_computations()) {
    int leaves = 0;
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& i = m.instr(InstrId(k));
      first_[k] = leaves;
      leaves += i.shape->num_leaves();
      if (i.opcode == Opcode::kWhile) is_body_[i.as<WhileAttrs>().body.value] = true;
      for (const CompId called : CalledComputations(m, i)) ++callers_[called.value];
    }
    if (rules.runs_breadth_first) {
      for (int c = 0; c < m.num_computations(); ++c) {
        order_.push_back(BreadthFirstOrder(m, CompId(c), fused_));
      }
    }
    last_use_.resize(leaves);
    last_other_use_.resize(leaves);
    buffer_.resize(leaves, -1);
    output_.resize(leaves);
    crowded_.resize(leaves);
  }

  BufferList List(absl::FunctionRef<int64_t(const BufferList&)> shared_peak) {
    for (const CompId c : ComputationPostOrder(m_)) {
      Analyze(c);
      length_[c.value] = m_.comp(c).instructions.size();
      for (const InstrId id : OrderOf(c)) {
        for (const CompId inner : InnerOf(m_.instr(id))) length_[c.value] += length_[inner.value];
      }
      if (callers_[c.value] > 1) shared_bytes_[c.value] = shared_peak(ListTree(c));
    }
    BufferList out = ListTree(m_.entry());
    ListResults(&out);
    return out;
  }

 private:
  absl::Span<const InstrId> OrderOf(CompId c) const {
    return order_.empty() ? absl::MakeConstSpan(m_.comp(c).instructions) : order_[c.value];
  }
  int Leaf(ValueLeaf l) const { return first_[l.value.value] + l.leaf; }
  int64_t BytesOf(ValueLeaf l) const { return bytes_of_(l.value, l.leaf); }
  int NumLeaves(InstrId id) const { return m_.instr(id).shape->num_leaves(); }
  bool HasOwnMemory(InstrId id) const { return !IsView(m_, id) && !fused_[id.value]; }

  // The computations that are listed where `i` calls them.
  absl::InlinedVector<CompId, 2> InnerOf(const Instruction& i) const {
    absl::InlinedVector<CompId, 2> inner;
    for (const CompId c : CalledComputations(m_, i)) {
      if (callers_[c.value] == 1) inner.push_back(c);
    }
    return inner;
  }

  void Analyze(CompId c) {
    const absl::Span<const InstrId> order = OrderOf(c);
    for (size_t at = 0; at < order.size(); ++at) position_[order[at].value] = at;
    FindLastUses(c);
    const InstrId root = m_.comp(c).root;
    for (int k = 0; k < NumLeaves(root); ++k) {
      const ValueLeaf made = Maker({root, k}, [&](ValueLeaf loop) { loop_outputs_.insert(loop); });
      output_[Leaf(made)] = true;
    }
    if (is_body_[c.value]) FindCrowded(c);
  }

  void FindLastUses(CompId c) {
    const absl::Span<const InstrId> order = OrderOf(c);
    const InstrId root = m_.comp(c).root;
    for (int k = 0; k < NumLeaves(root); ++k) {
      last_use_[Leaf({root, k})] = last_other_use_[Leaf({root, k})] = order.size();
    }
    for (size_t at = order.size(); at-- > 0;) FindLastUsesBy(order[at], at);
  }

  void FindLastUsesBy(InstrId id, int at) {
    const auto use = [&](ValueLeaf of, int until, int other) {
      last_use_[Leaf(of)] = std::max(last_use_[Leaf(of)], until);
      last_other_use_[Leaf(of)] = std::max(last_other_use_[Leaf(of)], other);
    };
    int until = at;
    for (int k = 0; k < NumLeaves(id); ++k) {
      const int last = Leaf({id, k});
      if (const auto viewed = ViewedLeaf(m_, {id, k}); viewed.has_value()) {
        const bool loop = m_.instr(id).opcode == Opcode::kWhile;
        use(*viewed, std::max(at, last_use_[last]), loop ? at : last_other_use_[last]);
      } else if (!HasOwnMemory(id)) {  // what stands for its operands keeps them
        until = std::max(until, last_use_[last]);
      }
    }
    for (const InstrId o : m_.operands(id)) {
      if (IsStructural(id)) break;
      for (int k = 0; k < NumLeaves(o); ++k) use({o, k}, until, until);
    }
  }

  // Uses of a part of a tuple, and of none of its other parts.
  bool IsStructural(InstrId id) const {
    const Opcode opcode = m_.instr(id).opcode;
    return opcode == Opcode::kGetTupleElement || opcode == Opcode::kTuple ||
           opcode == Opcode::kWhile;
  }

  // Whose memory `leaf` has, through views and loops, which keep that of what they begin with.
  // Calls `visit` for the loops on the way.
  ValueLeaf Maker(ValueLeaf leaf, absl::FunctionRef<void(ValueLeaf)> visit) const {
    for (;;) {
      const std::optional<ValueLeaf> viewed = ViewedLeaf(m_, leaf);
      if (!viewed.has_value()) return leaf;
      if (m_.instr(leaf.value).opcode == Opcode::kWhile) visit(leaf);
      leaf = *viewed;
    }
  }

  // What a view is a name of.
  ValueLeaf Source(ValueLeaf leaf) const {
    while (m_.instr(leaf.value).opcode != Opcode::kWhile) {
      const std::optional<ValueLeaf> viewed = ViewedLeaf(m_, leaf);
      if (!viewed.has_value()) break;
      leaf = *viewed;
    }
    return leaf;
  }

  // Marks the new values of a body that are made while the old ones are still used.
  void FindCrowded(CompId body) {
    const InstrId root = m_.comp(body).root;
    for (int k = 0; k < NumLeaves(root); ++k) {
      const int old = last_use_[Leaf({m_.comp(body).parameters[0], k})];
      const ValueLeaf made = Maker({root, k}, [](ValueLeaf) {});
      const int at = position_[made.value.value];
      if (old > at || (old == at && !Overwrites(m_, made.value))) crowded_[Leaf(made)] = true;
    }
  }

  // The buffers of a computation and of those that run within it.
  BufferList ListTree(CompId root) {
    BufferList out;
    std::vector<std::pair<CompId, int>> tree = {{root, 0}};  // and when it begins
    for (size_t k = 0; k < tree.size(); ++k) {
      auto [c, now] = tree[k];
      for (const InstrId id : OrderOf(c)) {
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
    return out;
  }

  void ListBuffersOf(CompId c, std::vector<Buffer>* out) {
    const absl::Span<const InstrId> order = OrderOf(c);
    std::vector<std::vector<int>> dying(order.size() + 1);  // leaves
    for (size_t at = 0; at < order.size(); ++at) {
      const InstrId id = order[at];
      const Instruction& i = m_.instr(id);
      for (const CompId called : CalledComputations(m_, i)) {
        const int64_t within = shared_bytes_[called.value];
        if (within > 0) out->push_back({id, within, enter_[id.value], leave_[id.value]});
      }
      if (!HasOwnMemory(id) || i.opcode == Opcode::kParameter) continue;
      if (Overwrites(m_, id)) Overwrite(id, dying[at], out);
      if (i.shape->IsTuple() && i.opcode != Opcode::kWhile) {
        out->push_back({.value = id,
                        .bytes = 8 * static_cast<int64_t>(i.shape->tuple().size()),
                        .begin = enter_[id.value],
                        .end = leave_[id.value],
                        .is_table = true});
      }
      OverwriteByCall(id, dying[at], out);
      for (int k = 0; k < i.shape->num_leaves(); ++k) {
        const int leaf = Leaf({id, k});
        if (!NeedsBuffer({id, k})) continue;
        const size_t last = std::max<size_t>(at, last_use_[leaf]);
        buffer_[leaf] = out->size();
        out->push_back({id, BytesOf({id, k}), enter_[id.value],
                        leave_[order[std::min(last, order.size() - 1)].value]});
        dying[last].push_back(leaf);
      }
    }
  }

  // Whether neither the operands nor the caller have memory for it.
  bool NeedsBuffer(ValueLeaf leaf) const {
    if (m_.instr(leaf.value).opcode == Opcode::kWhile) return IsCopied(leaf);
    return !output_[Leaf(leaf)] || crowded_[Leaf(leaf)];
  }

  // Whether the leaf of a loop, which changes it, begins as a parameter or a constant, as what
  // another of its leaves begins with, too, or as what is used after the loop.
  bool IsCopied(ValueLeaf leaf) const {
    const InstrId loop = leaf.value;
    const CompId body = m_.instr(loop).as<WhileAttrs>().body;
    const ValueLeaf old = {m_.comp(body).parameters[0], leaf.leaf};
    if (Source({m_.comp(body).root, leaf.leaf}) == old) return false;  // unchanged
    const ValueLeaf from = Source({m_.operand(loop, 0), leaf.leaf});
    const Opcode opcode = m_.instr(from.value).opcode;
    const bool kept = opcode == Opcode::kParameter || opcode == Opcode::kConstant ||
                      last_other_use_[Leaf(from)] > static_cast<int>(position_[loop.value]);
    bool shared = false;
    for (int k = 0; k < leaf.leaf && !kept && !shared; ++k) {
      shared = Source({m_.operand(loop, 0), k}) == from;
    }
    if (!kept && !shared) return false;
    return !loop_outputs_.contains(leaf) || (shared && crowded_[Leaf(from)]);
  }

  // Of the leaves whose last user is `id`, one has its memory from here on.
  void Overwrite(InstrId id, absl::Span<const int> dying, std::vector<Buffer>* out) const {
    if (dying.empty()) return;
    const int64_t bytes = BytesOf({id, 0});
    const absl::flat_hash_set<int> aligned = ReadInPlace(id);
    for (const int leaf : dying) {
      Buffer& buffer = (*out)[buffer_[leaf]];
      if (buffer.bytes != bytes || buffer.begin >= enter_[id.value] || !aligned.contains(leaf)) {
        continue;
      }
      buffer.end = enter_[id.value] - 1;
      return;
    }
  }

  // A custom call may say which results are written over which operands.
  void OverwriteByCall(InstrId id, absl::Span<const int> dying, std::vector<Buffer>* out) const {
    const Instruction& i = m_.instr(id);
    if (i.opcode != Opcode::kCustomCall) return;
    std::vector<OutputAlias> aliases;
    if (!ParseOutputAliasing(i.as<CustomCallAttrs>().output_to_operand_aliasing, &aliases)) return;
    for (const OutputAlias& alias : aliases) {
      const InstrId o = m_.operand(id, static_cast<int>(alias.operand));
      const int leaf = Leaf(Source({o, FirstLeafAt(m_.instr(o).shape, alias.inner)}));
      if (!absl::c_linear_search(dying, leaf)) continue;
      (*out)[buffer_[leaf]].end = enter_[id.value] - 1;
    }
  }

  // The leaves of which `id`, with what is computed on the way to it, reads nothing but the element
  // that it writes.
  absl::flat_hash_set<int> ReadInPlace(InstrId id) const {
    absl::flat_hash_set<int> in_place, elsewhere;
    absl::InlinedVector<std::pair<InstrId, bool>, 8> stack = {{id, true}};
    for (int steps = 0; !stack.empty() && steps < kMostFusedOps; ++steps) {
      const auto [at, aligned] = stack.back();
      stack.pop_back();
      const Opcode opcode = m_.instr(at).opcode;
      for (const InstrId o : m_.operands(at)) {
        if (!m_.instr(o).shape->IsArray()) continue;
        const bool whole = (opcode == Opcode::kDynamicUpdateSlice || opcode == Opcode::kScatter) &&
                           at == id && o == m_.operand(id, 0);
        const bool elementwise = HasTrait(opcode, kElementwise) && opcode != Opcode::kCopy;
        const bool here = aligned && (whole || elementwise);
        const ValueLeaf from = Source({o, 0});
        if (fused_[from.value.value]) {
          stack.push_back({from.value, here});
        } else {
          (here ? in_place : elsewhere).insert(Leaf(from));
        }
      }
    }
    if (!stack.empty()) return {};
    for (const int leaf : elsewhere) in_place.erase(leaf);
    return in_place;
  }

  // When each result of the entry is written. One that is a parameter, or another result, is a
  // copy of it.
  void ListResults(BufferList* out) const {
    const InstrId root = m_.comp(m_.entry()).root;
    absl::flat_hash_set<ValueLeaf> written;
    for (int k = 0; k < NumLeaves(root); ++k) {
      absl::InlinedVector<InstrId, 2> loops;
      const ValueLeaf made = Maker({root, k}, [&](ValueLeaf l) { loops.push_back(l.value); });
      const Opcode opcode = m_.instr(made.value).opcode;
      const bool kept = opcode == Opcode::kParameter || opcode == Opcode::kConstant;
      int begin = out->end - 1;
      if (!kept && written.insert(made).second) {
        begin = enter_[made.value.value];
      } else if (!loops.empty()) {
        begin = enter_[loops.back().value];
      }
      out->results.push_back({root, BytesOf({root, k}), begin, out->end});
    }
  }

  const Module& m_;
  const absl::FunctionRef<int64_t(InstrId, int)> bytes_of_;
  // By instruction: whether it is computed where it is used, its place in its computation, when it
  // begins, when all that runs within has run, and the number of its first leaf.
  const std::vector<bool> fused_;
  std::vector<size_t> position_;
  std::vector<std::vector<InstrId>> order_;  // by computation; empty: that of the module
  std::vector<int> enter_, leave_, first_;
  // By leaf: the place of its last use, through loops that begin with it and else, and its buffer
  // in the list of its tree of computations.
  std::vector<int> last_use_, last_other_use_, buffer_;
  std::vector<bool> output_;   // is a result of its computation
  std::vector<bool> crowded_;  // of the root of a body: made while the old value is used
  absl::flat_hash_set<ValueLeaf> loop_outputs_;  // of loops, that are results of a computation
  // By computation: how many times are within, and what it needs if several instructions call it.
  std::vector<bool> is_body_;
  std::vector<int> callers_, length_;
  std::vector<int64_t> shared_bytes_;
};

}  // namespace

BufferList ListBuffers(const Module& module, const MemoryRules& rules,
                       absl::FunctionRef<int64_t(InstrId, int)> bytes_of,
                       absl::FunctionRef<int64_t(const BufferList&)> shared_peak) {
  return BufferLister(module, rules, bytes_of).List(shared_peak);
}

}  // namespace internal
}  // namespace shardcall
