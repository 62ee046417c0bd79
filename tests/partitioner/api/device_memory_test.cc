// SPDX-License-Identifier: Apache-2.0
// The memory of small programs by the model of XLA's backends. The figures for XLA:CPU are those of
// jaxlib 0.10.2 (get_compiled_memory_stats), but for loops, whose counts and predicates take up to
// 64 bytes more there.
#include "shardcall/partitioner/api/device_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/text/parser.h"

namespace shardcall {
namespace {

Module Parsed(const std::string& text) {
  auto module = ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                            "test.hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

int64_t Temporaries(const std::string& text, XlaBackend backend) {
  return CountDeviceMemory(Parsed(text), backend).temporaries;
}

// Of a program with these instructions. F is f32[64,64], 16 KiB; MUL(x, y) is their product, and
// GROUPS are those of two devices.
struct Both {
  int64_t cpu = 0, gpu = 0;
};
std::string Text(const std::string& body) {
  return absl::StrReplaceAll(
      absl::StrCat("HloModule m, num_partitions=2\n", R"(add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ENTRY main {
  x = F parameter(0)
)",
                   body, "}\n"),
      {{"F ", "f32[64,64] "},
       {"F,", "f32[64,64],"},
       {"F)", "f32[64,64])"},
       {"MUL(", "dot("},
       {")MUL", "), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
       {"REDUCED", "replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add"}});
}
Both Of(const std::string& body) {
  return {Temporaries(Text(body), XlaBackend::kCpu), Temporaries(Text(body), XlaBackend::kGpu)};
}
constexpr int64_t kF = 64 * 64 * 4;

TEST(DeviceMemoryTest, AValueIsHeldToItsLastUse) {
  const Both m = Of(R"(  a = F MUL(x, x)MUL
  b = F MUL(a, x)MUL
  c = F MUL(b, b)MUL
  ROOT e = F MUL(c, x)MUL
)");
  EXPECT_EQ(m.cpu, 2 * kF);  // b with c; a is where the result will be
  EXPECT_EQ(m.gpu, 2 * kF);
  const DeviceMemory all = CountDeviceMemory(Parsed(Text("  ROOT a = F MUL(x, x)MUL\n")));
  EXPECT_EQ(all.arguments, kF);
  EXPECT_EQ(all.outputs, kF);
  EXPECT_EQ(all.temporaries, 0);
}

TEST(DeviceMemoryTest, ALargerResultHoldsOneTemporaryAtATimeUntilItIsWritten) {
  const Both m = Of(R"(  a = F MUL(x, x)MUL
  b = F MUL(a, a)MUL
  c = F MUL(b, b)MUL
  r = f32[128,64] concatenate(c, x), dimensions={0}
  ROOT e = f32[128,64] exponential(r)
)");
  EXPECT_EQ(m.cpu, 2 * kF);
  EXPECT_EQ(m.gpu, 2 * kF);
}

TEST(DeviceMemoryTest, ElementwiseValuesAreComputedWhereTheyAreUsed) {
  const Both m = Of(R"(  zero = f32[] constant(0)
  y = f32[64,16] slice(x), slice={[0:64], [0:16]}
  zeros = f32[64,16] broadcast(zero), dimensions={}
  a = f32[64,16] maximum(y, zeros)
  b = f32[64,16] multiply(a, a)
  ROOT e = f32[64] reduce(b, zero), dimensions={1}, to_apply=add
)");
  EXPECT_EQ(m.cpu, 0);
  EXPECT_EQ(m.gpu, 0);
}

TEST(DeviceMemoryTest, WhatIsUsedTwiceByOneKernelIsComputedInIt) {
  const Both m = Of(R"(  a = F exponential(x)
  b = F negate(a)
  c = F multiply(a, a)
  ROOT e = F add(b, c)
)");
  EXPECT_EQ(m.cpu, 0);
  EXPECT_EQ(m.gpu, 0);
}

TEST(DeviceMemoryTest, OnCpuWhatTakesLongIsStoredForTwoKernelsAndWhatDoesNotIsComputedTwice) {
  const std::string body = R"(  a = F exponential(x)
  b = F negate(a)
  c = f32[32,64] slice(a), slice={[0:32], [0:64]}
  ROOT t = (F, f32[32,64]) tuple(b, c)
)";
  EXPECT_EQ(Of(body).cpu, kF);
  EXPECT_EQ(Of(body).gpu, 0);
  EXPECT_EQ(Of(absl::StrReplaceAll(body, {{"exponential", "abs"}})).cpu, 0);
}

TEST(DeviceMemoryTest, AnElementwiseOpOverwritesAnOperandThatNothingElseUses) {
  const std::string body = R"(  a = F MUL(x, x)MUL
  b = F exponential(a)
  c = F MUL(b, x)MUL
  d = F MUL(c, b)MUL
  ROOT e = F MUL(d, c)MUL
)";
  EXPECT_EQ(Of(body).cpu, 2 * kF);
  EXPECT_EQ(Of(body).gpu, 2 * kF);
  // Not what it reads at other places.
  const std::string reversed =
      absl::StrReplaceAll(body, {{"exponential(a)", "reverse(a), dimensions={0}"}});
  EXPECT_EQ(Of(reversed).cpu, 3 * kF);
  EXPECT_EQ(Of(reversed).gpu, 3 * kF);
}

TEST(DeviceMemoryTest, OnCpuProductsOfNarrowFloatsAreComputedInWideOnes) {
  const Both m = Of(R"(  y = bf16[64,64] convert(x)
  a = bf16[64,64] MUL(y, y)MUL
  ROOT b = bf16[64,64] MUL(a, y)MUL
)");
  EXPECT_EQ(m.cpu, 3 * kF);  // y, a and b in f32
  EXPECT_EQ(m.gpu, kF);      // y and a
}

TEST(DeviceMemoryTest, AGatherOfColumnsIsPutIntoOrder) {
  const std::string body = R"(  y = f32[64,32] slice(x), slice={[0:64], [0:32]}
  g = F all-gather(y), channel_id=1, replica_groups={{0,1}}, dimensions={1}, use_global_device_ids=true
  ROOT d = f32[] dot(g, g), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
)";
  EXPECT_EQ(Of(body).cpu, 2 * kF);  // as gathered, and row by row
  const std::string rows =
      absl::StrReplaceAll(body, {{"f32[64,32] slice(x), slice={[0:64], [0:32]}",
                                  "f32[32,64] slice(x), slice={[0:32], [0:64]}"},
                                 {"dimensions={1}, use", "dimensions={0}, use"}});
  EXPECT_EQ(Of(rows).cpu, kF + kF / 2);
}

TEST(DeviceMemoryTest, ASumWithAScatterIntoZerosIsScatteredInto) {
  const Both m = Of(R"(  i = s32[8,1] parameter(1)
  u = f32[8,64] parameter(2)
  zero = f32[] constant(0)
  zeros = F broadcast(zero), dimensions={}
  s = F scatter(zeros, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  a = F MUL(x, x)MUL
  b = F add(a, s)
  ROOT d = F MUL(b, x)MUL
)");
  EXPECT_EQ(m.cpu, kF);
  EXPECT_EQ(m.gpu, kF);
}

TEST(DeviceMemoryTest, ReductionsOfOneKindRunTogether) {
  const Both m = Of(R"(  a = F MUL(x, x)MUL
  p = F all-reduce(a), channel_id=1, REDUCED
  b = F dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  q = F all-reduce(b), channel_id=2, REDUCED
  ROOT d = F MUL(p, q)MUL
)");
  EXPECT_EQ(m.cpu, 3 * kF + 16);  // a, p, q and the table of the pair; b is where d will be
}

TEST(DeviceMemoryTest, ACallWritesOverTheOperandsThatItNames) {
  const std::string body = R"(  a = F MUL(x, x)MUL
  b = F custom-call(a), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}
  c = F MUL(b, b)MUL
  ROOT d = F MUL(c, b)MUL
)";
  EXPECT_EQ(Of(body).gpu, 2 * kF);
  const std::string apart =
      absl::StrReplaceAll(body, {{", output_to_operand_aliasing={{}: (0, {})}", ""}});
  EXPECT_EQ(Of(apart).gpu, 2 * kF);  // a is where the result will be
  const std::string whole =
      absl::StrReplaceAll(apart, {{"ROOT d = F MUL(c, b)MUL", R"(e = F MUL(c, b)MUL
  ROOT d = f32[] dot(e, c), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1})"}});
  EXPECT_EQ(Of(whole).gpu, 3 * kF);
}

TEST(DeviceMemoryTest, ADonatedParameterHoldsNothingElseWhileItIsUsed) {
  const std::string body = R"(  a = F MUL(x, x)MUL
  b = F MUL(a, a)MUL
  ROOT c = F MUL(b, x)MUL
)";
  const std::string free = Text(body);
  const std::string donated = absl::StrReplaceAll(
      free, {{"num_partitions=2", "num_partitions=2, input_output_alias={ {}: (0, {}) }"}});
  EXPECT_EQ(Temporaries(free, XlaBackend::kGpu), kF);
  EXPECT_EQ(Temporaries(donated, XlaBackend::kGpu), 2 * kF);
  EXPECT_EQ(CountDeviceMemory(Parsed(donated)).aliased, kF);
}

TEST(DeviceMemoryTest, AResultIsInADonatedParameterOfItsSizeTheLargeOnesFirst) {
  const std::string text = Text(R"(  y = f32[32,64] parameter(1)
  z = F parameter(2)
  a = F MUL(x, z)MUL
  b = F MUL(a, z)MUL
  c = f32[32,64] slice(b), slice={[0:32], [0:64]}
  ROOT t = (f32[32,64], F, F) tuple(c, b, a)
)");
  const auto aliased = [&](absl::string_view header) {
    return CountDeviceMemory(
               Parsed(absl::StrReplaceAll(
                   text, {{"num_partitions=2", absl::StrCat("num_partitions=2, ", header)}})))
        .aliased;
  };
  EXPECT_EQ(aliased("buffer_donor={ (1, {}) }"), kF / 2);
  EXPECT_EQ(aliased("buffer_donor={ (0, {}), (1, {}) }"), kF + kF / 2);
  EXPECT_EQ(aliased("buffer_donor={ (0, {}), (2, {}) }"), 2 * kF);
  // A result that is in a parameter already does not take another one.
  EXPECT_EQ(aliased("buffer_donor={ (1, {}) }, input_output_alias={ {0}: (1, {}) }"), kF / 2);
  EXPECT_EQ(aliased("buffer_donor={ (0, {}), (2, {}) }, "
                    "input_output_alias={ {1}: (0, {}), {2}: (2, {}) }"),
            2 * kF);
}

TEST(DeviceMemoryTest, OnGpusAProductIsComputedWithWhatIsMadeOfIt) {
  const std::string body = R"(  y = bf16[64,64] parameter(1)
  a = F MUL(y, y)MUL
  n = bf16[64,64] convert(a)
  ROOT d = f32[] dot(n, n), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
)";
  EXPECT_EQ(Of(body).gpu, kF / 2);  // n
  // What is made of two large values is not.
  EXPECT_EQ(Of(absl::StrReplaceAll(body, {{"convert(a)", "convert(b)"},
                                          {"  n =",
                                           "  p = F MUL(x, y)MUL\n  b = F add(a, p)\n"
                                           "  n ="}}))
                .gpu,
            2 * kF + kF / 2);  // a, p and n
}

TEST(DeviceMemoryTest, OnGpusAProductReadsWhatIsAsSmallAsItsOperandsAndComputesThem) {
  const std::string body = R"(  y = bf16[64,64] parameter(1)
  w = F convert(y)
  a = F MUL(w, x)MUL
  b = f32[] dot(a, w), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
  ROOT r = f32[2] broadcast(b), dimensions={}
)";
  EXPECT_EQ(Of(body).gpu, kF + 4);  // a and b
  // To compute it of two values reads twice as much.
  EXPECT_EQ(
      Of(absl::StrReplaceAll(body, {{"convert(y)", "add(x, z)"}, {"y = bf16[64,64]", "z = F"}}))
          .gpu,
      2 * kF + 4);
}

TEST(DeviceMemoryTest, OnGpusWhatFreesMostRunsFirst) {
  // The program has both large values before it reduces them.
  const std::string text = Text(R"(  a = F MUL(x, x)MUL
  b = F dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  p = f32[] dot(a, a), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
  q = f32[] dot(b, b), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
  ROOT s = f32[] add(p, q)
)");
  EXPECT_EQ(Temporaries(text, XlaBackend::kGpu), kF + 4);   // one of them, and p
  EXPECT_EQ(EstimatePeakMemory(Parsed(text)), 3 * kF + 4);  // in the order of the program
}

TEST(DeviceMemoryTest, OnGpusACollectiveIsStartedBeforeStepsThatDoNotNeedIt) {
  const std::string body = R"(  a = F MUL(x, x)MUL
  p = F all-reduce(a), channel_id=1, REDUCED
  b = F dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT d = F MUL(p, b)MUL
)";
  // p, where a was, and b; and the addresses of the two lists, and of the operand, which have
  // places of their own.
  EXPECT_EQ(Of(body).gpu, 2 * kF + 2 * 256);
  // None where the other product needs it.
  EXPECT_EQ(Of(absl::StrReplaceAll(body, {{"dot(x, x)", "dot(p, x)"}})).gpu, 2 * kF);
}

TEST(DeviceMemoryTest, OnGpusKernelsOfTheSameValueAreOneWithATableOfItsResults) {
  const std::string body = R"(  a = F dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  b = F negate(a)
  c = F exponential(a)
  ROOT t = (F, F) tuple(b, c)
)";
  EXPECT_EQ(Of(body).gpu, 256);  // the addresses of b and c; a is where c will be
  EXPECT_EQ(Of(absl::StrReplaceAll(body, {{"exponential(a)",
                                           "dot(a, a), lhs_contracting_dims={0}, "
                                           "rhs_contracting_dims={0}"}}))
                .gpu,
            0);
  // One that reads the other one, which is stored, is computed with it, but for what another
  // kernel makes in between.
  const std::string chain = absl::StrReplaceAll(body, {{"exponential(a)", "exponential(b)"}});
  EXPECT_EQ(Of(chain).gpu, 256);
  EXPECT_EQ(Of(absl::StrReplaceAll(chain, {{"exponential(b)", "MUL(e, b)MUL"},
                                           {"  c =",
                                            "  e = F dot(b, b), lhs_contracting_dims={0}, "
                                            "rhs_contracting_dims={0}\n  c ="}}))
                .gpu,
            kF);
}

TEST(DeviceMemoryTest, TuplesAndTheirPartsAreTheMemoryOfWhatTheyHold) {
  const DeviceMemory m = CountDeviceMemory(Parsed(Text(R"(  a = F MUL(x, x)MUL
  t = (F, F) tuple(a, x)
  g = F get-tuple-element(t), index=0
  b = F add(g, g)
  ROOT r = (F, F) tuple(b, x)
)")));
  EXPECT_EQ(m.outputs, 2 * kF);
  EXPECT_EQ(m.temporaries, 0);  // nobody reads t as a tuple; a is where b will be
}

TEST(DeviceMemoryTest, WhatReinterpretsOrOrdersValuesHasNoMemoryOfItsOwn) {
  const Both m = Of(R"(  a = F MUL(x, x)MUL
  k = token[] after-all()
  b = F add-dependency(a, k)
  c = f32[32,128] reshape(b)
  d = f32[32,128] copy(c)
  ROOT e = f32[64,32] dot(x, d), lhs_contracting_dims={1}, rhs_contracting_dims={1}
)");
  EXPECT_EQ(m.gpu, kF);
}

// A loop whose body gives i + 1 and y, made by `body` of x, and that begins with `init` of a.
std::string Loop(const std::string& body, const std::string& init, const std::string& by = "g") {
  return absl::StrReplaceAll(absl::StrCat(R"(
HloModule m
body {
  p = (s32[], F) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = F get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
)",
                                          body, R"(  ROOT r = (s32[], F) tuple(next, y)
}
condition {
  p = (s32[], F) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  a = F parameter(0)
)",
                                          init, R"(  zero = s32[] constant(0)
  t = (s32[], F) tuple(zero, x)
  w = (s32[], F) while(t), condition=condition, body=body
  g = F get-tuple-element(w), index=1
  ROOT r = F MUL(g, )",
                                          by, ")MUL\n}\n"),
                             {{"F ", "f32[64,64] "},
                              {"F)", "f32[64,64])"},
                              {"MUL(", "dot("},
                              {")MUL", "), lhs_contracting_dims={1}, rhs_contracting_dims={0}"}});
}
// What a loop needs beside its array: the table of its tuple, and no more than 320 bytes of counts
// and predicates, each of which begins at a multiple of 256.
void ExpectLoop(const std::string& text, int64_t arrays) {
  for (const XlaBackend backend : {XlaBackend::kCpu, XlaBackend::kGpu}) {
    EXPECT_GE(Temporaries(text, backend), arrays * kF + 16) << text;
    EXPECT_LE(Temporaries(text, backend), arrays * kF + 320) << text;
  }
}
constexpr char kProduct[] = "  x = F MUL(a, a)MUL\n";
constexpr char kExponential[] = "  y = F exponential(x)\n";

TEST(DeviceMemoryTest, ALoopWorksInTheMemoryOfWhatItBeginsWith) {
  ExpectLoop(Loop(kExponential, kProduct), 1);
}

TEST(DeviceMemoryTest, ALoopCopiesWhatBeginsAsAParameterOrIsUsedAfterIt) {
  ExpectLoop(Loop(kExponential, "  x = F copy(a)\n"), 1);
  ExpectLoop(Loop(kExponential, kProduct, "x"), 2);
}

TEST(DeviceMemoryTest, ABodyHasRoomForANewValueWhileItUsesTheOldOne) {
  // Where the result will be.
  ExpectLoop(Loop("  y = F MUL(x, x)MUL\n", kProduct), 1);
  // That holds one array only.
  ExpectLoop(Loop("  z = F MUL(x, x)MUL\n  y = F MUL(z, x)MUL\n", kProduct), 2);
}

TEST(DeviceMemoryTest, WhatALoopInALoopStacksHasRoomBesideTheOldValues) {
  // As of scans within a scan: the outer loop carries u and v, and in each of its steps the inner
  // one writes rows of their new values over zeros, while it reads those of the old ones.
  const std::string text = R"(
HloModule m
inner {
  p = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  u = f32[8,8] get-tuple-element(p), index=1
  v = f32[8,8] get-tuple-element(p), index=2
  new_u = f32[8,8] get-tuple-element(p), index=3
  new_v = f32[8,8] get-tuple-element(p), index=4
  zero = s32[] constant(0)
  row_u = f32[1,8] dynamic-slice(u, i, zero), dynamic_slice_sizes={1,8}
  row_v = f32[1,8] dynamic-slice(v, i, zero), dynamic_slice_sizes={1,8}
  next_u = f32[8,8] dynamic-update-slice(new_u, row_u, i, zero)
  next_v = f32[8,8] dynamic-update-slice(new_v, row_v, i, zero)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) tuple(next, u, v, next_u, next_v)
}
inner_condition {
  p = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  end = s32[] constant(8)
  ROOT c = pred[] compare(i, end), direction=LT
}
outer {
  p = (s32[], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  u = f32[8,8] get-tuple-element(p), index=1
  v = f32[8,8] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  nought = f32[] constant(0)
  zeros = f32[8,8] broadcast(nought), dimensions={}
  t = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) tuple(zero, u, v, zeros, zeros)
  w = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) while(t), condition=inner_condition, body=inner
  new_u = f32[8,8] get-tuple-element(w), index=3
  new_v = f32[8,8] get-tuple-element(w), index=4
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8,8], f32[8,8]) tuple(next, new_u, new_v)
}
outer_condition {
  p = (s32[], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  end = s32[] constant(4)
  ROOT c = pred[] compare(i, end), direction=LT
}
ENTRY main {
  u = f32[8,8] parameter(0)
  v = f32[8,8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8,8], f32[8,8]) tuple(zero, u, v)
  w = (s32[], f32[8,8], f32[8,8]) while(t), condition=outer_condition, body=outer
  new_u = f32[8,8] get-tuple-element(w), index=1
  new_v = f32[8,8] get-tuple-element(w), index=2
  ROOT r = (f32[8,8], f32[8,8]) tuple(new_u, new_v)
}
)";
  const DeviceMemory m = CountDeviceMemory(Parsed(text));
  EXPECT_EQ(m.outputs, 512);  // of the outer loop
  // Of the inner one; the rows, the counts and the tables of tuples begin at multiples of 256.
  EXPECT_GE(m.temporaries, 512);
  EXPECT_LE(m.temporaries, 512 + 5 * 256);
}

TEST(DeviceMemoryTest, ALoopWorksInTheMemoryOfTheLoopBeforeIt) {
  const std::string loops = R"(
HloModule m
body {
  p = (f32[8,8], f32[8,8]) parameter(0)
  x = f32[8,8] get-tuple-element(p), index=0
  y = f32[8,8] get-tuple-element(p), index=1
  new_x = f32[8,8] negate(x)
  new_y = f32[8,8] negate(y)
  ROOT r = (f32[8,8], f32[8,8]) tuple(new_x, new_y)
}
condition {
  p = (f32[8,8], f32[8,8]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY main {
  a = f32[8,8] parameter(0)
  x = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[8,8] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = (f32[8,8], f32[8,8]) tuple(x, y)
  w = (f32[8,8], f32[8,8]) while(t), condition=condition, body=body
  u = f32[8,8] get-tuple-element(w), index=0
  v = f32[8,8] get-tuple-element(w), index=1
  s = (f32[8,8], f32[8,8]) tuple(u, v)
  z = (f32[8,8], f32[8,8]) while(s), condition=condition, body=body
  g = f32[8,8] get-tuple-element(z), index=0
  h = f32[8,8] get-tuple-element(z), index=1
  ROOT r = f32[8,8] dot(g, h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  // x and y all the way, and the table of each tuple.
  EXPECT_EQ(Temporaries(loops, XlaBackend::kGpu), 4 * 256);
}

TEST(DeviceMemoryTest, WhatIsHeldAtThePeakIsNamedTheLargestFirst) {
  const std::string text = R"(
HloModule m
ENTRY main {
  x = f32[4,4]{1,0} parameter(0)
  a = f32[4,4]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[4,8]{1,0} concatenate(a, x), dimensions={1}
  c = f32[8,8]{1,0} dot(b, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  d = f32[4,8]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f" source_file="model.py" source_line=7}
  ROOT e = f32[4,8]{1,0} dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  auto module = ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                            "test.hlo");
  ASSERT_TRUE(module.ok()) << module.status();
  const MemoryAtPeak peak = ListMemoryAtPeak(*module, 10);
  EXPECT_EQ(peak.at, "%c");
  ASSERT_EQ(peak.held.size(), 2);  // b is where e will be
  EXPECT_EQ(peak.held[0].value, "%c");
  EXPECT_EQ(peak.held[0].bytes, 256);
  EXPECT_EQ(peak.held[1].value, "%d");
  EXPECT_EQ(peak.held[1].source, "model.py:7");
  EXPECT_EQ(ListMemoryAtPeak(*module, 1).held.size(), 1);
  EXPECT_EQ(
      DescribePeak(*module).find("576 B: 64 B arguments, 128 B outputs, 384 B temporaries at %c, "
                                 "of which %c has 256 B"),
      0)
      << DescribePeak(*module);
}

}  // namespace
}  // namespace shardcall
