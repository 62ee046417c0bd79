// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/shape.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/tuple_leaves.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;

TEST(ShapeTest, AnArrayOfBuffersIsNone) {
  Context c;
  const int64_t dims[] = {2};
  for (const Shape* s :
       {c.MakeScalar(ElementType::kBuffer), c.MakeArray(ElementType::kBuffer, dims)}) {
    EXPECT_EQ(s->element_type(), ElementType::kInvalid);
    EXPECT_FALSE(s->IsArray());
  }
  EXPECT_EQ(c.MakeBuffer(c.MakeArray(ElementType::kF32, dims))->ToString(), "b(f32[2])");
}

TEST(ElementTypeTest, NamesReadBackAndKeepTheirNumbers) {
  for (int i = 1; i < kNumElementTypes; ++i) {
    const ElementType t = static_cast<ElementType>(i);
    EXPECT_EQ(ElementTypeFromName(ElementTypeName(t)), t);
  }
  EXPECT_EQ(ElementTypeFromName("f31"), ElementType::kInvalid);
  EXPECT_EQ(ElementTypeBits(ElementType::kS4), 4);
  EXPECT_EQ(ElementTypeBytes(ElementType::kS4), 1);
  EXPECT_EQ(ElementTypeBytes(ElementType::kC128), 16);
  EXPECT_TRUE(IsFloat(ElementType::kBF16));
  EXPECT_FALSE(IsInteger(ElementType::kPred));
}

TEST(ShapeTest, EqualShapesAreOnePointerAndLayoutsTellThemApart) {
  Context c;
  const Shape* a = c.MakeArray(kF32, {16, 32});
  EXPECT_EQ(a, c.MakeArray(kF32, {16, 32}));
  EXPECT_NE(a, c.MakeArray(kF32, {32, 16}));
  const Shape* laid = c.MakeArray(kF32, {16, 32}, {1, 0});
  EXPECT_NE(a, laid);
  EXPECT_EQ(laid->bare(), a);
  EXPECT_EQ(c.WithDefaultLayout(a), laid);
  EXPECT_NE(laid, c.MakeArray(kF32, {16, 32}, {0, 1}));
  EXPECT_EQ(c.MakeTuple({a, laid})->bare(), c.MakeTuple({a, a}));
  EXPECT_EQ(c.WithElementType(laid, ElementType::kBF16)->ToString(), "bf16[16,32]{1,0}");
  EXPECT_EQ(c.WithDims(laid, {4, 32})->ToString(), "f32[4,32]{1,0}");
  EXPECT_EQ(c.MakeArray(kF32, {}, {}), c.MakeScalar(kF32));
}

TEST(ShapeTest, ManyShapesStayDistinct) {
  Context c;
  std::vector<const Shape*> shapes;
  for (int i = 0; i < 5000; ++i) shapes.push_back(c.MakeArray(kF32, {i, 2 * i + 1, 7}));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(shapes[i], c.MakeArray(kF32, {i, 2 * i + 1, 7}));
    ASSERT_EQ(shapes[i]->dim(0), i);
  }
}

TEST(ShapeTest, PrintsHloText) {
  Context c;
  const Shape* s = c.MakeScalar(ElementType::kS32);
  EXPECT_EQ(s->ToString(), "s32[]");
  const Shape* tiled = c.MakeArray(kF32, {16, 32}, {1, 0}, "T(8,128)S(1)");
  EXPECT_EQ(tiled->ToString(), "f32[16,32]{1,0:T(8,128)S(1)}");
  EXPECT_EQ(tiled->ToString(false), "f32[16,32]");
  EXPECT_EQ(c.MakeArray(kF32, {}, {}, "T(128)S(1)")->ToString(), "f32[]{:T(128)S(1)}");
  EXPECT_EQ(c.MakeDynamicArray(kF32, {5, kUnboundedDim, 3}, {true, true, false})->ToString(),
            "f32[<=5,?,3]");
  EXPECT_EQ(c.MakeTuple({s, s, s, s, s, s, s})->ToString(),
            "(s32[], s32[], s32[], s32[], s32[], /*index=5*/s32[], s32[])");
  EXPECT_EQ(
      c.MakeTuple({c.MakeTuple({}), c.MakeToken(), c.MakeOpaque(), c.MakeTuple({s})})->ToString(),
      "((), token[], opaque[], (s32[]))");
  EXPECT_EQ(c.MakeBuffer(tiled)->ToString(), "b(f32[16,32]{1,0:T(8,128)S(1)})");
}

TEST(ShapeTest, CountsLeavesElementsAndBytes) {
  Context c;
  const Shape* a = c.MakeArray(ElementType::kS4, {3, 3});
  EXPECT_EQ(a->num_elements(), 9);
  EXPECT_EQ(a->byte_size(), 5);
  const Shape* t = c.MakeTuple({a, c.MakeTuple({a, c.MakeToken()}), c.MakeScalar(kF32)});
  EXPECT_EQ(t->num_leaves(), 4);
  EXPECT_EQ(t->leaf(1), a);
  EXPECT_TRUE(t->leaf(2)->IsToken());
  EXPECT_EQ(t->leaf(3), c.MakeScalar(kF32));
  EXPECT_EQ(t->byte_size(), 14);
  EXPECT_EQ(c.MakeTuple({})->num_leaves(), 0);
}

TEST(ShapeTest, ElementsWithoutLeavesHaveNone) {
  Context c;
  const Shape* a = c.MakeScalar(kF32);
  const Shape* empty = c.MakeTuple({});
  const Shape* t = c.MakeTuple({empty, c.MakeTuple({a, empty, a}), empty, c.MakeToken(), empty});
  EXPECT_EQ(t->num_leaves(), 3);
  EXPECT_EQ(t->leaf(1), a);
  EXPECT_TRUE(t->leaf(2)->IsToken());
  const std::vector<int> first = {0, 0, 2, 2, 3, 3};
  for (int k = 0; k < 6; ++k) EXPECT_EQ(FirstLeafOf(*t, k), first[k]) << k;
  const std::vector<int> element = {1, 1, 3};
  for (int k = 0; k < 3; ++k) EXPECT_EQ(ElementOfLeaf(*t, k), element[k]) << k;
}

// If a leaf were found by walking over the elements before it, this would take hours.
TEST(ShapeTest, AllLeavesOfALargeTupleAreFoundInLinearTime) {
  Context c;
  constexpr int kElements = 4000000;
  const Shape* a = c.MakeScalar(kF32);
  const Shape* b = c.MakeScalar(ElementType::kS32);
  std::vector<const Shape*> elements(kElements, a);
  for (int k = 0; k < kElements; k += 2) elements[k] = b;
  const Shape* flat = c.MakeTuple(elements);
  for (int k = 0; k < kElements; k += 2) elements[k] = c.MakeTuple({b, a});
  const Shape* nested = c.MakeTuple(elements);
  ASSERT_EQ(nested->num_leaves(), kElements / 2 * 3);
  int wrong = 0;
  for (int k = 0; k < kElements; ++k) {
    wrong += flat->leaf(k) != (k % 2 == 0 ? b : a) || FirstLeafOf(*flat, k) != k;
    wrong += FirstLeafOf(*nested, k) != k / 2 * 3 + k % 2 * 2;
  }
  for (int k = 0; k < nested->num_leaves(); ++k) {
    wrong += nested->leaf(k) != (k % 3 == 0 ? b : a);
    wrong += ElementOfLeaf(*nested, k) != k / 3 * 2 + (k % 3 == 2);
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ShapeTest, SizesBeyond64BitsSaturate) {
  Context c;
  const int64_t huge = int64_t{1} << 62;
  EXPECT_EQ(c.MakeArray(kF32, {huge, huge})->byte_size(), INT64_MAX);
  EXPECT_EQ(c.MakeArray(kF32, {huge, huge, 0})->num_elements(), 0);
}

TEST(ShapeTest, DeepTuplesNeedNoDeepStack) {
  // On a small stack, as executors' threads may have.
  std::thread([] {
    Context c;
    const Shape* s = c.MakeArray(kF32, {4});
    for (int i = 0; i < 100000; ++i) s = c.MakeTuple({s});
    EXPECT_EQ(s->leaf(0)->rank(), 1);
    EXPECT_EQ(s->ToString().size(), 200000 + 6);
    EXPECT_TRUE(c.WithDefaultLayout(s)->leaf(0)->has_layout());
  }).join();
}

TEST(ContextTest, InternedTextIsOneDataPointer) {
  Context c;
  std::string a = "custom_call_target", b = a;
  EXPECT_EQ(c.Intern(a).data(), c.Intern(b).data());
  EXPECT_EQ(c.Intern("").data(), c.Intern(std::string()).data());
  EXPECT_NE(c.Intern("x").data(), c.Intern("y").data());
  EXPECT_EQ(&c.Get<std::vector<int>>(), &c.Get<std::vector<int>>());
}

TEST(StatusTest, DiagnosticsHaveOneForm) {
  const absl::Status s = ToStatus({.code = "E161",
                                   .message = "bad sharding",
                                   .where = "a.hlo:3:5",
                                   .expected = "'}'",
                                   .found = "','",
                                   .fix = "close the brace",
                                   .excerpt = "{x,\n  ^"});
  EXPECT_EQ(s.message(),
            "E161 bad sharding at a.hlo:3:5: expected '}', found ','. Fix: close the brace\n"
            "{x,\n  ^");
  EXPECT_EQ(DiagnosticCode(s), "E161");
  EXPECT_EQ(DiagnosticCode(absl::InternalError("Exit")), "");
  EXPECT_EQ(DiagnosticCode(absl::OkStatus()), "");
}

}  // namespace
}  // namespace shardcall
