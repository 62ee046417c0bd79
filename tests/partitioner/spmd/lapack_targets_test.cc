// SPDX-License-Identifier: Apache-2.0
// LAPACK's targets by their older names, whose sizes and options are operands: the
// same results as by the typed ones, bit for bit, and that over sharded batches too.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// Shapes have B for the batch, T and R for the type and its real one, C for its
// complex one; the matrix is [B,4,4], named a, another one b, and tau is [B,3].
struct Routine {
  std::string old_name, typed_name;  // with ? for the type's letter
  std::vector<std::string> scalars;  // "s32 4"; B is the batch
  std::string arrays;                // operands behind, "a, tau"
  std::vector<std::string> old_results;
  std::string config;
  std::vector<std::string> typed_results;
  std::vector<std::pair<int, int>> same;  // old, typed
};

const char kMatrix[] = "T[B,4,4]";
const char kInfo[] = "s32[B]";

std::vector<Routine> Routines(bool complex) {
  const std::string letters = complex ? "un" : "or", symmetric = complex ? "he" : "sy";
  std::vector<Routine> all = {
      {"lapack_?getrf",
       "lapack_?getrf_ffi",
       {"s32 B", "s32 4", "s32 4"},
       "a",
       {kMatrix, "s32[B,4]", kInfo},
       "{}",
       {kMatrix, "s32[B,4]", kInfo},
       {{0, 0}, {1, 1}, {2, 2}}},
      {"lapack_?geqrf",
       "lapack_?geqrf_ffi",
       {"s32 B", "s32 4", "s32 4", "s32 128"},
       "a",
       {kMatrix, "T[B,4]", kInfo, "T[128]"},
       "{}",
       {kMatrix, "T[B,4]"},
       {{0, 0}, {1, 1}}},
      {"lapack_?" + letters + "gqr",
       "lapack_?" + letters + "gqr_ffi",
       {"s32 B", "s32 4", "s32 4", "s32 3", "s32 128"},
       "a, tau",
       {kMatrix, kInfo, "T[128]"},
       "{}",
       {kMatrix},
       {{0, 0}}},
      {"lapack_?potrf",
       "lapack_?potrf_ffi",
       {"s32 1", "s32 B", "s32 4"},
       "a",
       {kMatrix, kInfo},
       "{uplo = 76 : ui8}",
       {kMatrix, kInfo},
       {{0, 0}, {1, 1}}},
      {"lapack_?" + symmetric + "trd",
       "lapack_?" + symmetric + "trd_ffi",
       {"s32 4", "s32 0", "s32 4", "s32 B", "s32 32"},
       "a",
       {kMatrix, "R[B,4]", "R[B,3]", "T[B,3]", kInfo, "T[32]"},
       "{uplo = 85 : ui8}",
       {kMatrix, "R[B,4]", "R[B,3]", "T[B,3]", kInfo},
       {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}},
      {"lapack_?gehrd",
       "lapack_?gehrd_ffi",
       {"s32 4", "s32 1", "s32 4", "s32 4", "s32 B", "s32 32"},
       "a",
       {kMatrix, "T[B,3]", kInfo, "T[32]"},
       "{low = 1 : i32, high = 4 : i32}",
       {kMatrix, "T[B,3]", kInfo},
       {{0, 0}, {1, 1}, {2, 2}}},
      {"blas_?trsm",
       "lapack_?trsm_ffi",
       {"s32 1", "s32 1", "s32 1", "s32 0", "s32 4", "s32 4", "s32 B", "T 1"},
       "a, b",
       {kMatrix},
       "{side = 76 : ui8, uplo = 76 : ui8, trans_x = 84 : ui8, diag = 78 : ui8}",
       {kMatrix},
       {{0, 0}}},
      {"cublas_getrf_batched",
       "lapack_?getrf_ffi",
       {},
       "a",
       {kMatrix, "s32[B,4]", kInfo, "s8[64]"},
       "{}",
       {kMatrix, "s32[B,4]", kInfo},
       {{0, 0}, {1, 1}, {2, 2}}},
  };
  const std::vector<std::string> eigen = {"s32 B", "s32 4", "u8 86", "u8 86"};
  const std::vector<std::string> svd = {"s32 0", "s32 1", "s32 B", "s32 4", "s32 4", "s32 500"};
  const std::string svd_mode = "{mode = 83 : ui8}";
  const std::string both_mode = "{mode = 86 : ui8, uplo = 76 : ui8}";
  const std::string eigen_mode = "{compute_left = 86 : ui8, compute_right = 86 : ui8}";
  const std::string schur_mode = "{mode = 86 : ui8, sort = 78 : ui8}";
  const std::vector<std::string> svd_typed = {kMatrix, "R[B,4]", kMatrix, kMatrix, kInfo};
  if (complex) {
    all.push_back({"lapack_?heevd",
                   "lapack_?heevd_ffi",
                   {"s32 1", "s32 B", "s32 4"},
                   "a",
                   {kMatrix, "R[B,4]", kInfo, "T[99]", "R[99]", "s32[23]"},
                   both_mode,
                   {kMatrix, "R[B,4]", kInfo},
                   {{0, 0}, {1, 1}, {2, 2}}});
    all.push_back({"lapack_?geev",
                   "lapack_?geev_ffi",
                   eigen,
                   "a",
                   {"T[4,4]", "R[8]", "T[B,4]", kMatrix, kMatrix, kInfo},
                   eigen_mode,
                   {"T[B,4]", kMatrix, kMatrix, kInfo},
                   {{2, 0}, {3, 1}, {4, 2}, {5, 3}}});
    all.push_back({"lapack_?gees",
                   "lapack_?gees_ffi",
                   {"s32 B", "s32 4", "u8 86", "u8 78"},
                   "a",
                   {kMatrix, "R[4]", "T[B,4]", kMatrix, kInfo, kInfo},
                   schur_mode,
                   {kMatrix, kMatrix, "T[B,4]", kInfo, kInfo},
                   {{0, 0}, {2, 2}, {3, 1}, {4, 3}, {5, 4}}});
    all.push_back({"lapack_?gesdd",
                   "lapack_?gesdd_ffi",
                   svd,
                   "a",
                   {kMatrix, "R[B,4]", kMatrix, kMatrix, kInfo, "s32[32]", "R[99]", "T[500]"},
                   svd_mode,
                   svd_typed,
                   {{1, 1}, {2, 2}, {3, 3}, {4, 4}}});
  } else {
    all.push_back({"lapack_?syevd",
                   "lapack_?syevd_ffi",
                   {"s32 1", "s32 B", "s32 4"},
                   "a",
                   {kMatrix, "R[B,4]", kInfo, "T[99]", "s32[23]"},
                   both_mode,
                   {kMatrix, "R[B,4]", kInfo},
                   {{0, 0}, {1, 1}, {2, 2}}});
    all.push_back(
        {"lapack_?geev",
         "lapack_?geev_ffi",
         eigen,
         "a",
         {"T[4,4]", "T[4,4]", "T[4,4]", "T[B,4]", "T[B,4]", "C[B,4,4]", "C[B,4,4]", kInfo},
         eigen_mode,
         {"T[B,4]", "T[B,4]", "C[B,4,4]", "C[B,4,4]", kInfo},
         {{3, 0}, {4, 1}, {5, 2}, {6, 3}, {7, 4}}});
    all.push_back({"lapack_?gees",
                   "lapack_?gees_ffi",
                   {"s32 B", "s32 4", "u8 86", "u8 78"},
                   "a",
                   {kMatrix, "T[B,4]", "T[B,4]", kMatrix, kInfo, kInfo},
                   schur_mode,
                   {kMatrix, kMatrix, "T[B,4]", "T[B,4]", kInfo, kInfo},
                   {{0, 0}, {1, 2}, {2, 3}, {3, 1}, {4, 4}, {5, 5}}});
    all.push_back({"lapack_?gesdd",
                   "lapack_?gesdd_ffi",
                   svd,
                   "a",
                   {kMatrix, "R[B,4]", kMatrix, kMatrix, kInfo, "s32[32]", "T[500]"},
                   svd_mode,
                   svd_typed,
                   {{1, 1}, {2, 2}, {3, 3}, {4, 4}}});
  }
  return all;
}

std::string ResultText(const std::vector<std::string>& shapes) {
  return shapes.size() == 1 ? shapes[0] : absl::StrCat("(", absl::StrJoin(shapes, ", "), ")");
}

// Both calls on the same operands, and the differences of what should be the same.
std::string Program(const Routine& r, char letter, const std::string& sharding) {
  std::string text = absl::StrCat(R"(HloModule m, num_partitions=4

ENTRY main {
  x = T[B,4,4] parameter(0)SHARDED
  b = T[B,4,4] parameter(1)
  tau = T[B,3] parameter(2)
  row = s32[B,4,4] iota(), iota_dimension=1
  column = s32[B,4,4] iota(), iota_dimension=2
  diagonal = pred[B,4,4] compare(row, column), direction=EQ
  large = T[] constant(LARGE)
  many = T[B,4,4] broadcast(large), dimensions={}
  heavy = T[B,4,4] add(x, many)
  a = T[B,4,4] select(diagonal, heavy, x)
)");
  std::vector<std::string> operands, outputs, shapes;
  for (size_t k = 0; k < r.scalars.size(); ++k) {
    const std::string name = absl::StrCat("k", k);
    const std::string type = r.scalars[k].substr(0, r.scalars[k].find(' '));
    const std::string value = r.scalars[k].substr(r.scalars[k].find(' ') + 1);
    absl::StrAppend(&text, "  ", name, " = ", type, "[] constant(", type == "T" ? "ONE" : value,
                    ")\n");
    operands.push_back(name);
  }
  operands.push_back(r.arrays);
  absl::StrAppend(&text, "  old = ", ResultText(r.old_results), " custom-call(",
                  absl::StrJoin(operands, ", "), "), custom_call_target=\"", r.old_name,
                  "\", api_version=API_VERSION_STATUS_RETURNING\n");
  absl::StrAppend(&text, "  typed = ", ResultText(r.typed_results), " custom-call(", r.arrays,
                  "), custom_call_target=\"", r.typed_name,
                  "\", api_version=API_VERSION_TYPED_FFI, backend_config=", r.config, "\n");
  auto element = [&](const std::string& of, const std::vector<std::string>& results, int k) {
    if (results.size() == 1) return of;
    const std::string name = absl::StrCat(of, k);
    absl::StrAppend(&text, "  ", name, " = ", results[k], " get-tuple-element(", of, "), index=", k,
                    "\n");
    return name;
  };
  for (const auto& [i, j] : r.same) {
    const std::string a = element("old", r.old_results, i);
    const std::string b = element("typed", r.typed_results, j);
    const std::string name = absl::StrCat("d", i);
    absl::StrAppend(&text, "  ", name, " = ", r.old_results[i], " subtract(", a, ", ", b, ")\n");
    outputs.push_back(name);
    shapes.push_back(r.old_results[i]);
  }
  // The first result itself, so that the test sees numbers.
  outputs.push_back(r.old_results.size() == 1 ? "old" : absl::StrCat("old", r.same[0].first));
  shapes.push_back(r.old_results[r.same[0].first]);
  absl::StrAppend(&text, "  ROOT t = (", absl::StrJoin(shapes, ", "), ") tuple(",
                  absl::StrJoin(outputs, ", "), ")\n}\n");
  const bool complex = letter == 'c' || letter == 'z';
  const bool wide = letter == 'd' || letter == 'z';
  const std::string real = wide ? "f64" : "f32", cplx = wide ? "c128" : "c64";
  const std::string type = complex ? cplx : real;
  return absl::StrReplaceAll(
      absl::StrReplaceAll(text, {{"[B", "[6"}, {"constant(B)", "constant(6)"}}),
      {{"T[", type + "["},
       {"R[", real + "["},
       {"C[", cplx + "["},
       {"?", std::string(1, letter)},
       {"LARGE", complex ? "(9, 0)" : "9"},
       {"ONE", complex ? "(1, 0)" : "1"},
       {"SHARDED", sharding}});
}

class UntypedLapack : public testing::TestWithParam<char> {};

TEST_P(UntypedLapack, GivesWhatTheTypedTargetsGive) {
  const bool complex = GetParam() == 'c' || GetParam() == 'z';
  for (const Routine& r : Routines(complex)) {
    for (const char* sharding :
         {"", ", sharding={devices=[4,1,1]<=[4]}", ", sharding={devices=[2,2,1]<=[4]}"}) {
      const std::string text = Program(r, GetParam(), sharding);
      const auto result = VerifyText(text, {});
      ASSERT_TRUE(result.ok()) << result.status() << "\n" << text;
      EXPECT_EQ(result->status, VerifyResult::Status::kOk) << result->reason << "\n" << text;
      ASSERT_EQ(result->outputs.size(), r.same.size() + 1) << text;
      for (size_t k = 0; k < r.same.size(); ++k) {
        EXPECT_EQ(result->outputs[k].largest, 0) << r.old_name << " result " << k << "\n" << text;
      }
      EXPECT_GT(result->outputs.back().largest, 0) << r.old_name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Types, UntypedLapack, testing::Values('s', 'd', 'c', 'z'),
                         [](const auto& info) { return std::string(1, info.param); });

TEST(UntypedLapack, ADeviceIsToldTheBatchThatItHas) {
  const Routine r = Routines(false)[0];
  const auto program = PartitionText(Program(r, 's', ", sharding={devices=[4,1,1]<=[4]}"), {});
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = LocalText(**program);
  EXPECT_NE(text.find("s32[] constant(2)"), std::string::npos) << text;
  EXPECT_NE(text.find("(f32[2,4,4]{2,1,0}, s32[2,4]{1,0}, s32[2]{0}) custom-call"),
            std::string::npos)
      << text;
}

TEST(UntypedLapack, AnOpaqueBatchIsNotHandedOn) {
  const std::string text = R"(HloModule m, num_partitions=4

ENTRY main {
  a = f32[8,3,3] parameter(0)SHARDED
  c = (f32[8,3,3], s32[8,3], s32[8], s8[64]) custom-call(a), custom_call_target="cublas_getrf_batched", backend_config="eight of three"
  ROOT lu = f32[8,3,3] get-tuple-element(c), index=0
}
)";
  for (const bool sharded : {false, true}) {
    const auto program =
        PartitionText(absl::StrReplaceAll(
                          text, {{"SHARDED", sharded ? ", sharding={devices=[4,1,1]<=[4]}" : ""}}),
                      {});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(LocalText(**program).find("eight of three") == std::string::npos, sharded);
  }
}

TEST(UntypedLapack, OperandsThatContradictTheShapesAreRefused) {
  auto says = [](int operand, const std::string& value, const Routine& routine) {
    Routine r = routine;
    r.scalars[operand] = value;
    const auto result = VerifyText(Program(r, 's', ""), {});
    return result.ok() ? result->reason : std::string(result.status().message());
  };
  const std::vector<Routine> all = Routines(false);
  EXPECT_THAT(says(0, "s32 5", all[0]), testing::HasSubstr("E133"));
  EXPECT_THAT(says(1, "s32 3", all[0]), testing::HasSubstr("expected 4, found 3"));
  EXPECT_THAT(says(0, "s32 2", all[3]), testing::HasSubstr("E131"));
  EXPECT_THAT(says(2, "s32 7", all[6]), testing::HasSubstr("0 (N), 1 (T) or 2 (C)"));
  EXPECT_THAT(says(0, "u8 6", all[0]), testing::HasSubstr("E134"));
}

}  // namespace
}  // namespace shardcall
