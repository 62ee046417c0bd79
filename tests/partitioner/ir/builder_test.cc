// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "shardcall/partitioner/ir/float_format.h"

namespace shardcall {
namespace {

class BuilderTest : public testing::Test {
 protected:
  BuilderTest()
      : module_(std::make_shared<Context>()),
        monoids_(&module_),
        comp_(module_.AddComputation("main")),
        b_(&module_, comp_, &monoids_) {
    module_.header.num_partitions = 8;
    module_.header.has_num_partitions = true;
  }
  std::string Text(InstrId id) const { return b_.shape(id)->ToString(); }
  InstrId Param(int64_t number, ElementType type, absl::Span<const int64_t> dims) {
    Context& c = module_.context();
    return b_.Parameter(number, c.WithDefaultLayout(c.MakeArray(type, dims)));
  }

  Module module_;
  MonoidTable monoids_;
  CompId comp_;
  GraphBuilder b_;
};

TEST_F(BuilderTest, HelpersInferShapes) {
  const InstrId x = Param(0, ElementType::kF32, {4, 6});
  const InstrId zero = b_.Zero(ElementType::kF32);
  EXPECT_EQ(Text(b_.Unary(Opcode::kExponential, x)), "f32[4,6]{1,0}");
  EXPECT_EQ(Text(b_.Compare(Direction::kLt, x, b_.BroadcastScalar(zero, b_.shape(x)))),
            "pred[4,6]{1,0}");
  EXPECT_EQ(Text(b_.Convert(x, ElementType::kBF16)), "bf16[4,6]{1,0}");
  EXPECT_EQ(Text(b_.BitcastConvert(x, ElementType::kU16)), "u16[4,6,2]{2,1,0}");
  EXPECT_EQ(Text(b_.Broadcast(x, {2, 4, 6}, {1, 2})), "f32[2,4,6]{2,1,0}");
  EXPECT_EQ(Text(b_.Reshape(x, {24})), "f32[24]{0}");
  EXPECT_EQ(Text(b_.Transpose(x, {1, 0})), "f32[6,4]{1,0}");
  EXPECT_EQ(Text(b_.Slice(x, {0, 2}, {4, 6})), "f32[4,4]{1,0}");
  EXPECT_EQ(Text(b_.Pad(x, zero, {0, 1}, {0, -2})), "f32[4,5]{1,0}");
  EXPECT_EQ(Text(b_.Concatenate({x, x}, 1)), "f32[4,12]{1,0}");
  EXPECT_EQ(Text(b_.Iota(ElementType::kS32, {3, 2}, 0)), "s32[3,2]{1,0}");
  const InstrId i = b_.Zero(ElementType::kS32);
  EXPECT_EQ(Text(b_.DynamicSlice(x, {i, i}, {1, 6})), "f32[1,6]{1,0}");
  EXPECT_EQ(Text(b_.Reduce(x, zero, {0}, Opcode::kAdd)), "f32[6]{0}");
  const InstrId t = b_.Tuple({x, i});
  EXPECT_EQ(b_.GetTupleElement(t, 1), i);
  EXPECT_EQ(Text(b_.OptBarrier(t)), "(f32[4,6]{1,0}, s32[])");
  EXPECT_EQ(Text(b_.GetTupleElement(b_.OptBarrier(t), 0)), "f32[4,6]{1,0}");
  DotAttrs dot;
  const int64_t one[] = {1};
  dot.lhs_contracting = one;
  dot.rhs_contracting = one;
  const InstrId h = b_.Convert(x, ElementType::kBF16);
  EXPECT_EQ(Text(b_.Dot(h, h, dot)), "bf16[4,4]{1,0}");
  EXPECT_EQ(Text(b_.Dot(h, h, dot, ElementType::kF32)), "f32[4,4]{1,0}");
}

TEST_F(BuilderTest, HelpersThatWouldChangeNothingReturnTheirOperand) {
  const InstrId x = Param(0, ElementType::kF32, {4});
  const int before = module_.num_instructions();
  EXPECT_EQ(b_.Convert(x, ElementType::kF32), x);
  EXPECT_EQ(b_.Reshape(x, {4}), x);
  EXPECT_EQ(b_.Concatenate({x}, 0), x);
  EXPECT_EQ(module_.num_instructions(), before);
}

TEST_F(BuilderTest, CollectivesUseGlobalIdsAndTheGivenChannel) {
  const InstrId x = Param(0, ElementType::kF32, {4, 8});
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kIota;
  groups.num_groups = 2, groups.group_size = 4;
  const int64_t reshape[] = {8};
  groups.reshape = reshape;
  const InstrId sum = b_.AllReduce(x, groups, 7, Opcode::kAdd);
  EXPECT_EQ(module_.instr(sum).as<CollectiveAttrs>().channel_id, 7);
  EXPECT_TRUE(module_.instr(sum).as<CollectiveAttrs>().use_global_device_ids);
  EXPECT_EQ(Text(b_.AllGather(x, 0, groups, 8)), "f32[16,8]{1,0}");
  EXPECT_EQ(Text(b_.ReduceScatter(x, 1, groups, 9, Opcode::kMaximum)), "f32[4,2]{1,0}");
  EXPECT_EQ(Text(b_.AllToAll(x, 1, groups, 10)), "f32[4,8]{1,0}");
  EXPECT_EQ(Text(b_.CollectivePermute(x, {0, 1}, {1, 0}, 11)), "f32[4,8]{1,0}");
}

TEST_F(BuilderTest, ReductionComputationsAreMadeOncePerOpAndType) {
  const InstrId x = Param(0, ElementType::kF32, {4, 8});
  const int before = module_.num_computations();
  b_.Reduce(x, b_.Zero(ElementType::kF32), {0}, Opcode::kAdd);
  b_.Reduce(x, b_.Zero(ElementType::kF32), {1}, Opcode::kAdd);
  EXPECT_EQ(module_.num_computations(), before + 1);
  const CompId add = monoids_.Get(Opcode::kAdd, ElementType::kF32);
  EXPECT_EQ(module_.comp(add).name, "add.f32");
  Opcode op;
  ASSERT_TRUE(RecognizeMonoid(module_, add, &op));
  EXPECT_EQ(op, Opcode::kAdd);
}

TEST_F(BuilderTest, ValueNumberingReusesEqualScalarArithmetic) {
  b_.set_value_numbering(true);
  const InstrId id = b_.Convert(b_.PartitionId(), ElementType::kS32);
  const InstrId a = b_.Binary(Opcode::kMultiply, id, b_.ConstantInt(ElementType::kS32, 4));
  EXPECT_EQ(b_.Binary(Opcode::kMultiply, b_.Convert(b_.PartitionId(), ElementType::kS32),
                      b_.ConstantInt(ElementType::kS32, 4)),
            a);
  EXPECT_NE(b_.Binary(Opcode::kMultiply, id, b_.ConstantInt(ElementType::kS32, 5)), a);
  for (int i = 0; i < 1000; ++i) b_.ConstantInt(ElementType::kS32, i);
  const int size = module_.num_instructions();
  for (int i = 0; i < 1000; ++i) b_.ConstantInt(ElementType::kS32, i);
  EXPECT_EQ(module_.num_instructions(), size);
  b_.set_value_numbering(false);
  EXPECT_NE(b_.Binary(Opcode::kMultiply, id, b_.ConstantInt(ElementType::kS32, 4)), a);
}

TEST_F(BuilderTest, CollectivesAndCustomCallsAreNeverMerged) {
  b_.set_value_numbering(true);
  const InstrId x = Param(0, ElementType::kF32, {4});
  EXPECT_NE(b_.AllReduce(x, {}, 1, Opcode::kAdd), b_.AllReduce(x, {}, 1, Opcode::kAdd));
  CustomCallAttrs call;
  call.target = "f";
  EXPECT_NE(b_.CustomCall(call, {x}, b_.shape(x)), b_.CustomCall(call, {x}, b_.shape(x)));
}

TEST_F(BuilderTest, CallsAreNeverMerged) {
  const CompId callee = module_.AddComputation("callee");
  GraphBuilder inner(&module_, callee, &monoids_);
  CustomCallAttrs writes;
  writes.target = "writes";
  writes.has_side_effect = true;
  Context& c = module_.context();
  const Shape* shape = c.WithDefaultLayout(c.MakeArray(ElementType::kF32, {4}));
  inner.SetRoot(inner.CustomCall(writes, {inner.Parameter(0, shape)}, shape));
  b_.set_value_numbering(true);
  const InstrId x = Param(0, ElementType::kF32, {4});
  EXPECT_NE(b_.Call(callee, {x}), b_.Call(callee, {x}));
}

TEST_F(BuilderTest, NewInstructionsInheritTheCurrentMetadata) {
  Metadata m;
  m.op_name = "jit(f)/dot";
  b_.set_metadata(InternMetadata(module_.context(), m));
  const InstrId x = Param(0, ElementType::kF32, {4});
  EXPECT_EQ(module_.instr(b_.Unary(Opcode::kNegate, x)).metadata->op_name, "jit(f)/dot");
}

TEST_F(BuilderTest, TryAddReportsWhatDoesNotFit) {
  const InstrId x = Param(0, ElementType::kF32, {4});
  const InstrId y = Param(1, ElementType::kF32, {5});
  const int before = module_.num_instructions();
  const absl::StatusOr<InstrId> bad = b_.TryAdd(Opcode::kAdd, {x, y});
  EXPECT_EQ(DiagnosticCode(bad.status()), "E021");
  EXPECT_EQ(module_.num_instructions(), before);
  EXPECT_TRUE(b_.TryAdd(Opcode::kAdd, {x, x}).ok());
  EXPECT_EQ(DiagnosticCode(b_.TryAdd(Opcode::kNegate, {x}, nullptr, b_.shape(y)).status()), "E023");
}

using BuilderDeathTest = BuilderTest;
TEST_F(BuilderDeathTest, AddStopsOnMisuse) {
  const InstrId x = Param(0, ElementType::kF32, {4});
  const InstrId y = Param(1, ElementType::kF32, {5});
  EXPECT_DEATH(b_.Binary(Opcode::kAdd, x, y), "different dimensions");
}

class MonoidTest : public BuilderTest {};

TEST_F(MonoidTest, RecognisesEitherOperandOrderAndNothingElse) {
  Context& c = module_.context();
  const auto make = [&](Opcode op, bool swap, bool twice) {
    const CompId comp = module_.AddComputation("r");
    GraphBuilder b(&module_, comp, &monoids_);
    const InstrId p0 = b.Parameter(0, c.MakeScalar(ElementType::kF32));
    const InstrId p1 = b.Parameter(1, c.MakeScalar(ElementType::kF32));
    b.SetRoot(twice ? b.Binary(op, p0, p0) : swap ? b.Binary(op, p1, p0) : b.Binary(op, p0, p1));
    return comp;
  };
  Opcode op;
  EXPECT_TRUE(RecognizeMonoid(module_, make(Opcode::kMaximum, true, false), &op));
  EXPECT_EQ(op, Opcode::kMaximum);
  EXPECT_FALSE(RecognizeMonoid(module_, make(Opcode::kSubtract, false, false), &op));
  EXPECT_FALSE(RecognizeMonoid(module_, make(Opcode::kAdd, false, true), &op));
}

TEST_F(MonoidTest, IdentitiesLeaveValuesUnchanged) {
  uint64_t bits;
  ASSERT_TRUE(IdentityBits(Opcode::kAdd, ElementType::kF32, &bits));
  EXPECT_EQ(bits, 0u);
  ASSERT_TRUE(IdentityBits(Opcode::kAdd, ElementType::kF32, &bits, ZeroSign::kExact));
  EXPECT_EQ(bits, 0x80000000u);
  ASSERT_TRUE(IdentityBits(Opcode::kMultiply, ElementType::kBF16, &bits));
  EXPECT_EQ(bits, 0x3f80u);
  ASSERT_TRUE(IdentityBits(Opcode::kMinimum, ElementType::kS8, &bits));
  EXPECT_EQ(bits, 0x7fu);
  ASSERT_TRUE(IdentityBits(Opcode::kMaximum, ElementType::kS8, &bits));
  EXPECT_EQ(bits, 0x80u);
  ASSERT_TRUE(IdentityBits(Opcode::kMaximum, ElementType::kS64, &bits));
  EXPECT_EQ(bits, uint64_t{1} << 63);
  ASSERT_TRUE(IdentityBits(Opcode::kAnd, ElementType::kPred, &bits));
  EXPECT_EQ(bits, 1u);
  ASSERT_TRUE(IdentityBits(Opcode::kAnd, ElementType::kS4, &bits));
  EXPECT_EQ(bits, 0xffu);
  ASSERT_TRUE(IdentityBits(Opcode::kAnd, ElementType::kU4, &bits));
  EXPECT_EQ(bits, 0xfu);
  EXPECT_FALSE(IdentityBits(Opcode::kMaximum, ElementType::kC64, &bits));
  EXPECT_FALSE(IdentityBits(Opcode::kXor, ElementType::kF32, &bits));
  // It has no zero, and no collective reduces it.
  for (const Monoid& m : kMonoids) {
    EXPECT_FALSE(IdentityBits(m.op, ElementType::kF8E8M0FNU, &bits)) << OpcodeText(m.op);
  }
}

TEST_F(MonoidTest, WhetherThereIsAnIdentityIsSaidAsTheLiteralSaysIt) {
  for (int t = 0; t < kNumElementTypes; ++t) {
    const ElementType type = static_cast<ElementType>(t);
    for (const Monoid& m : kMonoids) {
      EXPECT_EQ(HasIdentity(m.partial, type),
                IdentityLiteral(module_.context(), m.op, type) != nullptr)
          << OpcodeText(m.op) << " of " << ElementTypeName(type);
    }
  }
}

TEST_F(MonoidTest, FloatMaximumStartsAtTheLeastValueOfEveryFormat) {
  for (int t = 1; t < kNumElementTypes; ++t) {
    const ElementType type = static_cast<ElementType>(t);
    if (!IsFloat(type) || type == ElementType::kF8E8M0FNU) continue;
    uint64_t low, high;
    ASSERT_TRUE(IdentityBits(Opcode::kMaximum, type, &low));
    ASSERT_TRUE(IdentityBits(Opcode::kMinimum, type, &high));
    const double least = FloatFromBits(type, low), greatest = FloatFromBits(type, high);
    EXPECT_FALSE(std::isnan(least)) << ElementTypeName(type);
    EXPECT_FALSE(std::isnan(greatest)) << ElementTypeName(type);
    if (ElementTypeBits(type) > 8) continue;
    for (uint64_t p = 0; p < uint64_t{1} << ElementTypeBits(type); ++p) {
      const double v = FloatFromBits(type, p);
      if (std::isnan(v)) continue;
      EXPECT_LE(least, v) << ElementTypeName(type) << " " << p;
      EXPECT_GE(greatest, v) << ElementTypeName(type) << " " << p;
    }
  }
}

TEST_F(MonoidTest, ComplexIdentitiesHaveBothParts) {
  const Literal* l =
      IdentityLiteral(module_.context(), Opcode::kAdd, ElementType::kC128, ZeroSign::kExact);
  ASSERT_NE(l, nullptr);
  double parts[2];
  std::memcpy(parts, l->data.data(), sizeof parts);
  EXPECT_TRUE(std::signbit(parts[0]) && std::signbit(parts[1]));
}

}  // namespace
}  // namespace shardcall
