// SPDX-License-Identifier: Apache-2.0
// Values whose structure no code here uses later. They are parsed, checked, and kept as the text
// that XLA prints for them.
#include "shardcall/partitioner/ir/text/parse/canonical_text_parser.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/lex/literal_text.h"
#include "shardcall/partitioner/ir/text/parse/module_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
namespace {

// A finite number or an integer, as text with the digits of the value in the binary form.
bool ReadNumber(Lexer* lex, bool integer, std::string* out) {
  lex->Skip();
  const char* start = lex->at();
  double value = 0;
  int64_t whole = 0;
  if (!Is(*start, kDigit) && *start != '-') return lex->FailExpected("a number");
  if (!(integer ? lex->Integer(&whole) : lex->Number(&value))) return false;
  if (!std::isfinite(value)) {
    return lex->Fail(start, "E003", "A number is out of range", "a finite number",
                     lex->TokenAt(start));
  }
  *out = integer ? absl::StrCat(whole) : NumberText(value);
  return true;
}

}  // namespace

// `{visualizing_index=0,count=1.5}`; empty if there is no statistic.
bool CanonicalTextParser::ParseStatistics(absl::string_view* out) {
  std::string text, shown = "0";
  if (!lex_.Expect('{')) return false;
  if (lex_.Peek() != '}') {
    do {
      absl::string_view name;
      if (!lex_.Identifier("a statistic's name", &name) || !lex_.Expect('=')) return false;
      std::string value;
      const bool index = name == "visualizing_index";
      if (!ReadNumber(&lex_, index, index ? &shown : &value)) return false;
      if (!index) absl::StrAppend(&text, ",", name, "=", value);
    } while (lex_.TryChar(','));
  }
  if (!text.empty()) {
    *out = context_.Intern(absl::StrCat("{visualizing_index=", shown, text, "}"));
  }
  return lex_.Expect('}');
}

// `{mode=highest}` or `{tolerance={atol=0.1,rtol=1e-05,ulps=2}}`; the default is
// empty.
bool CanonicalTextParser::ParseResultAccuracy(absl::string_view* out) {
  if (!lex_.Expect('{')) return false;
  if (lex_.TryWord("mode")) {
    absl::string_view mode;
    lex_.Expect('=');
    lex_.Skip();
    const char* at = lex_.at();
    if (!lex_.Identifier("an accuracy mode", &mode)) return false;
    if (mode != "default" && mode != "highest") {
      return lex_.Fail(at, "E019", "Unknown accuracy mode", "default or highest", lex_.TokenAt(at));
    }
    *out = mode == "default" ? absl::string_view() : "{mode=highest}";
    return lex_.Expect('}');
  }
  if (!lex_.TryWord("tolerance")) return lex_.FailExpected("mode= or tolerance=");
  static constexpr absl::string_view kKeys[] = {"atol", "rtol", "ulps"};
  std::string values[3];
  if (!lex_.Expect('=') || !lex_.Expect('{')) return false;
  if (lex_.Peek() != '}') {
    do {
      absl::string_view key;
      lex_.Skip();
      const char* at = lex_.at();
      if (!lex_.Identifier("atol, rtol or ulps", &key) || !lex_.Expect('=')) return false;
      const size_t k = std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys);
      if (k == std::size(kKeys)) {
        return lex_.Fail(at, "E005", "Unknown tolerance", "atol, rtol or ulps", lex_.TokenAt(at));
      }
      if (!values[k].empty()) return lex_.Fail(at, "E007", "A tolerance stands twice");
      if (!ReadNumber(&lex_, key == "ulps", &values[k])) return false;
    } while (lex_.TryChar(','));
  }
  for (std::string& v : values) {
    if (v.empty()) v = "0";
  }
  *out = context_.Intern(
      absl::StrCat("{tolerance={atol=", values[0], ",rtol=", values[1], ",ulps=", values[2], "}}"));
  return lex_.Expect('}') && lex_.Expect('}');
}

// `{lhs={sparsity=1x4 dimension=1 stride=1 idx=2} rhs={..}}`
bool CanonicalTextParser::ParseSparsity(absl::string_view* out) {
  std::string sides[2];
  if (!lex_.Expect('{')) return false;
  while (lex_.Peek() != '}') {
    const char* at = lex_.at();
    const int side = lex_.TryWord("lhs") ? 0 : lex_.TryWord("rhs") ? 1 : -1;
    if (side < 0) return lex_.FailExpected("lhs=, rhs= or '}'");
    if (!sides[side].empty()) return lex_.Fail(at, "E007", "A side stands twice");
    if (!lex_.Expect('=') || !lex_.Expect('{')) return false;
    int64_t count = 0, of = 0, dimension = 0, stride = 0, idx = -1;
    while (lex_.Peek() != '}') {
      absl::string_view key;
      const char* key_at = lex_.at();
      if (!lex_.Identifier("a sparsity field or '}'", &key) || !lex_.Expect('=')) return false;
      bool ok = true;
      if (key == "sparsity") {
        ok = lex_.NonNegative(&count) && (*lex_.at() == 'x' || lex_.FailExpected("'x'"));
        if (ok) lex_.set_at(lex_.at() + 1);
        ok = ok && lex_.NonNegative(&of);
      } else if (key == "dimension") {
        ok = lex_.NonNegative(&dimension);
      } else if (key == "stride") {
        ok = lex_.NonNegative(&stride);
      } else if (key == "idx") {
        ok = lex_.NonNegative(&idx);
      } else {
        return lex_.Fail(key_at, "E005", "Unknown sparsity field",
                         "sparsity, dimension, stride or idx", lex_.TokenAt(key_at));
      }
      if (!ok) return false;
    }
    lex_.Expect('}');
    sides[side] = absl::StrCat(side == 0 ? "lhs" : "rhs", "={sparsity=", count, "x", of,
                               " dimension=", dimension, " stride=", stride);
    if (idx >= 0) absl::StrAppend(&sides[side], " idx=", idx);
    sides[side].push_back('}');
  }
  const bool both = !sides[0].empty() && !sides[1].empty();
  const std::string text = absl::StrCat("{", sides[0], both ? " " : "", sides[1], "}");
  *out = text.size() == 2 ? absl::string_view() : context_.Intern(text);
  return lex_.Expect('}');
}

// `{kind="sharding", entry={..}, exit={..}}`
bool CanonicalTextParser::ParseDomain(absl::string_view* out) {
  const HloSharding* sides[2] = {};
  bool has_kind = false;
  if (!lex_.Expect('{')) return false;
  while (lex_.Peek() != '}') {
    absl::string_view key;
    const char* at = lex_.at();
    if (!lex_.Identifier("kind=, entry=, exit= or '}'", &key) || !lex_.Expect('=')) return false;
    lex_.Skip();
    const char* value_at = lex_.at();
    if (key == "kind") {
      absl::string_view kind;
      if (!KeptString(&kind)) return false;
      if (kind != "sharding") {
        return lex_.Fail(value_at, "E019", "Unknown kind of domain", "\"sharding\"");
      }
      has_kind = true;
    } else if (key == "entry" || key == "exit") {
      const HloSharding*& side = sides[key == "exit"];
      if (side != nullptr) return lex_.Fail(at, "E007", "A side of the domain stands twice");
      if (!common_.ParseSharding(&side)) return false;
    } else {
      return lex_.Fail(at, "E005", "Unknown field of a domain", "kind, entry or exit",
                       lex_.TokenAt(at));
    }
    lex_.TryChar(',');
  }
  if (!has_kind || sides[0] == nullptr || sides[1] == nullptr) {
    return lex_.Fail(lex_.at(), "E006", "A field of the domain is missing",
                     !has_kind             ? "kind=\"sharding\""
                     : sides[0] == nullptr ? "entry="
                                           : "exit=");
  }
  *out = context_.Intern(absl::StrCat("{kind=\"sharding\", entry=", sides[0]->Print(),
                                      ", exit=", sides[1]->Print(), "}"));
  return lex_.Expect('}');
}

// `{tree}`, or `{[synthetic_call]}`
bool CanonicalTextParser::ParseOrigin(absl::string_view* out) {
  std::string text;
  if (!lex_.Expect('{')) return false;
  if (lex_.TryChar('[')) {
    if (!lex_.TryWord("synthetic_call")) return lex_.FailExpected("synthetic_call");
    *out = "{[synthetic_call]}";
    return lex_.Expect(']') && lex_.Expect('}');
  }
  if (lex_.Peek() == '}') {
    text.append("()");
  } else if (!ParseOriginTree(&text)) {
    return false;
  }
  *out = context_.Intern(absl::StrCat("{", text, "}"));
  return lex_.Expect('}');
}

// tree := leaf | '(' [tree {',' tree}] ')'; appended to *out.
bool CanonicalTextParser::ParseOriginTree(std::string* out) {
  int open = 0;
  while (true) {
    if (lex_.Peek() == '(') {
      if (++open > kMaxNesting) {
        return lex_.Fail(lex_.at(), "E014", "An origin is nested too deeply",
                         absl::StrCat("at most ", kMaxNesting, " levels"));
      }
      lex_.Expect('(');
      out->push_back('(');
      if (lex_.Peek() != ')') continue;
    } else if (!ParseOriginLeaf(out)) {
      return false;
    }
    while (open > 0 && lex_.TryChar(')')) {
      out->push_back(')');
      --open;
    }
    if (open == 0) return true;
    if (!lex_.TryChar(',')) return lex_.FailExpected("',' or ')'");
    out->append(", ");
  }
}

// `{"name" {index}}`, `{"name"}` or `{}`
bool CanonicalTextParser::ParseOriginLeaf(std::string* out) {
  if (!lex_.Expect('{')) return false;
  out->push_back('{');
  if (lex_.Peek() != '}') {
    absl::string_view name;
    if (!KeptString(&name)) return false;
    out->append(StringText(name));
    if (lex_.Peek() == '{') {
      std::vector<int64_t> index;
      if (!lex_.IntList(&index)) return false;
      for (size_t k = 0; k < index.size(); ++k) {
        absl::StrAppend(out, k == 0 ? " {" : ",", index[k]);
      }
      if (!index.empty()) out->push_back('}');
    }
  }
  out->push_back('}');
  return lex_.Expect('}');
}

// `{ {old} : {new}[, "module"] .. }`; a row is not followed by a comma.
bool CanonicalTextParser::ParseRecoveryTable(std::string* out) {
  std::string text = "{\n";
  if (!lex_.Expect('{')) return false;
  const size_t none = text.size();
  while (lex_.Peek() != '}') {
    text.append("  ");
    if (!ParseOriginLeaf(&text) || !lex_.Expect(':')) return false;
    text.append(" : ");
    if (!ParseOriginLeaf(&text)) return false;
    if (lex_.TryChar(',')) {
      lex_.Skip();
      const char* at = lex_.at();
      absl::string_view value;
      std::string storage;
      if (!lex_.String(&value, &storage)) return false;
      // Each level of quoting doubles the escapes, so this recursion is not deep.
      const std::string text_of_module(value);  // ends with a NUL, as the Lexer needs it
      Module module(std::make_shared<Context>());
      ModuleParser parser(text_of_module, "the table's module", &module, /*targets=*/nullptr);
      if (!parser.Run()) {
        const absl::string_view why = parser.status().message();
        return lex_.Fail(at, "E019",
                         absl::StrCat("A module of origin_recovery_table cannot be read (",
                                      why.substr(0, why.find('\n')), ")"));
      }
      absl::StrAppend(&text, ", ", StringText(value));
    }
    text.push_back('\n');
  }
  if (text.size() > none) *out = absl::StrCat(text, "}\n");
  return lex_.Expect('}');
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
