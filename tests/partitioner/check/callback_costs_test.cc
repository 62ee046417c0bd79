// SPDX-License-Identifier: Apache-2.0
// Callbacks that are right and send more than they need, each a seeded fault; and good
// ones, which pass.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "tests/support/test_targets.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using Views = absl::Span<const BufferView>;
using Partitioner = std::function<absl::Status(PartitionContext&)>;

float* F(const BufferView& v) { return static_cast<float*>(v.data); }
absl::Status Refuse() { return absl::InvalidArgumentError("shapes do not fit"); }

// Elementwise in all operands, whose shapes are equal, or rows that are one vector.
absl::Status Sum(Views in, Views out) {
  const int64_t rows = out[0].dims[0], columns = out[0].dims[1];
  for (const BufferView& v : in) {
    if (v.dims.back() != columns || (v.rank() == 2 && v.dims[0] != rows)) return Refuse();
  }
  for (int64_t k = 0; k < rows * columns; ++k) {
    F(out[0])[k] = 0;
    for (const BufferView& v : in) F(out[0])[k] += F(v)[v.rank() == 2 ? k : k % columns];
  }
  return absl::OkStatus();
}
absl::Status RunningSum(Views in, Views out) {
  if (in[0].dims != out[0].dims) return Refuse();
  const int64_t columns = in[0].dims[1];
  for (int64_t k = 0; k < in[0].num_elements(); ++k) {
    F(out[0])[k] = F(in[0])[k] + (k % columns != 0 ? F(out[0])[k - 1] : 0);
  }
  return absl::OkStatus();
}
// y[i] = sum over k of x[i, k] w[k].
absl::Status Product(Views in, Views out) {
  const int64_t rows = in[0].dims[0], columns = in[0].dims[1];
  if (in[1].dims[0] != columns || out[0].dims[0] != rows) return Refuse();
  for (int64_t i = 0; i < rows; ++i) {
    F(out[0])[i] = 0;
    for (int64_t k = 0; k < columns; ++k) F(out[0])[i] += F(in[0])[i * columns + k] * F(in[1])[k];
  }
  return absl::OkStatus();
}

AxisList AxesOf(const Sharding* s, int d) { return {s->dim(d).begin(), s->dim(d).end()}; }
// A sharding of that rank with dimension d over `axes`.
const Sharding* Over(PartitionContext& c, int rank, std::vector<std::pair<int, AxisList>> dims) {
  ShardingBuilder b(c.call().mesh, rank);
  for (auto& [d, axes] : dims) b.dims[d] = std::move(axes);
  return b.Intern(*c.call().context);
}
const Shape* Local(PartitionContext& c, const Shape* global, const Sharding* s) {
  return LocalShape(*c.call().context, global, s);
}
// The call on operands under `in`, whose result is under `out`.
absl::Status CallAs(PartitionContext& c, const std::vector<const Sharding*>& in,
                    const Sharding* out) {
  std::vector<LocalValue> operands;
  for (size_t k = 0; k < in.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(operands.emplace_back(), c.Operand(static_cast<int>(k), in[k]));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const auto y,
                             c.CallTarget(operands, {Local(c, c.call().results[0], out)}));
  return c.SetResult(0, y[0], out);
}

absl::Status KeepAll(PartitionContext& c) {
  const Sharding* s = c.operand_sharding(0);
  return CallAs(c, std::vector<const Sharding*>(c.call().operands.size(), s), s);
}
absl::Status GatherAll(PartitionContext& c) {
  std::vector<const Sharding*> in;
  for (const Shape* s : c.call().operands) in.push_back(c.call().Replicated(s->rank()));
  return CallAs(c, in, c.call().Replicated(c.call().results[0]->rank()));
}
absl::Status KeepRows(PartitionContext& c) {
  const Sharding* rows = Over(c, 2, {{0, AxesOf(c.operand_sharding(0), 0)}});
  return CallAs(c, {rows}, rows);
}
absl::Status KeepColumns(PartitionContext& c) {
  const Sharding* columns = Over(c, 2, {{1, AxesOf(c.operand_sharding(0), 1)}});
  return CallAs(c, {columns}, columns);
}
// Rows to columns and back.
absl::Status ThereAndBack(PartitionContext& c) {
  AxisList axes = AxesOf(c.operand_sharding(0), 0);
  for (const AxisRef& a : AxesOf(c.operand_sharding(0), 1)) axes.push_back(a);
  const Sharding* columns = Over(c, 2, {{1, axes}});
  return CallAs(c, {columns}, columns);
}
// Rows and the matrix by rows; the vector and the columns whole.
absl::Status VectorWhole(PartitionContext& c) {
  const Sharding* rows = Over(c, 2, {{0, AxesOf(c.operand_sharding(0), 0)}});
  return CallAs(c, {rows, c.call().Replicated(1)}, rows);
}
absl::Status VectorCut(PartitionContext& c) {
  const Sharding* s = c.operand_sharding(0);
  return CallAs(c, {s, Over(c, 1, {{0, AxesOf(s, 1)}})}, s);
}
absl::Status ContractionGathered(PartitionContext& c) {
  const AxisList rows = AxesOf(c.operand_sharding(0), 0);
  return CallAs(c, {Over(c, 2, {{0, rows}}), c.call().Replicated(1)}, Over(c, 1, {{0, rows}}));
}
// Partial products, summed by `finish`.
absl::Status Contraction(PartitionContext& c, bool by_gather) {
  const Sharding* s = c.operand_sharding(0);
  const AxisList rows = AxesOf(s, 0), axes = AxesOf(s, 1);
  SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, s));
  SHARDCALL_ASSIGN_OR_RETURN(LocalValue w, c.Operand(1, Over(c, 1, {{0, axes}})));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId none, c.builder().ConstantInt(ElementType::kF32, 0));
  SHARDCALL_ASSIGN_OR_RETURN(x, c.MaskPadding(x, c.call().operands[0], s, {1}, {none}));
  SHARDCALL_ASSIGN_OR_RETURN(
      w, c.MaskPadding(w, c.call().operands[1], Over(c, 1, {{0, axes}}), {0}, {none}));
  const Sharding* out = Over(c, 1, {{0, rows}});
  const Shape* local = Local(c, c.call().results[0], out);
  SHARDCALL_ASSIGN_OR_RETURN(const auto part, c.CallTarget({x, w}, {local}));
  LocalValue y = part[0];
  if (!axes.empty() && !by_gather) {
    SHARDCALL_ASSIGN_OR_RETURN(y, c.AllReduce(y, PartialOp::kSum, axes));
  } else if (!axes.empty()) {
    CheckedBuilder& b = c.builder();
    const int64_t n = local->dim(0);
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId row, b.Reshape(y.id, {1, n}));
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue all, c.AllGather({row}, 0, axes));
    SHARDCALL_ASSIGN_OR_RETURN(y.id, b.Reduce(all.id, none, {0}, Opcode::kAdd));
  }
  return c.SetResult(0, y, out);
}
// Both dimensions, one at a time; if both are cut, columns are gathered.
absl::Status OneAtATime(PartitionContext& c) {
  const Sharding* s = c.operand_sharding(0);
  return AxesOf(s, 0).empty() || AxesOf(s, 1).empty() ? KeepAll(c) : KeepRows(c);
}

using Kernel = absl::Status (*)(Views, Views);
RuleCheck Checked(Kernel kernel, Partitioner partition, const std::string& operands,
                  const std::string& result) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  PartitionerCallbacks callbacks;
  callbacks.partition = std::move(partition);
  EXPECT_TRUE(targets.RegisterCustomCallPartitioner("t", callbacks).ok());
  EXPECT_TRUE(handlers
                  .Register({.target = "t",
                             .host = [kernel](const HandlerContext&, Views in,
                                              Views out) { return kernel(in, out); }})
                  .ok());
  std::string text = "HloModule m\nENTRY e {\n", names;
  int k = 0;
  for (absl::string_view shape : absl::StrSplit(operands, ';')) {
    absl::StrAppend(&text, "  x", k, " = ", shape, " parameter(", k, ")\n");
    absl::StrAppend(&names, k > 0 ? ", x" : "x", k);
    ++k;
  }
  absl::StrAppend(&text, "  ROOT y = ", result, " custom-call(", names,
                  "), custom_call_target=\"t\", api_version=API_VERSION_TYPED_FFI\n}\n");
  const absl::StatusOr<Module> module = ParseText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  const auto calls = CallsOfModule("t", targets, *module);
  EXPECT_TRUE(calls.ok()) << calls.status();
  const auto check = CheckRule(*calls, 0, {.targets = &targets, .handlers = &handlers});
  EXPECT_TRUE(check.ok()) << check.status();
  return check.ok() ? *check : RuleCheck();
}

struct Fault {
  const char* name;
  Kernel kernel;
  Partitioner partition;
  const char *operands, *result, *factor, *suggestion;
};

class NeedlessCallbacks : public testing::TestWithParam<Fault> {};

TEST_P(NeedlessCallbacks, AreFoundWithARuleThatHolds) {
  const Fault& f = GetParam();
  const RuleCheck check = Checked(f.kernel, f.partition, f.operands, f.result);
  const std::string json = RuleCheckJson(check);
  ASSERT_EQ(RuleVerdictName(check.verdict), "needless") << json;
  EXPECT_EQ(check.findings[0].factor, f.factor) << json;
  EXPECT_EQ(check.findings[0].rule, "callbacks");
  EXPECT_THAT(check.findings[0].suggestion, HasSubstr(f.suggestion)) << json;
  EXPECT_THAT(check.findings[0].message, HasSubstr("each device send"));
  EXPECT_FALSE(check.findings[0].signature.empty());
}

const auto kByGather = [](PartitionContext& c) { return Contraction(c, /*by_gather=*/true); };
const auto kByAllReduce = [](PartitionContext& c) { return Contraction(c, /*by_gather=*/false); };

INSTANTIATE_TEST_SUITE_P(
    Faults, NeedlessCallbacks,
    testing::Values(Fault{"all_gathered", Sum, GatherAll, "f32[8,6]", "f32[8,6]",
                          "operand 0, dimension 0", "need_replication"},
                    Fault{"rows_gathered_too", RunningSum, GatherAll, "f32[8,6]", "f32[8,6]",
                          "operand 0, dimension 0", "need_replication"},
                    Fault{"columns_gathered", Sum, KeepRows, "f32[8,6]", "f32[8,6]",
                          "operand 0, dimension 1", "need_replication"},
                    Fault{"there_and_back", Sum, ThereAndBack, "f32[8,6]", "f32[8,6]",
                          "operand 0, dimension 0", "need_replication"},
                    Fault{"square", Sum, KeepColumns, "f32[8,8]", "f32[8,8]",
                          "operand 0, dimension 0", "need_replication"},
                    Fault{"vector_whole", Sum, VectorWhole, "f32[8,6];f32[6]", "f32[8,6]",
                          "operand 0, dimension 1", ""},
                    Fault{"contraction_gathered", Product, ContractionGathered, "f32[8,6];f32[6]",
                          "f32[8]", "operand 0, dimension 1", "reduction={"},
                    Fault{"parts_gathered", Product, kByGather, "f32[8,6];f32[6]", "f32[8]",
                          "operand 0, dimension 1", "reduction={"},
                    Fault{"one_at_a_time", Sum, OneAtATime, "f32[8,6]", "f32[8,6]",
                          "operand 0, dimension 0", ""}),
    [](const auto& info) { return std::string(info.param.name); });

struct Good {
  const char* name;
  Kernel kernel;
  Partitioner partition;
  const char *operands, *result;
};
class GoodCallbacks : public testing::TestWithParam<Good> {};
TEST_P(GoodCallbacks, GiveNoAlarm) {
  const Good& g = GetParam();
  const RuleCheck check = Checked(g.kernel, g.partition, g.operands, g.result);
  EXPECT_EQ(RuleVerdictName(check.verdict), "holds") << RuleCheckJson(check);
  EXPECT_GT(check.trials, 4);
}
INSTANTIATE_TEST_SUITE_P(
    Callbacks, GoodCallbacks,
    testing::Values(Good{"elementwise", Sum, KeepAll, "f32[8,6]", "f32[8,6]"},
                    Good{"square", Sum, KeepAll, "f32[8,8]", "f32[8,8]"},
                    Good{"two_operands", Sum, KeepAll, "f32[8,6];f32[8,6]", "f32[8,6]"},
                    Good{"rows", RunningSum, KeepRows, "f32[8,6]", "f32[8,6]"},
                    Good{"vector", Sum, VectorCut, "f32[8,6];f32[6]", "f32[8,6]"},
                    Good{"contraction", Product, kByAllReduce, "f32[8,6];f32[6]", "f32[8]"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace shardcall
