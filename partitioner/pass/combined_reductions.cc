// SPDX-License-Identifier: Apache-2.0
// Small all-reduces over the same devices run as one.
//
// A collective of a few bytes takes as long as its latency. Reductions of the same kind, whose
// results are not read before the last of them can run, are put into one array:
//   before:  p = all-reduce(x),  q = all-reduce(y)
//   after:   f = concatenate(reshape(x), reshape(y)),  r = all-reduce(f)
//            p = reshape(slice(r)),  q = reshape(slice(r))
// It runs where the last of them did.
#include <cstdint>
#include <memory>
#include <vector>

#include "shardcall/partitioner/pass/alike_reductions.h"
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
    const ReductionGroups groups = FindAlikeReductions(m, kMostBytes);
    return RewriteInstructions(
        m, [&](InstrId id) { return groups.contains(id); },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          const std::vector<InstrId>& group = *groups.at(id);
          if (id == group.back()) Combine(group, b, cloner);
        });
  }

 private:
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
