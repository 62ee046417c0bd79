// SPDX-License-Identifier: Apache-2.0
// Sorts by keys against sorts by comparisons: each program is run as it stands and
// with a comparator that says the same in a form without a key.
#include <cstring>
#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/runtime/ops/sort_order.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

// Random bytes, few enough of them to make ties, with zeros of both signs,
// infinities and NaN where the type has them.
Tensor Values(ElementType type, const std::vector<int64_t>& dims, uint64_t seed, bool nan) {
  Tensor t(type, dims);
  std::mt19937_64 random(seed);
  std::vector<float> special = {0.f, -0.f, 1.f, -1.f, 3e38f, -3e38f, INFINITY, -INFINITY, 1e-40f};
  if (nan) special.insert(special.end(), {NAN, -NAN});
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (IsFloat(type)) {
      const float f = random() % 3 == 0 ? special[random() % special.size()]
                                        : static_cast<float>(random() % 2001) / 8 - 125;
      const Tensor one = Tensor::From(ElementType::kF32, {}, std::vector<float>{f});
      const ElementType from[] = {ElementType::kF32};
      const void* in[] = {one.data()};
      FindLaneKernel(Opcode::kConvert, nullptr, from, type)
          .Run(in, t.MutableData() + i * t.element_bytes(), 1);
    } else {
      const uint64_t bits = random() >> (random() % 60);
      std::memcpy(t.MutableData() + i * t.element_bytes(), &bits, t.element_bytes());
    }
  }
  return t;
}

struct Order {
  const char* type;
  const char* body;  // of p0 and p1, ends in `c`
  bool nan = true;
};

void ExpectSameOrder(const Order& order, int64_t n, int dimension) {
  std::vector<int64_t> dims = {3, 3};
  dims[dimension] = n;
  // The second operand shows that equal elements keep their order.
  const std::string program =
      absl::StrReplaceAll(R"(
less {
  p0 = $T[] parameter(0)
  p1 = $T[] parameter(1)
  p2 = s32[] parameter(2)
  p3 = s32[] parameter(3)
$BODY
}

ENTRY e {
  x = $T[$N] parameter(0)
  i = s32[$N] iota(), iota_dimension=$D
  ROOT s = ($T[$N], s32[$N]) sort(x, i), dimensions={$D}, is_stable=true, to_apply=less
}
)",
                          {{"$BODY", absl::StrReplaceAll(order.body, {{"$T", order.type}})},
                           {"$T", order.type},
                           {"$N", absl::StrJoin(dims, ",")},
                           {"$D", absl::StrCat(dimension)}});
  const std::string plain = absl::StrReplaceAll(program, {{" c = ", " ROOT c = "}});
  const std::string hidden =
      absl::StrReplaceAll(program, {{"\n}\n\nENTRY",
                                     "\n  yes = pred[] constant(true)\n"
                                     "  ROOT both = pred[] and(c, yes)\n}\n\nENTRY"}});
  const ElementType type = ElementTypeFromName(order.type);
  const Tensor x = Values(type, dims, static_cast<uint64_t>(n), order.nan);
  const auto by_key = RunText(plain, {x});
  const auto by_comparison = RunText(hidden, {x});
  ASSERT_TRUE(by_key.ok()) << by_key.status() << plain;
  ASSERT_TRUE(by_comparison.ok()) << by_comparison.status() << hidden;
  for (int k = 0; k < 2; ++k) {
    const Tensor& a = (*by_key)[k];
    const Tensor& b = (*by_comparison)[k];
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.num_elements() * a.element_bytes()), 0)
        << "result " << k << " of\n"
        << plain;
  }
}

class SortOrder : public testing::TestWithParam<Order> {};

TEST_P(SortOrder, IsThatOfItsComparator) {
  for (int64_t n : {1, 2, 17, 300}) {
    for (int dimension : {0, 1}) ExpectSameOrder(GetParam(), n, dimension);
  }
}

constexpr char kJaxKey[] = R"(
  n0 = pred[] compare(p0, p0), direction=NE
  none = $T[] constant(nan)
  zero = $T[] constant(0)
  e0 = pred[] compare(p0, zero), direction=EQ
  z0 = $T[] select(e0, zero, p0)
  k0 = $T[] select(n0, none, z0)
  n1 = pred[] compare(p1, p1), direction=NE
  e1 = pred[] compare(p1, zero), direction=EQ
  z1 = $T[] select(e1, zero, p1)
  k1 = $T[] select(n1, none, z1)
  c = pred[] compare(k0, k1), direction=LT, type=TOTALORDER)";

INSTANTIATE_TEST_SUITE_P(
    Comparators, SortOrder,
    testing::Values(Order{"f32", "  c = pred[] compare(p0, p1), direction=LT, type=TOTALORDER"},
                    Order{"f64", "  c = pred[] compare(p0, p1), direction=GT, type=TOTALORDER"},
                    Order{"bf16", "  c = pred[] compare(p1, p0), direction=LT, type=TOTALORDER"},
                    Order{"f32", "  c = pred[] compare(p0, p1), direction=LT"},
                    Order{"f32", "  c = pred[] compare(p0, p1), direction=GT", false},
                    Order{"f64", "  c = pred[] compare(p0, p1), direction=LT", false},
                    Order{"f16", "  c = pred[] compare(p1, p0), direction=GT", false},
                    Order{"f8e5m2", "  c = pred[] compare(p0, p1), direction=LT", false},
                    Order{"f32", kJaxKey}, Order{"bf16", kJaxKey},
                    Order{"s32", "  c = pred[] compare(p0, p1), direction=LT"},
                    Order{"u8", "  c = pred[] compare(p0, p1), direction=GT"},
                    Order{"u64", "  c = pred[] compare(p1, p0), direction=GT"},
                    Order{"s64", "  c = pred[] compare(p0, p1), direction=LT"},
                    Order{"s32",
                          "  a = s32[] add(p0, p2)\n  b = s32[] add(p1, p3)\n"
                          "  c = pred[] compare(a, b), direction=LT"},
                    // No keys: sides that differ, ties that are broken, an order that is none.
                    Order{"s32",
                          "  a = s32[] add(p0, p2)\n  c = pred[] compare(a, p1), direction=LT"},
                    Order{"s32",
                          "  a = s32[] add(p0, p3)\n  b = s32[] add(p1, p2)\n"
                          "  c = pred[] compare(a, b), direction=LT"},
                    Order{"s32", "  c = pred[] compare(p0, p1), direction=LE"}));

TEST(StableOrder, OfKeysThatFillAllBits) {
  const std::vector<int64_t> keys = {INT64_MAX, 0, INT64_MIN, 0, -1, INT64_MAX};
  std::vector<int64_t> order(keys.size());
  std::vector<uint64_t> scratch;
  StableOrder(keys, /*descending=*/false, absl::MakeSpan(order), &scratch);
  EXPECT_THAT(order, testing::ElementsAre(2, 4, 1, 3, 0, 5));
  StableOrder(keys, /*descending=*/true, absl::MakeSpan(order), &scratch);
  EXPECT_THAT(order, testing::ElementsAre(0, 5, 1, 3, 4, 2));
}

}  // namespace
}  // namespace shardcall
