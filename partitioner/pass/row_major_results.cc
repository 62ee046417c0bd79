// SPDX-License-Identifier: Apache-2.0
// Results that say that they are row-major.
//
// XLA chooses the layouts of arrays. XLA:CPU wants those that a collective splits or joins to be
// ordered by that dimension, and hands such a layout on to an FFT between two collectives, which
// it then refuses to run ("RET_CHECK failure ... IsMonotonicWithDim0Major"; seen in jaxlib 0.10.2
// and 0.12.0, also in programs that XLA has partitioned). A LayoutConstraint, which is what XLA
// knows for this, keeps the layout of the users away from the result, and with it from the operand:
//   before:  f = fft(x), y = add(f, z)
//   after:   f = fft(x), y = add(r, z),
//            r = c64[2,4]{1,0} custom-call(f), custom_call_target="LayoutConstraint",
//                              operand_layout_constraints={c64[2,4]{1,0}}
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
namespace {

// Ops that run on row-major arrays only, although XLA:CPU lets their layouts be chosen.
constexpr Opcode kRowMajorOnly[] = {Opcode::kFft};

class RowMajorResults : public Pass {
 public:
  absl::string_view name() const override { return "row-major-results"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    const bool concerns = Concerns(m);
    return RewriteInstructions(
        m,
        [&](InstrId id) {
          return concerns && absl::c_linear_search(kRowMajorOnly, m.instr(id).opcode);
        },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          const InstrId now =
              cloner->Add(id, cloner->CopyOf(id), cloner->OperandsOf(id), b.computation());
          cloner->CopyRare(id, now);
          const Shape* row_major = b.context().WithDefaultLayout(b.shape(now)->bare());
          const std::vector<const Shape*> operands = {row_major};
          CustomCallAttrs attrs;
          attrs.target = KnownTargetText(KnownTarget::kLayoutConstraint);
          attrs.has_layout_constraints = true;
          attrs.operand_layouts = operands;
          cloner->Set(id, b.CustomCall(attrs, {now}, row_major));
        });
  }

 private:
  // Whether the module has such an op, and a collective, without which all layouts are row-major.
  static bool Concerns(const Module& m) {
    bool ops = false, collectives = false;
    for (int k = 0; k < m.num_instructions() && !(ops && collectives); ++k) {
      const Opcode opcode = m.instr(InstrId(k)).opcode;
      ops = ops || absl::c_linear_search(kRowMajorOnly, opcode);
      collectives = collectives || HasTrait(opcode, kCollectiveOp);
    }
    return ops && collectives;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeRowMajorResults() { return std::make_unique<RowMajorResults>(); }

}  // namespace shardcall
