// SPDX-License-Identifier: Apache-2.0
// Maxima and minima of floats across devices, by integers of the same order.
//
// XLA:CPU and NCCL lose a NaN in them: of a NaN and a number they give the number (seen in jaxlib
// 0.10.2 and 0.12.0, and in NCCL 2.28). The bits of a float, as a signed integer b, are ordered as
// the floats are if those below the sign are flipped in negative numbers, which is its own inverse:
//   order(b) = b xor (b >> (bits - 1), arithmetic, and the greatest integer)
// A positive NaN then is above all numbers, and a negative one below them:
//   before:  m = f32[8] all-reduce(x), to_apply=max
//   after:   k = s32[8] order(bits(select(x != x, nan, x)))
//            m = f32[8] float(order(s32[8] all-reduce(k), to_apply=max))
// The bytes are the same. Of +0 and -0 the maximum is +0, and the minimum -0.
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
namespace {

// The integers that stand for floats of a type, and the bits of its quiet NaN.
struct OrderRow {
  ElementType type, integer;
  uint64_t nan;
};
constexpr OrderRow kOrders[] = {
    {ElementType::kF64, ElementType::kS64, 0x7ff8000000000000},
    {ElementType::kF32, ElementType::kS32, 0x7fc00000},
    {ElementType::kF16, ElementType::kS16, 0x7e00},
    {ElementType::kBF16, ElementType::kS16, 0x7fc0},
};

const OrderRow* OrderOf(ElementType type) {
  for (const OrderRow& row : kOrders) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

// Whether the op reduces across devices, now or by the time of its all-reduce-done.
bool Reduces(Opcode op) {
  return op == Opcode::kAllReduce || op == Opcode::kReduceScatter || op == Opcode::kAllReduceStart;
}

class OrderedExtrema : public Pass {
 public:
  absl::string_view name() const override { return "ordered-extrema"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    std::optional<MonoidTable> monoids;
    return RewriteInstructions(
        m,
        [&](InstrId id) {
          return ExtremumEndedBy(m, id).has_value() || ExtremumOf(m, id).has_value();
        },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          if (!monoids.has_value()) monoids.emplace(&b.module());
          if (const std::optional<Opcode> extremum = ExtremumOf(m, id)) {
            Reduce(m, id, *extremum, b, *monoids, cloner);
            return;
          }
          const InstrId done = AddAs(m, id, cloner->OperandsOf(id), cloner->CopyOf(id), b, cloner);
          cloner->Set(id, FromOrder(m.instr(id).shape, done, b));
        });
  }

 private:
  // Maximum or minimum, if `id` is a reduction by it across devices of floats that have integers.
  static std::optional<Opcode> ExtremumOf(const Module& m, InstrId id) {
    const Instruction& i = m.instr(id);
    Opcode op;
    if (!Reduces(i.opcode) || !RecognizeMonoid(m, i.as<CollectiveAttrs>().to_apply, &op) ||
        (op != Opcode::kMaximum && op != Opcode::kMinimum)) {
      return std::nullopt;
    }
    for (InstrId o : m.operands(i)) {
      if (OrderOf(m.instr(o).shape->element_type()) == nullptr) return std::nullopt;
    }
    return op;
  }

  // The same of the reduction that `id` ends.
  static std::optional<Opcode> ExtremumEndedBy(const Module& m, InstrId id) {
    if (m.instr(id).opcode != Opcode::kAllReduceDone) return std::nullopt;
    return ExtremumOf(m, m.operand(id, 0));
  }

  static void Reduce(const Module& m, InstrId id, Opcode extremum, GraphBuilder& b,
                     MonoidTable& monoids, ModuleCloner* cloner) {
    auto operands = cloner->OperandsOf(id);
    ElementType integer = ElementType::kInvalid;
    for (InstrId& x : operands) {
      const OrderRow& row = *OrderOf(b.type(x));
      integer = row.integer;
      const uint64_t sign = extremum == Opcode::kMinimum ? SignBit(row.integer) : 0;
      const InstrId nan = b.BroadcastScalar(b.ConstantBits(row.type, row.nan | sign), b.shape(x));
      x = b.Select(b.Compare(Direction::kNe, x, x), nan, x);
      x = Order(b.BitcastConvert(x, row.integer), b);
    }
    Instruction copy = cloner->CopyOf(id);
    auto attrs = m.instr(id).as<CollectiveAttrs>();
    attrs.to_apply = monoids.Get(extremum, integer);
    copy.attrs = InternAttributes(b.context(), attrs);
    const InstrId now = AddAs(m, id, operands, std::move(copy), b, cloner);
    if (m.instr(id).opcode != Opcode::kAllReduceStart) {
      cloner->Set(id, FromOrder(m.instr(id).shape, now, b));
    }
  }

  // Adds `copy` with integers in the place of the floats of its shape.
  static InstrId AddAs(const Module& m, InstrId id, absl::Span<const InstrId> operands,
                       Instruction copy, GraphBuilder& b, ModuleCloner* cloner) {
    Context& context = b.context();
    const auto integers = [&](const Shape* s) {
      const ElementType type = OrderOf(s->element_type())->integer;
      return context.WithDefaultLayout(context.MakeArray(type, s->dims()));
    };
    const Shape* shape = m.instr(id).shape;
    if (shape->IsTuple()) {
      std::vector<const Shape*> parts;
      for (const Shape* part : shape->tuple()) parts.push_back(integers(part));
      copy.shape = context.MakeTuple(parts);
    } else {
      copy.shape = integers(shape);
    }
    const InstrId now = cloner->Add(id, copy, operands, b.computation());
    cloner->CopyRare(id, now);
    return now;
  }

  // The floats, in the shape `like`, that integers of their order stand for.
  static InstrId FromOrder(const Shape* like, InstrId x, GraphBuilder& b) {
    if (!like->IsTuple()) return b.BitcastConvert(Order(x, b), like->element_type());
    absl::InlinedVector<InstrId, 4> parts;
    for (size_t k = 0; k < like->tuple().size(); ++k) {
      parts.push_back(
          FromOrder(like->tuple()[k], b.GetTupleElement(x, static_cast<int64_t>(k)), b));
    }
    return b.Tuple(parts);
  }

  static InstrId Order(InstrId x, GraphBuilder& b) {
    const ElementType type = b.type(x);
    const auto all = [&](uint64_t bits) {
      return b.BroadcastScalar(b.ConstantBits(type, bits), b.shape(x));
    };
    const auto width = static_cast<uint64_t>(ElementTypeBits(type));
    const InstrId negative = b.Binary(Opcode::kShiftRightArithmetic, x, all(width - 1));
    return b.Binary(Opcode::kXor, x, b.Binary(Opcode::kAnd, negative, all(SignBit(type) - 1)));
  }

  static uint64_t SignBit(ElementType type) { return uint64_t{1} << (ElementTypeBits(type) - 1); }
};

}  // namespace

std::unique_ptr<Pass> MakeOrderedExtrema() { return std::make_unique<OrderedExtrema>(); }

}  // namespace shardcall
