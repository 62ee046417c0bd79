// SPDX-License-Identifier: Apache-2.0
// Halo exchanges of one value that send the same rows send them once.
//
// Each slice, pad or convolution that reads neighbours' rows has a permute of its own. Where one
// permute sends a part of what another one sends, between the same devices, its result is a slice
// of the other's:
//   before:  a = slice(x), slice={[0:1]},  p = collective-permute(a), source_target_pairs={{1,0}}
//            b = slice(x), slice={[0:3]},  q = collective-permute(b), source_target_pairs={{1,0}}
//   after:   b = slice(x), slice={[0:3]},  q = collective-permute(b), source_target_pairs={{1,0}}
//            p = slice(q), slice={[0:1]}
// The larger one runs where the first of them did.
#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = std::vector<int64_t>;

// What a permute sends of `value`: [begin, end) of each dimension.
struct Sent {
  InstrId permute, value;
  Dims begin, end;

  bool Holds(const Sent& other) const {
    for (size_t d = 0; d < begin.size(); ++d) {
      if (other.begin[d] < begin[d] || other.end[d] > end[d]) return false;
    }
    return true;
  }
};

class SharedPermutes : public Pass {
 public:
  absl::string_view name() const override { return "shared-permutes"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    const absl::flat_hash_map<InstrId, Shared> shared = Find(m);
    PassResult result = RewriteInstructions(
        m, [&](InstrId id) { return shared.contains(id); },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          const auto& [part, whole] = shared.at(id);
          if (!cloner->now(whole.permute).valid()) {
            const InstrId value = cloner->now(whole.value);
            const InstrId sent =
                IsWhole(*b.shape(value), whole) ? value : b.Slice(value, whole.begin, whole.end);
            cloner->Add(whole.permute, cloner->CopyOf(whole.permute), {sent}, b.computation());
          }
          if (id == whole.permute) return;
          Dims begin = part.begin, end = part.end;
          for (size_t d = 0; d < begin.size(); ++d) {
            begin[d] -= whole.begin[d];
            end[d] -= whole.begin[d];
          }
          const InstrId all = cloner->now(whole.permute);
          cloner->Set(id, IsWhole(*b.shape(all), {.begin = begin, .end = end})
                              ? all
                              : b.Slice(all, begin, end));
        });
    // These permutes are no more, whatever gives what they gave.
    for (const auto& [id, share] : shared) {
      if (share.whole.permute != id) result.moved_to[id.value] = InstrId();
    }
    return result;
  }

 private:
  // A permute, and the one whose result has its result.
  struct Shared {
    Sent part, whole;
  };

  static bool IsWhole(const Shape& shape, const Sent& sent) {
    for (int d = 0; d < shape.rank(); ++d) {
      if (sent.begin[d] != 0 || sent.end[d] != shape.dim(d)) return false;
    }
    return true;
  }

  // Of permutes that share, with those that they share.
  static absl::flat_hash_map<InstrId, Shared> Find(const Module& m) {
    using Key = std::tuple<CompId, InstrId, Dims, Dims>;
    std::map<Key, std::vector<Sent>> groups;
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& i = m.instr(InstrId(k));
      if (i.opcode != Opcode::kCollectivePermute || i.operand_count != 1) continue;
      if (!i.shape->IsArray() || i.shape->IsDynamic() || i.sharding != nullptr || i.extra >= 0) {
        continue;
      }
      const auto& attrs = i.as<PermuteAttrs>();
      if (!attrs.slice_sizes.empty()) continue;
      Sent sent = SentBy(m, InstrId(k));
      groups[{i.computation, sent.value, Dims(attrs.sources.begin(), attrs.sources.end()),
              Dims(attrs.targets.begin(), attrs.targets.end())}]
          .push_back(std::move(sent));
    }
    absl::flat_hash_map<InstrId, Shared> out;
    for (const auto& [key, group] : groups) {
      if (group.size() > 1) AddShared(group, &out);
    }
    return out;
  }

  static Sent SentBy(const Module& m, InstrId permute) {
    const InstrId operand = m.operand(permute, 0);
    const Instruction& from = m.instr(operand);
    Sent out{.permute = permute, .value = operand};
    if (from.opcode == Opcode::kSlice) {
      const auto& attrs = from.as<SliceAttrs>();
      const bool dense =
          std::all_of(attrs.strides.begin(), attrs.strides.end(), [](int64_t s) { return s == 1; });
      if (dense) {
        out.value = m.operand(operand, 0);
        out.begin.assign(attrs.starts.begin(), attrs.starts.end());
        out.end.assign(attrs.limits.begin(), attrs.limits.end());
        return out;
      }
    }
    out.begin.assign(from.shape->rank(), 0);
    out.end.assign(from.shape->dims().begin(), from.shape->dims().end());
    return out;
  }

  // Each permute is a part of the first one that holds it and that no other one holds.
  static void AddShared(const std::vector<Sent>& group, absl::flat_hash_map<InstrId, Shared>* out) {
    std::vector<const Sent*> largest;
    for (const Sent& sent : group) {
      const auto holds = [&](const Sent* other) { return other->Holds(sent); };
      if (std::any_of(largest.begin(), largest.end(), holds)) continue;
      std::erase_if(largest, [&](const Sent* other) { return sent.Holds(*other); });
      largest.push_back(&sent);
    }
    for (const Sent& sent : group) {
      const Sent& whole = **std::find_if(largest.begin(), largest.end(),
                                         [&](const Sent* other) { return other->Holds(sent); });
      if (whole.permute == sent.permute) continue;
      out->insert({sent.permute, {sent, whole}});
      out->insert({whole.permute, {whole, whole}});
    }
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSharedPermutes() { return std::make_unique<SharedPermutes>(); }

}  // namespace internal
}  // namespace shardcall
