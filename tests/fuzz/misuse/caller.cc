// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/codes.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {

bool Caller::Ok(const absl::Status& status) {
  ++tally_.calls;
  if (status.ok()) return true;
  ++tally_.refused;
  const std::string code(DiagnosticCode(status));
  ++tally_.codes[code];
  FuzzRequire(FindCode(code) != nullptr, "a refusal has a code of the table", status.ToString());
  FuzzRequire(!absl::StrContains(status.message(), "bug of shardcall"), "misuse is no bug of ours",
              status.ToString());
  return false;
}

bool Caller::Ok(Shardcall_Error* error) {
  if (error == nullptr) return Ok(absl::OkStatus());
  const auto code = static_cast<absl::StatusCode>(Shardcall_Error_Status(error));
  const std::string text = Shardcall_Error_Text(error);
  const bool parts = absl::StrContains(text, Shardcall_Error_Code(error)) &&
                     absl::StrContains(text, Shardcall_Error_Fix(error));
  FuzzRequire(parts && code != absl::StatusCode::kOk, "an error is made of its parts", text);
  Shardcall_Error_Destroy(error);
  return Ok(absl::Status(code, text));
}

int64_t Caller::Number() {
  static const std::vector<int64_t> kOdd = {
      -1, -2, INT64_MIN, INT64_MAX, 64, 255, int64_t{1} << 31, int64_t{1} << 40, 1 << 24, 256, 0};
  return Chance(85) ? Int(0, 4) : random_.Pick(kOdd);
}

std::vector<int64_t> Caller::Dims() {
  std::vector<int64_t> dims(Int(0, Chance(3) ? 300 : 3));
  for (int64_t& d : dims) d = Chance(90) ? Int(1, 8) : Number();
  return dims;
}

std::vector<int64_t> Caller::Numbers(size_t most) {
  std::vector<int64_t> out(Int(0, static_cast<int64_t>(most)));
  for (int64_t& n : out) n = Number();
  return out;
}

ElementType Caller::Type() {
  static const std::vector<ElementType> kUsual = {ElementType::kF32, ElementType::kS32,
                                                  ElementType::kPred, ElementType::kBF16};
  return Chance(85) ? random_.Pick(kUsual) : static_cast<ElementType>(Int(0, kNumElementTypes - 1));
}

std::string Caller::Name() {
  static const std::vector<std::string> kNames = {"t",
                                                  "u",
                                                  "same",
                                                  "my_target",
                                                  "rms_norm",
                                                  "cublas_gemm",
                                                  "t_vjp",
                                                  "",
                                                  "$reserved",
                                                  "a b",
                                                  "\"",
                                                  "\\",
                                                  "{",
                                                  "\xff\xfe",
                                                  "x\ny",
                                                  "CustomSPMDPartitioning",
                                                  "Sharding",
                                                  "Qr",
                                                  std::string("a\0b", 3)};
  if (Chance(1)) return std::string(100000, 'n');
  return Chance(60) ? random_.Pick(std::vector<std::string>{"t", "u", "same"})
                    : random_.Pick(kNames);
}

std::string Caller::Rule() {
  static const std::vector<std::string> kRules = {"a b -> a b",
                                                  "a b -> b a",
                                                  "... a -> ... a",
                                                  "... -> ...",
                                                  "a b, b -> a",
                                                  "a b, b c -> a c",
                                                  "-> a",
                                                  "a -> ",
                                                  "...1 -> ...2",
                                                  "(a b) -> a b",
                                                  "a a -> a",
                                                  "",
                                                  "->",
                                                  "a b -> a c",
                                                  "a b -> a b, a",
                                                  "a b c d e f g h -> a",
                                                  "a",
                                                  "((",
                                                  "a -> a -> a",
                                                  "a b, a b, a b -> a b"};
  if (Chance(2)) {
    std::string many = "a b";
    for (int k = 0; k < 200; ++k) absl::StrAppend(&many, ", a b");
    return many + " -> a b";
  }
  return Chance(40) ? kRules[0] : random_.Pick(kRules);
}

std::string Caller::ShardingText() {
  static const std::vector<std::string> kTexts = {R"([{"x0"}, {}])",
                                                  R"([{}, {"x0"}])",
                                                  "[{}, {}]",
                                                  "{devices=[4,1]<=[4]}",
                                                  "{replicated}",
                                                  "{maximal device=0}",
                                                  R"([{"x0"}, {"x0"}])",
                                                  R"([{"nope"}, {}])",
                                                  "[",
                                                  "",
                                                  "{devices=[3]<=[3]}",
                                                  R"([{"x0":(1)2}, {"x0":(2)2}])",
                                                  R"([{"x0":(4)2}, {}])",
                                                  R"([{"x0"}])",
                                                  "{manual}"};
  return random_.Pick(kTexts);
}

std::string Caller::Program(const std::string& target) {
  if (Chance(5)) return Name();
  std::string operands = "x";
  if (Chance(1)) {
    for (int k = 1; k < 10000; ++k) absl::StrAppend(&operands, ", x");
  } else if (Chance(20)) {
    operands = Chance(50) ? "x, y" : "";
  }
  // What a quoted name of HLO text cannot hold is not this family's to find.
  std::string quoted;
  for (const char ch : target) {
    if (ch >= ' ' && ch < 0x7f && ch != '"' && ch != '\\') quoted += ch;
  }
  return absl::StrCat(
      "HloModule m", Chance(90) ? ", num_partitions=4" : "", "\n\nENTRY e {\n",
      "  x = f32[8,12]{1,0} parameter(0)", Chance(80) ? ", sharding={devices=[4,1]<=[4]}" : "",
      "\n  y = f32[12]{0} parameter(1)\n", "  c = ",
      Chance(90)   ? "f32[8,12]{1,0}"
      : Chance(50) ? "f32[12,8]{1,0}"
                   : "(f32[8,12]{1,0}, f32[])",
      " custom-call(", operands, "), custom_call_target=\"", quoted, "\"",
      Chance(20) ? ", custom_call_has_side_effect=true" : "",
      Chance(20) ? ", api_version=API_VERSION_TYPED_FFI, backend_config={a = 1 : i64}" : "",
      Chance(10) ? ", frontend_attributes={num_batch_dims=\"1\"}" : "",
      Chance(10) ? ", sharding={devices=[1,4]<=[4]}" : "", "\n",
      Chance(80) ? "  ROOT r = f32[8,12]{1,0} add(x, x)\n"
                 : "  ROOT r = (f32[8,12]{1,0}, f32[12]{0}) tuple(x, y)\n",
      "}\n");
}

CompId Caller::Computation(const Module& module) {
  if (Chance(5)) return CompId();
  return CompId(static_cast<uint32_t>(Int(0, module.num_computations())));
}

InstrId Caller::Instr(const std::vector<InstrId>& known) {
  if (known.empty() || Chance(3)) {
    return Chance(50) ? InstrId() : InstrId(static_cast<uint32_t>(Int(0, 1000)));
  }
  return random_.Pick(known);
}

bool Caller::MayThrow() {
  if (Chance(3)) throw std::runtime_error("thrown by a function of the test");
  if (Chance(1)) throw 7;
  return !Chance(5);
}

void DemandRoundTrip(const Module& module) {
  const std::string text = PrintModule(module);
  const auto again = ParseModule(std::make_shared<const std::string>(text),
                                 std::make_shared<Context>(), "printed");
  FuzzRequire(again.ok(), "a module that verifies is read again",
              again.ok() ? "" : again.status().ToString() + "\n" + text.substr(0, 20000));
  FuzzRequireSame(text, PrintModule(*again), "a module that is read again is the same");
}

}  // namespace shardcall::misuse
