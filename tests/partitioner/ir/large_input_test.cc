// SPDX-License-Identifier: Apache-2.0
// Memory and time of reading large text: in proportion to the text, whatever it
// holds. SHARDCALL_LARGE_INPUT_MB sets the size, 4 MB otherwise.
#include <chrono>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/benchmarks/heap_counter.h"
#include "text_util.h"

namespace shardcall {
namespace {

size_t Bytes() {
  const char* megabytes = std::getenv("SHARDCALL_LARGE_INPUT_MB");
  return (megabytes != nullptr ? std::strtoull(megabytes, nullptr, 10) : 4) << 20;
}

// The entry's lines from `first`, then `line(k)` until the text is large.
template <typename F>
std::string Large(absl::string_view first, const F& line) {
  std::string text = absl::StrCat("HloModule m\n\nENTRY %e {\n", first);
  for (int k = 1; text.size() < Bytes(); ++k) absl::StrAppend(&text, line(k), "\n");
  return text + "}\n";
}

// Peak of the heap over reading and verifying, as a multiple of the text, which
// counts itself.
double Memory(const std::string& text, bool want_ok) {
  const auto shared = std::make_shared<const std::string>(text);
  const int64_t before = bench::HeapBytesLive();
  bench::ResetHeapBytesPeak();
  const auto start = std::chrono::steady_clock::now();
  const auto module = ParseModule(shared, std::make_shared<Context>(), "t.hlo");
  EXPECT_EQ(module.ok(), want_ok) << module.status().message();
  if (module.ok()) {
    EXPECT_TRUE(VerifyModule(*module, "").ok()) << VerifyModule(*module, "").message();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  // Generous, for slow and busy machines: a quadratic reader takes minutes.
  EXPECT_LT(seconds.count(), 30.0 + 1e-6 * static_cast<double>(text.size()));
  return 1 +
         static_cast<double>(bench::HeapBytesPeak() - before) / static_cast<double>(text.size());
}

TEST(LargeInput, UsualLinesTakeAFewTimesTheText) {
  EXPECT_LT(Memory(Large("  %x.0 = f32[16,32]{1,0} parameter(0)\n",
                         [](int k) {
                           return absl::StrCat("  %x.", k, " = f32[16,32]{1,0} add(%x.", k - 1,
                                               ", %x.", k - 1, "), metadata={op_name=\"jit(f)/x", k,
                                               "\" stack_frame_id=", k % 50, "}");
                         }),
                   true),
            5.0);
}

TEST(LargeInput, TheShortestLinesStayWithinABound) {
  EXPECT_LT(Memory(Large("x0 = f32[] parameter(0)\n",
                         [](int k) { return absl::StrCat("x", k, "=abs(x", k - 1, ")"); }),
                   true),
            30.0);
}

TEST(LargeInput, ConstantsTakeAFewTimesTheirText) {
  std::string values = "{0";
  int64_t count = 1;
  for (; values.size() < Bytes(); ++count) values += ",0";
  EXPECT_LT(
      Memory(InEntry(absl::StrCat("  ROOT %c = f64[", count, "] constant(", values, "})")), true),
      12.0);
  // Of many declared values only those that are there take memory.
  EXPECT_LT(Memory(InEntry(absl::StrCat("  ROOT %c = c128[", count, "] constant({(1,2)})", " //",
                                        values)),
                   false),
            1.1);
}

TEST(LargeInput, EmptyLinesAndCommentsTakeLittle) {
  // Room for instructions is reserved by lines, within what the text could hold.
  EXPECT_LT(Memory(std::string(Bytes(), '\n') + InEntry("  %a = f32[] parameter(0)"), true), 5.0);
  EXPECT_LT(Memory(InEntry("  %a = f32[] parameter(0) //" + std::string(Bytes(), 'x')), true), 1.1);
}

TEST(LargeInput, OneLineWithoutEndIsDiagnosedWithAShortExcerpt) {
  const std::string error = ErrorOf("HloModule m, bad" + std::string(Bytes(), 'x') + "=1");
  EXPECT_EQ(error.substr(0, 4), "E005");
  EXPECT_LT(error.size(), 1000u);
}

}  // namespace
}  // namespace shardcall
