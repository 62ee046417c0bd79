// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/matrix_calls.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// A program with these instructions behind the parameters a and b, of 4 x 4.
Module Parsed(absl::string_view body) {
  auto m = ParseModule(std::make_shared<const std::string>(
                           absl::StrCat("HloModule m\n\nENTRY main {\n  a = f32[4,4] parameter(0)\n"
                                        "  b = f32[4,4] parameter(1)\n  ROOT ",
                                        body, "\n}\n")),
                       std::make_shared<Context>(), "test.hlo");
  SHARDCALL_CHECK(m.ok());
  return *std::move(m);
}
const Instruction& Root(const Module& m) { return m.instr(m.comp(m.entry()).root); }

std::string Potrf(absl::string_view target, absl::string_view layout, absl::string_view config) {
  return absl::StrCat("c = (f32[4,4]", layout, ", s32[]) custom-call(a), custom_call_target=\"",
                      target, "\", operand_layout_constraints={f32[4,4]", layout,
                      "}, api_version=API_VERSION_TYPED_FFI, backend_config=", config);
}
std::optional<CholeskyForm> FactorOf(absl::string_view body) {
  return CholeskyFormOf(Root(Parsed(body)));
}

TEST(MatrixCalls, AFactorIsThatOfTheTriangleThatIsRead) {
  const auto op = FactorOf("c = f32[4,4] cholesky(a), lower=true");
  ASSERT_TRUE(op.has_value());
  EXPECT_TRUE(op->lower);
  EXPECT_FALSE(op->is_call);
  for (const bool lower : {true, false}) {
    for (const std::string& call :
         {Potrf("lapack_spotrf_ffi", "{0,1}", lower ? "{uplo = 76 : ui8}" : "{uplo = 85 : ui8}"),
          Potrf("cusolver_potrf_ffi", "{0,1}", lower ? "{lower = true}" : "{lower = false}")}) {
      const auto form = FactorOf(call);
      ASSERT_TRUE(form.has_value()) << call;
      EXPECT_EQ(form->lower, lower) << call;
      EXPECT_TRUE(form->is_call);
    }
  }
}

TEST(MatrixCalls, RowMajorMatricesAndOtherTargetsAreNotTaken) {
  EXPECT_FALSE(FactorOf(Potrf("lapack_spotrf_ffi", "{1,0}", "{uplo = 76 : ui8}")).has_value());
  EXPECT_FALSE(FactorOf(Potrf("lapack_spotrf2_ffi", "{0,1}", "{uplo = 76 : ui8}")).has_value());
  EXPECT_FALSE(FactorOf("c = f32[4,4] negate(a)").has_value());
}

TEST(MatrixCalls, CallsWithOtherOperandsAndResultsAreNotTaken) {
  const absl::string_view rest =
      "api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8, side = 76 : ui8}";
  for (const absl::string_view call :
       {"c = f32[4,4]{0,1} custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", "
        "operand_layout_constraints={f32[4,4]{0,1}}, ",
        "c = (f32[4,4]{0,1}, f32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", "
        "operand_layout_constraints={f32[4,4]{0,1}}, ",
        "c = (f32[4,4]{0,1}, s32[]) custom-call(a, b), custom_call_target=\"lapack_spotrf_ffi\", "
        "operand_layout_constraints={f32[4,4]{0,1}, f32[4,4]{0,1}}, ",
        "c = f32[4,4]{0,1} custom-call(a), custom_call_target=\"lapack_strsm_ffi\", "
        "operand_layout_constraints={f32[4,4]{0,1}}, ",
        "c = f32[2,4]{0,1} custom-call(a, b), custom_call_target=\"lapack_strsm_ffi\", "
        "operand_layout_constraints={f32[4,4]{0,1}, f32[4,4]{0,1}}, "}) {
    const Module m = Parsed(absl::StrCat(call, rest));
    EXPECT_FALSE(CholeskyFormOf(Root(m)).has_value()) << call;
    EXPECT_FALSE(TriangularSolveFormOf(Root(m)).has_value()) << call;
  }
}

TEST(MatrixCalls, SystemsAreThoseThatTheLettersSay) {
  for (const int side : {'L', 'R'}) {
    for (const int triangle : {'L', 'U'}) {
      for (const int transpose : {'N', 'T', 'C'}) {
        const Module m = Parsed(absl::StrCat(
            "x = f32[4,4]{0,1} custom-call(a, b), custom_call_target=\"lapack_strsm_ffi\", "
            "operand_layout_constraints={f32[4,4]{0,1}, f32[4,4]{0,1}}, "
            "api_version=API_VERSION_TYPED_FFI, backend_config={side = ",
            side, " : ui8, uplo = ", triangle, " : ui8, trans_x = ", transpose,
            " : ui8, diag = 78 : ui8}"));
        const auto form = TriangularSolveFormOf(Root(m));
        ASSERT_TRUE(form.has_value());
        EXPECT_EQ(form->left, side == 'L');
        EXPECT_EQ(form->lower, triangle == 'L');
        EXPECT_EQ(form->transposed, transpose != 'N');
        EXPECT_EQ(form->conjugated, transpose == 'C');
      }
    }
  }
}

}  // namespace
}  // namespace shardcall
