// SPDX-License-Identifier: Apache-2.0
// Small all-reduces over the same devices run as one.
//
// A collective of a few bytes takes as long as its latency. Reductions of the same kind, whose
// results are not read before the last of them can run, are put into one array:
//   before:  p = all-reduce(x),  q = all-reduce(y)
//   after:   f = concatenate(reshape(x), reshape(y)),  r = all-reduce(f)
//            p = reshape(slice(r)),  q = reshape(slice(r))
// It runs where the last of them did.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

// Putting larger arrays together takes longer than their own collective's latency.
constexpr int64_t kMostBytes = 64 << 10;

class CombinedReductions : public Pass {
 public:
  absl::string_view name() const override { return "combined-reductions"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    const Groups groups = Find(m);
    return RewriteInstructions(
        m, [&](InstrId id) { return groups.contains(id); },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          const std::vector<InstrId>& group = *groups.at(id);
          if (id == group.back()) Combine(group, b, cloner);
        });
  }

 private:
  using Group = std::shared_ptr<std::vector<InstrId>>;  // in their order
  using Groups = absl::flat_hash_map<InstrId, Group>;

  static bool IsSmallReduction(const Instruction& i) {
    return i.opcode == Opcode::kAllReduce && i.operand_count == 1 && i.shape->IsArray() &&
           !i.shape->IsDynamic() && i.sharding == nullptr && i.extra < 0 &&
           i.shape->num_elements() > 0 && i.shape->byte_size() <= kMostBytes;
  }

  // Everything but the channel, interned: what is alike has one address.
  static const Attributes* Kind(const Module& m, const Instruction& i) {
    CollectiveAttrs attrs = i.as<CollectiveAttrs>();
    attrs.channel_id = -1;
    return InternAttributes(m.context(), attrs);
  }
  static bool AreAlike(const Module& m, const Instruction& a, const Instruction& b) {
    return a.shape->element_type() == b.shape->element_type() && Kind(m, a) == Kind(m, b);
  }

  // By member, the groups of at least two. A group is open until one of its results is read.
  static Groups Find(const Module& m) {
    Groups out;
    for (int c = 0; c < m.num_computations(); ++c) {
      std::vector<Group> open;
      absl::flat_hash_map<InstrId, Group> of;  // by member of an open group
      const auto close = [&](const Group& group) {
        for (InstrId id : *group) {
          of.erase(id);
          if (group->size() > 1) out[id] = group;
        }
        std::erase(open, group);
      };
      for (InstrId id : m.comp(CompId(c)).instructions) {
        for (InstrId operand : m.operands(id)) {
          const auto read = of.find(operand);
          if (read != of.end()) close(Group(read->second));
        }
        const Instruction& i = m.instr(id);
        if (!IsSmallReduction(i)) continue;
        const auto at = std::find_if(open.begin(), open.end(), [&](const Group& group) {
          return AreAlike(m, m.instr(group->front()), i);
        });
        if (at == open.end()) {
          open.push_back(std::make_shared<std::vector<InstrId>>(1, id));
          of[id] = open.back();
        } else {
          (*at)->push_back(id);
          of[id] = *at;
        }
      }
      while (!open.empty()) close(Group(open.back()));
    }
    return out;
  }

  static void Combine(const std::vector<InstrId>& group, GraphBuilder& b, ModuleCloner* cloner) {
    std::vector<InstrId> flat;
    for (InstrId id : group) {
      const InstrId x = cloner->OperandsOf(id)[0];
      flat.push_back(b.Reshape(x, {b.shape(x)->num_elements()}));
    }
    const Instruction last = cloner->CopyOf(group.back());
    const InstrId all = b.Concatenate(flat, 0);
    const InstrId sum = b.Add(Opcode::kAllReduce, {all}, last.attrs);
    int64_t at = 0;
    for (size_t k = 0; k < group.size(); ++k) {
      const int64_t size = b.shape(flat[k])->num_elements();
      const InstrId part = b.Slice(sum, {at}, {at + size});
      at += size;
      cloner->Set(group[k], b.Reshape(part, b.shape(cloner->OperandsOf(group[k])[0])->dims()));
    }
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCombinedReductions() { return std::make_unique<CombinedReductions>(); }

}  // namespace internal
}  // namespace shardcall
