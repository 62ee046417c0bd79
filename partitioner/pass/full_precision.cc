// SPDX-License-Identifier: Apache-2.0
// Products of f32 in f32.
//
// XLA's default precision lets a backend round the operands first: on GPUs it multiplies in TF32,
// which has 10 bits of fraction. Where results are compared, a program of default precision asks
// for the highest; what it states itself, and its algorithms, stay.
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
namespace {

constexpr absl::string_view kHighest = "{highest,highest}";

template <typename Attrs>
bool HasDefault(const Instruction& i) {
  const auto& attrs = i.as<Attrs>();
  return attrs.operand_precision.empty() && attrs.algorithm.empty();
}

template <typename Attrs>
void AskForHighest(Context& context, Instruction* i) {
  Attrs attrs = i->as<Attrs>();
  attrs.operand_precision = kHighest;
  i->attrs = InternAttributes(context, attrs);
}

// A product of f32, or of complex numbers of f32, of default precision.
bool Concerns(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const bool dot = i.opcode == Opcode::kDot;
  if ((!dot && i.opcode != Opcode::kConvolution) || i.operand_count != 2) return false;
  const ElementType type = m.instr(m.operand(id, 0)).shape->element_type();
  if (type != ElementType::kF32 && type != ElementType::kC64) return false;
  return dot ? HasDefault<DotAttrs>(i) : HasDefault<ConvolutionAttrs>(i);
}

class FullPrecision : public Pass {
 public:
  absl::string_view name() const override { return "full-precision"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    return RewriteInstructions(
        m, [&](InstrId id) { return Concerns(m, id); },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          Instruction copy = cloner->CopyOf(id);
          if (copy.opcode == Opcode::kDot) {
            AskForHighest<DotAttrs>(b.context(), &copy);
          } else {
            AskForHighest<ConvolutionAttrs>(b.context(), &copy);
          }
          const InstrId now = cloner->Add(id, copy, cloner->OperandsOf(id), b.computation());
          cloner->CopyRare(id, now);
        });
  }
};

}  // namespace

std::unique_ptr<Pass> MakeFullPrecision() { return std::make_unique<FullPrecision>(); }

}  // namespace shardcall
