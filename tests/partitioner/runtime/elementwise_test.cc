// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;

TEST(Elementwise, IntegerDivisionByZeroAndOverflowAreDefined) {
  EXPECT_THAT(Eval("a = s32[4] constant({7, -7, -2147483648, 0})\n"
                   "b = s32[4] constant({0, 2, -1, 0})\n"
                   "ROOT r = s32[4] divide(a, b)"),
              ElementsAre(-1, -3, -2147483648.0, -1));
  EXPECT_THAT(Eval("a = s32[4] constant({7, -7, -2147483648, 0})\n"
                   "b = s32[4] constant({0, 2, -1, 0})\n"
                   "ROOT r = s32[4] remainder(a, b)"),
              ElementsAre(7, -1, 0, 0));
  EXPECT_THAT(Eval("a = u8[2] constant({7, 200})\nb = u8[2] constant({0, 7})\n"
                   "ROOT r = u8[2] divide(a, b)"),
              ElementsAre(255, 28));
}

TEST(Elementwise, NegateAndAbsKeepThePayloadOfNaN) {
  for (const char* type : {"f16", "bf16"}) {
    const std::string of_bits = absl::StrCat(
        "bits = u16[3] constant({32641, 65473, 32645})\n"  // 0x7f81, 0xffc1, 0x7f85: NaN in both
        "a = ",
        type, "[3] bitcast-convert(bits)\n");
    EXPECT_THAT(Eval(absl::StrCat(of_bits, "n = ", type, "[3] negate(a)\n",
                                  "ROOT r = u16[3] bitcast-convert(n)")),
                ElementsAre(0xff81, 0x7fc1, 0xff85));
    EXPECT_THAT(Eval(absl::StrCat(of_bits, "n = ", type, "[3] abs(a)\n",
                                  "ROOT r = u16[3] bitcast-convert(n)")),
                ElementsAre(0x7f81, 0x7fc1, 0x7f85));
  }
}

// Attributes that an op needs to have a kernel; null if it has none.
const Attributes* AttributesFor(Opcode op) {
  static const CompareAttrs compare;
  static const ReducePrecisionAttrs precision = [] {
    ReducePrecisionAttrs a;
    a.exponent_bits = 5;
    a.mantissa_bits = 10;
    return a;
  }();
  if (op == Opcode::kCompare) return &compare;
  if (op == Opcode::kReducePrecision) return &precision;
  return nullptr;
}

constexpr ElementType kSeveralTypes[] = {
    ElementType::kPred,   ElementType::kS4,   ElementType::kU32, ElementType::kS64,
    ElementType::kF8E5M2, ElementType::kBF16, ElementType::kF32, ElementType::kF64,
    ElementType::kC64,    ElementType::kC128};

// Calls `check` for operands of every two types (the second also as third) and each result that
// the shape function gives them, or allows.
void ForTypes(Opcode op,
              absl::FunctionRef<void(absl::Span<const ElementType>, ElementType)> check) {
  const auto owner = std::make_shared<Context>();
  Context& context = *owner;
  const Module module(owner);
  for (ElementType first : kSeveralTypes) {
    for (ElementType second : kSeveralTypes) {
      if (GetOpcodeInfo(op).arity == 1 && second != first) continue;
      const ElementType types[] = {first, second, second};
      const auto operands = absl::MakeConstSpan(types, GetOpcodeInfo(op).arity);
      std::vector<const Shape*> shapes;
      for (ElementType t : operands) shapes.push_back(context.MakeArray(t, {2}));
      for (ElementType result : kSeveralTypes) {
        const Shape* declared = context.MakeArray(result, {2});
        Diagnostic error;
        const Shape* made =
            InferShapeOrNull(context, module, op, shapes, AttributesFor(op), declared, &error);
        if (made == declared) check(operands, result);
      }
    }
  }
}

// What neither this evaluator nor XLA's runs: XLA makes remainders of complex numbers crash, and
// converts stochastically to signed integers alone.
bool NobodyRuns(Opcode op, ElementType result) {
  return (op == Opcode::kRemainder && IsComplex(result)) ||
         (op == Opcode::kStochasticConvert && !IsSignedInteger(result));
}

TEST(Elementwise, EveryOpHasAKernelForEveryTypeThatItsShapeAllows) {
  for (int k = 0; k < kNumOpcodes; ++k) {
    const auto op = static_cast<Opcode>(k);
    if (!HasTrait(op, kElementwise)) continue;
    int found = 0;
    ForTypes(op, [&](absl::Span<const ElementType> operands, ElementType result) {
      ++found;
      EXPECT_EQ(FindLaneKernel(op, AttributesFor(op), operands, result).valid(),
                !NobodyRuns(op, result))
          << ElementTypeName(result) << " " << OpcodeText(op) << " of "
          << ElementTypeName(operands[0]);
    });
    EXPECT_GT(found, 0) << OpcodeText(op);
  }
}

TEST(Elementwise, ComplexNumbersAreClampedByTheirRealParts) {
  EXPECT_THAT(Eval("a = c64[4] constant({(1,1), (1,7), (1,1), (0,0)})\n"
                   "b = c64[4] constant({(1,5), (1,5), (2,9), (6,3)})\n"
                   "c = c64[4] constant({(1,9), (1,9), (3,3), (5,2)})\n"
                   "d = c64[4] clamp(a, b, c)\nROOT r = f32[4] imag(d)"),
              ElementsAre(1, 7, 9, 2));
}

// op(x * by, y * by_second), at one element each.
double OfScaled(Opcode op, double by, double by_second) {
  const std::vector<double> r =
      Eval(absl::StrCat("a = f32[1] constant({", 3 * by, "})\nb = f32[1] constant({", 8 * by_second,
                        "})\nROOT r = f32[1] ", OpcodeText(op), "(a, b)"));
  return r.size() == 1 ? r[0] : 0;
}

TEST(Elementwise, OpsAreLinearAsTheirTraitsSay) {
  for (int k = 0; k < kNumOpcodes; ++k) {
    const auto op = static_cast<Opcode>(k);
    if (!HasTrait(op, kElementwise)) continue;
    const bool adds = HasTrait(op, kAddsOperands), multiplies = HasTrait(op, kBilinear);
    const bool divides = HasTrait(op, kMakesFractions);
    if (!adds && !multiplies && !divides) continue;
    EXPECT_EQ(adds + multiplies + divides, 1) << OpcodeText(op);
    const double once = OfScaled(op, 1, 1), twice = 2 * once;
    EXPECT_NE(once, 0) << OpcodeText(op);
    EXPECT_EQ(OfScaled(op, 2, 2) == twice, adds) << OpcodeText(op);
    EXPECT_EQ(OfScaled(op, 2, 1) == twice, !adds) << OpcodeText(op);
    EXPECT_EQ(OfScaled(op, 1, 2) == twice, multiplies) << OpcodeText(op);
    EXPECT_EQ(once != std::floor(once), divides) << OpcodeText(op);
  }
  EXPECT_TRUE(HasTrait(Opcode::kAdd, kAddsOperands) && HasTrait(Opcode::kMultiply, kBilinear) &&
              HasTrait(Opcode::kDivide, kMakesFractions));
}

TEST(Elementwise, IntegersWrap) {
  EXPECT_THAT(Eval("a = s8[2] constant({127, -128})\nb = s8[2] constant({1, -1})\n"
                   "ROOT r = s8[2] add(a, b)"),
              ElementsAre(-128, 127));
  EXPECT_THAT(Eval("a = s4[3] constant({7, -8, 3})\nb = s4[3] constant({1, -1, 4})\n"
                   "ROOT r = s4[3] multiply(a, b)"),
              ElementsAre(7, -8, -4));
  EXPECT_THAT(Eval("a = s32[1] constant({-2147483648})\nROOT r = s32[1] abs(a)"),
              ElementsAre(-2147483648.0));
}

TEST(Elementwise, ShiftsPastTheWidthGiveZeroOrTheSign) {
  const char* kOperands =
      "a = s8[4] constant({-8, -8, 64, -1})\n"
      "b = s8[4] constant({1, 8, 9, -1})\n";
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = s8[4] shift-left(a, b)")),
              ElementsAre(-16, 0, 0, 0));
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = s8[4] shift-right-logical(a, b)")),
              ElementsAre(124, 0, 0, 0));
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = s8[4] shift-right-arithmetic(a, b)")),
              ElementsAre(-4, -1, 0, -1));
}

TEST(Elementwise, BitCountsAreOfTheType) {
  EXPECT_THAT(Eval("a = u16[3] constant({0, 1, 65535})\nROOT r = u16[3] count-leading-zeros(a)"),
              ElementsAre(16, 15, 0));
  EXPECT_THAT(Eval("a = s8[2] constant({-1, 6})\nROOT r = s8[2] popcnt(a)"), ElementsAre(8, 2));
}

TEST(Elementwise, IntegersBelowAByteHaveTheirOwnWidth) {
  const char* kSigned = "a = s4[4] constant({-8, -1, 7, 0})\nb = s4[4] constant({1, 6, 2, -1})\n";
  EXPECT_THAT(Eval(absl::StrCat(kSigned, "ROOT r = s4[4] shift-right-logical(a, b)")),
              ElementsAre(4, 0, 1, 0));
  EXPECT_THAT(Eval(absl::StrCat(kSigned, "ROOT r = s4[4] mulhi(a, b)")), ElementsAre(-1, -1, 0, 0));
  EXPECT_THAT(Eval(absl::StrCat(kSigned, "ROOT r = s4[4] popcnt(a)")), ElementsAre(1, 4, 3, 0));
  const char* kUnsigned = "a = u2[4] constant({2, 3, 1, 0})\nb = u2[4] constant({1, 3, 1, 3})\n";
  EXPECT_THAT(Eval(absl::StrCat(kUnsigned, "ROOT r = u2[4] shift-right-arithmetic(a, b)")),
              ElementsAre(3, 3, 0, 0));
  EXPECT_THAT(Eval(absl::StrCat(kUnsigned, "ROOT r = u2[4] count-leading-zeros(a)")),
              ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(Eval(absl::StrCat(kUnsigned, "ROOT r = u2[4] mulhi(a, b)")), ElementsAre(0, 2, 0, 0));
}

TEST(Elementwise, MaximumPassesNanAndOrdersZeros) {
  const auto r = RunText(
      "a = f32[3] constant({nan, -0.0, 1})\nb = f32[3] constant({1, 0.0, nan})\n"
      "ROOT r = f32[3] maximum(a, b)");
  ASSERT_TRUE(r.ok()) << r.status();
  const float* x = (*r)[0].data<float>();
  EXPECT_TRUE(std::isnan(x[0]));
  EXPECT_FALSE(std::signbit(x[1]));
  EXPECT_TRUE(std::isnan(x[2]));
}

TEST(Elementwise, PredicatesAddAsOrAndMultiplyAsAnd) {
  const char* kOperands =
      "a = pred[4] constant({0, 0, 1, 1})\nb = pred[4] constant({0, 1, 0, 1})\n";
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = pred[4] add(a, b)")), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = pred[4] multiply(a, b)")),
              ElementsAre(0, 0, 0, 1));
}

TEST(Elementwise, TotalOrderTellsNanOfNarrowTypesApart) {
  // f8e4m3 0x79 and 0x7c are NaN; so is f8e5m2fnuz 0x80, as a negative one.
  EXPECT_THAT(Eval("i = u8[2] constant({121, 124})\na = f8e4m3[2] bitcast-convert(i)\n"
                   "j = u8[2] constant({124, 121})\nb = f8e4m3[2] bitcast-convert(j)\n"
                   "ROOT r = pred[2] compare(a, b), direction=LT, type=TOTALORDER"),
              ElementsAre(1, 0));
  EXPECT_THAT(Eval("i = u8[2] constant({128, 0})\na = f8e5m2fnuz[2] bitcast-convert(i)\n"
                   "b = f8e5m2fnuz[2] constant({-57344, nan})\n"
                   "ROOT r = pred[2] compare(a, b), direction=LT, type=TOTALORDER"),
              ElementsAre(1, 0));
}

TEST(Elementwise, ReducedPrecisionOfF16HasItsOwnExponents) {
  // 2^-15 is subnormal in f16: kept as long as no exponent bit goes.
  const char* kOperand = "a = f16[2] constant({3.0517578125e-05, 1.0009765625})\n";
  EXPECT_THAT(Eval(absl::StrCat(kOperand,
                                "ROOT r = f16[2] reduce-precision(a), exponent_bits=5, "
                                "mantissa_bits=9")),
              ElementsAre(3.0517578125e-05, 1));
  EXPECT_THAT(Eval(absl::StrCat(kOperand,
                                "ROOT r = f16[2] reduce-precision(a), exponent_bits=4, "
                                "mantissa_bits=10")),
              ElementsAre(0, 1.0009765625));
}

TEST(Elementwise, StochasticConvertRoundsUpWhereTheFractionIsLargerThanTheRandomNumber) {
  EXPECT_THAT(Eval("a = f32[6] constant({1.5, 1.5, -1.5, 300, -128, nan})\n"
                   "b = u32[6] constant({2147483647, 2147483648, 0, 0, 0, 0})\n"
                   "ROOT r = s8[6] stochastic-convert(a, b)"),
              ElementsAre(2, 1, -2, 127, -128, 0));
  EXPECT_THAT(Eval("a = bf16[2] constant({7, -0.25})\nb = u16[2] constant({0, 16384})\n"
                   "ROOT r = s4[2] stochastic-convert(a, b)"),
              ElementsAre(7, 0));
}

TEST(Elementwise, ComplexFunctionsDoNotCancelNearZero) {
  const auto r = RunText(
      "a = c64[1] constant({(1e-4, 0)})\nb = c64[1] exponential-minus-one(a)\n"
      "c = c64[1] log-plus-one(a)\nd = c64[1] sinh(a)\n"
      "ROOT r = (c64[1], c64[1], c64[1]) tuple(b, c, d)");
  ASSERT_TRUE(r.ok()) << r.status();
  const float want[] = {1.00005e-4f, 9.9995e-5f, 1e-4f};
  for (int k = 0; k < 3; ++k) EXPECT_FLOAT_EQ((*r)[k].data<float>()[0], want[k]) << k;
}

TEST(Elementwise, ComparesPartiallyOrTotally) {
  const char* kOperands =
      "a = f32[3] constant({nan, -0.0, 1})\nb = f32[3] constant({nan, 0.0, inf})\n";
  EXPECT_THAT(Eval(absl::StrCat(kOperands, "ROOT r = pred[3] compare(a, b), direction=EQ")),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(Eval(absl::StrCat(kOperands,
                                "ROOT r = pred[3] compare(a, b), direction=LE, type=TOTALORDER")),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(Eval(absl::StrCat(kOperands,
                                "ROOT r = pred[3] compare(a, b), direction=EQ, type=TOTALORDER")),
              ElementsAre(1, 0, 0));
}

TEST(Elementwise, ConvertSaturatesFloatsAndWrapsIntegers) {
  EXPECT_THAT(Eval("a = f32[6] constant({nan, inf, -inf, 300, -2.7, 127.9})\n"
                   "ROOT r = s8[6] convert(a)"),
              ElementsAre(0, 127, -128, 127, -2, 127));
  EXPECT_THAT(Eval("a = s32[3] constant({300, -1, 128})\nROOT r = s8[3] convert(a)"),
              ElementsAre(44, -1, -128));
  EXPECT_THAT(Eval("a = f32[3] constant({9, -9, 2.5})\nROOT r = s4[3] convert(a)"),
              ElementsAre(7, -8, 2));
  EXPECT_THAT(Eval("a = f32[3] constant({0, 0.25, nan})\nROOT r = pred[3] convert(a)"),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(Eval("a = s64[2] constant({9007199254740993, 3})\nROOT r = f32[2] convert(a)"),
              ElementsAre(9007199254740992.0, 3));
}

TEST(Elementwise, ConvertToAWiderComplexTypeInPlaceReadsBeforeItWrites) {
  EXPECT_THAT(Eval("a = s64[3] constant({1, -2, 3})\nb = s64[3] add(a, a)\n"
                   "ROOT r = c64[3] convert(b)"),
              ElementsAre(2, -4, 6));
}

TEST(Elementwise, NarrowFloatsRoundEachOperation) {
  // 256 + 1 is no bf16; the tie goes to even.
  EXPECT_THAT(Eval("a = bf16[2] constant({256, 258})\nb = bf16[2] constant({1, 1})\n"
                   "ROOT r = bf16[2] add(a, b)"),
              ElementsAre(256, 260));
}

TEST(Elementwise, ReducePrecisionRoundsToEvenAndKeepsNan) {
  const std::vector<double> r = Eval(
      "a = f32[4] constant({1.00390625, 1e38, 1e-38, nan})\n"
      "ROOT r = f32[4] reduce-precision(a), exponent_bits=5, mantissa_bits=7");
  EXPECT_EQ(r[0], 1);
  EXPECT_EQ(r[1], INFINITY);
  EXPECT_EQ(r[2], 0);
  EXPECT_TRUE(std::isnan(r[3]));
}

TEST(Elementwise, ClampTakesScalarBounds) {
  EXPECT_THAT(
      Eval("l = f32[] constant(-1)\nx = f32[3] constant({-5, 0, 5})\nh = f32[] constant(2)\n"
           "ROOT r = f32[3] clamp(l, x, h)"),
      ElementsAre(-1, 0, 2));
}

TEST(Elementwise, RoundsHalvesAwayOrToEven) {
  EXPECT_THAT(Eval("a = f32[4] constant({0.5, 1.5, -2.5, 2.4})\n"
                   "ROOT r = f32[4] round-nearest-afz(a)"),
              ElementsAre(1, 2, -3, 2));
  EXPECT_THAT(Eval("a = f32[4] constant({0.5, 1.5, -2.5, 2.4})\n"
                   "ROOT r = f32[4] round-nearest-even(a)"),
              ElementsAre(0, 2, -2, 2));
}

TEST(Elementwise, ComplexPartsAndProducts) {
  EXPECT_THAT(Eval("a = c64[2] constant({(1, 2), (0, 1)})\nb = c64[2] constant({(3, -1), (0, 1)})\n"
                   "p = c64[2] multiply(a, b)\nROOT r = f32[2] imag(p)"),
              ElementsAre(5, 0));
  EXPECT_THAT(Eval("a = c64[1] constant({(3, 4)})\nROOT r = f32[1] abs(a)"), ElementsAre(5));
}

TEST(Elementwise, IntegerPowers) {
  EXPECT_THAT(
      Eval("a = s32[5] constant({3, 2, -1, 5, 0})\nb = s32[5] constant({4, 31, -3, -2, 0})\n"
           "ROOT r = s32[5] power(a, b)"),
      ElementsAre(81, -2147483648.0, -1, 0, 1));
}

TEST(Elementwise, AnOpcodeOnATypeThatItIsNotForIsRefusedWithItsName) {
  const auto r = RunText("a = s32[2] constant({1, 2})\nROOT bad = s32[2] stochastic-convert(a, a)");
  EXPECT_EQ(r.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(r.status().message()),
              testing::AllOf(testing::StartsWith("E310"), testing::HasSubstr("stochastic-convert"),
                             testing::HasSubstr("%bad")));
}

}  // namespace
}  // namespace shardcall
