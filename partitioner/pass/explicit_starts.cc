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
#include <vector>

#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/analysis/value_range.h"
#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/pass/nested_slices.h"
#include "shardcall/partitioner/pass/one_scatter.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
namespace {

class ExplicitStarts : public Pass {
 public:
  absl::string_view name() const override { return "explicit-starts"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    const std::vector<bool> nested = NestedSlices(m);
    return RewriteInstructions(
        m, [&](InstrId id) { return nested[id.value]; },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          if (m.instr(id).opcode == Opcode::kScatter) {
            MakeScatterExplicit(m, id, b, cloner);
          } else {
            CloneWithClamps(m, id, b, cloner);
          }
        });
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
    const InstrId now = cloner->Add(id, cloner->CopyOf(id), operands, b.computation());
    cloner->CopyRare(id, now);
  }
};

}  // namespace

std::unique_ptr<Pass> MakeExplicitStarts() { return std::make_unique<ExplicitStarts>(); }

}  // namespace shardcall
