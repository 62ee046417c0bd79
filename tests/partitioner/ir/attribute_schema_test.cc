// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/attribute_schema.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
namespace {

using hlo_text::Attr;
using hlo_text::AttrsOf;
using hlo_text::AttrText;

template <typename F>
void ForEveryRecord(F&& f) {
#define SHARDCALL_RECORD(Record) f(#Record, RecordType<Record##Attrs>());
#include "shardcall/partitioner/ir/attributes.inc"
}

// A member without a row would be lost in every text and message.
TEST(AttributeSchema, ARecordHasARowForEachMemberOrIsReadByFunctionsOfItsOwn) {
  std::set<std::string> own;
  ForEveryRecord([&](const char* name, auto type) {
    using Record = typename decltype(type)::Record;
    size_t rows = 0, members = 0;
    Schema<Record>::Visit([&](const auto&) { return ++rows > 0; });
    const Record record;
    record.Fields([&](const auto&... fields) { members = sizeof...(fields); });
    if (rows == 0 && members > 0) {
      own.insert(name);
    } else {
      EXPECT_EQ(rows, members) << name;
    }
  });
  EXPECT_EQ(own,
            (std::set<std::string>{"Async", "Collective", "Conditional", "Constant", "CustomCall",
                                   "Outfeed", "Pad", "Parameter", "Permute", "Slice"}));
}

TEST(AttributeSchema, ARecordSaysItsKindAndNoTextStandsTwice) {
  int kind = 0;
  ForEveryRecord([&](const char* name, auto type) {
    using Record = typename decltype(type)::Record;
    EXPECT_EQ(static_cast<int>(Record::kKind), kind++) << name;
    EXPECT_EQ(ForRecordType(Record::kKind,
                            [](auto t) { return static_cast<int>(decltype(t)::Record::kKind); }),
              static_cast<int>(Record::kKind));
  });
  std::set<absl::string_view> texts;
  for (int a = 0; a < hlo_text::kNumAttrs; ++a) {
    const absl::string_view text = AttrText(static_cast<Attr>(a));
    EXPECT_TRUE(texts.insert(text).second) << text;
    Attr found;
    ASSERT_TRUE(hlo_text::AttrFromText(text, &found)) << text;
    EXPECT_EQ(static_cast<int>(found), a);
  }
}

TEST(AttributeSchema, OpcodesOfOneRecordDifferWhereTheTableSaysSo) {
  const auto required = [](Opcode op, Attr a) { return AttrsOf(op).required.Has(a); };
  const auto allowed = [](Opcode op, Attr a) { return AttrsOf(op).allowed.Has(a); };
  EXPECT_TRUE(required(Opcode::kTranspose, Attr::kDimensions));
  EXPECT_FALSE(required(Opcode::kBroadcast, Attr::kDimensions));
  EXPECT_TRUE(allowed(Opcode::kBroadcast, Attr::kDimensions));
  EXPECT_TRUE(required(Opcode::kAllGather, Attr::kDimensions));
  EXPECT_FALSE(allowed(Opcode::kAllGather, Attr::kToApply));
  EXPECT_FALSE(allowed(Opcode::kAllReduce, Attr::kDimensions));
  EXPECT_TRUE(required(Opcode::kReduceScatter, Attr::kToApply));
  EXPECT_TRUE(allowed(Opcode::kRaggedDot, Attr::kLhsRaggedDims));
  EXPECT_FALSE(allowed(Opcode::kDot, Attr::kLhsRaggedDims));
  EXPECT_FALSE(allowed(Opcode::kRaggedDot, Attr::kAlgorithm));
  for (int op = 0; op < kNumOpcodes; ++op) {
    EXPECT_TRUE(allowed(static_cast<Opcode>(op), Attr::kMetadata));
  }
}

}  // namespace
}  // namespace shardcall
