// SPDX-License-Identifier: Apache-2.0
// Passes that rewrite an op rewrite it in the computation of an async-start, too. That may hold one
// op and its parameters only, so the pair becomes synchronous.
#include "shardcall/partitioner/pass/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Case {
  std::unique_ptr<Pass> (*pass)();
  const char* monoid;   // what `f` does
  const char* type;     // of f's values
  const char* operand;  // the shape of x
  const char* shape;    // of the op's result
  const char* wrapped;  // the op, of x and of i, a scalar of f's type
  const char* made;     // what the pass makes of it
};
const Case kCases[] = {
    {MakeSeparateInits, "add", "f32", "f32[8,4]", "f32[4]",
     "reduce(x, i), dimensions={0}, to_apply=f", "add(%broadcast"},
    {MakeRowMajorResults, "add", "f32", "f32[8,16]", "c64[8,9]",
     "fft(x), fft_type=RFFT, fft_length={16}", "custom_call_target=\"LayoutConstraint\""},
    {MakeKeptOperands, "add", "c64", "c64[8]", "c64[2]",
     "reduce-scatter(x), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=f",
     "opt-barrier(%z)"},
    {MakeOrderedExtrema, "maximum", "f32", "f32[8]", "f32[2]",
     "reduce-scatter(x), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=f",
     "s32[2]{0} reduce-scatter("},
};

// The op started, with another one of the same computation behind it.
std::string Started(const Case& c) {
  const std::string shapes =
      absl::StrCat("((", c.operand, ", ", c.type, "[]), ", c.shape, ", s32[])");
  return absl::Substitute(R"(
f { a = $1[] parameter(0)
  b = $1[] parameter(1)
  ROOT r = $1[] $0(a, b) }
wrapped {
  x = $2 parameter(0)
  i = $1[] parameter(1)
  ROOT w = $3 $4
}
ENTRY e {
  y = $2 parameter(0)
  j = $1[] parameter(1)
  z = $2 copy(y)
  begun = $5 async-start(z, j), calls=wrapped
  meanwhile = $1[] negate(j), control-predecessors={begun}
  still = $5 async-update(begun)
  done = $3 async-done(still)
  g = $2 all-gather(y), replica_groups={{0},{1},{2},{3}}, dimensions={0}
  ROOT r = ($3, $1[], $2) tuple(done, meanwhile, g)
}
)",
                          c.monoid, c.type, c.operand, c.shape, c.wrapped, shapes);
}

TEST(RewriteInstructions, MakeAPairSynchronousThatStartsTheOp) {
  for (const Case& c : kCases) {
    const std::unique_ptr<Pass> pass = c.pass();
    EXPECT_THAT(TextAfter(*pass, Started(c)),
                AllOf(HasSubstr(c.made), HasSubstr("tuple(%"), Not(HasSubstr("async-")),
                      Not(HasSubstr("wrapped"))))
        << pass->name();
  }
}

TEST(RewriteInstructions, LeavePairsOfOtherOps) {
  const std::string other = R"(
double { x = f32[8] parameter(0)
  ROOT w = f32[8] add(x, x) }
)";
  for (const Case& c : kCases) {
    std::string text = other + Started(c);
    const std::string begun = "  begun = ";
    text.insert(text.find(begun), R"(  one = f32[] constant(1)
  o = f32[8] broadcast(one), dimensions={}
  begun2 = ((f32[8]), f32[8], s32[]) async-start(o), calls=double
  done2 = f32[8] async-done(begun2)
)");
    const std::unique_ptr<Pass> pass = c.pass();
    EXPECT_THAT(TextAfter(*pass, text),
                AllOf(HasSubstr(c.made), HasSubstr("begun2 = "), Not(HasSubstr("calls=%wrapped"))))
        << pass->name();
  }
}

}  // namespace
}  // namespace shardcall
