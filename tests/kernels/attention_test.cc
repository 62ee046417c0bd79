// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kF64 = ElementType::kF64;
constexpr ElementType kBF16 = ElementType::kBF16;

struct Case {
  const char* name;
  ElementType type = kF32;
  int64_t batch = 2, queries = 8, keys = 8, heads = 4, kv_heads = 2, dim = 8, value_dim = 8;
  bool causal = false;
  int64_t window = -1;
  double scale = 0;  // 0: left out
  bool heads_first = false;
  double tolerance = 1e-6;  // of out and lse in f32
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<int64_t> Dims(const Case& c, int64_t length, int64_t heads, int64_t dim) {
  if (c.heads_first) return {c.batch, heads, length, dim};
  return {c.batch, length, heads, dim};
}

std::string AttributesOf(const Case& c) {
  std::string text = absl::StrCat(
      "{block = dense<128> : tensor<2xi64>, causal = ", c.causal ? "true" : "false",
      ", layout = \"", c.heads_first ? "bhsd" : "bshd", "\", window = ", c.window, " : i64");
  if (c.scale != 0) absl::StrAppend(&text, ", scale = ", c.scale, " : f32");
  return absl::StrCat(text, "}");
}

struct Inputs {
  Tensor q, k, v, dout;
  explicit Inputs(const Case& c)
      : q(RandomTensor(c.type, Dims(c, c.queries, c.heads, c.dim), 1)),
        k(RandomTensor(c.type, Dims(c, c.keys, c.kv_heads, c.dim), 2)),
        v(RandomTensor(c.type, Dims(c, c.keys, c.kv_heads, c.value_dim), 3)),
        dout(RandomTensor(c.type, Dims(c, c.queries, c.heads, c.value_dim), 4)) {}
};

// Written from the definition, one query at a time, in f64.
struct Reference {
  std::vector<double> out, lse, dq, dk, dv;

  Reference(const Case& c, const Inputs& in)
      : out(in.dout.size()),
        lse(c.batch * c.heads * c.queries),
        dq(in.q.size()),
        dk(in.k.size()),
        dv(in.v.size()) {
    const double scale = c.scale != 0 ? static_cast<float>(c.scale) : 1 / std::sqrt(double(c.dim));
    auto at = [&c](int64_t b, int64_t i, int64_t h, int64_t length, int64_t heads, int64_t dim) {
      return c.heads_first ? ((b * heads + h) * length + i) * dim
                           : ((b * length + i) * heads + h) * dim;
    };
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t h = 0; h < c.heads; ++h) {
        const int64_t g = h / (c.heads / c.kv_heads);
        for (int64_t i = 0; i < c.queries; ++i) {
          const int64_t qi = at(b, i, h, c.queries, c.heads, c.dim);
          const int64_t oi = at(b, i, h, c.queries, c.heads, c.value_dim);
          std::vector<double> p(c.keys, 0), dp(c.keys, 0);
          double largest = -HUGE_VAL, sum = 0, delta = 0;
          auto sees = [&](int64_t j) {
            if (c.causal && j > i) return false;
            return c.window < 0 || (i - j <= c.window && (c.causal || j - i <= c.window));
          };
          auto key = [&](int64_t j) { return at(b, j, g, c.keys, c.kv_heads, c.dim); };
          auto value = [&](int64_t j) { return at(b, j, g, c.keys, c.kv_heads, c.value_dim); };
          for (int64_t j = 0; j < c.keys; ++j) {
            if (!sees(j)) continue;
            for (int64_t e = 0; e < c.dim; ++e)
              p[j] += in.q.values[qi + e] * in.k.values[key(j) + e];
            p[j] *= scale;
            largest = std::max(largest, p[j]);
          }
          for (int64_t j = 0; j < c.keys; ++j) {
            p[j] = sees(j) ? std::exp(p[j] - largest) : 0;
            sum += p[j];
          }
          lse[(b * c.heads + h) * c.queries + i] = largest + std::log(sum);
          if (sum == 0) continue;
          for (int64_t j = 0; j < c.keys; ++j) {
            p[j] /= sum;
            for (int64_t e = 0; e < c.value_dim; ++e) {
              out[oi + e] += p[j] * in.v.values[value(j) + e];
              dv[value(j) + e] += p[j] * in.dout.values[oi + e];
              dp[j] += in.dout.values[oi + e] * in.v.values[value(j) + e];
            }
            delta += p[j] * dp[j];
          }
          for (int64_t j = 0; j < c.keys; ++j) {
            const double ds = p[j] * (dp[j] - delta) * scale;
            for (int64_t e = 0; e < c.dim; ++e) {
              dq[qi + e] += ds * in.k.values[key(j) + e];
              dk[key(j) + e] += ds * in.q.values[qi + e];
            }
          }
        }
      }
    }
  }
};

std::vector<Tensor> Forward(const Case& c, const Inputs& in) {
  std::vector<Tensor> results = {
      Tensor(c.type, in.dout.dims),
      Tensor(c.type == kF64 ? kF64 : kF32, {c.batch, c.heads, c.queries})};
  const absl::Status status =
      CallKernel("flash_attention_fwd", {in.q, in.k, in.v}, &results, AttributesOf(c));
  EXPECT_TRUE(status.ok()) << status;
  return results;
}

std::vector<Tensor> Backward(const Case& c, const Inputs& in, const std::vector<Tensor>& forward) {
  std::vector<Tensor> results = {in.q, in.k, in.v};
  const absl::Status status =
      CallKernel("flash_attention_bwd", {in.dout, in.q, in.k, in.v, forward[0], forward[1]},
                 &results, AttributesOf(c));
  EXPECT_TRUE(status.ok()) << status;
  return results;
}

class AttentionTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionTest, ForwardAndEveryGradientAreThoseOfTheF64Reference) {
  const Case& c = GetParam();
  const Inputs in(c);
  const Reference reference(c, in);
  const bool narrow = ElementTypeBytes(c.type) < 4;
  const double tolerance = narrow ? 2e-2 : c.type == kF64 ? 1e-12 : c.tolerance;
  const double gradient_tolerance = narrow ? 2e-2 : c.type == kF64 ? 1e-12 : 1e-5;
  const std::vector<Tensor> forward = Forward(c, in);
  ExpectNear(forward[0], reference.out, tolerance, "out");
  ExpectNear(forward[1], reference.lse, narrow ? 1e-5 : tolerance, "lse");
  const std::vector<Tensor> backward = Backward(c, in, forward);
  // With one key to see, its weight is 1 whatever q and k are: differences of rounding.
  const double least = c.window == 0 ? 1 : 0;
  ExpectNear(backward[0], reference.dq, gradient_tolerance, "dq", least);
  ExpectNear(backward[1], reference.dk, gradient_tolerance, "dk", least);
  ExpectNear(backward[2], reference.dv, gradient_tolerance, "dv");
}

const Case kCases[] = {
    {.name = "plain"},
    {.name = "causal", .causal = true},
    {.name = "causal_scaled", .causal = true, .scale = 0.353553385},
    {.name = "one_kv_head_each", .heads = 3, .kv_heads = 3, .causal = true},
    {.name = "one_kv_head_for_all", .heads = 6, .kv_heads = 1, .causal = true},
    {.name = "odd_lengths", .queries = 13, .keys = 13, .dim = 5, .value_dim = 5, .causal = true},
    {.name = "one_query", .queries = 1, .keys = 29},
    {.name = "more_keys_causal", .queries = 7, .keys = 19, .causal = true},
    {.name = "more_queries_causal", .queries = 19, .keys = 7, .causal = true},
    {.name = "window_causal", .queries = 17, .keys = 17, .causal = true, .window = 3},
    {.name = "window_both_sides", .queries = 17, .keys = 17, .window = 3},
    {.name = "window_of_self", .queries = 9, .keys = 9, .window = 0},
    {.name = "window_wider_than_keys", .queries = 9, .keys = 9, .window = 1000},
    {.name = "queries_past_the_window", .queries = 19, .keys = 7, .causal = true, .window = 4},
    {.name = "value_dim_differs", .dim = 6, .value_dim = 11, .causal = true},
    {.name = "heads_first", .queries = 11, .keys = 9, .causal = true, .heads_first = true},
    {.name = "many_tiles", .batch = 1, .queries = 300, .keys = 1100, .heads = 2, .kv_heads = 1},
    {.name = "many_tiles_causal",
     .batch = 1,
     .queries = 1100,
     .keys = 1100,
     .heads = 2,
     .kv_heads = 1,
     .causal = true},
    {.name = "many_tiles_window",
     .batch = 1,
     .queries = 1100,
     .keys = 1100,
     .heads = 2,
     .kv_heads = 1,
     .causal = true,
     .window = 150},
    {.name = "many_tiles_window_both_sides",
     .batch = 1,
     .queries = 1100,
     .keys = 700,
     .heads = 2,
     .kv_heads = 1,
     .window = 90},
    // Scores of hundreds, so that an f32 holds them to 1e-5 only.
    {.name = "large_scores", .causal = true, .scale = 40, .tolerance = 1e-5},
    {.name = "f64", .type = kF64, .queries = 21, .keys = 21, .causal = true},
    {.name = "bf16",
     .type = kBF16,
     .queries = 33,
     .keys = 33,
     .dim = 16,
     .value_dim = 16,
     .causal = true},
    {.name = "f16", .type = ElementType::kF16, .queries = 12, .keys = 15, .window = 5},
};

INSTANTIATE_TEST_SUITE_P(Kinds, AttentionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Attention, TheReferencesGradientsAreThoseOfFiniteDifferences) {
  for (const Case& c : {Case{.name = "",
                             .type = kF64,
                             .batch = 1,
                             .queries = 5,
                             .keys = 6,
                             .dim = 3,
                             .value_dim = 4,
                             .causal = true,
                             .window = 2},
                        Case{.name = "",
                             .type = kF64,
                             .batch = 1,
                             .queries = 4,
                             .keys = 7,
                             .dim = 3,
                             .value_dim = 3}}) {
    Inputs in(c);
    const Reference reference(c, in);
    auto loss = [&] {
      const Reference at(c, in);
      double sum = 0;
      for (size_t i = 0; i < at.out.size(); ++i) sum += at.out[i] * in.dout.values[i];
      return sum;
    };
    ExpectSlopes(reference.dq, FiniteDifferences(&in.q.values, loss, 30), "dq");
    ExpectSlopes(reference.dk, FiniteDifferences(&in.k.values, loss, 30), "dk");
    ExpectSlopes(reference.dv, FiniteDifferences(&in.v.values, loss, 30), "dv");
  }
}

TEST(Attention, OneResultAndOneAttributeAreASignatureToo) {
  const Case c{.name = "", .causal = true};
  const Inputs in(c);
  std::vector<Tensor> out = {Tensor(kF32, in.dout.dims)};
  const absl::Status status =
      CallKernel("flash_attention_fwd", {in.q, in.k, in.v}, &out, "{causal = true}");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(out[0].values, Forward(c, in)[0].values);
}

TEST(Attention, AQueryThatSeesNoKeyGivesZeroAndAnLseOfMinusInfinity) {
  const Case c{.name = "", .batch = 1, .queries = 9, .keys = 3, .causal = true, .window = 1};
  const Inputs in(c);
  const std::vector<Tensor> forward = Forward(c, in);
  const std::vector<Tensor> backward = Backward(c, in, forward);
  for (int64_t i = 4; i < 9; ++i) {  // keys 0 to 2, of which query i sees i - 1 and i
    EXPECT_EQ(forward[1].values[i], -HUGE_VAL);
    for (int64_t e = 0; e < 4 * 8; ++e) {
      EXPECT_EQ(forward[0].values[i * 4 * 8 + e], 0);
      EXPECT_EQ(backward[0].values[i * 4 * 8 + e], 0);
    }
  }
}

TEST(Attention, NoKeysNoBatchAndNoHeadsAreNoError) {
  for (Case c : {Case{.name = "", .keys = 0}, Case{.name = "", .batch = 0},
                 Case{.name = "", .heads = 0, .kv_heads = 0}, Case{.name = "", .queries = 0},
                 Case{.name = "", .dim = 0}, Case{.name = "", .value_dim = 0}}) {
    const Inputs in(c);
    const std::vector<Tensor> forward = Forward(c, in);
    for (double v : forward[0].values) EXPECT_EQ(v, v);
    for (const Tensor& gradient : Backward(c, in, forward)) {
      for (double v : gradient.values) EXPECT_EQ(v, v);
    }
  }
}

// Batches [b, b + 1) and kv heads [g, g + 1) with their heads, of a "bshd" tensor.
Tensor Shard(const Tensor& t, int64_t b, int64_t g, int64_t kv_heads) {
  const int64_t length = t.dims[1], heads = t.dims[2], dim = t.dims[3], some = heads / kv_heads;
  Tensor shard(t.type, {1, length, some, dim});
  for (int64_t i = 0; i < length; ++i) {
    std::copy_n(t.values.begin() + ((b * length + i) * heads + g * some) * dim, some * dim,
                shard.values.begin() + i * some * dim);
  }
  return shard;
}

TEST(Attention, AShardOfBatchAndHeadsHasTheBitsOfTheWhole) {
  for (ElementType type : {kF32, kBF16}) {
    const Case c{.name = "",
                 .type = type,
                 .batch = 2,
                 .queries = 45,
                 .keys = 45,
                 .heads = 6,
                 .kv_heads = 3,
                 .dim = 10,
                 .value_dim = 10,
                 .causal = true};
    const Inputs in(c);
    const std::vector<Tensor> forward = Forward(c, in), backward = Backward(c, in, forward);
    Case one = c;
    one.batch = 1, one.heads = 2, one.kv_heads = 1;
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t g = 0; g < 3; ++g) {
        Inputs part(one);
        part.q = Shard(in.q, b, g, 3), part.k = Shard(in.k, b, g, 3), part.v = Shard(in.v, b, g, 3);
        part.dout = Shard(in.dout, b, g, 3);
        const std::vector<Tensor> f = Forward(one, part), d = Backward(one, part, f);
        EXPECT_EQ(f[0].values, Shard(forward[0], b, g, 3).values);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(d[i].values, Shard(backward[i], b, g, 3).values);
      }
    }
  }
}

TEST(Attention, BadCallsNameTargetOperandExpectedAndFound) {
  const Tensor q(kF32, {2, 8, 4, 16}), kv(kF32, {2, 8, 2, 16}), lse(kF32, {2, 4, 8});
  auto call = [&](std::vector<Tensor> in, const char* attributes = "") {
    std::vector<Tensor> out = {q, lse};
    return CallKernel("flash_attention_fwd", in, &out, attributes);
  };
  EXPECT_TRUE(call({q, kv, kv}).ok());
  ExpectError(call({q, kv}), "E132", {"flash_attention_fwd", "%call.1", "3 (q, k, v)"});
  ExpectError(call({q, Tensor(kF32, {2, 8, 3, 16}), Tensor(kF32, {2, 8, 3, 16})}), "E133",
              {"operand 1 (k)", "divides the 4 heads", "found f32[2,8,3,16]"});
  ExpectError(call({q, Tensor(kF32, {2, 8, 0, 16}), kv}), "E133", {"operand 1 (k)"});
  ExpectError(call({q, Tensor(kF32, {3, 8, 2, 16}), kv}), "E133", {"operand 1 (k)", "b=2"});
  ExpectError(call({q, Tensor(kF32, {2, 8, 2, 8}), kv}), "E133", {"operand 1 (k)", "e=16"});
  ExpectError(call({q, kv, Tensor(kF32, {2, 9, 2, 16})}), "E133", {"operand 2 (v)", "t=8"});
  ExpectError(call({Tensor(kF32, {2, 8, 16}), kv, kv}), "E133", {"operand 0 (q)", "rank 4"});
  ExpectError(call({q, Tensor(kBF16, {2, 8, 2, 16}), kv}), "E134",
              {"operand 1 (k)", "expected f32"});
  ExpectError(call({Tensor(ElementType::kF8E5M2, {2, 8, 4, 16}), kv, kv}), "E134",
              {"operand 0 (q)"});
  ExpectError(call({q, kv, kv}, "{causal = 1 : i32}"), "E131", {"causal", "true or false", "s32"});
  ExpectError(call({q, kv, kv}, "{window = -2 : i64}"), "E131", {"window", "-2"});
  ExpectError(call({q, kv, kv}, "{layout = \"sbhd\"}"), "E131", {"layout", "sbhd"});
  ExpectError(call({q, kv, kv}, "{scale = 0x7F800000 : f32}"), "E131", {"scale", "inf"});
  ExpectError(call({q, kv, kv}, "{block = dense<0> : tensor<2xi64>}"), "E131", {"block"});
  ExpectError(call({q, kv, kv}, "{softcap = 1.0 : f32}"), "E131", {"softcap", "not known"});

  std::vector<Tensor> out = {Tensor(kF32, {2, 8, 4, 8}), lse};
  ExpectError(CallKernel("flash_attention_fwd", {q, kv, kv}, &out), "E133",
              {"result 0 (out)", "expected f32[2,8,4,16]"});
  out = {q, Tensor(kF32, {2, 8, 4})};
  ExpectError(CallKernel("flash_attention_fwd", {q, kv, kv}, &out), "E133",
              {"result 1 (lse)", "expected f32[2,4,8]"});
  out = {q, kv, q};
  ExpectError(CallKernel("flash_attention_bwd", {q, q, kv, kv, q, lse}, &out), "E133",
              {"result 2 (dv)", "expected f32[2,8,2,16]"});
  ExpectError(CallKernel("flash_attention_bwd", {kv, q, kv, kv, q, lse}, &out), "E133",
              {"operand 0 (dout)"});
  ExpectError(CallKernel("flash_attention_bwd", {q, q, kv, kv, q, q}, &out), "E133",
              {"operand 5 (lse)"});
}

}  // namespace
}  // namespace shardcall
