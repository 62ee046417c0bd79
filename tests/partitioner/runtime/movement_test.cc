// SPDX-License-Identifier: Apache-2.0
// Broadcast, transpose, slices and their kin; gather and scatter; control flow.
#include <cstring>

#include "shardcall/partitioner/runtime/strided.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;

TEST(Movement, BroadcastPlacesDimensions) {
  EXPECT_THAT(Eval("a = s32[2] constant({1, 2})\nROOT r = s32[2,3] broadcast(a), dimensions={0}"),
              ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(Eval("a = s32[2] constant({1, 2})\nROOT r = s32[3,2] broadcast(a), dimensions={1}"),
              ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST(Movement, TransposeIgnoresLayouts) {
  EXPECT_THAT(Eval("a = s32[2,3]{0,1} constant({ {1, 2, 3}, {4, 5, 6} })\n"
                   "ROOT r = s32[3,2]{0,1} transpose(a), dimensions={1,0}"),
              ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Movement, TransposesOfEveryWidthMoveEachElement) {
  for (const ElementType type : {ElementType::kU8, ElementType::kU16, ElementType::kF32,
                                 ElementType::kF64, ElementType::kC128}) {
    const int64_t rows = 150, cols = 131, bytes = ElementTypeBytes(type);
    Tensor t(type, {rows, cols});
    for (int64_t i = 0; i < t.byte_size(); ++i)
      t.MutableData()[i] = static_cast<char>(i * 7 + i / 256);
    const Tensor turned = Transpose(t, {1, 0});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        ASSERT_EQ(std::memcmp(turned.data() + (j * rows + i) * bytes,
                              t.data() + (i * cols + j) * bytes, bytes),
                  0)
            << ElementTypeName(type) << " " << i << " " << j;
      }
    }
  }
}

TEST(Movement, LargeTransposesAreTiledAndExact) {
  std::vector<float> x(70 * 45);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<double> r =
      Eval("p = f32[70,45] parameter(0)\nROOT r = f32[45,70] transpose(p), dimensions={1,0}",
           {F32({70, 45}, x)});
  for (int i = 0; i < 45; ++i) {
    for (int j = 0; j < 70; ++j) ASSERT_EQ(r[i * 70 + j], j * 45 + i);
  }
}

TEST(Movement, ReverseSliceConcatenate) {
  EXPECT_THAT(
      Eval("a = s32[5] constant({1, 2, 3, 4, 5})\nROOT r = s32[5] reverse(a), dimensions={0}"),
      ElementsAre(5, 4, 3, 2, 1));
  EXPECT_THAT(
      Eval("a = s32[5] constant({1, 2, 3, 4, 5})\nROOT r = s32[2] slice(a), slice={[1:5:3]}"),
      ElementsAre(2, 5));
  EXPECT_THAT(
      Eval("a = s32[2,1] constant({ {1}, {2} })\nb = s32[2,2] constant({ {3, 4}, {5, 6} })\n"
           "ROOT r = s32[2,3] concatenate(a, b), dimensions={1}"),
      ElementsAre(1, 3, 4, 2, 5, 6));
}

TEST(Movement, PadInsertsAndCutsOff) {
  const char* kOperands = "a = s32[4] constant({1, 2, 3, 4})\nz = s32[] constant(9)\n";
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = s32[6] pad(a, z), padding=1_1")),
              ElementsAre(9, 1, 2, 3, 4, 9));
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = s32[7] pad(a, z), padding=0_0_1")),
              ElementsAre(1, 9, 2, 9, 3, 9, 4));
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = s32[4] pad(a, z), padding=-1_-2_1")),
              ElementsAre(9, 2, 9, 3));
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = s32[2] pad(a, z), padding=3_-5")),
              ElementsAre(9, 9));
}

TEST(Movement, DynamicSlicesAreClampedIntoTheArray) {
  const char* kOperand = "a = s32[5] constant({1, 2, 3, 4, 5})\n";
  EXPECT_THAT(Eval(absl::StrCat(kOperand,
                                "i = s32[] constant(9)\n"
                                "ROOT r = s32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}")),
              ElementsAre(4, 5));
  EXPECT_THAT(Eval(absl::StrCat(kOperand,
                                "i = s32[] constant(-3)\nu = s32[2] constant({7, 8})\n"
                                "ROOT r = s32[5] dynamic-update-slice(a, u, i)")),
              ElementsAre(7, 8, 3, 4, 5));
}

TEST(Movement, UpdatesInPlaceDoNotReachOtherReaders) {
  EXPECT_THAT(Eval("p = s32[3] parameter(0)\ni = s32[] constant(0)\nu = s32[1] constant({9})\n"
                   "d = s32[3] dynamic-update-slice(p, u, i)\nn = s32[3] negate(d)\n"
                   "ROOT r = s32[3] add(n, p)",
                   {S32({3}, {1, 2, 3})}),
              ElementsAre(-8, 0, 0));
}

TEST(Movement, BitcastConvertSplitsAndJoinsElements) {
  EXPECT_THAT(Eval("a = u32[1] constant({258})\nROOT r = u8[1,4] bitcast-convert(a)"),
              ElementsAre(2, 1, 0, 0));
  EXPECT_THAT(Eval("a = u8[1] constant({33})\nROOT r = u4[1,2] bitcast-convert(a)"),
              ElementsAre(1, 2));
}

TEST(Gather, StartsAreClampedSoThatTheWindowFits) {
  EXPECT_THAT(Eval("a = s32[4,2] constant({ {1, 2}, {3, 4}, {5, 6}, {7, 8} })\n"
                   "i = s32[3,1] constant({ {2}, {-1}, {9} })\n"
                   "ROOT r = s32[3,2] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, "
                   "start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}"),
              ElementsAre(5, 6, 1, 2, 7, 8));
}

TEST(Gather, BatchingDimensionsFollowTheIndices) {
  EXPECT_THAT(Eval("a = s32[2,3] constant({ {1, 2, 3}, {4, 5, 6} })\n"
                   "i = s32[2,1] constant({ {2}, {0} })\n"
                   "ROOT r = s32[2] gather(a, i), offset_dims={}, collapsed_slice_dims={1}, "
                   "start_index_map={1}, operand_batching_dims={0}, "
                   "start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}"),
              ElementsAre(3, 4));
}

constexpr char kAdd[] =
    "add {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b)\n}\n";

TEST(Scatter, DropsWindowsThatDoNotFitAndAddsRepeatedOnes) {
  EXPECT_THAT(Eval(absl::StrCat(kAdd,
                                "ENTRY e {\n"
                                " a = s32[4] constant({1, 1, 1, 1})\n"
                                " i = s32[4,1] constant({ {1}, {1}, {-1}, {3} })\n"
                                " u = s32[4,2] constant({ {1, 2}, {10, 20}, {5, 5}, {7, 7} })\n"
                                " ROOT r = s32[4] scatter(a, i, u), update_window_dims={1}, "
                                "inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
                                "index_vector_dim=1, to_apply=add\n}\n")),
              ElementsAre(1, 12, 23, 1));
}

TEST(Scatter, LastUpdateWinsWhenItReplaces) {
  EXPECT_THAT(Eval("second {\n a = s32[] parameter(0)\n ROOT b = s32[] parameter(1)\n}\n"
                   "ENTRY e {\n"
                   " a = s32[3] constant({1, 1, 1})\n i = s32[2,1] constant({ {2}, {2} })\n"
                   " u = s32[2] constant({5, 6})\n"
                   " ROOT r = s32[3] scatter(a, i, u), update_window_dims={}, "
                   "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                   "index_vector_dim=1, to_apply=second\n}\n"),
              ElementsAre(1, 1, 6));
}

constexpr char kLoop[] =
    "cond {\n p = (s32[], s32[2]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
    " n = s32[] constant(5)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
    "body {\n p = (s32[], s32[2]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
    " x = s32[2] get-tuple-element(p), index=1\n one = s32[] constant(1)\n"
    " j = s32[] add(i, one)\n y = s32[2] add(x, x)\n ROOT r = (s32[], s32[2]) tuple(j, y)\n}\n";

TEST(Control, WhileRunsUntilItsConditionFails) {
  const auto r =
      RunText(absl::StrCat(kLoop,
                           "ENTRY e {\n z = s32[] constant(0)\n x = s32[2] parameter(0)\n"
                           " t = (s32[], s32[2]) tuple(z, x)\n"
                           " ROOT r = (s32[], s32[2]) while(t), condition=cond, body=body\n}\n"),
              {S32({2}, {1, 3})});
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_EQ(r->size(), 2);
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(5));
  EXPECT_THAT(Numbers((*r)[1]), ElementsAre(32, 96));
}

TEST(Control, ConditionalTakesTheLastBranchOutOfRange) {
  const char* kText =
      "f {\n p = s32[] parameter(0)\n ROOT r = s32[] negate(p)\n}\n"
      "g {\n p = s32[] parameter(0)\n ROOT r = s32[] add(p, p)\n}\n"
      "ENTRY e {\n k = s32[] parameter(0)\n x = s32[] constant(3)\n"
      " ROOT r = s32[] conditional(k, x, x), branch_computations={f, g}\n}\n";
  EXPECT_THAT(Eval(kText, {S32({}, {0})}), ElementsAre(-3));
  EXPECT_THAT(Eval(kText, {S32({}, {1})}), ElementsAre(6));
  EXPECT_THAT(Eval(kText, {S32({}, {-7})}), ElementsAre(6));
}

TEST(Control, DeepChainsOfCallsAreAnErrorAndNotACrash) {
  std::string text = "g0 {\n p = s32[] parameter(0)\n ROOT r = s32[] negate(p)\n}\n";
  for (int i = 1; i < 2000; ++i) {
    absl::StrAppend(&text, "g", i,
                    " {\n p = s32[] parameter(0)\n ROOT r = s32[] call(p), to_apply=g", i - 1,
                    "\n}\n");
  }
  absl::StrAppend(
      &text, "ENTRY e {\n p = s32[] parameter(0)\n ROOT r = s32[] call(p), to_apply=g1999\n}\n");
  const auto r = RunText(text, {S32({}, {1})});
  EXPECT_EQ(DiagnosticCode(r.status()), "E311") << r.status();
}

TEST(Control, AsynchronousPairsGiveTheirResults) {
  EXPECT_THAT(Eval("a = s32[2] constant({1, 2})\n"
                   "s = ((s32[2]), s32[2], u32[]) negate-start(a)\n"
                   "ROOT r = s32[2] negate-done(s)"),
              ElementsAre(-1, -2));
  EXPECT_THAT(Eval("a = s32[2] constant({1, 2})\ns = (s32[2], s32[2], u32[]) copy-start(a)\n"
                   "ROOT r = s32[2] copy-done(s)"),
              ElementsAre(1, 2));
}

TEST(Control, DeadInstructionsAreNotRun) {
  EXPECT_THAT(
      Eval("a = s32[1] constant({1})\nd = s32[1] custom-call(a), custom_call_target=\"absent\"\n"
           "ROOT r = s32[1] add(a, a)"),
      ElementsAre(2));
}

TEST(Control, ElidedConstantsAreRefusedWithTheWayToDumpThem) {
  const auto r = RunText("a = f32[20]{0} constant({...})\nROOT r = f32[20] negate(a)");
  EXPECT_EQ(DiagnosticCode(r.status()), "E311");
  EXPECT_THAT(std::string(r.status().message()), testing::HasSubstr("xla_dump_large_constants"));
}

TEST(Control, ManualRegionsNeedAllTheirDevices) {
  const auto r = RunText(
      "p = f32[4] parameter(0)\n"
      "ROOT r = f32[2] custom-call(p), custom_call_target=\"SPMDFullToShardShape\"",
      {F32({4}, {1, 2, 3, 4})});
  EXPECT_EQ(DiagnosticCode(r.status()), "E310");
}

}  // namespace
}  // namespace shardcall
