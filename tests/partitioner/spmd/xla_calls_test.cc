// SPDX-License-Identifier: Apache-2.0
// Custom calls that are ops of XLA's under another name: their values, what is said of calls that
// do not fit, and that shards send no more than under XLA's own partitioner.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/run.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

// The results of an entry with this body on one device.
std::vector<Tensor> ResultsOf(const std::string& body) {
  const absl::StatusOr<Module> m =
      ParseText(absl::StrCat("HloModule m\n\nENTRY e {\n", body, "}\n"));
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return {};
  absl::StatusOr<std::vector<Tensor>> out = Evaluate(*m, {}, nullptr);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : std::vector<Tensor>();
}

template <typename T>
std::vector<T> Values(const Tensor& t) {
  const T* data = reinterpret_cast<const T*>(t.data());
  return std::vector<T>(data, data + t.byte_size() / sizeof(T));
}

std::string Call(const std::string& shape, const std::string& operands, const std::string& target,
                 const std::string& config) {
  return absl::StrCat("  ROOT r = ", shape, " custom-call(", operands, "), custom_call_target=\"",
                      target, "\", backend_config=\"", config, "\"\n");
}

constexpr char kSix[] = "  x = s32[6] constant({0,1,2,3,4,5})\n  c = s32[] constant(9)\n";

// Values that jaxlib's XLA:CPU gives for such calls over four devices.
TEST(XlaCalls, RotateRight) {
  const auto r = ResultsOf(absl::StrCat(
      kSix, Call("s32[6]", "x", "_SPMDInternalOp_RotateRight", "dimension=0,amount=2")));
  ASSERT_EQ(r.size(), 1);
  EXPECT_EQ(Values<int32_t>(r[0]), (std::vector<int32_t>{4, 5, 0, 1, 2, 3}));
}

TEST(XlaCalls, RotateByMoreThanAllAndByNothing) {
  for (const auto& [amount, want] : {std::pair("8", std::vector<int32_t>{4, 5, 0, 1, 2, 3}),
                                     std::pair("0", std::vector<int32_t>{0, 1, 2, 3, 4, 5})}) {
    const auto r = ResultsOf(absl::StrCat(kSix, Call("s32[6]", "x", "_SPMDInternalOp_RotateRight",
                                                     absl::StrCat("dimension=0,amount=", amount))));
    ASSERT_EQ(r.size(), 1);
    EXPECT_EQ(Values<int32_t>(r[0]), want) << amount;
  }
}

TEST(XlaCalls, MultiRotateFromTheLeftmostToTheRightmost) {
  const auto r = ResultsOf(absl::StrCat(
      kSix, Call("(s32[6], s32[6], s32[6], s32[6])", "x", "_SPMDInternalOp_MultiRotate",
                 "dimension=0,left_amount=2,right_amount=1,bufferize=0")));
  ASSERT_EQ(r.size(), 4);
  EXPECT_EQ(Values<int32_t>(r[0]), (std::vector<int32_t>{2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(Values<int32_t>(r[1]), (std::vector<int32_t>{1, 2, 3, 4, 5, 0}));
  EXPECT_EQ(Values<int32_t>(r[2]), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Values<int32_t>(r[3]), (std::vector<int32_t>{5, 0, 1, 2, 3, 4}));
}

TEST(XlaCalls, Wrap) {
  const auto r = ResultsOf(absl::StrCat(kSix, Call("s32[9]", "x", "_SPMDInternalOp_Wrap",
                                                   "dimension=0,left_amount=2,right_amount=1")));
  ASSERT_EQ(r.size(), 1);
  EXPECT_EQ(Values<int32_t>(r[0]), (std::vector<int32_t>{4, 5, 0, 1, 2, 3, 4, 5, 0}));
}

TEST(XlaCalls, MultiSlice) {
  const auto r = ResultsOf(absl::StrCat(
      kSix,
      Call("(s32[2], s32[2])", "x", "_SPMDInternalOp_MultiSlice",
           "dimension=0,amount=1,start_indices=[1],limit_indices=[5],strides=[2],bufferize=0")));
  ASSERT_EQ(r.size(), 2);
  EXPECT_EQ(Values<int32_t>(r[0]), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(Values<int32_t>(r[1]), (std::vector<int32_t>{2, 4}));
}

TEST(XlaCalls, MultiPad) {
  const auto r =
      ResultsOf(absl::StrCat(kSix, Call("(s32[7], s32[7])", "x, c", "_SPMDInternalOp_MultiPad",
                                        "dimension=0,amt=1,bufferize=0")));
  ASSERT_EQ(r.size(), 2);
  EXPECT_EQ(Values<int32_t>(r[0]), (std::vector<int32_t>{9, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Values<int32_t>(r[1]), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 9}));
}

TEST(XlaCalls, TopK) {
  const auto r = ResultsOf(absl::StrCat("  x = f32[2,3] constant({{1,3,2},{5,4,5}})\n",
                                        Call("(f32[2,2], s32[2,2])", "x", "TopK", "")));
  ASSERT_EQ(r.size(), 2);
  EXPECT_EQ(Values<float>(r[0]), (std::vector<float>{3, 2, 5, 5}));
  EXPECT_EQ(Values<int32_t>(r[1]), (std::vector<int32_t>{1, 2, 0, 2}));
}

TEST(XlaCalls, HalvesOf64Bits) {
  for (const char* type : {"s64", "u64"}) {
    const auto r = ResultsOf(absl::StrReplaceAll(R"(
  x = TYPE[2] constant({5000000000, 7})
  low = u32[2] custom-call(x), custom_call_target="X64SplitLow"
  high = u32[2] custom-call(x), custom_call_target="X64SplitHigh"
  y = TYPE[2] custom-call(low, high), custom_call_target="X64Combine"
  ROOT r = (u32[2], u32[2], TYPE[2]) tuple(low, high, y)
)",
                                                 {{"TYPE", type}}));
    ASSERT_EQ(r.size(), 3) << type;
    EXPECT_EQ(Values<uint32_t>(r[0]), (std::vector<uint32_t>{705032704, 7}));
    EXPECT_EQ(Values<uint32_t>(r[1]), (std::vector<uint32_t>{1, 0}));
    EXPECT_EQ(Values<int64_t>(r[2]), (std::vector<int64_t>{5000000000, 7}));
  }
}

TEST(XlaCalls, HalvesOfDoubles) {
  const auto r = ResultsOf(R"(
  x = f64[1] constant({16777217})
  low = f32[1] custom-call(x), custom_call_target="X64SplitLow"
  high = f32[1] custom-call(x), custom_call_target="X64SplitHigh"
  y = f64[1] custom-call(low, high), custom_call_target="X64Combine"
  ROOT r = (f32[1], f32[1], f64[1]) tuple(low, high, y)
)");
  ASSERT_EQ(r.size(), 3);
  EXPECT_EQ(Values<float>(r[0]), (std::vector<float>{1}));
  EXPECT_EQ(Values<float>(r[1]), (std::vector<float>{16777216}));
  EXPECT_EQ(Values<double>(r[2]), (std::vector<double>{16777217}));
}

TEST(XlaCalls, CallsThatDoNotFitSayWhatIsNeeded) {
  const auto error_of = [](const std::string& call) {
    absl::StatusOr<Module> m = ParseText(
        absl::StrCat("HloModule m, num_partitions=2\n\nENTRY e {\n  x = f32[6] parameter(0), "
                     "sharding={devices=[2]<=[2]}\n  c = s32[] constant(9)\n",
                     call, "}\n"));
    EXPECT_TRUE(m.ok()) << m.status();
    return std::string(Partition(*std::move(m), {}).status().message());
  };
  const std::string rotate = "_SPMDInternalOp_RotateRight", pad = "_SPMDInternalOp_MultiPad";
  EXPECT_THAT(error_of(Call("f32[6]", "x", rotate, "dimension=0")),
              testing::AllOf(testing::HasSubstr("E177"), testing::HasSubstr("amount="),
                             testing::HasSubstr("%r")));
  EXPECT_THAT(error_of(Call("f32[6]", "x", rotate, "dimension=1,amount=2")),
              testing::HasSubstr("dimension= with a number from 0 to 0"));
  EXPECT_THAT(error_of(Call("f32[6]", "x", rotate, "dimension=0,amount=-2")),
              testing::HasSubstr("amount="));
  EXPECT_THAT(error_of(Call("f32[6]", "x", rotate, "dimension=0,amount=x")),
              testing::HasSubstr("name=number"));
  EXPECT_THAT(error_of(Call("f32[6]", "x", rotate, "dimension=0,amount=[2")),
              testing::HasSubstr("name=number"));
  EXPECT_THAT(error_of(Call("f32[5]", "x", rotate, "dimension=0,amount=2")),
              testing::HasSubstr("expected f32[6], found f32[5]"));
  EXPECT_THAT(error_of(Call("f32[6]", "x, x", rotate, "dimension=0,amount=2")),
              testing::HasSubstr("expected 1 operand, found 2"));
  EXPECT_THAT(error_of(Call("(f32[7], f32[7])", "x, c", pad, "dimension=0,amt=1")),
              testing::HasSubstr("a scalar of the same type"));
  EXPECT_THAT(error_of(Call("(f32[7], f32[7])", "x, x", pad, "dimension=0,amt=2")),
              testing::HasSubstr("a tuple of 3"));
  EXPECT_THAT(
      error_of(Call("(f32[6], f32[6])", "x", "_SPMDInternalOp_MultiSlice",
                    "dimension=0,amount=1,start_indices=[0],limit_indices=[6],strides=[1]")),
      testing::HasSubstr("within 0 to 5"));
  EXPECT_THAT(error_of(Call("(f32[7], s32[7])", "x", "TopK", "")),
              testing::HasSubstr("at most as many"));
  EXPECT_THAT(error_of(Call("u64[6]", "x, c", "X64Combine", "")),
              testing::HasSubstr("two arrays of u32 or f32"));
  EXPECT_THAT(error_of(Call("u32[6]", "x", "X64SplitLow", "")),
              testing::HasSubstr("an array of u64, s64 or f64"));
}

const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}}, {{'A', 13}, {'B', 3}}};

TEST(XlaCalls, RotationsUnderEverySharding) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  r = f32[@A,@B] custom-call(x), custom_call_target="_SPMDInternalOp_RotateRight", backend_config="dimension=0,amount=3"<1:2>
  t = (f32[@A,@B], f32[@A,@B], f32[@A,@B]) custom-call(x), custom_call_target="_SPMDInternalOp_MultiRotate", backend_config="dimension=1,left_amount=1,right_amount=1,bufferize=0"
  a = f32[@A,@B] get-tuple-element(t), index=0
  b = f32[@A,@B] get-tuple-element(t), index=2
  s = f32[@A,@B] add(a, b)
  ROOT y = f32[@A,@B] add(r, s)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

TEST(XlaCalls, SlicesPadsAndWrapsUnderEverySharding) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  c = f32[] constant(7)
  t = (f32[@(A-2),@B], f32[@(A-2),@B]) custom-call(x), custom_call_target="_SPMDInternalOp_MultiSlice", backend_config="dimension=0,amount=1,start_indices=[1,0],limit_indices=[@(A-1),@B],strides=[1,1],bufferize=0"
  a = f32[@(A-2),@B] get-tuple-element(t), index=0
  b = f32[@(A-2),@B] get-tuple-element(t), index=1
  d = f32[@(A-2),@B] subtract(b, a)
  p = (f32[@A,@B], f32[@A,@B], f32[@A,@B]) custom-call(d, c), custom_call_target="_SPMDInternalOp_MultiPad", backend_config="dimension=0,amt=2,bufferize=0"
  e = f32[@A,@B] get-tuple-element(p), index=1
  f = f32[@A,@B] get-tuple-element(p), index=2
  g = f32[@A,@B] add(e, f)<1:2>
  ROOT w = f32[@(A+3),@B] custom-call(g), custom_call_target="_SPMDInternalOp_Wrap", backend_config="dimension=0,left_amount=2,right_amount=1"<2:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

TEST(XlaCalls, TopKUnderEverySharding) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  t = (f32[@A,2], s32[@A,2]) custom-call(x), custom_call_target="TopK"
  v = f32[@A,2] get-tuple-element(t), index=0
  i = s32[@A,2] get-tuple-element(t), index=1
  c = s32[@A,2] copy(i)<1:2>
  ROOT r = (f32[@A,2], s32[@A,2]) tuple(v, c)
)",
                .sizes = {{{'A', 8}, {'B', 8}}, {{'A', 5}, {'B', 10}}},
                .max_cases = 150,
                .no_fallback = true});
}

TEST(XlaCalls, HalvesUnderEverySharding) {
  VerifyFamily({.text = R"(
  x = s64[@A,@B] parameter(0)<0:2>
  low = u32[@A,@B] custom-call(x), custom_call_target="X64SplitLow"<1:2>
  high = u32[@A,@B] custom-call(x), custom_call_target="X64SplitHigh"
  ROOT y = s64[@A,@B] custom-call(low, high), custom_call_target="X64Combine"<2:2>
)",
                .sizes = kSizes,
                .max_cases = 100,
                .no_fallback = true});
}

TEST(XlaCalls, BlockScaledDot) {
  const auto r = ResultsOf(R"(
  x = f8e4m3fn[1,4] constant({{1,2,3,4}})
  y = f8e4m3fn[2,4] constant({{1,1,1,1},{0,1,0,1}})
  s = f8e8m0fnu[1,2] constant({{2,4}})
  u = f8e8m0fnu[2,2] constant({{1,1},{1,0.5}})
  ROOT r = f32[1,2] custom-call(x, y, s, u), custom_call_target="__op$block_scaled_dot"
)");
  ASSERT_EQ(r.size(), 1);
  EXPECT_EQ(Values<float>(r[0]),
            (std::vector<float>{1 * 2 + 2 * 2 + 3 * 4 + 4 * 4, 2 * 2 + 4 * 4 / 2}));
}

TEST(XlaCalls, BlockScaledDotUnderEverySharding) {
  for (const char* batch : {"", "4,"}) {
    SCOPED_TRACE(batch);
    const bool batched = *batch != 0;
    VerifyFamily({.text = absl::StrReplaceAll(R"(
  x = bf16[BATCH@A,@(B*4)] parameter(0)<0:RANK>
  y = bf16[BATCH@A,@(B*4)] parameter(1)<1:RANK>
  s = bf16[BATCH@A,@B] parameter(2)
  u = bf16[BATCH@A,@B] parameter(3)
  ROOT r = f32[BATCH@A,@A] custom-call(x, y, s, u), custom_call_target="__op$block_scaled_dot"<2:RANK>
)",
                                              {{"BATCH", batch}, {"RANK", batched ? "3" : "2"}}),
                  .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                  .max_cases = 150,
                  .no_fallback = true});
  }
}

TEST(XlaCalls, ABlockScaledDotOverShardsOfItsBlocksIsSummed) {
  const auto program = PartitionText(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f8e4m3fn[8,64] parameter(0), sharding={devices=[1,4]<=[4]}
  y = f8e4m3fn[16,64] parameter(1), sharding={devices=[1,4]<=[4]}
  s = f8e8m0fnu[8,8] parameter(2), sharding={devices=[1,4]<=[4]}
  u = f8e8m0fnu[16,8] parameter(3), sharding={devices=[1,4]<=[4]}
  ROOT r = f32[8,16] custom-call(x, y, s, u), custom_call_target="__op$block_scaled_dot", sharding={replicated}
}
)",
                                     {});
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = LocalText(**program);
  EXPECT_EQ((*program)->local.collectives.size(), 1) << text;
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllReduce), 1) << text;
  EXPECT_THAT(text, testing::HasSubstr("custom_call_target=\"__op$block_scaled_dot\""))
      << "which GPUs have a kernel for";
}

// Bytes that a device sends, of x f32[rows,256] over 4 devices by rows, with all results so; and
// those under XLA's partitioner (jaxlib 0.10.2).
TEST(XlaCalls, ShardsSendNoMoreThanUnderXla) {
  struct Case {
    int rows;
    std::string results, operands, target, config;
    double bytes, xla;
  };
  const std::string of = "_SPMDInternalOp_";
  for (const Case& c : std::vector<Case>{
           {1024, "f32[1024,256]", "x", of + "RotateRight", "dimension=0,amount=5", 5120, 5120},
           {1022, "f32[1022,256]", "x", of + "RotateRight", "dimension=0,amount=5", 5632, 12288},
           {1024, "f32[1024,256], f32[1024,256], f32[1024,256], f32[1024,256]", "x",
            of + "MultiRotate", "dimension=0,left_amount=2,right_amount=1,bufferize=0", 3072, 3072},
           {1024, "f32[1027,256]", "x", of + "Wrap", "dimension=0,left_amount=2,right_amount=1",
            1280, 3072},
           {1024, "f32[1021,256], f32[1021,256], f32[1021,256]", "x", of + "MultiSlice",
            "dimension=0,amount=2,start_indices=[1,0],limit_indices=[1022,256],strides=[1,1],"
            "bufferize=0",
            2304, 2304},
           {1022, "f32[1024,256], f32[1024,256], f32[1024,256]", "x, c", of + "MultiPad",
            "dimension=0,amt=2,bufferize=0", 1536, 1536}}) {
    SCOPED_TRACE(c.target);
    const bool tuple = c.results.find(", f32") != c.results.npos;
    const std::string sharding = "{devices=[4,1]<=[4]}";
    std::string all = sharding;
    if (tuple) {
      const auto count = std::count(c.results.begin(), c.results.end(), 'f');
      all = "{" + sharding;
      for (int k = 1; k < count; ++k) absl::StrAppend(&all, ", ", sharding);
      all += "}";
    }
    const auto program = PartitionText(
        absl::StrCat("HloModule m, num_partitions=4\n\nENTRY e {\n  x = f32[", c.rows,
                     ",256] parameter(0), sharding=", sharding, "\n  c = f32[] constant(7)\n",
                     "  ROOT r = ", tuple ? "(" : "", c.results, tuple ? ")" : "", " custom-call(",
                     c.operands, "), custom_call_target=\"", c.target, "\", backend_config=\"",
                     c.config, "\", sharding=", all, "\n}\n"),
        {});
    ASSERT_TRUE(program.ok()) << program.status();
    double bytes = 0;
    for (const CollectiveRecord& r : (*program)->local.collectives) bytes += r.bytes_moved;
    EXPECT_EQ(bytes, c.bytes);
    EXPECT_LE(c.bytes, c.xla);
  }
}

// Their matrices and lines are whole; what else there is is a batch.
TEST(XlaCalls, TheOnesOfTpusRunOnShardsOfTheirBatch) {
  const std::string rows = "{devices=[4,1,1]<=[4]}";
  const std::vector<std::string> bodies = {
      "ROOT r = (f32[8,6,5], s32[8,5], s32[8,6]) custom-call(x), "
      "custom_call_target=\"LuDecomposition\"",
      "ROOT r = (f32[8,6,5], f32[8,5]) custom-call(x), custom_call_target=\"Qr\"",
      "t = f32[8,5] parameter(1)\n  ROOT r = f32[8,6,5] custom-call(x, t), "
      "custom_call_target=\"ProductOfElementaryHouseholderReflectors\"",
      "i = s32[8,6,5] iota(), iota_dimension=2\n  low = f32[] constant(-inf)\n"
      "  none = s32[] constant(-1)\n  ROOT r = (f32[8,6,2], s32[8,6,2]) custom-call(x, i, low, "
      "none), custom_call_target=\"PartialReduce\"",
  };
  for (const std::string& body : bodies) {
    const auto p =
        PartitionText(absl::StrCat("HloModule m, num_partitions=4\nENTRY e {\n  x = f32[",
                                   "8,6,5] parameter(0), sharding=", rows, "\n  ", body, "\n}\n"),
                      {});
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_THAT(LocalText(**p), testing::HasSubstr("[2,6,")) << body;
  }
}

}  // namespace
}  // namespace shardcall
