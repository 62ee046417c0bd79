// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/attributes.h"

#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
namespace {

TEST(InternAttributes, EqualValuesShareOneRecordAndOutliveTheirSource) {
  Context context;
  const DotAttrs* first;
  {
    std::vector<int64_t> dims = {1, 2};
    std::string precision = "{high,default}";
    DotAttrs a;
    a.lhs_contracting = dims;
    a.operand_precision = precision;
    first = InternAttributes(context, a);
    dims = {7, 7};
    precision = "{highest,highest}";
  }
  EXPECT_EQ(first->lhs_contracting, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(first->operand_precision, "{high,default}");
  DotAttrs b;
  const std::vector<int64_t> same = {1, 2};
  b.lhs_contracting = same;
  b.operand_precision = "{high,default}";
  EXPECT_EQ(InternAttributes(context, b), first);
  b.rhs_contracting = same;
  EXPECT_NE(InternAttributes(context, b), first);
}

// A field points to what it is assigned; what is gone at the end of the statement is
// not taken.
template <typename F, typename Value>
constexpr bool kTakes = std::is_assignable_v<F&, Value>;
static_assert(kTakes<Field<int64_t>, const std::vector<int64_t>&>);
static_assert(kTakes<Field<int64_t>, int64_t (&)[2]>);
static_assert(kTakes<Field<int64_t>, absl::Span<const int64_t>>);
static_assert(kTakes<Field<const Shape*>, std::vector<const Shape*>&>);
static_assert(!kTakes<Field<int64_t>, std::vector<int64_t>>);
static_assert(!kTakes<Field<int64_t>, absl::InlinedVector<int64_t, 2>>);
static_assert(!kTakes<Field<int64_t>, std::initializer_list<int64_t>>);
static_assert(!kTakes<Field<const Shape*>, std::vector<const Shape*>>);
static_assert(kTakes<TextField, absl::string_view> && kTakes<TextField, const std::string&>);
static_assert(kTakes<TextField, const char (&)[4]> && !kTakes<TextField, std::string>);

TEST(InternAttributes, RecordsOfDifferentKindsAreDifferent) {
  Context context;
  const Attributes* iota = InternAttributes(context, IotaAttrs());
  const Attributes* index = InternAttributes(context, TupleIndexAttrs());
  EXPECT_NE(iota, index);
  EXPECT_EQ(iota->kind, AttrKind::kIota);
}

TEST(InternAttributes, NestedListsAreCopiedDeep) {
  Context context;
  const CollectiveAttrs* made;
  {
    std::vector<int64_t> one = {0, 1}, two = {2, 3};
    std::vector<Ints> lists = {one, two};
    CollectiveAttrs a;
    a.groups.form = ReplicaGroups::Form::kLists;
    a.groups.lists = lists;
    made = InternAttributes(context, a);
    one = two = {9, 9};
  }
  ASSERT_EQ(made->groups.lists.size(), 2u);
  EXPECT_EQ(made->groups.lists[1], (std::vector<int64_t>{2, 3}));
}

TEST(InternFrontendAttributes, OrderOfKeysDoesNotMatter) {
  Context context;
  const auto* a = InternFrontendAttributes(context, {{"b", "2"}, {"a", "1"}});
  const auto* b = InternFrontendAttributes(context, {{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a->entries[0].first, "a");
}

TEST(Opcodes, EveryNameFindsItsOpcode) {
  for (int k = 0; k < kNumOpcodes; ++k) {
    Opcode found;
    ASSERT_TRUE(OpcodeFromText(OpcodeText(static_cast<Opcode>(k)), &found));
    EXPECT_EQ(static_cast<int>(found), k);
  }
  Opcode found;
  EXPECT_FALSE(OpcodeFromText("ad", &found));
  EXPECT_FALSE(OpcodeFromText("", &found));
}

TEST(Module, OperandsOfOneInstructionMayBePassedToAnother) {
  auto context = std::make_shared<Context>();
  Module m(context);
  const CompId c = m.AddComputation("c");
  const Shape* shape = context->MakeScalar(ElementType::kF32);
  const InstrId p =
      m.Add(c, Opcode::kParameter, shape, {}, InternAttributes(*context, ParameterAttrs()));
  InstrId last = m.Add(c, Opcode::kAdd, shape, {p, p});
  for (int k = 0; k < 100; ++k) last = m.Add(c, Opcode::kAdd, shape, m.operands(last));
  EXPECT_EQ(m.operand(last, 0), p);
  EXPECT_EQ(m.operand(last, 1), p);
}

}  // namespace
}  // namespace shardcall
