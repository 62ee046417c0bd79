// SPDX-License-Identifier: Apache-2.0
// What backends make of a per-device module: its text, ops by ops, and that it computes the same.
#include "shardcall/partitioner/pass/backend/as_xla_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class OfFunction : public Pass {
 public:
  explicit OfFunction(PassResult (*pass)(const Module&)) : pass_(pass) {}
  absl::string_view name() const override { return "of-function"; }
  absl::StatusOr<PassResult> Run(const Module& m) override { return pass_(m); }

 private:
  PassResult (*pass_)(const Module&);
};

// The text after the pass of these instructions; empty if it is the same.
std::string After(PassResult (*pass)(const Module&), const std::string& body) {
  OfFunction of(pass);
  return TextAfter(of, R"(add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ENTRY e {
)" + body + "}\n");
}

TEST(AsXlaRuns, NarrowFloatsAreWidenedButForViewsAndCalls) {
  OfFunction widen(WidenNarrowFloats);
  const std::string text = TextAfter(widen, R"(narrow_add {
  l = bf16[] parameter(0)
  r = bf16[] parameter(1)
  ROOT s = bf16[] add(l, r)
}
ENTRY e {
  x = bf16[8] parameter(0)
  zero = bf16[] constant(0)
  y = bf16[8] add(x, x)
  z = bf16[8] custom-call(y), custom_call_target="f"
  ROOT r = bf16[] reduce(z, zero), dimensions={0}, to_apply=narrow_add
}
)");
  EXPECT_THAT(text, HasSubstr("f32[8]{0} add("));
  EXPECT_THAT(text, HasSubstr("bf16[8]{0} custom-call("));
  EXPECT_THAT(text, HasSubstr("f32[] reduce("));
  EXPECT_THAT(After(WidenNarrowFloats, R"(  x = bf16[8] parameter(0)
  ROOT y = bf16[2,4] reshape(x)
)"),
              IsEmpty());
}

TEST(AsXlaRuns, WhatALoopConvertsAndDoesNotChangeIsConvertedBeforeIt) {
  OfFunction hoist(HoistConverts);
  const std::string text = R"(body {
  p = (s32[], bf16[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = bf16[8] get-tuple-element(p), index=1
  s = f32[8] get-tuple-element(p), index=2
  wide = f32[8] convert(x)
  sum = f32[8] add(s, wide)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], bf16[8], f32[8]) tuple(next, x, sum)
}
condition {
  p = (s32[], bf16[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = bf16[8] parameter(0)
  s = f32[8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], bf16[8], f32[8]) tuple(zero, x, s)
  w = (s32[], bf16[8], f32[8]) while(t), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=2
}
)";
  EXPECT_THAT(TextAfter(hoist, text), HasSubstr("(s32[], f32[8]{0}, f32[8]{0}) while("));
  // Not if the loop is the result, whose shape would change.
  std::string returned = text;
  returned.replace(returned.find("  w = (s32"), 3, "  ROOT w");
  returned.erase(returned.find("  ROOT r = f32[8] get-tuple-element(w)"));
  EXPECT_THAT(TextAfter(hoist, returned + "}\n"), IsEmpty());
  // Nor what it reads in another way, too.
  std::string read = text;
  read.replace(read.find("add(s, wide)"), 12, "add(wide, wide)");
  read.replace(read.find("wide = f32[8] convert(x)"), 24,
               "y = bf16[8] negate(x)\n  wide = f32[8] convert(y)");
  EXPECT_THAT(TextAfter(hoist, read), IsEmpty());
}

TEST(AsXlaRuns, GathersAndScattersOfColumnsAreOfRowsBetweenTransposes) {
  const std::string text = After(PutGatheredDimensionFirst, R"(  x = f32[8,4] parameter(0)
  g = f32[8,16] all-gather(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}, use_global_device_ids=true
  ROOT r = f32[8,4] reduce-scatter(g), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={1}, use_global_device_ids=true, to_apply=add
)");
  EXPECT_THAT(text, HasSubstr("f32[16,8]{1,0} all-gather("));
  EXPECT_THAT(text, HasSubstr("f32[4,8]{1,0} reduce-scatter("));
  EXPECT_THAT(text, HasSubstr("dimensions={0}, use"));
  EXPECT_THAT(After(PutGatheredDimensionFirst, R"(  x = f32[8,4] parameter(0)
  ROOT g = f32[32,4] all-gather(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
)"),
              IsEmpty());
}

TEST(AsXlaRuns, AnAllToAllIsOfPartsThatAreJoinedAgain) {
  const std::string text = After(SplitExchanges, R"(  x = f32[8,4] parameter(0)
  ROOT y = f32[8,4] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
)");
  EXPECT_THAT(text, HasSubstr("(f32[2,4]{1,0}, f32[2,4]{1,0}, f32[2,4]{1,0}, f32[2,4]{1,0}) "
                              "all-to-all("));
  EXPECT_THAT(text, HasSubstr("f32[8,4]{1,0} concatenate("));
}

TEST(AsXlaRuns, OperandsOfProductsAreMatrices) {
  // Batch, then what is free or contracted in one dimension each.
  const std::string text = After(OrderProductOperands, R"(  x = f32[3,8,5,4] parameter(0)
  y = f32[5,3,4,6] parameter(1)
  ROOT d = f32[3,8,6] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2,3}, rhs_contracting_dims={0,2}
)");
  EXPECT_THAT(text, HasSubstr("f32[3,8,20]{2,1,0} reshape("));
  EXPECT_THAT(text, HasSubstr("f32[3,5,4,6]{3,2,1,0} transpose("));
  EXPECT_THAT(text, HasSubstr("f32[3,20,6]{2,1,0} reshape("));
  // A matrix is read in either order.
  EXPECT_THAT(After(OrderProductOperands, R"(  x = f32[8,4] parameter(0)
  y = f32[6,4] parameter(1)
  ROOT d = f32[8,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
)"),
              IsEmpty());
}

TEST(AsXlaRuns, ATransposeOfAProductSwapsItsOperandsIfLessIsMovedThen) {
  const std::string product = R"(  x = f32[2,64,3] parameter(0)
  y = f32[2,64,5] parameter(1)
  d = f32[3,5] dot(x, y), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
  ROOT t = f32[5,3] transpose(d), dimensions={1,0}
)";
  EXPECT_THAT(After(SwapTransposedProducts, product), IsEmpty());  // x is the smaller one
  std::string other = product;
  other.replace(other.find("[2,64,3]"), 8, "[2,64,9]");
  other.replace(other.find("f32[3,5]"), 8, "f32[9,5]");
  other.replace(other.find("f32[5,3]"), 8, "f32[5,9]");
  EXPECT_THAT(After(SwapTransposedProducts, other), HasSubstr("f32[5,9]{1,0} dot(%y, %x)"));
}

TEST(AsXlaRuns, CallsHaveCopiesInTheirLayouts) {
  const std::string text = After(CopyToCallLayouts, R"(  x = f32[8,4]{1,0} parameter(0)
  ROOT y = f32[8,4]{0,1} custom-call(x), custom_call_target="f", operand_layout_constraints={f32[8,4]{0,1}}
)");
  EXPECT_THAT(text, HasSubstr("f32[8,4]{0,1} copy(%x)"));
  EXPECT_THAT(text, HasSubstr("ROOT"));
  EXPECT_THAT(text, HasSubstr("f32[8,4]{1,0} copy("));
}

constexpr char kTwoSums[] = R"(  x = f32[8] parameter(0)
  p = f32[8] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  a = f32[8] negate(p)
  y = f32[8] multiply(x, x)
  q = f32[8] all-reduce(y), channel_id=2, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  ROOT b = f32[8] subtract(a, q)
)";

TEST(AsXlaRuns, ReductionsThatDoNotNeedEachOtherAreOne) {
  EXPECT_THAT(After(JoinReductions, kTwoSums), IsEmpty());  // p is read before q
  EXPECT_THAT(After(JoinDistantReductions, kTwoSums),
              HasSubstr("(f32[8]{0}, f32[8]{0}) all-reduce("));
  std::string chain = kTwoSums;
  chain.replace(chain.find("multiply(x, x)"), 14, "multiply(a, a)");
  EXPECT_THAT(After(JoinDistantReductions, chain), IsEmpty());
  std::string types = kTwoSums;
  types.replace(types.find("y = f32[8] multiply(x, x)"), 25, "y = s32[8] convert(x)");
  types.replace(types.find("q = f32[8] all-reduce"), 21, "q = s32[8] all-reduce");
  types.replace(types.find("subtract(a, q)"), 14, "negate(a)");
  types.replace(types.rfind("to_apply=add"), 12, "to_apply=integers");
  OfFunction join(JoinDistantReductions);
  EXPECT_THAT(TextAfter(join, R"(add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
integers {
  l = s32[] parameter(0)
  r = s32[] parameter(1)
  ROOT s = s32[] add(l, r)
}
ENTRY e {
)" + types + "}\n"),
              IsEmpty());
}

TEST(AsXlaRuns, GathersOfAnyTypesAreOneAndReduceScattersOfOneType) {
  const std::string gathers = R"(  x = f32[8] parameter(0)
  y = s32[2,4] parameter(1)
  p = f32[32] all-gather(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  q = s32[8,4] all-gather(y), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  ROOT t = (f32[32], s32[8,4]) tuple(p, q)
)";
  EXPECT_THAT(After(JoinGathers, gathers),
              HasSubstr("(f32[32]{0}, s32[8,4]{1,0}) all-gather(%x, %y)"));
  std::string columns = gathers;
  columns.replace(columns.find("q = s32[8,4]"), 12, "q = s32[2,16]");
  columns.replace(columns.rfind("dimensions={0}"), 14, "dimensions={1}");
  columns.replace(columns.rfind("s32[8,4]) tuple"), 15, "s32[2,16]) tuple");
  EXPECT_THAT(After(JoinGathers, columns), IsEmpty());
  const std::string scatters = R"(  x = f32[8] parameter(0)
  p = f32[2] reduce-scatter(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, to_apply=add
  y = f32[8] negate(x)
  q = f32[2] reduce-scatter(y), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, to_apply=add
  ROOT t = (f32[2], f32[2]) tuple(p, q)
)";
  EXPECT_THAT(After(JoinReduceScatters, scatters),
              HasSubstr("(f32[2]{0}, f32[2]{0}) reduce-scatter("));
  const std::string permutes = R"(  x = f32[8] parameter(0)
  y = s32[4] parameter(1)
  p = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
  q = s32[4] collective-permute(y), channel_id=2, source_target_pairs={{0,1},{1,0}}
  ROOT t = (f32[8], s32[4]) tuple(p, q)
)";
  EXPECT_THAT(After(JoinPermutes, permutes),
              HasSubstr("(f32[8]{0}, s32[4]{0}) collective-permute(%x, %y)"));
  std::string other = permutes;
  other.replace(other.rfind("{{0,1},{1,0}}"), 13, "{{0,1},{1,2}}");
  EXPECT_THAT(After(JoinPermutes, other), IsEmpty());
}

TEST(AsXlaRuns, EqualValuesAreOne) {
  const std::string text = After(ShareEqualValues, R"(  x = f32[8] parameter(0)
  zero = f32[] constant(0)
  a = f32[8] broadcast(zero), dimensions={}
  y = f32[8] maximum(x, a)
  also_zero = f32[] constant(0)
  b = f32[8] broadcast(also_zero), dimensions={}
  ROOT t = (f32[8], f32[8]) tuple(y, b)
)");
  EXPECT_THAT(text, HasSubstr("maximum(%x, %a)"));
  EXPECT_THAT(text, HasSubstr("tuple(%y, %a)"));
}

TEST(AsXlaRuns, CuDnnPadsBothSidesAlikeAndHasFeaturesInTheMinorDimension) {
  const std::string uneven = After(CallCuDnnConvolutions, R"(  x = f32[2,9,8,3] parameter(0)
  w = f32[3,3,3,4] parameter(1)
  ROOT y = f32[2,5,4,4] convolution(x, w), window={size=3x3 stride=2x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f
)");
  EXPECT_THAT(uneven, HasSubstr("f32[2,11,9,3]{3,2,1,0} pad(%x"));
  EXPECT_THAT(uneven, HasSubstr("f32[4,3,3,3]{3,2,1,0} transpose(%w), dimensions={3,0,1,2}"));
  EXPECT_THAT(uneven, HasSubstr("window={size=3x3 stride=2x2}, dim_labels=b01f_o01i->b01f"));
  const std::string even = After(CallCuDnnConvolutions, R"(  x = f32[2,9,8,3] parameter(0)
  w = f32[4,3,3,3] parameter(1)
  ROOT y = f32[2,9,8,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f
)");
  EXPECT_THAT(even, Not(HasSubstr(" pad(")));
  EXPECT_THAT(even, Not(HasSubstr("transpose(")));
}

TEST(AsXlaRuns, ASelectAndScatterIsAReduceWindowOfPlacesAndAScatter) {
  OfFunction expand(ExpandSelectAndScatter);
  const std::string text = TextAfter(expand, R"(ge {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT g = pred[] compare(l, r), direction=GE
}
add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ENTRY e {
  x = f32[6,5] parameter(0)
  s = f32[3,3] parameter(1)
  init = f32[] constant(1)
  ROOT y = f32[6,5] select-and-scatter(x, s, init), window={size=3x3 stride=2x2 pad=0_1x1_1}, select=ge, scatter=add
}
)");
  EXPECT_THAT(text, HasSubstr("(f32[3,3]{1,0}, s32[3,3]{1,0}, s32[3,3]{1,0}) reduce-window("));
  EXPECT_THAT(text, HasSubstr("f32[6,5]{1,0} scatter("));
  EXPECT_THAT(text, Not(HasSubstr("select-and-scatter")));
}

TEST(AsXlaRuns, AScatterIntoZerosAddsToWhatItIsAddedTo) {
  const std::string scatter = R"(  x = f32[8] parameter(0)
  i = s32[2,1] parameter(1)
  u = f32[2] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[8] broadcast(zero), dimensions={}
  s = f32[8] scatter(zeros, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  ROOT y = f32[8] add(s, x)
)";
  EXPECT_THAT(After(ScatterIntoSums, scatter), HasSubstr("f32[8]{0} scatter(%x, %i, %u)"));
  std::string ones = scatter;
  ones.replace(ones.find("constant(0)"), 11, "constant(1)");
  EXPECT_THAT(After(ScatterIntoSums, ones), IsEmpty());
}

}  // namespace
}  // namespace shardcall
