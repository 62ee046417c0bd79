// SPDX-License-Identifier: Apache-2.0
// Runs a permute of what a permute gives as one, and a permute that leaves all as it is not at all.
//   before:  p = collective-permute(x), source_target_pairs={{0,1},{1,0}}
//            q = collective-permute(p), source_target_pairs={{0,2},{1,3}}
//   after:   q = collective-permute(x), source_target_pairs={{1,2},{0,3}}
// A device that no pair sends to has zeros, here as before. Where every device gets something, ops
// of one operand may stand between them: each device computes them for another one. So strategies
// of ops that mirror shards and the reshards before and after them send once.
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"
#include "shardcall/partitioner/pass/use_counts.h"

namespace shardcall {
inline namespace internal {
namespace {

using Devices = std::vector<int64_t>;

struct Composed {
  InstrId value;  // what is sent
  Devices sources, targets;
  bool left_out = false;  // the value as it is
};

// A permute of an array, of all of it.
bool IsPlainPermute(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  return i.opcode == Opcode::kCollectivePermute && i.operand_count == 1 && i.shape->IsArray() &&
         i.sharding == nullptr && i.extra < 0 && i.as<PermuteAttrs>().slice_sizes.empty();
}

Composed AsItIs(const Module& m, InstrId id) {
  const auto& attrs = m.instr(id).as<PermuteAttrs>();
  return {m.operand(id, 0), Devices(attrs.sources.begin(), attrs.sources.end()),
          Devices(attrs.targets.begin(), attrs.targets.end())};
}

Composed Compose(const Composed& first, const Composed& then) {
  absl::flat_hash_map<int64_t, int64_t> from;  // by device: whose value it has between them
  for (size_t p = 0; p < first.sources.size(); ++p) from[first.targets[p]] = first.sources[p];
  Composed both{first.value, {}, {}};
  for (size_t p = 0; p < then.sources.size(); ++p) {
    const auto source = from.find(then.sources[p]);
    if (source == from.end()) continue;
    both.sources.push_back(source->second);
    both.targets.push_back(then.targets[p]);
  }
  return both;
}

// Each device gets what one device has: what was computed of it, another one can compute.
bool IsBijection(const Module& m, const Composed& c) {
  const int64_t devices = m.header.has_num_partitions ? m.header.num_partitions : 1;
  return static_cast<int64_t>(c.sources.size()) == devices;
}

class ChainFinder {
 public:
  explicit ChainFinder(const Module& m) : m_(m) {}

  // Permutes that others make up, or that do nothing. A permute with several readers stays for
  // these; one that is the value it permutes is left out, as others send for it.
  absl::flat_hash_map<InstrId, Composed> Find() {
    std::vector<InstrId> permutes;
    for (int k = 0; k < m_.num_instructions(); ++k) {
      if (IsPlainPermute(m_, InstrId(k))) permutes.push_back(InstrId(k));
    }
    if (!permutes.empty()) uses_ = UseCounts(m_);
    for (InstrId id : permutes) Visit(id);
    return std::move(found_);
  }

 private:
  void Visit(InstrId id) {
    Composed c = AsItIs(m_, id);
    const InstrId before = c.value;
    bool changes = IsPlainPermute(m_, before) && AreAlike(before, id);
    if (changes) {
      c = Compose(Of(before), c);
    } else if (const InstrId first = BehindLocalOps(before, id); first.valid()) {
      Composed both = Compose(Of(first), c);
      both.value = before;
      found_[first] = {.value = Of(first).value, .left_out = true};
      c = std::move(both);
      changes = true;
    }
    c.left_out = IsBijection(m_, c) && c.sources == c.targets;  // each sends to itself
    if (changes || c.left_out) found_[id] = std::move(c);
  }

  // The permute of which `id` is made by ops of one operand, if nothing else reads it or them.
  InstrId BehindLocalOps(InstrId id, InstrId user) const {
    constexpr int kMost = 8;
    for (int k = 0; k < kMost; ++k) {
      const bool only = uses_[id.value] == 1 && id != m_.comp(m_.instr(id).computation).root;
      if (!only || !InSameComputation(id, user)) return InstrId();
      if (IsPlainPermute(m_, id)) {
        const bool may_go = IsBijection(m_, Of(id)) && !Of(id).left_out && AreAlike(id, user);
        return may_go ? id : InstrId();
      }
      const Instruction& i = m_.instr(id);
      const bool local = i.operand_count == 1 && i.shape->IsArray() && i.sharding == nullptr &&
                         i.extra < 0 && HasTrait(i.opcode, kElementwise | kMapsElements);
      if (!local) return InstrId();
      id = m_.operand(id, 0);
    }
    return InstrId();
  }

  Composed Of(InstrId id) const {
    const auto known = found_.find(id);
    return known == found_.end() ? AsItIs(m_, id) : known->second;
  }
  // Whether two permutes name devices in the same way: with a channel by partition, else by
  // replica.
  bool AreAlike(InstrId a, InstrId b) const {
    const auto by_partition = [&](InstrId id) {
      return m_.instr(id).as<PermuteAttrs>().channel_id > 0;
    };
    return InSameComputation(a, b) && by_partition(a) == by_partition(b);
  }
  bool InSameComputation(InstrId a, InstrId b) const {
    return m_.instr(a).computation == m_.instr(b).computation;
  }

  const Module& m_;
  std::vector<int> uses_;
  absl::flat_hash_map<InstrId, Composed> found_;
};

class ComposedPermutes : public Pass {
 public:
  absl::string_view name() const override { return "composed-permutes"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    const absl::flat_hash_map<InstrId, Composed> composed = ChainFinder(m).Find();
    PassResult result = RewriteInstructions(
        m, [&](InstrId id) { return composed.contains(id); },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          const Composed& c = composed.at(id);
          const InstrId value = cloner->now(c.value);
          if (c.left_out) {
            cloner->Set(id, value);
            return;
          }
          PermuteAttrs attrs = m.instr(id).as<PermuteAttrs>();
          attrs.sources = c.sources;
          attrs.targets = c.targets;
          Instruction permute = cloner->CopyOf(id);
          permute.attrs = InternAttributes(b.context(), attrs);
          cloner->Add(id, permute, {value}, b.computation());
        });
    // These permutes are no more, whatever gives what they gave.
    for (const auto& [id, c] : composed) {
      if (c.left_out) result.moved_to[id.value] = InstrId();
    }
    return result;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeComposedPermutes() { return std::make_unique<ComposedPermutes>(); }

}  // namespace internal
}  // namespace shardcall
