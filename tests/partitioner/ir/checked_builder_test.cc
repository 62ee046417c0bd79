// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/checked_builder.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/build/program_builder.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"

namespace shardcall {
namespace {

class CheckedBuilderTest : public testing::Test {
 protected:
  CheckedBuilderTest()
      : module_(std::make_shared<Context>()),
        monoids_(&module_),
        comp_(module_.AddComputation("main")),
        b_(&module_, comp_, &monoids_) {
    module_.header.num_partitions = 8;
    module_.header.has_num_partitions = true;
    module_.set_entry(comp_);
  }
  const Shape* S(ElementType type, absl::Span<const int64_t> dims) {
    Context& c = module_.context();
    return c.WithDefaultLayout(c.MakeArray(type, dims));
  }
  InstrId Param(ElementType type, absl::Span<const int64_t> dims) {
    return *b_.Parameter(static_cast<int64_t>(module_.comp(comp_).parameters.size()),
                         S(type, dims));
  }
  // The error; the computation must be as it was.
  std::string Error(const absl::StatusOr<InstrId>& id) {
    EXPECT_EQ(module_.comp(comp_).instructions.size(), before_);
    return id.ok() ? "ok" : std::string(id.status().message());
  }
  void Remember() { before_ = module_.comp(comp_).instructions.size(); }

  Module module_;
  MonoidTable monoids_;
  CompId comp_;
  CheckedBuilder b_;
  size_t before_ = 0;
};

TEST_F(CheckedBuilderTest, WhatItBuildsVerifies) {
  const InstrId x = Param(ElementType::kF32, {4, 6});
  const InstrId zero = *b_.ConstantInt(ElementType::kF32, 0);
  const InstrId sum = *b_.Reduce(x, zero, {1}, Opcode::kAdd);
  const InstrId wide = *b_.Broadcast(sum, {4, 6}, {0});
  const InstrId less = *b_.Compare(Direction::kLt, x, wide);
  ASSERT_TRUE(b_.SetRoot(*b_.Add(Opcode::kSelect, {less, x, wide})).ok());
  EXPECT_TRUE(VerifyModule(module_, "").ok());
}

TEST_F(CheckedBuilderTest, SetsShardingsOfAnyForm) {
  const InstrId x = Param(ElementType::kF32, {16, 6});
  const auto printed = [&] { return PrintModule(module_, {.metadata = false}); };
  ASSERT_TRUE(b_.SetRoot(x).ok());
  for (const char* sharding :
       {"{devices=[8,1]<=[8]}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}", "{replicated}", "{maximal device=3}",
        "{manual}"}) {
    EXPECT_TRUE(b_.SetSharding(x, sharding).ok()) << b_.SetSharding(x, sharding);
    EXPECT_NE(printed().find(std::string("sharding=") + sharding), std::string::npos) << printed();
    EXPECT_TRUE(VerifyModule(module_, "").ok());
  }
  EXPECT_TRUE(b_.SetSharding(x, "").ok());
  EXPECT_EQ(printed().find("sharding"), std::string::npos);
}

TEST_F(CheckedBuilderTest, AShardingThatDoesNotFitIsRefused) {
  const InstrId x = Param(ElementType::kF32, {16, 6});
  ASSERT_TRUE(b_.SetRoot(x).ok());
  ASSERT_TRUE(b_.SetSharding(x, "{devices=[8,1]<=[8]}").ok());
  const std::string before = PrintModule(module_, {.metadata = false});
  const auto code = [&](InstrId id, absl::string_view sharding) {
    return std::string(DiagnosticCode(b_.SetSharding(id, sharding)));
  };
  EXPECT_EQ(code(x, "{devices=[16,1]<=[16]}"), "E025");  // more devices
  EXPECT_EQ(code(x, "{devices=[2,1]1,8}"), "E025");
  EXPECT_EQ(code(x, "{devices=[8]<=[8]}"), "E025");            // another rank
  EXPECT_EQ(code(x, "{{replicated}, {replicated}}"), "E025");  // a tuple
  EXPECT_EQ(code(x, "{maximal device=8}"), "E025");
  EXPECT_EQ(code(x, "{devices=[8,1]<=[8]"), "E161");
  EXPECT_EQ(code(x, "devices"), "E161");
  EXPECT_EQ(code(x, "{mesh['x'=8], [{'y'}, {}]}"), "E162");
  EXPECT_EQ(code(InstrId(), "{replicated}"), "E021");
  EXPECT_EQ(code(InstrId(77), "{replicated}"), "E021");
  EXPECT_EQ(PrintModule(module_, {.metadata = false}), before);
  b_.set_local();
  EXPECT_EQ(code(x, "{replicated}"), "E120");
}

TEST_F(CheckedBuilderTest, OperandsMustBelongToTheComputation) {
  const InstrId x = Param(ElementType::kF32, {4});
  const CompId other = module_.AddComputation("other");
  CheckedBuilder o(&module_, other, &monoids_);
  Remember();
  const char* kWhose =
      "E021 operand 0 is not a value of this computation: expected an instruction of the "
      "computation that is built, found another one's. Fix: pass it in as an operand of the call";
  EXPECT_EQ(Error(o.Add(Opcode::kNegate, {x})), kWhose);
  EXPECT_EQ(Error(o.Reshape(x, {2, 2})), kWhose);
  EXPECT_EQ(Error(o.Compare(Direction::kEq, x, x)), kWhose);
  EXPECT_EQ(Error(b_.Convert(InstrId(), ElementType::kF64)),
            "E021 operand 0 is not a value of this computation: expected an instruction of the "
            "computation that is built, found none. Fix: pass it in as an operand of the call");
  EXPECT_FALSE(o.SetRoot(x).ok());
  EXPECT_FALSE(b_.Add(Opcode::kNegate, {InstrId(1000)}).ok());
}

TEST_F(CheckedBuilderTest, MisuseIsAnErrorAndLeavesTheComputationAlone) {
  const InstrId x = Param(ElementType::kF32, {4, 6}), s = Param(ElementType::kS32, {});
  const InstrId t = *b_.Add(Opcode::kTuple, {x, s});
  Remember();
  EXPECT_EQ(Error(b_.Add(Opcode::kAdd, {x, s})),
            "E021 add: operands 0 and 1 have different dimensions: expected f32[4,6], found s32[]. "
            "Fix: insert a broadcast");
  EXPECT_EQ(Error(b_.Add(Opcode::kNegate, {x}, nullptr, S(ElementType::kF32, {4}))),
            "E023 negate: the shape does not fit: expected f32[4,6], found f32[4]. Fix: give the "
            "expected shape");
  EXPECT_EQ(Error(b_.Reshape(x, {5, 5})),
            "E021 reshape: operand and result differ in number of elements: expected 24 as in "
            "f32[4,6], found 25 as in f32[5,5]");
  EXPECT_EQ(Error(b_.Broadcast(x, {-1, 6}, {0, 1})),
            "E021 there is no array of this type and these dimensions: expected an array type, "
            "and at most 255 dimensions of 0 or more, of fewer than 2^63 bytes in all, found "
            "f32[-1,6]. Fix: correct the dimensions");
  EXPECT_NE(Error(b_.Transpose(x, {0, 0})), "ok");
  EXPECT_NE(Error(b_.Slice(x, {0}, {1})), "ok");
  EXPECT_NE(Error(b_.Slice(x, {0, 0}, {5, 1})), "ok");
  EXPECT_NE(Error(b_.Pad(x, s, {0, 0}, {0, 0})), "ok");
  EXPECT_NE(Error(b_.Concatenate({}, 0)), "ok");
  EXPECT_NE(Error(b_.Concatenate({x, x}, 2)), "ok");
  EXPECT_NE(Error(b_.DynamicSlice(x, {s}, {1, 1})), "ok");
  EXPECT_NE(Error(b_.DynamicUpdateSlice(x, s, {s, s})), "ok");
  EXPECT_NE(Error(b_.Reverse(x, {2})), "ok");
  EXPECT_NE(Error(b_.Iota(ElementType::kF32, {4}, 1)), "ok");
  EXPECT_NE(Error(b_.Iota(ElementType::kToken, {4}, 0)), "ok");
  EXPECT_NE(Error(b_.Convert(t, ElementType::kF64)), "ok");
  EXPECT_NE(Error(b_.Convert(x, ElementType::kToken)), "ok");
  EXPECT_NE(Error(b_.BitcastConvert(s, ElementType::kS64)), "ok");
  EXPECT_NE(Error(b_.BitcastConvert(t, ElementType::kS64)), "ok");
  EXPECT_NE(Error(b_.BroadcastScalar(x, b_.shape(s))), "ok");
  EXPECT_NE(Error(b_.BroadcastScalar(s, b_.shape(t))), "ok");
  EXPECT_NE(Error(b_.Compare(Direction::kLt, x, s)), "ok");
  EXPECT_NE(Error(b_.GetTupleElement(t, 2)), "ok");
  EXPECT_NE(Error(b_.GetTupleElement(t, -1)), "ok");
  EXPECT_NE(Error(b_.GetTupleElement(x, 0)), "ok");
  EXPECT_NE(Error(b_.Reduce(x, s, {0}, Opcode::kTanh)), "ok");
  EXPECT_NE(Error(b_.Reduce(t, s, {0}, Opcode::kAdd)), "ok");
  EXPECT_NE(Error(b_.Parameter(0, b_.shape(x))), "ok");
  EXPECT_NE(Error(b_.Parameter(-1, b_.shape(x))), "ok");
  EXPECT_NE(Error(b_.Parameter(int64_t{1} << 40, b_.shape(x))), "ok");
  EXPECT_NE(Error(b_.Parameter(2, nullptr)), "ok");
  EXPECT_NE(Error(b_.Constant(nullptr)), "ok");
  EXPECT_NE(Error(b_.ConstantInt(ElementType::kToken, 1)), "ok");
  EXPECT_NE(Error(b_.ConstantDouble(ElementType::kTuple, 1)), "ok");
  EXPECT_NE(Error(b_.ConstantBits(ElementType::kC128, 1)), "ok");
  EXPECT_NE(Error(b_.Identity(Opcode::kMaximum, ElementType::kC64)), "ok");
  EXPECT_NE(Error(b_.Identity(Opcode::kTanh, ElementType::kF32)), "ok");
  EXPECT_NE(Error(b_.Call(CompId(7), {x})), "ok");
  EXPECT_NE(Error(b_.While(comp_, comp_, x)), "ok");
  DotAttrs dot;
  const int64_t five[] = {5};
  dot.lhs_contracting = dot.rhs_contracting = five;
  EXPECT_NE(Error(b_.Dot(x, x, dot)), "ok");
  EXPECT_NE(Error(b_.Dot(x, x, DotAttrs{}, ElementType::kTuple)), "ok");
}

TEST(ProgramBuilderTest, WhatIsAskedOfASpentBuilderIsRefused) {
  ProgramBuilder p("once");
  const InstrId x = *p.Parameter(ElementType::kF32, {8});
  absl::StatusOr<Module> module = std::move(p).Build(x);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(p.builder().shape(x), nullptr);
  EXPECT_FALSE(p.builder().Add(Opcode::kAdd, {x, x}).ok());
  EXPECT_FALSE(p.builder().ConstantInt(ElementType::kF32, 1).ok());
  EXPECT_FALSE(p.builder().Parameter(0, module->instr(x).shape).ok());
  EXPECT_FALSE(p.Parameter(ElementType::kF32, {8}).ok());
  EXPECT_FALSE(std::move(p).Build(x).ok());
  // The module of before has what it had, and what is moved from has nothing.
  EXPECT_TRUE(VerifyModule(*module, "").ok());
  const Module taken = *std::move(module);
  EXPECT_EQ(DiagnosticCode(VerifyModule(*module, "")), "E028");
}

TEST_F(CheckedBuilderTest, DotTakesDimensionsByTheirNumbers) {
  const InstrId x = Param(ElementType::kF32, {3, 4, 6}), y = Param(ElementType::kF32, {3, 5, 6});
  const auto dot = b_.Dot(
      x, y,
      DotDimensions{
          .lhs_contracting = {2}, .rhs_contracting = {2}, .lhs_batch = {0}, .rhs_batch = {0}});
  ASSERT_TRUE(dot.ok()) << dot.status();
  EXPECT_EQ(b_.shape(*dot)->ToString(), "f32[3,4,5]{2,1,0}");
  DotAttrs attrs;
  const int64_t two[] = {2}, zero[] = {0};
  attrs.lhs_contracting = attrs.rhs_contracting = two;
  attrs.lhs_batch = attrs.rhs_batch = zero;
  EXPECT_EQ(module_.instr(*b_.Dot(x, y, attrs)).attrs, module_.instr(*dot).attrs);
  EXPECT_EQ(
      b_.type(*b_.Dot(x, y, DotDimensions{.lhs_contracting = {0, 2}, .rhs_contracting = {0, 2}},
                      ElementType::kF64)),
      ElementType::kF64);
  Remember();
  EXPECT_NE(Error(b_.Dot(x, y, DotDimensions{.lhs_contracting = {5}, .rhs_contracting = {5}})),
            "ok");
}

TEST_F(CheckedBuilderTest, WhatIsNoOpNoNumberAndNoComputationIsAnError) {
  const InstrId x = Param(ElementType::kF32, {4});
  ParameterAttrs number;
  number.number = int64_t{1} << 40;
  Remember();
  EXPECT_NE(Error(b_.Add(static_cast<Opcode>(255), {x})), "ok");
  EXPECT_NE(Error(b_.Add(Opcode::kParameter, {}, InternAttributes(module_.context(), number),
                         b_.shape(x))),
            "ok");
  number.number = 0;
  EXPECT_NE(Error(b_.Add(Opcode::kParameter, {}, InternAttributes(module_.context(), number),
                         b_.shape(x))),
            "ok");
  EXPECT_NE(Error(b_.Add(Opcode::kDot, {x, x}, InternAttributes(module_.context(), number))), "ok");
  for (const CompId none : {CompId(), CompId(99)}) {
    CheckedBuilder nowhere(&module_, none, &monoids_);
    EXPECT_NE(Error(nowhere.ConstantInt(ElementType::kS32, 1)), "ok");
    EXPECT_NE(Error(nowhere.Parameter(0, b_.shape(x))), "ok");
    EXPECT_NE(Error(nowhere.Iota(ElementType::kS32, {4}, 0)), "ok");
    EXPECT_FALSE(nowhere.SetRoot(x).ok());
  }
  EXPECT_EQ(b_.shape(InstrId()), nullptr);
  EXPECT_EQ(b_.shape(InstrId(1000)), nullptr);
  EXPECT_EQ(b_.type(InstrId(1000)), ElementType::kInvalid);
}

TEST_F(CheckedBuilderTest, ALayoutThatIsNotThereIsAnError) {
  const InstrId x = Param(ElementType::kF32, {4});
  Remember();
  CustomCallAttrs attrs;
  attrs.target = "t";
  attrs.has_layout_constraints = true;
  const Shape* const none[] = {nullptr};
  attrs.operand_layouts = none;
  EXPECT_NE(Error(b_.CustomCall(attrs, {x}, b_.shape(x))), "ok");
}

TEST_F(CheckedBuilderTest, AnApiVersionThatIsNoneIsAnError) {
  const InstrId x = Param(ElementType::kF32, {4});
  Remember();
  CustomCallAttrs attrs;
  attrs.target = "t";
  for (const int64_t version : {-1, 5, 9}) {
    attrs.api_version = version;
    EXPECT_NE(Error(b_.CustomCall(attrs, {x}, b_.shape(x))), "ok") << version;
  }
}

TEST(ProgramBuilderTest, AnArrayThatCannotBeIsAnError) {
  ProgramBuilder p("m");
  const auto code = [](const absl::StatusOr<const Shape*>& s) {
    return std::string(DiagnosticCode(s.status()));
  };
  EXPECT_EQ((*p.Array(ElementType::kF32, {2, 3}))->ToString(), "f32[2,3]{1,0}");
  EXPECT_EQ((*p.Array(ElementType::kF32, {2, 3}, {0, 1}))->ToString(), "f32[2,3]{0,1}");
  EXPECT_EQ((*p.Array(ElementType::kF32, {}, {}))->ToString(), "f32[]");
  EXPECT_EQ(code(p.Array(ElementType::kF32, {2, 3}, {0})), "E022");
  EXPECT_EQ(code(p.Array(ElementType::kF32, {2, 3}, {})), "E022");
  EXPECT_EQ(code(p.Array(ElementType::kF32, {2, 3}, {1, 1})), "E022");
  EXPECT_EQ(code(p.Array(ElementType::kF32, {2, 3}, {2, 0})), "E022");
  EXPECT_EQ(code(p.Array(ElementType::kF32, {2, 3}, {-1, 0})), "E022");
  EXPECT_EQ(code(p.Array(ElementType::kF32, {-2})), "E021");
  EXPECT_EQ(code(p.Array(ElementType::kF32, {int64_t{1} << 40, int64_t{1} << 40})), "E021");
  EXPECT_EQ(code(p.Array(ElementType::kToken, {})), "E021");
  EXPECT_EQ(DiagnosticCode(p.Parameter(ElementType::kF32, {-2}).status()), "E021");
  EXPECT_EQ(DiagnosticCode(p.Parameter(nullptr).status()), "E021");
  EXPECT_FALSE(std::move(p).Build(InstrId(7)).ok());
}

TEST(ProgramBuilderTest, BitsBeyondANarrowTypeAreLeftOut) {
  for (const ElementType type : {ElementType::kU4, ElementType::kS4, ElementType::kPred}) {
    ProgramBuilder p("m");
    const auto module = std::move(p).Build(*p.builder().ConstantBits(type, 0xc8));
    ASSERT_TRUE(module.ok()) << module.status();
    const std::string text = PrintModule(*module);
    EXPECT_TRUE(
        ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t")
            .ok())
        << text;
  }
}

TEST(ProgramBuilderTest, ANameThatTextCannotHaveIsMended) {
  for (const char* name : {"", "a b", "\\", "\"", "9", "x\ny", "\xff"}) {
    ProgramBuilder p(name);
    const auto module = std::move(p).Build(*p.builder().ConstantInt(ElementType::kS32, 2));
    ASSERT_TRUE(module.ok()) << module.status();
    const std::string text = PrintModule(*module);
    EXPECT_TRUE(
        ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t")
            .ok())
        << text;
  }
}

TEST(ProgramBuilderTest, ComputationsOfOneNameGetNamesOfTheirOwn) {
  ProgramBuilder p("m");
  for (const char* name : {"main", "body", "body"}) {
    CheckedBuilder b(&p.module(), p.module().AddComputation(name), &p.monoids());
    ASSERT_TRUE(b.SetRoot(*b.ConstantInt(ElementType::kS32, 1)).ok());
  }
  const auto module = std::move(p).Build(*p.builder().ConstantInt(ElementType::kS32, 2));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->comp(module->entry()).name, "main");
  std::set<absl::string_view> names;
  for (int c = 0; c < module->num_computations(); ++c) {
    EXPECT_TRUE(names.insert(module->comp(CompId(c)).name).second);
  }
}

TEST_F(CheckedBuilderTest, CustomCallsNeedAShape) {
  const InstrId x = Param(ElementType::kF32, {4});
  Remember();
  CustomCallAttrs attrs;
  attrs.target = "t";
  EXPECT_EQ(Error(b_.CustomCall(attrs, {x}, nullptr)),
            "E021 custom-call: the result's shape does not follow from the operands: expected a "
            "written shape, found none. Fix: write the shape before the opcode");
  EXPECT_TRUE(b_.CustomCall(attrs, {x}, b_.shape(x)).ok());
}

TEST_F(CheckedBuilderTest, GroupsThatCannotBeWrittenDoNotVerify) {
  const InstrId x = Param(ElementType::kF32, {4});
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kIota;
  groups.num_groups = groups.group_size = 1;  // [1,1]<=[], which has no dims
  ASSERT_TRUE(b_.SetRoot(*b_.AllReduce(x, groups, 1, Opcode::kAdd)).ok());
  module_.header.num_partitions = 1;
  const absl::Status verified = VerifyModule(module_, "m");
  EXPECT_EQ(std::string(verified.message()).substr(0, 4), "E025") << verified;
}

TEST_F(CheckedBuilderTest, IotaGroupsAreWrittenAsTheyAreReadAgain) {
  const InstrId x = *b_.Iota(ElementType::kF32, {4}, 0);
  struct Case {
    std::vector<int64_t> dims, perm;
    const char* text;
  };
  for (const Case& c :
       {Case{{2, 2}, {0, 1}, "[4,1]<=[4]"}, Case{{1, 4}, {1, 0}, "[4,1]<=[4]"},
        Case{{2, 1, 2}, {2, 1, 0}, "[4,1]<=[2,2]T(1,0)"}, Case{{4}, {}, "[4,1]<=[4]"}}) {
    ReplicaGroups groups;
    groups.form = ReplicaGroups::Form::kIota;
    groups.num_groups = 4;
    groups.group_size = 1;
    groups.reshape = absl::MakeConstSpan(c.dims);
    groups.perm = absl::MakeConstSpan(c.perm);
    const absl::StatusOr<InstrId> sum = b_.AllReduce(x, groups, 1, Opcode::kAdd);
    ASSERT_TRUE(sum.ok()) << sum.status();
    const ReplicaGroups& kept = module_.instr(*sum).as<CollectiveAttrs>().groups;
    std::string text = absl::StrCat("[4,1]<=[", absl::StrJoin(kept.reshape, ","), "]");
    if (!kept.perm.empty()) absl::StrAppend(&text, "T(", absl::StrJoin(kept.perm, ","), ")");
    EXPECT_EQ(text, c.text);
  }
}

TEST_F(CheckedBuilderTest, CollectivesCheckTheirGroupsAndDimensions) {
  const InstrId x = Param(ElementType::kF32, {4, 6});
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kIota;
  groups.num_groups = 2;
  groups.group_size = 4;
  const int64_t reshape[] = {8};
  groups.reshape = reshape;
  Remember();
  EXPECT_NE(Error(b_.AllGather(x, 2, groups, 1)), "ok");
  EXPECT_NE(Error(b_.AllReduce(x, groups, 1, Opcode::kTanh)), "ok");
  EXPECT_NE(Error(b_.AllReduce(x, groups, -1, Opcode::kAdd)), "ok");
  EXPECT_NE(Error(b_.ReduceScatter(x, 1, groups, 1, Opcode::kAdd)), "ok");
  EXPECT_NE(Error(b_.AllToAll(x, -1, groups, 1)), "ok");
  EXPECT_NE(Error(b_.AllToAll(x, 1, groups, 1)), "ok");
  EXPECT_NE(Error(b_.CollectivePermute(x, {0, 1}, {1}, 1)), "ok");
  EXPECT_EQ(b_.shape(*b_.AllGather(x, 1, groups, 1))->ToString(false), "f32[4,24]");
}

}  // namespace
}  // namespace shardcall
