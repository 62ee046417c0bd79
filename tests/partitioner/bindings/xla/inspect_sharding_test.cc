// SPDX-License-Identifier: Apache-2.0
// The target InspectSharding, and how often callbacks are asked.
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

std::string Program(absl::string_view backend_config, const std::string& result = "()") {
  return absl::StrCat(
      "HloModule m, num_partitions=4\nENTRY e {\n"
      "  x = f32[8,4] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n"
      "  y = f32[8,4] negate(x)\n  i = ",
      result,
      " custom-call(y), custom_call_target=\"InspectSharding\", custom_call_has_side_effect=true, "
      "backend_config=\"",
      absl::CEscape(backend_config), "\"\n  ROOT r = f32[8,4] negate(", result == "()" ? "y" : "i",
      ")\n}\n");
}

TextOptions Options() {
  static const TargetRegistry* const targets = [] {
    auto* registry = new TargetRegistry;
    EXPECT_TRUE(RegisterInspectSharding(*registry).ok());
    return registry;
  }();
  TextOptions options;
  options.targets = targets;
  return options;
}

TEST(InspectSharding, IsToldTheShardingAndIsGone) {
  std::vector<std::string> seen;
  const InspectShardingCallback callback([&](absl::string_view spec) {
    seen.emplace_back(spec);
    return absl::OkStatus();
  });
  ASSERT_EQ(callback.backend_config().size(), 16u);
  const auto program = PartitionText(Program(callback.backend_config()), Options());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(LocalText(**program), testing::Not(HasSubstr("custom-call")));
  ASSERT_EQ(seen.size(), 1u);
  // The same message as that of a parameter with that sharding, tag and length included.
  const auto module = ParseText(
      "HloModule m, num_partitions=4\nENTRY e {\n  ROOT x = f32[8,4] parameter(0), "
      "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n}\n");
  ASSERT_TRUE(module.ok());
  const auto bytes = WriteModuleProto(*module);
  ASSERT_TRUE(bytes.ok());
  EXPECT_GT(seen[0].size(), 4u);
  EXPECT_THAT(*bytes, HasSubstr(std::string(1, static_cast<char>(seen[0].size())) + seen[0]));
}

TEST(InspectSharding, EachCallIsToldAndMayPassItsOperandOn) {
  int calls = 0;
  const InspectShardingCallback callback([&](absl::string_view) {
    ++calls;
    return absl::OkStatus();
  });
  std::string text = Program(callback.backend_config(), "f32[8,4]");
  const size_t at = text.find("  i = ");
  std::string again = text.substr(at, text.find('\n', at) + 1 - at);
  again.replace(2, 1, "j");
  text.insert(at, again);
  EXPECT_EQ(WhyNotEqual(text, Options()), "");
  EXPECT_EQ(calls, 2);
}

TEST(InspectSharding, AFailureOrAThrowFailsThePartitioning) {
  const InspectShardingCallback fails(
      [](absl::string_view) { return absl::InternalError("not today"); });
  EXPECT_THAT(PartitionText(Program(fails.backend_config()), Options()),
              Fails("E121", "not today"));
  const InspectShardingCallback throws(
      [](absl::string_view) -> absl::Status { throw std::runtime_error("thrown"); });
  EXPECT_THAT(PartitionText(Program(throws.backend_config()), Options()), Fails("E121", "thrown"));
}

void InC(void* data, Shardcall_InspectShardingArgs* args) {
  *static_cast<size_t*>(data) = args->sharding_spec_size;
}

TEST(InspectSharding, TakesAFunctionInC) {
  size_t size = 0;
  const InspectShardingCallback callback(InC, &size);
  ASSERT_TRUE(PartitionText(Program(callback.backend_config()), Options()).ok());
  EXPECT_GT(size, 0u);
  const InspectShardingCallback null(nullptr, nullptr);
  EXPECT_THAT(PartitionText(Program(null.backend_config()), Options()), Fails("E121", "null"));
}

TEST(InspectSharding, EncodedFunctionsAreCalledUntilTheyAreForgotten) {
  size_t size = 0;
  const std::string bytes = EncodeInspectShardingCallback(InC, &size);
  EXPECT_EQ(EncodeInspectShardingCallback(InC, &size), bytes);
  EXPECT_TRUE(ForgetInspectShardingCallback(bytes));
  ASSERT_TRUE(PartitionText(Program(bytes), Options()).ok());
  EXPECT_GT(size, 0u);
  EXPECT_TRUE(ForgetInspectShardingCallback(bytes));
  EXPECT_FALSE(ForgetInspectShardingCallback(bytes));
  size = 0;
  ASSERT_TRUE(PartitionText(Program(bytes), Options()).ok());
  EXPECT_EQ(size, 0u);
}

TEST(InspectSharding, AddressesOfAnotherProcessAreNotCalled) {
  std::string stale;
  {
    const InspectShardingCallback callback([](absl::string_view) -> absl::Status {
      ADD_FAILURE() << "called after its end";
      return absl::OkStatus();
    });
    stale = callback.backend_config();
  }
  EXPECT_TRUE(PartitionText(Program(stale), Options()).ok());
  EXPECT_TRUE(PartitionText(Program(std::string(16, '\x41')), Options()).ok());
  EXPECT_TRUE(PartitionText(Program("short"), Options()).ok());
}

// A chain of calls of two kinds, apart by an attribute.
std::string Chain(int n) {
  std::string text =
      "HloModule m, num_partitions=4\nENTRY e {\n"
      "  v0 = f32[8,4] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n";
  for (int i = 1; i <= n; ++i) {
    absl::StrAppend(&text, i == n ? "  ROOT v" : "  v", i, " = f32[8,4] custom-call(v", i - 1,
                    ", v", i > 2 ? i - 2 : 0,
                    "), custom_call_target=\"pair\", api_version=API_VERSION_TYPED_FFI, "
                    "backend_config={kind = ",
                    i % 2, " : i64}",
                    i == n ? ", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n" : "\n");
  }
  return text + "}\n";
}

// y = a + b, by an instruction that the callback puts into the module itself.
PartitionerCallbacks Pair(int* partitioned) {
  PartitionerCallbacks callbacks;
  callbacks.infer_sharding_from_operands = [](const CustomCallView&,
                                              absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    return std::vector<const Sharding*>{operands[0]};
  };
  callbacks.partition = [partitioned](PartitionContext& context) -> absl::Status {
    ++*partitioned;
    const Sharding* s = context.operand_sharding(0);
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue a, context.Operand(0, s));
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue b, context.Operand(1, s));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId sum,
                               context.builder().Add(Opcode::kAdd, {a.id, b.id}));
    return context.SetResult(0, {sum}, s);
  };
  return callbacks;
}

TEST(Callbacks, AreAskedOnceForEachDistinctCall) {
  int partitioned = 0;
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("pair", Pair(&partitioned)).ok());
  HandlerRegistry handlers;
  HandlerEntry entry;
  entry.target = "pair";
  entry.host = [](const HandlerContext&, absl::Span<const BufferView> in,
                  absl::Span<const BufferView> out) {
    for (int64_t i = 0; i < out[0].num_elements(); ++i) {
      static_cast<float*>(out[0].data)[i] =
          static_cast<const float*>(in[0].data)[i] + static_cast<const float*>(in[1].data)[i];
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(handlers.Register(std::move(entry)).ok());
  TextOptions options;
  options.targets = &targets;
  options.handlers = &handlers;
  EXPECT_EQ(WhyNotEqual(Chain(12), options), "");
  // Two kinds; the first call has one value as both operands, which may count as a third.
  EXPECT_GE(partitioned, 2);
  EXPECT_LE(partitioned, 3);
}

}  // namespace
}  // namespace shardcall
