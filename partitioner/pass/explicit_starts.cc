// SPDX-License-Identifier: Apache-2.0
// Starts that say where they are clamped.
//
// A dynamic-slice clamps its start to the operand. Compilers that put two slices in each other's
// place, as XLA does up to jaxlib 0.11, add the starts and lose the inner clamp:
//   y = dynamic-slice(x, a), z = dynamic-slice(y, b)   becomes   z = dynamic-slice(x, a + b)
// which is another element if a is out of range. A gather or scatter by one index becomes such a
// slice, too, and the partitioner itself cuts shards by slices. So where one slice reads what
// another one has given, starts that are not known to be in range are clamped by an op of their
// own:
//   before:  z = dynamic-slice(y, b)
//   after:   c = clamp(0, b, size(y) - size(z)), z = dynamic-slice(y, c)
// A scatter by one index, which skips an update that does not fit, becomes an update in range with
// what is there already:
//   before:  z = scatter(x, i, u)
//   after:   c = clamp(0, i, size(x) - size(u)), old = dynamic-slice(x, c)
//            z = dynamic-update-slice(x, select(c == i, op(old, u), old), c)
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/value_range.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/pass/nested_slices.h"
#include "shardcall/partitioner/pass/one_scatter.h"
#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {
namespace {

class ExplicitStarts : public Pass {
 public:
  absl::string_view name() const override { return "explicit-starts"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    PassResult out((Module(m.shared_context())));
    const std::vector<bool> nested = NestedSlices(m);
    out.changed = absl::c_linear_search(nested, true);
    if (!out.changed) return out;
    ModuleCloner cloner(m, &out.module);
    MonoidTable monoids(&out.module);
    cloner.CopyHeader();
    for (int c = 0; c < m.num_computations(); ++c) cloner.AddComputation(CompId(c));
    // A map's computation has to be whole when the map is made.
    for (const CompId c : ComputationPostOrder(m)) {
      GraphBuilder b(&out.module, cloner.now(c), &monoids);
      for (InstrId id : m.comp(c).instructions) {
        if (!nested[id.value]) {
          cloner.Clone(id);
          continue;
        }
        b.set_metadata(m.instr(id).metadata);
        if (m.instr(id).opcode == Opcode::kScatter) {
          MakeScatterExplicit(m, id, b, &cloner);
        } else {
          CloneWithClamps(m, id, b, &cloner);
        }
      }
      cloner.SetRoot(c);
    }
    out.module.set_entry(cloner.now(m.entry()));
    out.moved_to = cloner.TakeInstructions();
    out.comp_moved_to = cloner.TakeComputations();
    return out;
  }

 private:
  // A dynamic-slice, dynamic-update-slice or gather: a copy whose starts are clamped.
  static void CloneWithClamps(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
    const Instruction& i = m.instr(id);
    auto operands = cloner->OperandsOf(id);
    const StartLimits limits = LimitsOfStarts(m, i);
    if (i.opcode == Opcode::kGather) {
      operands[1] = ClampIndices(b, operands[1], i.as<GatherAttrs>().index_vector_dim, limits.most);
    } else {
      for (size_t k = 0; k < limits.most.size(); ++k) {
        const int o = limits.first + static_cast<int>(k);
        if (StartInRange(m, m.operands(i)[o], limits.most[k])) continue;
        operands[o] = ClampStart(b, operands[o], limits.most[k]);
      }
    }
    const InstrId now = cloner->Add(id, cloner->CopyOf(id), operands, cloner->now(i.computation));
    cloner->CopyRare(id, now);
  }
};

}  // namespace

std::unique_ptr<Pass> MakeExplicitStarts() { return std::make_unique<ExplicitStarts>(); }

}  // namespace shardcall
