// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/shape_parser.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
namespace {

bool IsLayoutStart(const char* after_brace) {
  while (Is(*after_brace, kBlank)) ++after_brace;
  return Is(*after_brace, kDigit) || *after_brace == ':';
}

}  // namespace

bool ShapeParser::Parse(const Shape** out) {
  lex_.Skip();
  const char* p = lex_.at();
  if (Is(*p, kIdentStart) && !(p[0] == 'b' && p[1] == '(')) return ParseArray(out);
  if (*p != '(' && *p != 'b') return lex_.FailExpected("a shape");
  struct Frame {
    bool buffer;
    size_t begin;  // of its elements
  };
  std::vector<Frame> frames;
  std::vector<const Shape*> elements;
  while (true) {
    const Shape* done = nullptr;
    lex_.Skip();
    p = lex_.at();
    const bool buffer = p[0] == 'b' && p[1] == '(';
    if (buffer || *p == '(') {
      if (frames.size() >= kMaxNesting) {
        return lex_.Fail(p, "E014", "A shape is nested too deeply",
                         absl::StrCat("at most ", kMaxNesting, " levels"));
      }
      lex_.set_at(p + (buffer ? 2 : 1));
      frames.push_back({buffer, elements.size()});
      if (buffer || !lex_.TryChar(')')) continue;
      done = context_.MakeTuple({});
      frames.pop_back();
    } else if (!ParseArray(&done)) {
      return false;
    }
    while (true) {
      if (frames.empty()) return *out = done, true;
      elements.push_back(done);
      const Frame frame = frames.back();
      if (!frame.buffer && lex_.TryChar(',')) break;
      if (!lex_.TryChar(')')) return lex_.FailExpected("',' or ')'");
      done = frame.buffer ? context_.MakeBuffer(elements.back())
                          : context_.MakeTuple(absl::MakeConstSpan(elements).subspan(frame.begin));
      elements.resize(frame.begin);
      frames.pop_back();
    }
  }
}

// Shapes repeat, so their text is looked up first. The scan below may guess the wrong end of the
// shape in unusual texts. Then the lookup finds nothing, or the text is read again in full.
bool ShapeParser::ParseArray(const Shape** out) {
  lex_.Skip();
  const char* start = lex_.at();
  const char* q = start;
  while (Is(*q, kIdent)) ++q;
  if (*q == '[') {
    while (*q != ']' && *q != '\0' && *q != '\n') ++q;
    if (*q == ']') {
      ++q;
      bool complete = *q != '/';
      if (*q == '{' && IsLayoutStart(q + 1)) {
        while (*q != '}' && *q != '\0' && *q != '\n') ++q;
        if (*q == '}') ++q;
      } else if (Is(*q, kBlank)) {
        const char* r = q;
        while (Is(*r, kBlank)) ++r;
        complete = *r != '/' && !(*r == '{' && IsLayoutStart(r + 1));
      }
      if (complete) {
        const auto it = memo_.find(absl::string_view(start, q - start));
        if (it != memo_.end()) {
          lex_.set_at(q);
          *out = it->second;
          return true;
        }
      }
    }
  }
  if (!ParseNewArray(out)) return false;
  memo_.emplace(absl::string_view(start, lex_.at() - start), *out);
  return true;
}

bool ShapeParser::ParseNewArray(const Shape** out) {
  const char* start = lex_.at();
  absl::string_view name;
  if (!lex_.Identifier("a shape", &name)) return false;
  const ElementType type = ElementTypeFromName(name);
  if (type == ElementType::kInvalid || type == ElementType::kTuple ||
      type == ElementType::kBuffer) {
    std::vector<absl::string_view> names;
    for (int t = 1; t < kNumElementTypes; ++t) {
      names.push_back(ElementTypeName(static_cast<ElementType>(t)));
    }
    return lex_.Fail(start, "E010", "Unknown element type", "a type like f32, bf16, s32 or pred",
                     lex_.TokenAt(start), DidYouMean(name, names));
  }
  if (!lex_.Expect('[')) return false;
  std::vector<int64_t>& dims = dims_;
  dims.clear();
  absl::InlinedVector<bool, 8> dynamic;
  bool any_dynamic = false;
  if (!lex_.TryChar(']')) {
    do {
      int64_t size = 0;
      bool is_dynamic = true;
      if (lex_.TryChar('?')) {
        size = kUnboundedDim;
      } else {
        is_dynamic = lex_.TryText("<=");
        if (!lex_.NonNegative(&size)) return false;
      }
      dims.push_back(size);
      dynamic.push_back(is_dynamic);
      any_dynamic |= is_dynamic;
    } while (lex_.TryChar(','));
    if (!lex_.Expect(']')) return false;
  }
  const int rank = static_cast<int>(dims.size());
  if (!IsArrayType(type)) {
    if (rank > 0) {
      return lex_.Fail(start, "E010", "This type has no dimensions", absl::StrCat(name, "[]"));
    }
    *out = type == ElementType::kToken ? context_.MakeToken() : context_.MakeOpaque();
    return true;
  }
  layout_.clear();
  suffix_.clear();
  const char* before = lex_.at();
  if (lex_.TryChar('{') && IsLayoutStart(lex_.at())) {
    if (!ParseLayout(rank, &layout_, &suffix_)) return false;
  } else {
    lex_.set_at(before);
    for (int i = rank - 1; i >= 0; --i) layout_.push_back(i);
  }
  *out = context_.MakeArray(type, dims, layout_, suffix_,
                            any_dynamic ? absl::MakeConstSpan(dynamic) : absl::Span<const bool>());
  return true;
}

// The cursor is after the brace.
bool ShapeParser::ParseLayout(int rank, std::vector<int64_t>* minor_to_major, std::string* suffix) {
  const char* start = lex_.at();
  if (lex_.Peek() != ':') {
    do {
      int64_t dim;
      if (!lex_.Integer(&dim)) return false;
      minor_to_major->push_back(dim);
    } while (lex_.TryChar(','));
  }
  if (lex_.TryChar(':') && !ParseLayoutSuffix(suffix)) return false;
  if (!lex_.Expect('}')) return false;
  bool ok = static_cast<int>(minor_to_major->size()) == rank;
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; ok && i < minor_to_major->size(); ++i) {
    const int64_t d = (*minor_to_major)[i];
    ok = d >= 0 && d < rank && !seen[d];
    if (ok) seen[d] = true;
  }
  return ok || lex_.Fail(start, "E010", "A layout does not fit the shape",
                         absl::StrCat("each of the ", rank, " dimensions once"));
}

bool ShapeParser::ParseTiles(std::string* suffix) {
  suffix->push_back('T');
  do {
    if (!lex_.Expect('(')) return false;
    suffix->push_back('(');
    bool first = true;
    if (lex_.Peek() != ')') {
      do {
        if (!first) suffix->push_back(',');
        first = false;
        int64_t size;
        if (lex_.TryChar('*')) {
          suffix->push_back('*');
        } else if (!lex_.NonNegative(&size)) {
          return false;
        } else {
          absl::StrAppend(suffix, size);
        }
      } while (lex_.TryChar(','));
    }
    if (!lex_.Expect(')')) return false;
    suffix->push_back(')');
  } while (lex_.Peek() == '(');
  return true;
}

// The parts after the colon, in this order only: D T L # * E S SC P M.
bool ShapeParser::ParseLayoutSuffix(std::string* suffix) {
  const auto number = [&](absl::string_view letter, int64_t omitted) {
    int64_t n;
    if (!lex_.Expect('(') || !lex_.NonNegative(&n) || !lex_.Expect(')')) return false;
    if (n != omitted) absl::StrAppend(suffix, letter, "(", n, ")");
    return true;
  };
  const auto type = [&](absl::string_view letter) {
    absl::string_view name;
    if (!lex_.Expect('(') || !lex_.Identifier("an integer type", &name)) return false;
    if (!IsInteger(ElementTypeFromName(name))) return lex_.FailExpected("an integer type");
    absl::StrAppend(suffix, letter, "(", name, ")");
    return lex_.Expect(')');
  };
  if (lex_.TryText("D(")) {  // dimension level types are read and dropped
    do {
      const char c = lex_.Peek();
      if (c != 'D' && c != 'C' && c != 'S' && c != 'H') {
        return lex_.FailExpected("a dimension level type");
      }
      lex_.TryChar(c);
      lex_.TryChar('+');
      lex_.TryChar('~');
    } while (lex_.TryChar(','));
    if (!lex_.Expect(')')) return false;
  }
  if (lex_.TryChar('T') && !ParseTiles(suffix)) return false;
  if (lex_.TryChar('L') && !number("L", 1)) return false;
  if (lex_.TryChar('#') && !type("#")) return false;
  if (lex_.TryChar('*') && !type("*")) return false;
  if (lex_.TryChar('E') && !number("E", 0)) return false;
  if (lex_.Peek() == 'S' && lex_.at()[1] != 'C') {
    lex_.TryChar('S');
    if (!number("S", 0)) return false;
  }
  if (lex_.TryText("SC")) {
    absl::StrAppend(suffix, "SC");
    do {
      if (!lex_.Expect('(')) return false;
      int64_t dim, index;
      if (!lex_.NonNegative(&dim) || !lex_.Expect(':')) return false;
      absl::StrAppend(suffix, "(", dim, ":");
      bool first = true;
      do {
        if (!lex_.NonNegative(&index)) return false;
        absl::StrAppend(suffix, first ? "" : ",", index);
        first = false;
      } while (lex_.TryChar(','));
      if (!lex_.Expect(')')) return false;
      suffix->push_back(')');
    } while (lex_.Peek() == '(');
  }
  return !lex_.TryChar('M') || number("M", 0);
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
