// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/shape_inference.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "shardcall/partitioner/ir/build/monoid_table.h"

namespace shardcall {
namespace {

using Ls = std::vector<int64_t>;

class ShapeInferenceTest : public testing::Test {
 protected:
  ShapeInferenceTest() : context_(std::make_shared<Context>()), module_(context_) {
    module_.header.num_partitions = 8;
    module_.header.has_num_partitions = true;
  }

  const Shape* S(ElementType type, Ls dims) {
    return context_->WithDefaultLayout(context_->MakeArray(type, dims));
  }
  const Shape* F32(Ls dims) { return S(ElementType::kF32, dims); }
  const Shape* S32(Ls dims) { return S(ElementType::kS32, dims); }
  const Shape* Pred(Ls dims) { return S(ElementType::kPred, dims); }

  template <typename T>
  const Attributes* A(const T& attrs) {
    return InternAttributes(*context_, attrs);
  }
  const Attributes* Dims(Ls dims) {
    DimensionsAttrs a;
    a.dimensions = dims;
    return A(a);
  }
  // A computation of these parameters whose root has the shape `result`.
  CompId Comp(std::vector<const Shape*> parameters, const Shape* result) {
    const CompId c = module_.AddComputation("f");
    for (size_t i = 0; i < parameters.size(); ++i) {
      ParameterAttrs a;
      a.number = static_cast<int64_t>(i);
      module_.Add(c, Opcode::kParameter, parameters[i], {}, A(a));
    }
    module_.SetRoot(c, module_.Add(c, Opcode::kTuple, result, {}));
    return c;
  }
  CompId Sum(ElementType type) { return MonoidTable(&module_).Get(Opcode::kAdd, type); }

  std::string Infer(Opcode op, std::vector<const Shape*> operands,
                    const Attributes* attrs = nullptr, const Shape* declared = nullptr) {
    Diagnostic error;
    const Shape* s = InferShapeOrNull(*context_, module_, op, operands, attrs, declared, &error);
    return s == nullptr ? FormatDiagnostic(error) : s->ToString();
  }

  std::shared_ptr<Context> context_;
  Module module_;
};

TEST_F(ShapeInferenceTest, ElementwiseOpsKeepTheOperandsLayout) {
  const int64_t column[] = {0, 1};
  const Shape* x = context_->MakeArray(ElementType::kF32, {4, 8}, column);
  EXPECT_EQ(Infer(Opcode::kAdd, {x, F32({4, 8})}), "f32[4,8]{0,1}");
  EXPECT_EQ(Infer(Opcode::kExponential, {x}), "f32[4,8]{0,1}");
  EXPECT_EQ(Infer(Opcode::kIsFinite, {x}), "pred[4,8]{0,1}");
  EXPECT_EQ(Infer(Opcode::kComplex, {x, x}), "c64[4,8]{0,1}");
  EXPECT_EQ(Infer(Opcode::kSelect, {Pred({}), x, F32({4, 8})}), "f32[4,8]{0,1}");
  EXPECT_EQ(Infer(Opcode::kClamp, {F32({}), x, F32({})}), "f32[4,8]{0,1}");
}

TEST_F(ShapeInferenceTest, ElementwiseOpsRefuseMixedShapesAndTypes) {
  EXPECT_EQ(Infer(Opcode::kAdd, {F32({4}), F32({5})}),
            "E021 add: operands 0 and 1 have different dimensions: expected f32[4], found f32[5]. "
            "Fix: insert a broadcast");
  EXPECT_EQ(Infer(Opcode::kAdd, {F32({4}), S32({4})}),
            "E021 add: operands 0 and 1 have different element types: expected f32[4], found "
            "s32[4]. Fix: insert a convert");
  EXPECT_EQ(Infer(Opcode::kAdd, {F32({4})}),
            "E021 add: wrong number of operands: expected 2, found 1");
  EXPECT_EQ(Infer(Opcode::kSine, {S32({4})}),
            "E021 sine: the operand has the wrong element type: expected a floating-point or "
            "complex type, found s32[4]");
  EXPECT_EQ(Infer(Opcode::kShiftLeft, {F32({}), F32({})}).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kPopcnt, {Pred({4})}).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kAbs, {S(ElementType::kU32, {4})}).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kErf, {S(ElementType::kC64, {4})}).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kNegate, {context_->MakeToken()}).substr(0, 4), "E021");
}

TEST_F(ShapeInferenceTest, ComplexOpsGiveTheRealPart) {
  EXPECT_EQ(Infer(Opcode::kAbs, {S(ElementType::kC64, {3})}), "f32[3]{0}");
  EXPECT_EQ(Infer(Opcode::kImag, {S(ElementType::kC128, {3})}), "f64[3]{0}");
  EXPECT_EQ(Infer(Opcode::kReal, {F32({3})}), "f32[3]{0}");
}

TEST_F(ShapeInferenceTest, CompareChecksItsTypeAndDirection) {
  CompareAttrs a;
  a.type = CompareType::kSigned;
  EXPECT_EQ(Infer(Opcode::kCompare, {S32({2}), S32({2})}, A(a)), "pred[2]{0}");
  EXPECT_EQ(Infer(Opcode::kCompare, {F32({2}), F32({2})}, A(a)),
            "E022 compare: type= does not fit the operands: expected FLOAT, found f32[2]. Fix: "
            "leave type= out");
  a.type = CompareType::kFloat;
  a.direction = Direction::kLt;
  const Shape* c = S(ElementType::kC64, {2});
  EXPECT_EQ(Infer(Opcode::kCompare, {c, c}, A(a)).substr(0, 4), "E022");
}

TEST_F(ShapeInferenceTest, BitcastConvertSplitsOrJoinsTheInnermostDimension) {
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {F32({2})}, nullptr, S(ElementType::kU8, {2, 4})),
            "u8[2,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {S(ElementType::kU8, {2, 4})}, nullptr, F32({2})),
            "f32[2]{0}");
  EXPECT_EQ(
      Infer(Opcode::kBitcastConvert, {S(ElementType::kU8, {2, 3})}, nullptr, F32({2})).substr(0, 4),
      "E021");
}

TEST_F(ShapeInferenceTest, OpsWithoutAnInferableShapeNeedAWrittenOne) {
  EXPECT_EQ(Infer(Opcode::kConvert, {F32({2})}),
            "E021 convert: the result's shape does not follow from the operands: expected a "
            "written shape, found none. Fix: write the shape before the opcode");
  EXPECT_EQ(Infer(Opcode::kReshape, {F32({2})}, A(ReshapeAttrs{})).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kIota, {}, A(IotaAttrs{})).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kReshape, {F32({6})}, A(ReshapeAttrs{}), F32({2, 3})), "f32[2,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kReshape, {F32({6})}, A(ReshapeAttrs{}), F32({2, 4})),
            "E021 reshape: operand and result differ in number of elements: expected 6 as in "
            "f32[6], found 8 as in f32[2,4]");
}

TEST_F(ShapeInferenceTest, BroadcastDimensionsNameTheResultsDimensions) {
  EXPECT_EQ(Infer(Opcode::kBroadcast, {F32({3})}, Dims({1}), F32({2, 3})), "f32[2,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kBroadcast, {F32({3})}, Dims({0}), F32({2, 3})).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kBroadcast, {F32({3})}, Dims({2}), F32({2, 3})).substr(0, 4), "E022");
  EXPECT_EQ(Infer(Opcode::kBroadcast, {F32({})}, Dims({})), "f32[]");
}

TEST_F(ShapeInferenceTest, TransposePermutesTheLayout) {
  EXPECT_EQ(Infer(Opcode::kTranspose, {F32({2, 3, 4})}, Dims({2, 0, 1})), "f32[4,2,3]{0,2,1}");
  EXPECT_EQ(Infer(Opcode::kTranspose, {F32({2, 3})}, Dims({0, 0})),
            "E022 transpose: dimensions names a dimension twice: expected each at most once, "
            "found {0,0}");
  EXPECT_EQ(Infer(Opcode::kTranspose, {F32({2, 3})}, Dims({0})).substr(0, 4), "E022");
}

TEST_F(ShapeInferenceTest, ConcatenateAddsSizes) {
  EXPECT_EQ(Infer(Opcode::kConcatenate, {F32({2, 3}), F32({2, 5})}, Dims({1})), "f32[2,8]{1,0}");
  EXPECT_EQ(Infer(Opcode::kConcatenate, {F32({2, 3}), F32({3, 5})}, Dims({1})).substr(0, 4),
            "E021");
}

TEST_F(ShapeInferenceTest, SlicesCountStridesAndStayInBounds) {
  const auto slice = [&](Ls lo, Ls hi, Ls stride) {
    SliceAttrs a;
    a.starts = lo, a.limits = hi, a.strides = stride;
    return Infer(Opcode::kSlice, {F32({10})}, A(a));
  };
  EXPECT_EQ(slice({1}, {10}, {4}), "f32[3]{0}");
  EXPECT_EQ(slice({3}, {3}, {1}), "f32[0]{0}");
  EXPECT_EQ(slice({1}, {11}, {1}),
            "E022 slice: slice is out of range in dimension 0: expected 0 <= start <= limit <= 10 "
            "and stride >= 1, found [1:11:1]");
}

TEST_F(ShapeInferenceTest, PaddingMayBeNegativeAndInterior) {
  const auto pad = [&](int64_t lo, int64_t hi, int64_t in, int64_t size) {
    PadAttrs a;
    a.low = absl::MakeConstSpan(&lo, 1), a.high = absl::MakeConstSpan(&hi, 1);
    a.interior = absl::MakeConstSpan(&in, 1);
    return Infer(Opcode::kPad, {F32({size}), F32({})}, A(a));
  };
  EXPECT_EQ(pad(1, 2, 0, 5), "f32[8]{0}");
  EXPECT_EQ(pad(-1, -2, 0, 5), "f32[2]{0}");
  EXPECT_EQ(pad(0, 0, 2, 4), "f32[10]{0}");
  EXPECT_EQ(pad(0, 0, 2, 0), "f32[0]{0}");
  EXPECT_EQ(pad(-3, -3, 0, 5).substr(0, 4), "E022");
  EXPECT_EQ(pad(INT64_MAX, INT64_MAX, INT64_MAX, 5).substr(0, 4), "E022");
}

TEST_F(ShapeInferenceTest, DynamicSlicesTakeOneIndexPerDimensionOrAVector) {
  DynamicSliceAttrs a;
  const int64_t sizes[] = {1, 3};
  a.sizes = sizes;
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {F32({4, 3}), S32({}), S32({})}, A(a)), "f32[1,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {F32({4, 3}), S32({2})}, A(a)), "f32[1,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {F32({4, 3}), S32({})}, A(a)).substr(0, 4), "E021");
  EXPECT_EQ(Infer(Opcode::kDynamicUpdateSlice, {F32({4, 3}), F32({1, 3}), S32({}), S32({})}),
            "f32[4,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDynamicUpdateSlice, {F32({4, 3}), F32({5, 3}), S32({}), S32({})}),
            "E021 dynamic-update-slice: the update does not fit into the operand: expected at most "
            "f32[4,3], found f32[5,3]");
}

TEST_F(ShapeInferenceTest, ReduceDropsDimensionsAndChecksItsComputation) {
  ReduceAttrs a;
  const int64_t dims[] = {1};
  a.dimensions = dims;
  a.to_apply = Sum(ElementType::kF32);
  EXPECT_EQ(Infer(Opcode::kReduce, {F32({2, 3, 4}), F32({})}, A(a)), "f32[2,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kReduce, {S32({2, 3}), S32({})}, A(a)),
            "E024 reduce: parameter 0 of to_apply=add.f32 is wrong: expected s32[], found f32[]");
  const Shape* pair = context_->MakeTuple({F32({}), S32({})});
  a.to_apply = Comp({F32({}), S32({}), F32({}), S32({})}, pair);
  EXPECT_EQ(Infer(Opcode::kReduce, {F32({2, 3}), S32({2, 3}), F32({}), S32({})}, A(a)),
            "(f32[2]{0}, s32[2]{0})");
  EXPECT_EQ(Infer(Opcode::kReduce, {F32({2, 3}), F32({}), F32({})}, A(a)).substr(0, 4), "E021");
  a.to_apply = CompId();
  EXPECT_EQ(Infer(Opcode::kReduce, {F32({2, 3}), F32({})}, A(a)).substr(0, 4), "E024");
}

Window MakeWindow(Ls& size, Ls& stride, Ls& low, Ls& high, Ls& ones, Ls& zeros) {
  Window w;
  w.size = size, w.stride = stride, w.pad_low = low, w.pad_high = high;
  w.lhs_dilate = ones, w.rhs_dilate = ones, w.reversal = zeros;
  return w;
}

TEST_F(ShapeInferenceTest, WindowsCountPositions) {
  Ls size = {1, 3}, stride = {1, 2}, low = {0, 1}, high = {0, 0}, ones = {1, 1}, zeros = {0, 0};
  ReduceWindowAttrs a;
  a.window = MakeWindow(size, stride, low, high, ones, zeros);
  a.to_apply = Sum(ElementType::kF32);
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {F32({4, 8}), F32({})}, A(a)), "f32[4,4]{1,0}");
  SelectAndScatterAttrs s;
  s.window = a.window;
  s.scatter = a.to_apply;
  s.select = Comp({F32({}), F32({})}, Pred({}));
  EXPECT_EQ(Infer(Opcode::kSelectAndScatter, {F32({4, 8}), F32({4, 4}), F32({})}, A(s)),
            "f32[4,8]{1,0}");
  EXPECT_EQ(Infer(Opcode::kSelectAndScatter, {F32({4, 8}), F32({4, 5}), F32({})}, A(s)),
            "E021 select-and-scatter: the source does not have one element per window: expected "
            "f32{4,4}, found f32[4,5]");
  size[1] = 0;
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {F32({4, 8}), F32({})}, A(a)),
            "E022 reduce-window: window is impossible in dimension 1: expected a size of 1 or "
            "more, found 0");
}

TEST_F(ShapeInferenceTest, SortAndTopK) {
  SortAttrs a;
  a.dimension = 0;
  a.to_apply = Comp({F32({}), F32({}), S32({}), S32({})}, Pred({}));
  EXPECT_EQ(Infer(Opcode::kSort, {F32({4}), S32({4})}, A(a)), "(f32[4]{0}, s32[4]{0})");
  EXPECT_EQ(Infer(Opcode::kSort, {F32({4})}, A(a)).substr(0, 4), "E024");
  TopKAttrs k;
  k.k = 3;
  EXPECT_EQ(Infer(Opcode::kTopk, {F32({2, 8})}, A(k)), "(f32[2,3]{1,0}, s32[2,3]{1,0})");
  k.k = 9;
  EXPECT_EQ(Infer(Opcode::kTopk, {F32({2, 8})}, A(k)).substr(0, 4), "E022");
}

TEST_F(ShapeInferenceTest, DotKeepsBatchThenFreeDimensions) {
  DotAttrs a;
  Ls b = {0}, lc = {2}, rc = {1};
  a.lhs_batch = b, a.rhs_batch = b, a.lhs_contracting = lc, a.rhs_contracting = rc;
  EXPECT_EQ(Infer(Opcode::kDot, {F32({2, 3, 4}), F32({2, 4, 5})}, A(a)), "f32[2,3,5]{2,1,0}");
  EXPECT_EQ(Infer(Opcode::kDot, {F32({2, 3, 4}), F32({2, 6, 5})}, A(a)),
            "E021 dot: lhs dimension 2 and rhs dimension 1 are paired by contracting_dims but "
            "differ in size: expected 4, found 6");
  const Shape* x = S(ElementType::kBF16, {2, 3, 4});
  const Shape* y = S(ElementType::kBF16, {2, 4, 5});
  EXPECT_EQ(Infer(Opcode::kDot, {x, y}, A(a), F32({2, 3, 5})), "f32[2,3,5]{2,1,0}");
  rc = {0};
  EXPECT_EQ(Infer(Opcode::kDot, {x, y}, A(a)).substr(0, 4), "E022");
}

TEST_F(ShapeInferenceTest, RaggedDotHasThreeForms) {
  DotAttrs a;
  Ls lc = {1}, rc = {1}, ragged = {0}, group = {0};
  a.lhs_contracting = lc, a.rhs_contracting = rc, a.lhs_ragged = ragged, a.rhs_group = group;
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {F32({8, 4}), F32({3, 4, 5}), S32({3})}, A(a)),
            "f32[8,5]{1,0}");
  ragged = {1}, rc = {0};
  a.rhs_group = Ints();
  a.rhs_contracting = rc;
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {F32({8, 4}), F32({4, 5}), S32({3})}, A(a)),
            "f32[3,8,5]{2,1,0}");
}

TEST_F(ShapeInferenceTest, ConvolutionFollowsItsLabels) {
  Ls size = {3, 3}, stride = {2, 2}, pad = {1, 1}, ones = {1, 1}, zeros = {0, 0};
  ConvolutionAttrs a;
  a.window = MakeWindow(size, stride, pad, pad, ones, zeros);
  a.dim_labels = "b01f_01io->b01f";
  EXPECT_EQ(Infer(Opcode::kConvolution, {F32({2, 8, 8, 3}), F32({3, 3, 3, 16})}, A(a)),
            "f32[2,4,4,16]{3,2,1,0}");
  EXPECT_EQ(Infer(Opcode::kConvolution, {F32({2, 8, 8, 4}), F32({3, 3, 3, 16})}, A(a)),
            "E021 convolution: the kernel's input feature size does not fit the input's: expected "
            "4, found 3");
  a.feature_group_count = 2;
  EXPECT_EQ(Infer(Opcode::kConvolution, {F32({2, 8, 8, 6}), F32({3, 3, 3, 16})}, A(a)),
            "f32[2,4,4,16]{3,2,1,0}");
  a.dim_labels = "b01f_01io->b0f";
  EXPECT_EQ(Infer(Opcode::kConvolution, {F32({2, 8, 8, 6}), F32({3, 3, 3, 16})}, A(a)).substr(0, 4),
            "E022");
}

TEST_F(ShapeInferenceTest, FftChangesTypeAndInnermostSize) {
  FftAttrs a;
  Ls length = {8};
  a.length = length;
  a.type = FftType::kRfft;
  EXPECT_EQ(Infer(Opcode::kFft, {F32({4, 8})}, A(a)), "c64[4,5]{1,0}");
  a.type = FftType::kIrfft;
  EXPECT_EQ(Infer(Opcode::kFft, {S(ElementType::kC64, {4, 5})}, A(a)), "f32[4,8]{1,0}");
  a.type = FftType::kFft;
  EXPECT_EQ(Infer(Opcode::kFft, {S(ElementType::kC64, {4, 8})}, A(a)), "c64[4,8]{1,0}");
  EXPECT_EQ(Infer(Opcode::kFft, {F32({4, 8})}, A(a)).substr(0, 4), "E021");
}

TEST_F(ShapeInferenceTest, GatherInterleavesBatchAndOffsetDimensions) {
  GatherAttrs a;
  Ls offset = {1, 2}, collapsed = {0}, map = {0}, sizes = {1, 4, 5};
  a.offset_dims = offset, a.collapsed_slice_dims = collapsed, a.start_index_map = map;
  a.slice_sizes = sizes;
  a.index_vector_dim = 1;
  EXPECT_EQ(Infer(Opcode::kGather, {F32({9, 4, 5}), S32({7, 1})}, A(a)), "f32[7,4,5]{2,1,0}");
  EXPECT_EQ(Infer(Opcode::kGather, {F32({9, 4, 5}), S32({7})}, A(a)), "f32[7,4,5]{2,1,0}");
  EXPECT_EQ(Infer(Opcode::kGather, {F32({9, 4, 5}), S32({7, 2})}, A(a)),
            "E022 gather: start_index_map has the wrong number of entries: expected 2, found 1");
  sizes[1] = 6;
  EXPECT_EQ(Infer(Opcode::kGather, {F32({9, 4, 5}), S32({7, 1})}, A(a)),
            "E022 gather: slice_sizes is out of range in dimension 1: expected a size in [0,4], "
            "found 6");
}

TEST_F(ShapeInferenceTest, ScatterGivesItsInputs) {
  ScatterAttrs a;
  Ls window = {1}, inserted = {0}, map = {0};
  a.update_window_dims = window, a.inserted_window_dims = inserted;
  a.scatter_dims_to_operand_dims = map;
  a.index_vector_dim = 1;
  a.to_apply = Sum(ElementType::kF32);
  EXPECT_EQ(Infer(Opcode::kScatter, {F32({9, 4}), S32({7, 1}), F32({7, 4})}, A(a)),
            "f32[9,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kScatter, {F32({9, 4}), S32({7, 1}), F32({6, 4})}, A(a)),
            "E021 scatter: update dimension 0 has the wrong size: expected 7, found 6");
}

TEST_F(ShapeInferenceTest, ControlFlowMatchesItsComputations) {
  const Shape* state = context_->MakeTuple({S32({}), F32({4})});
  WhileAttrs w;
  w.condition = Comp({state}, Pred({}));
  w.body = Comp({state}, state);
  EXPECT_EQ(Infer(Opcode::kWhile, {state}, A(w)), "(s32[], f32[4]{0})");
  w.body = Comp({state}, S32({}));
  EXPECT_EQ(Infer(Opcode::kWhile, {state}, A(w)),
            "E024 while: the result of body=f is wrong: expected (s32[], f32[4]), found s32[]");
  ConditionalAttrs c;
  const CompId branches[] = {Comp({F32({4})}, F32({2})), Comp({S32({})}, F32({2}))};
  c.branches = branches;
  c.is_pred = true;
  EXPECT_EQ(Infer(Opcode::kConditional, {Pred({}), F32({4}), S32({})}, A(c)), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kConditional, {S32({}), F32({4}), S32({})}, A(c)).substr(0, 4), "E021");
  CallAttrs k;
  k.to_apply = branches[0];
  EXPECT_EQ(Infer(Opcode::kCall, {F32({4})}, A(k)), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kCall, {F32({5})}, A(k)),
            "E024 call: parameter 0 of to_apply=f does not match what is passed to it: expected "
            "f32[5], found f32[4]");
}

TEST_F(ShapeInferenceTest, CollectivesMultiplyOrDivideByTheGroup) {
  CollectiveAttrs a;
  a.channel_id = 1;
  a.use_global_device_ids = true;
  a.dimension = 0;
  a.groups.form = ReplicaGroups::Form::kIota;
  a.groups.num_groups = 2, a.groups.group_size = 4;
  const int64_t reshape[] = {8};
  a.groups.reshape = reshape;
  EXPECT_EQ(Infer(Opcode::kAllGather, {F32({3, 2})}, A(a)), "f32[12,2]{1,0}");
  a.to_apply = Sum(ElementType::kF32);
  EXPECT_EQ(Infer(Opcode::kReduceScatter, {F32({8, 2})}, A(a)), "f32[2,2]{1,0}");
  EXPECT_EQ(Infer(Opcode::kReduceScatter, {F32({6, 2})}, A(a)),
            "E025 reduce-scatter: dimension 0 is not a multiple of the group: expected a multiple "
            "of 4, found 6");
  EXPECT_EQ(Infer(Opcode::kAllReduce, {F32({6, 2})}, A(a)), "f32[6,2]{1,0}");
  a.use_global_device_ids = false;
  a.groups = ReplicaGroups();
  EXPECT_EQ(Infer(Opcode::kAllToAll, {F32({16, 2})}, A(a)), "f32[16,2]{1,0}");
  EXPECT_EQ(Infer(Opcode::kAllToAll, {F32({12, 2})}, A(a)).substr(0, 4), "E025");
}

TEST_F(ShapeInferenceTest, GroupsAreSizedInEveryForm) {
  CollectiveAttrs a;
  a.channel_id = 1;
  a.use_global_device_ids = true;
  EXPECT_EQ(CollectiveGroupSize(module_, Opcode::kAllGather, a), 8);
  a.groups.form = ReplicaGroups::Form::kMesh;
  a.groups.mesh_text = "mesh['a'=2,'b'=4], device_ids=(0,1,2,3,4,5,6,7) {'b'}";
  EXPECT_EQ(CollectiveGroupSize(module_, Opcode::kAllGather, a), 4);
  a.groups.mesh_text = "mesh['a'=2,'b'=4] {'a','b':(1)2}";
  EXPECT_EQ(CollectiveGroupSize(module_, Opcode::kAllGather, a), 4);
  a.groups.mesh_text = "mesh['a'=2,'b'=4] {'c'}";
  EXPECT_EQ(CollectiveGroupSize(module_, Opcode::kAllGather, a), 0);
  const int64_t two[] = {0, 1}, one[] = {2};
  const Ints lists[] = {two, one};
  a.groups.form = ReplicaGroups::Form::kLists;
  a.groups.lists = lists;
  EXPECT_EQ(CollectiveGroupSize(module_, Opcode::kAllGather, a), 0);
}

TEST_F(ShapeInferenceTest, SharedTuplesCannotGrowWithoutBound) {
  const Shape* t = F32({});
  std::string error;
  for (int i = 0; i < 64; ++i) {
    Diagnostic d;
    const Shape* next =
        InferShapeOrNull(*context_, module_, Opcode::kTuple, {t, t}, nullptr, nullptr, &d);
    if (next == nullptr) {
      error = d.code;
      break;
    }
    t = next;
  }
  EXPECT_EQ(error, "E021");
}

TEST_F(ShapeInferenceTest, CompatibleShapesIgnoreLayoutAndDynamicDimensions) {
  const bool dynamic[] = {true, false};
  const int64_t dims[] = {4, 8}, column[] = {0, 1};
  EXPECT_TRUE(CompatibleShapes(F32({4, 8}), context_->MakeArray(ElementType::kF32, dims, column)));
  EXPECT_TRUE(CompatibleShapes(
      context_->MakeTuple({F32({4, 8})}),
      context_->MakeTuple({context_->MakeDynamicArray(ElementType::kF32, dims, dynamic)})));
  EXPECT_FALSE(CompatibleShapes(F32({4, 8}), F32({8, 4})));
  EXPECT_FALSE(CompatibleShapes(F32({}), context_->MakeTuple({F32({})})));
}

}  // namespace
}  // namespace shardcall
