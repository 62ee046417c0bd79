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
                              {"constant(0)", absl::StrCat("constant(", op != "and" ? "0" :
                                                           type == "pred" ? "1" : "-1", ")")},
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
  return {CountOpcode(**program, Opcode::kAllReduce) + CountOpcode(**program, Opcode::kReduceScatter),
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
