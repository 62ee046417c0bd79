// SPDX-License-Identifier: Apache-2.0
// Reductions by and, or and xor: no engine's collectives have them but for and and
// or of truth values, so the parts are gathered or exchanged, and reduced locally.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// Eight rows, two a device, reduced by OP; the result is whole, or sharded as SHARDING says.
std::string Reduced(const std::string& type, const std::string& op, const std::string& sharding) {
  return absl::StrReplaceAll(R"(HloModule m, num_partitions=4

f {
  a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT r = T[] OP(a, b)
}

ENTRY main {
  x = T[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  init = T[] constant(0)
  r = T[12] reduce(x, init), dimensions={0}, to_apply=f
  ROOT y = T[12] copy(r), sharding=SHARDING
}
)",
                             {{"T[", type + "["},
                              {"OP", op},
                              {"constant(0)", absl::StrCat("constant(",
                                                           op != "and"      ? "0"
                                                           : type == "pred" ? "1"
                                                                            : "-1",
                                                           ")")},
                              {"SHARDING", sharding}});
}

struct Counts {
  int reduced, gathered, exchanged;
  bool operator==(const Counts& o) const {
    return reduced == o.reduced && gathered == o.gathered && exchanged == o.exchanged;
  }
  friend std::ostream& operator<<(std::ostream& out, const Counts& c) {
    return out << c.reduced << " reducing, " << c.gathered << " gathering, " << c.exchanged
               << " exchanging";
  }
};

Counts CollectivesOf(const std::string& text) {
  const auto program = PartitionText(text, {});
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {-1, -1, -1};
  return {
      CountOpcode(**program, Opcode::kAllReduce) + CountOpcode(**program, Opcode::kReduceScatter),
      CountOpcode(**program, Opcode::kAllGather), CountOpcode(**program, Opcode::kAllToAll)};
}

TEST(Bitwise, AWholeResultIsGatheredAndReducedLocally) {
  for (const char* op : {"and", "or", "xor"}) {
    for (const char* type : {"s32", "s8", "s64"}) {
      SCOPED_TRACE(absl::StrCat(op, " of ", type));
      const std::string text = Reduced(type, op, "{replicated}");
      EXPECT_EQ(CollectivesOf(text), (Counts{0, 1, 0}));
      EXPECT_EQ(WhyNotEqual(text, {}), "");
    }
  }
}

TEST(Bitwise, AShardedResultIsExchangedAndReducedLocally) {
  for (const char* op : {"and", "or", "xor"}) {
    SCOPED_TRACE(op);
    const std::string text = Reduced("s32", op, "{devices=[4]<=[4]}");
    EXPECT_EQ(CollectivesOf(text), (Counts{0, 0, 1}));
    EXPECT_EQ(WhyNotEqual(text, {}), "");
  }
}

TEST(Bitwise, OfTruthValuesOnlyXorIsNotWhatCollectivesReduceBy) {
  for (const char* op : {"and", "or"}) {
    const std::string text = Reduced("pred", op, "{replicated}");
    EXPECT_EQ(CollectivesOf(text), (Counts{1, 0, 0})) << op;
    EXPECT_EQ(WhyNotEqual(text, {}), "") << op;
  }
  const std::string text = Reduced("pred", "xor", "{replicated}");
  EXPECT_EQ(CollectivesOf(text), (Counts{0, 1, 0}));
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

// Per device 512 KiB x 3, an axis of 2 after the other (an axis of 4 is two of them); over all at
// once it would be 512 KiB x 7.
TEST(Bitwise, PartsAreGatheredOneAxisAfterTheOther) {
  const std::string text = R"(HloModule m, num_partitions=8

f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] xor(a, b)
}

ENTRY main {
  x = s32[8,131072] parameter(0), sharding={devices=[8,1]<=[8]}
  y = s32[2,4] parameter(1), sharding={devices=[2,4]<=[8]}
  z = s32[2,4] copy(y), sharding={devices=[2,4]<=[8]}
  init = s32[] constant(0)
  r = s32[131072] reduce(x, init), dimensions={0}, to_apply=f, sharding={replicated}
  ROOT t = (s32[131072], s32[2,4]) tuple(r, z), sharding={{replicated}, {devices=[2,4]<=[8]}}
}
)";
  const auto program = PartitionText(text, {});
  ASSERT_TRUE(program.ok()) << program.status();
  double sent = 0;
  for (const CollectiveRecord& r : (*program)->local.collectives) sent += r.bytes_moved;
  EXPECT_EQ(sent, 3 * 524288) << LocalText(**program);
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllGather), 3);
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

// The updates of a scatter cost 2 x 3.75 MiB to gather; its partial results 1.5 x 4 MiB to reduce
// where a collective does that, and 3 x 4 MiB where they are gathered themselves.
TEST(Bitwise, WhatIsDearerThanAnAllReduceIsPlannedSo) {
  const std::string text = R"(HloModule m, num_partitions=4

f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] OP(a, b)
}

ENTRY main {
  x = s32[1048576] parameter(0), sharding={replicated}
  i = s32[1310720,1] parameter(1), sharding={devices=[4,1]<=[4]}
  u = s32[1310720] parameter(2), sharding={devices=[4]<=[4]}
  ROOT s = s32[1048576] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f, sharding={replicated}
}
)";
  EXPECT_EQ(CollectivesOf(absl::StrReplaceAll(text, {{"OP", "add"}})), (Counts{1, 0, 0}));
  EXPECT_EQ(CollectivesOf(absl::StrReplaceAll(text, {{"OP", "xor"}})), (Counts{0, 2, 0}));
}

// XLA drops the init of a reduction of one element, which a shard may have.
TEST(Reduce, AnInitThatIsNoIdentityIsCombinedBehind) {
  const std::string text = R"(HloModule m, num_partitions=2

f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[2,6] parameter(0), sharding={devices=[2,1]<=[2]}
  init = f32[] parameter(1)
  ROOT r = f32[6] reduce(x, init), dimensions={0}, to_apply=f
}
)";
  const auto program = PartitionText(text, {});
  ASSERT_TRUE(program.ok()) << program.status();
  const Module& local = (*program)->local.module;
  int reduces = 0;
  for (int k = 0; k < local.num_instructions(); ++k) {
    const Instruction& i = local.instr(InstrId(k));
    if (i.opcode != Opcode::kReduce) continue;
    ++reduces;
    EXPECT_EQ(local.instr(local.operands(i)[1]).opcode, Opcode::kConstant) << LocalText(**program);
  }
  EXPECT_EQ(reduces, 1);
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

TEST(Bitwise, WhatOneDeviceMadeIsSummed) {
  for (const char* type : {"f32", "s32", "bf16", "c64", "f64", "u8", "s16", "u16", "s4"}) {
    SCOPED_TRACE(type);
    const auto program = PartitionText(absl::StrReplaceAll(R"(HloModule m, num_partitions=4

ENTRY main {
  x = T[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT c = T[8] custom-call(x), custom_call_target="elsewhere", sharding={maximal device=2}
}
)",
                                                           {{"T[", std::string(type) + "["}}),
                                       {.allow_replicate = {"all"}});
    ASSERT_TRUE(program.ok()) << program.status();
    const std::string local = LocalText(**program);
    EXPECT_TRUE(absl::StrContains(local, " add(")) << local;
    EXPECT_FALSE(absl::StrContains(local, " or(")) << local;
  }
}

}  // namespace
}  // namespace shardcall
