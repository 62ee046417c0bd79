// SPDX-License-Identifier: Apache-2.0
// Fused programs against the same programs unfused: the same bits, whatever the
// graph; and what is fused at all.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

constexpr const char* kAdd =
    "a { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n";

std::shared_ptr<const DeviceProgram> Lowered(absl::string_view text, bool fuse) {
  LowerOptions options;
  options.fuse = fuse;
  const auto program = LowerText(text, "", options);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  return program.ok() ? *program : nullptr;
}

// Runs both ways, with arguments that may and that may not be overwritten.
void ExpectSameBits(absl::string_view text) {
  const auto fused = Lowered(text, true), plain = Lowered(text, false);
  ASSERT_TRUE(fused != nullptr && plain != nullptr);
  std::vector<Tensor> inputs = RandomInputs(fused->parameters, 3);
  const auto want = Execute(*plain, absl::MakeConstSpan(inputs), {});
  ASSERT_TRUE(want.ok()) << want.status();
  for (const bool give_away : {false, true}) {
    const auto got =
        give_away ? Execute(*fused, std::vector<Tensor>(RandomInputs(fused->parameters, 3)), {})
                  : Execute(*fused, absl::MakeConstSpan(inputs), {});
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want->size());
    for (size_t k = 0; k < want->size(); ++k) {
      ASSERT_TRUE(BitwiseEqual((*got)[k], (*want)[k])) << "result " << k << " of\n" << text;
    }
  }
}

// A random program over arrays of a few shapes: each instruction takes values
// that are there already.
class RandomProgram {
 public:
  explicit RandomProgram(int seed) : random_(seed) {
    rows_ = Pick({1, 3, 40, 700});
    cols_ = Pick({1, 5, 64, 300, 1100});
    for (const char* type : {"f32", "bf16", "s32", "f16"}) {
      Emit(type, kFull, absl::StrCat("parameter(", parameters_++, ")"));
    }
    Emit("f32", kRow, absl::StrCat("parameter(", parameters_++, ")"));
    Emit("bf16", kColumn, absl::StrCat("parameter(", parameters_++, ")"));
    Emit("f32", kScalar, "constant(0.375)");
    Emit("s32", kScalar, "constant(3)");
    Emit("bf16", kScalar, "constant(-1.5)");
  }

  std::string Text(int length) {
    for (int i = 0; i < length; ++i) Next();
    std::vector<std::string> roots, types;
    for (size_t k = values_.size() - 1; roots.size() < 4; k -= 1 + Below(3)) {
      roots.push_back(Name(k));
      types.push_back(Type(values_[k].type, values_[k].form));
    }
    return absl::StrCat(kAdd, "ENTRY e {\n", text_, "ROOT r = (", absl::StrJoin(types, ", "),
                        ") tuple(", absl::StrJoin(roots, ", "), ")\n}\n");
  }

 private:
  enum Form { kFull, kFlat, kRow, kColumn, kScalar };
  struct Value {
    std::string type;
    Form form;
  };

  int Below(int n) { return static_cast<int>(random_() % n); }
  int Pick(std::vector<int> v) { return v[Below(static_cast<int>(v.size()))]; }
  std::string Pick(std::vector<std::string> v) { return v[Below(static_cast<int>(v.size()))]; }
  static std::string Name(size_t k) { return absl::StrCat("v", k); }
  std::string Type(const std::string& type, Form form) const {
    switch (form) {
      case kFull: return absl::StrCat(type, "[", rows_, ",", cols_, "]");
      case kFlat: return absl::StrCat(type, "[", rows_ * cols_, "]");
      case kRow: return absl::StrCat(type, "[", cols_, "]");
      case kColumn: return absl::StrCat(type, "[", rows_, "]");
      case kScalar: return absl::StrCat(type, "[]");
    }
    return "";
  }
  void Emit(const std::string& type, Form form, absl::string_view what) {
    absl::StrAppend(&text_, Name(values_.size()), " = ", Type(type, form), " ", what, "\n");
    values_.push_back({type, form});
  }
  // A value of that type and form, mostly a late one; made if there is none.
  std::string Operand(const std::string& type, Form form) {
    for (int tries = 0; tries < 40; ++tries) {
      const size_t k = Below(3) == 0 ? Below(values_.size())
                                     : values_.size() - 1 - Below(std::min<int>(8, values_.size()));
      if (values_[k].type == type && values_[k].form == form) return Name(k);
    }
    for (size_t k = values_.size(); k-- > 0;) {
      if (values_[k].type == type && values_[k].form == form) return Name(k);
    }
    if (type == "pred") {
      const std::string a = Operand("f32", form), b = Operand("f32", form);
      Emit(type, form, absl::StrCat("compare(", a, ", ", b, "), direction=GT"));
    } else if (form == kScalar) {
      Emit(type, form, "constant(1)");
    } else {
      Emit(type, form, absl::StrCat("broadcast(", Operand(type, kScalar), "), dimensions={}"));
    }
    return Name(values_.size() - 1);
  }

  void Next() {
    const std::string type = Pick({"f32", "f32", "f32", "bf16", "bf16", "s32", "f16"});
    const Form form = Below(6) == 0 ? kFlat : Below(9) == 0 ? kRow : kFull;
    switch (Below(12)) {
      case 0:
        return Emit(type, kFull,
                    absl::StrCat("broadcast(", Operand(type, kRow), "), dimensions={1}"));
      case 1:
        return Emit(type, kFull,
                    absl::StrCat("broadcast(", Operand(type, kColumn), "), dimensions={0}"));
      case 2:
        return Emit(type, form,
                    absl::StrCat("broadcast(", Operand(type, kScalar), "), dimensions={}"));
      case 3: return Emit(type, kFull, absl::StrCat("iota(), iota_dimension=", Below(2)));
      case 4:
        return form == kFull
                   ? Emit(type, kFlat, absl::StrCat("reshape(", Operand(type, kFull), ")"))
                   : Emit(type, kFull, absl::StrCat("reshape(", Operand(type, kFlat), ")"));
      case 5: {
        const std::string from = Pick({"f32", "bf16", "s32", "f16"});
        return Emit(type, form, absl::StrCat("convert(", Operand(from, form), ")"));
      }
      case 6:
        return Emit(type, form,
                    absl::StrCat("select(", Operand("pred", form), ", ", Operand(type, form), ", ",
                                 Operand(type, form), ")"));
      case 7:  // something that is not fused stands between
        return Emit("f32", kColumn,
                    absl::StrCat("reduce(", Operand("f32", kFull), ", ", Operand("f32", kScalar),
                                 "), dimensions={1}, to_apply=a"));
      case 8:
        return Emit("f32", kFull,
                    absl::StrCat("reverse(", Operand("f32", kFull), "), dimensions={1}"));
      case 9: {
        const std::string op = type == "s32"
                                   ? Pick({"negate", "abs", "not"})
                                   : Pick({"exponential", "tanh", "negate", "sqrt", "log"});
        return Emit(type, form, absl::StrCat(op, "(", Operand(type, form), ")"));
      }
      default: {
        const std::string op = type == "s32" ? Pick({"add", "multiply", "xor", "divide"})
                                             : Pick({"add", "multiply", "subtract", "maximum"});
        return Emit(type, form,
                    absl::StrCat(op, "(", Operand(type, form), ", ", Operand(type, form), ")"));
      }
    }
  }

  std::mt19937 random_;
  int rows_, cols_, parameters_ = 0;
  std::string text_;
  std::vector<Value> values_;
};

TEST(Fuse, RandomProgramsKeepTheirBits) {
  for (int seed = 0; seed < 300; ++seed) {
    ExpectSameBits(RandomProgram(seed).Text(5 + seed % 60));
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

// More than the groups that may be open at once, and than a group may hold.
TEST(Fuse, LongProgramsKeepTheirBits) {
  for (int seed = 1000; seed < 1004; ++seed) {
    ExpectSameBits(RandomProgram(seed).Text(1500));
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

int Steps(absl::string_view text) {
  const auto program = Lowered(text, true);
  return program == nullptr ? -1
                            : static_cast<int>(program->computations[program->entry].steps.size());
}

TEST(Fuse, AChainWithBroadcastsIsOneStep) {
  EXPECT_EQ(Steps("x = f32[8,16] parameter(0)\n"
                  "y = f32[16] parameter(1)\n"
                  "c = f32[] constant(2)\n"
                  "cb = f32[8,16] broadcast(c), dimensions={}\n"
                  "yb = f32[8,16] broadcast(y), dimensions={1}\n"
                  "i = s32[8,16] iota(), iota_dimension=0\n"
                  "f = f32[8,16] convert(i)\n"
                  "m = f32[8,16] multiply(x, cb)\n"
                  "a = f32[8,16] add(m, yb)\n"
                  "r = f32[128] reshape(a)\n"
                  "g = f32[128] reshape(f)\n"
                  "ROOT e = f32[128] subtract(r, g)"),
            1);
}

// The sum depends on the first op and the last on the sum: one step would have
// to stop in the middle.
TEST(Fuse, NothingIsFusedAroundWhatMustStandBetween) {
  const std::string text = absl::StrCat(kAdd,
                                        "ENTRY e {\n"
                                        "x = f32[8,16] parameter(0)\n"
                                        "z = f32[] constant(0)\n"
                                        "a = f32[8,16] exponential(x)\n"
                                        "s = f32[8] reduce(a, z), dimensions={1}, to_apply=a\n"
                                        "b = f32[8,16] broadcast(s), dimensions={0}\n"
                                        "ROOT d = f32[8,16] divide(a, b)\n}");
  EXPECT_EQ(Steps(text), 2);  // the sum with what it adds up
  ExpectSameBits(text);
}

// Rows and columns, over and under a block, aligned with it and not, of a value
// that is needed otherwise and of one that is not.
TEST(Fuse, ReductionsEndAFusedStep) {
  constexpr const char* kText = R"(
m { p = f32[] parameter(0)
 q = f32[] parameter(1)
 ROOT s = f32[] $op(p, q) }
ENTRY e {
x = f32[$r,$c] parameter(0)
y = bf16[$r,$c] parameter(1)
z = f32[] constant($init)
k = bf16[] constant(0.5)
kb = bf16[$r,$c] broadcast(k), dimensions={}
a = f32[$r,$c] multiply(x, x)
b = f32[$r,$c] exponential(a)
h = bf16[$r,$c] multiply(y, kb)
i = f32[$r,$c] convert(h)
rows = f32[$r] reduce(b, z), dimensions={1}, to_apply=m
columns = f32[$c] reduce(b, z), dimensions={0}, to_apply=m
narrow = f32[$r] reduce(i, z), dimensions={1}, to_apply=m
all = f32[] reduce(a, z), dimensions={0,1}, to_apply=m
ROOT t = (f32[$r], f32[$c], f32[$r], f32[], f32[$r,$c]) tuple(rows, columns, narrow, all, b)
})";
  for (const auto& [op, init] : {std::pair{"add", "0.25"}, {"maximum", "-inf"}, {"minimum", "2"}}) {
    for (const auto& [rows, columns] :
         {std::pair{"5", "3"}, {"37", "64"}, {"100", "130"}, {"3", "5000"}, {"4000", "2"}}) {
      const std::string text =
          absl::StrReplaceAll(kText, {{"$op", op}, {"$init", init}, {"$r", rows}, {"$c", columns}});
      EXPECT_LE(Steps(text), 4) << text;
      ExpectSameBits(text);
    }
  }
}

// Scalars and elements of a row meet arrays and each other in every order; rows
// are shorter than a block, as long, and longer.
TEST(Fuse, SingleElementsAreSpreadWhereTheyMustBe) {
  constexpr const char* kText = R"(
x = $t[37,$n] parameter(0)
r = $t[$n] parameter(1)
k = $t[37] parameter(2)
s = $t[] parameter(3)
c = $t[] constant(3)
rb = $t[37,$n] broadcast(r), dimensions={1}
kb = $t[37,$n] broadcast(k), dimensions={0}
sb = $t[37,$n] broadcast(s), dimensions={}
cb = $t[37,$n] broadcast(c), dimensions={}
a = $t[37,$n] multiply(cb, x)
b = $t[37,$n] subtract(sb, cb)
d = $t[37,$n] add(b, kb)
e = $t[37,$n] maximum(d, rb)
f = $t[37,$n] minimum(a, d)
g = $t[37,$n] negate(b)
h = $t[37,$n] subtract(kb, f)
p = pred[37,$n] compare(x, cb), direction=GT
i = $t[37,$n] select(p, cb, h)
j = $t[37,$n] select(p, g, sb)
ROOT t = ($t[37,$n], $t[37,$n], $t[37,$n], $t[37,$n], $t[37,$n]) tuple(e, i, j, g, d)
)";
  for (const char* type : {"f32", "bf16", "s32", "f16"}) {
    for (const char* columns : {"3", "64", "1000", "5000"}) {
      ExpectSameBits(absl::StrReplaceAll(kText, {{"$t", type}, {"$n", columns}}));
    }
  }
}

TEST(Fuse, AValueIsNotReadInAnotherOrderByItsOwnStep) {
  // Transposed, by the step that would join and by one of two that would be merged.
  ExpectSameBits(R"(ENTRY e {
  p = f32[40,40] parameter(0)
  q = f32[40,40] parameter(1)
  x = f32[40,40] add(p, p)
  t = f32[40,40] broadcast(x), dimensions={1,0}
  r = f32[40,40] add(x, t)
  y = f32[40,40] multiply(q, t)
  z = f32[40,40] multiply(y, x)
  ROOT o = (f32[40,40], f32[40,40]) tuple(r, z)
}
)");
  // One element, as scalar, array and both.
  ExpectSameBits(R"(ENTRY e {
  c = f32[] constant(2)
  m = f32[] minimum(c, c)
  b = f32[1] broadcast(m), dimensions={}
  n = f32[1] negate(b)
  s = f32[] reshape(n)
  u = f32[1,1] broadcast(b), dimensions={1}
  v = f32[1,1] add(u, u)
  z = c64[] complex(m, s)
  ROOT o = (c64[], f32[1,1]) tuple(z, v)
})");
}

TEST(Fuse, EmptyArraysStayEmpty) {
  ExpectSameBits(
      "x = f32[0,16] parameter(0)\n"
      "y = f32[16] parameter(1)\n"
      "yb = f32[0,16] broadcast(y), dimensions={1}\n"
      "a = f32[0,16] add(x, yb)\n"
      "ROOT e = f32[0,16] exponential(a)");
}

// NaNs of bf16 that are only moved keep their bits.
TEST(Fuse, MovedNansKeepTheirBits) {
  const std::string text =
      "x = bf16[4] parameter(0)\n"
      "p = pred[4] parameter(1)\n"
      "n = bf16[4] negate(x)\n"
      "ROOT s = bf16[4] select(p, x, n)";
  const std::vector<uint16_t> x = {0x7f81, 0xff81, 0x7fc1, 0x3f80};
  const std::vector<uint8_t> p = {1, 1, 0, 0};
  std::vector<std::vector<Tensor>> results;
  for (const bool fuse : {false, true}) {
    const auto result = Execute(*Lowered(text, fuse),
                                std::vector<Tensor>{Tensor::From(ElementType::kBF16, {4}, x),
                                                    Tensor::From(ElementType::kPred, {4}, p)},
                                {});
    ASSERT_TRUE(result.ok()) << result.status();
    results.push_back(*result);
  }
  EXPECT_TRUE(BitwiseEqual(results[0][0], results[1][0]));
  EXPECT_EQ(results[1][0].data<uint16_t>()[0], 0x7f81);
}

}  // namespace
}  // namespace shardcall
