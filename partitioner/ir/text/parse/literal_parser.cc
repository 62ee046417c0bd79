// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/literal_parser.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/float_format.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
namespace {

// The bits of a NaN; `payload` 0 gives the quiet one.
bool NanBits(ElementType type, bool negative, uint64_t payload, uint64_t* bits) {
  const FloatFormat& f = GetFloatFormat(type);
  if (f.special != FloatFormat::Special::kIeee) {
    *bits = EncodeFloat(type, negative ? -std::numeric_limits<double>::quiet_NaN()
                                       : std::numeric_limits<double>::quiet_NaN());
    return payload == 0;
  }
  if (payload >> f.mantissa_bits) return false;
  const uint64_t exponent = (uint64_t{1} << f.exponent_bits) - 1;
  const uint64_t mantissa = payload == 0 ? uint64_t{1} << (f.mantissa_bits - 1) : payload;
  *bits = (static_cast<uint64_t>(negative) << (f.exponent_bits + f.mantissa_bits)) |
          exponent << f.mantissa_bits | mantissa;
  return true;
}

bool InRange(ElementType type, double value, uint64_t bits) {
  if (!std::isfinite(value) || type == ElementType::kF64) return true;
  const FloatFormat& f = GetFloatFormat(type);
  if (f.special == FloatFormat::Special::kFinite) {  // encoding would silently clamp it
    const double largest =
        FloatFromBits(type, (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1);
    return std::fabs(value) <= std::ldexp(largest, -f.mantissa_bits - 2) + largest;
  }
  return std::isfinite(FloatFromBits(type, bits));
}

}  // namespace

bool LiteralParser::ParseReal(ElementType type, char* out) {
  const char first = lex_.Peek();
  const char* start = lex_.at();
  const int bytes = ElementTypeBytes(type);
  uint64_t bits = 0;
  const char* q = start + (first == '-');
  if (*q == 'n' && std::strncmp(q, "nan", 3) == 0) {
    uint64_t payload = 0;
    q += 3;
    if (std::strncmp(q, "(0x", 3) == 0) {
      for (q += 3; *q != ')'; ++q) {
        const int digit = *q >= '0' && *q <= '9'   ? *q - '0'
                          : *q >= 'a' && *q <= 'f' ? *q - 'a' + 10
                          : *q >= 'A' && *q <= 'F' ? *q - 'A' + 10
                                                   : -1;
        if (digit < 0 || payload >> 52) break;
        payload = payload << 4 | digit;
      }
      if (*q != ')' || payload == 0) {
        return lex_.Fail(start, "E011", "A NaN has an invalid payload",
                         "hexadecimal digits, not zero, of at most 52 bits");
      }
      ++q;
    }
    lex_.set_at(q);
    if (!NanBits(type, first == '-', payload, &bits)) {
      return lex_.Fail(start, "E011", "A NaN's payload does not fit its type",
                       ElementTypeName(type));
    }
    std::memcpy(out, &bits, bytes);
    return true;
  }
  double value;
  if (!lex_.Number(&value)) return false;
  bits = EncodeFloat(type, value);
  if (!InRange(type, value, bits)) {
    return lex_.Fail(start, "E003", "A number is out of range",
                     absl::StrCat("a value of type ", ElementTypeName(type)), lex_.TokenAt(start));
  }
  std::memcpy(out, &bits, bytes);
  return true;
}

bool LiteralParser::ParseElement(ElementType type, char* out) {
  if (IsFloat(type)) return ParseReal(type, out);
  if (IsComplex(type)) {
    const ElementType part = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    return lex_.Expect('(') && ParseReal(part, out) && lex_.Expect(',') &&
           ParseReal(part, out + ElementTypeBytes(part)) && lex_.Expect(')');
  }
  lex_.Skip();
  const char* start = lex_.at();
  if (type == ElementType::kPred) {
    bool value;
    if (Is(*start, kIdentStart)) {
      if (!lex_.Bool(&value)) return false;
    } else {
      int64_t integer;
      if (!lex_.Integer(&integer)) return false;
      value = integer != 0;
    }
    *out = value;
    return true;
  }
  int64_t value;
  if (!lex_.Integer(&value)) return false;
  if (*lex_.at() == '.' || *lex_.at() == 'e') {
    return lex_.Fail(start, "E011", "A literal does not fit its type", "an integer",
                     lex_.TokenAt(start));
  }
  const int bits = ElementTypeBits(type);
  if (bits < 64) {
    // Integers from 2^63 on arrive as negative numbers, which are out of range here as well.
    const bool is_signed = IsSignedInteger(type);
    const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
    const int64_t high = is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
    if (value < low || value > high || (*start != '-' && value < 0)) {
      return lex_.Fail(start, "E003", "An integer is out of range",
                       absl::StrCat(low, " to ", high, " for ", ElementTypeName(type)),
                       lex_.TokenAt(start));
    }
  }
  std::memcpy(out, &value, ElementTypeBytes(type));
  return true;
}

// Makes room for the next bytes of the current literal. It grows with the elements that were read,
// so a large shape alone allocates nothing.
char* LiteralParser::Grow(int64_t bytes) {
  const size_t size = bytes_.size();
  bytes_.resize(size + bytes);
  return bytes_.data() + size;
}

bool LiteralParser::ParseElements(ElementType type, int64_t count) {
  const int bytes = ElementTypeBytes(type);
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) lex_.TryChar(',');
    if (lex_.Peek() == '}') {
      return lex_.Fail(lex_.at(), "E011", "A literal has too few elements",
                       absl::StrCat(count, " here"), absl::StrCat(i));
    }
    if (!ParseElement(type, Grow(bytes))) return false;
  }
  return true;
}

// `{...}`: an elided constant.
bool LiteralParser::TryElided(const Shape* shape, const Literal** out) {
  lex_.Skip();
  const char* start = lex_.at();
  if (lex_.TryChar('{') && lex_.TryText("...") && lex_.TryChar('}')) {
    *out = MakeElidedLiteral(context_, shape);
    return true;
  }
  lex_.set_at(start);
  return false;
}

bool LiteralParser::ParseArray(const Shape* shape, const Literal** out) {
  const ElementType type = shape->element_type();
  const int rank = shape->rank();
  if (rank > 0 && TryElided(shape, out)) return true;
  lex_.Skip();
  const char* start = lex_.at();
  const int64_t total = shape->num_elements();
  if (shape->IsDynamic()) {
    return lex_.Fail(start, "E011", "A literal has a dynamic shape", "a static shape",
                     shape->ToString());
  }
  if (total > lex_.end() - start) {  // an element takes at least one character
    return lex_.Fail(start, "E011", "A literal has too few elements", absl::StrCat(total));
  }
  bytes_.clear();
  if (rank == 0) {
    if (!ParseElement(type, Grow(ElementTypeBytes(type)))) return false;
  } else {
    absl::InlinedVector<int64_t, 8> done(rank, 0);
    if (!lex_.Expect('{')) return false;
    int d = 0;
    while (d >= 0) {
      if (d == rank - 1 && done[d] < shape->dim(d)) {
        if (!ParseElements(type, shape->dim(d))) return false;
        done[d] = shape->dim(d);
      }
      if (done[d] == shape->dim(d)) {
        if (!lex_.TryChar('}')) {
          return lex_.Fail(
              lex_.at(), "E011", "A literal does not fit its shape",
              absl::StrCat("'}' after ", shape->dim(d), " elements of ", shape->ToString(false)),
              lex_.TokenAt(lex_.at()));
        }
        if (--d >= 0) ++done[d];
        continue;
      }
      if (done[d] > 0) lex_.TryChar(',');
      if (lex_.Peek() == '}') {
        return lex_.Fail(lex_.at(), "E011", "A literal has too few elements",
                         absl::StrCat(shape->dim(d), " here for ", shape->ToString(false)),
                         absl::StrCat(done[d]));
      }
      if (!lex_.Expect('{')) return false;
      done[++d] = 0;
    }
  }
  *out = MakeLiteral(context_, shape, bytes_);
  return true;
}

// Without recursion, since tuples may nest deeply.
bool LiteralParser::Parse(const Shape* shape, const Literal** out) {
  struct Tuple {
    const Shape* shape;
    std::vector<const Literal*> elements;
  };
  std::vector<Tuple> open;
  while (true) {
    const Literal* done = nullptr;
    if (shape->IsArray()) {
      if (!ParseArray(shape, &done)) return false;
    } else if (!shape->IsTuple()) {
      return lex_.Fail(lex_.at(), "E011", "A literal of this type does not exist",
                       "an array or a tuple of arrays", shape->ToString());
    } else if (!TryElided(shape, &done)) {
      if (!lex_.Expect('(')) return false;
      open.push_back({shape, {}});
    }
    // Close all tuples that are complete.
    while (true) {
      if (done != nullptr) {
        if (open.empty()) return *out = done, true;
        open.back().elements.push_back(done);
      }
      Tuple& tuple = open.back();
      if (tuple.elements.size() < tuple.shape->tuple().size()) break;
      if (!lex_.Expect(')')) return false;
      done = MakeTupleLiteral(context_, tuple.shape, tuple.elements);
      open.pop_back();
    }
    const Tuple& tuple = open.back();
    if (!tuple.elements.empty() && !lex_.Expect(',')) return false;
    shape = tuple.shape->tuple()[tuple.elements.size()];
  }
}

// `f32[2]{0} {1, 2}`, or a tuple of such in parentheses.
bool LiteralParser::ParseWithShape(const Literal** out) {
  std::vector<size_t> open;  // where the elements of each open tuple begin
  std::vector<const Literal*> elements;
  while (true) {
    const Literal* done = nullptr;
    if (lex_.Peek() == '(') {
      if (open.size() >= kMaxNesting) {
        return lex_.Fail(lex_.at(), "E014", "A literal is nested too deeply",
                         absl::StrCat("at most ", kMaxNesting, " levels"));
      }
      lex_.TryChar('(');
      open.push_back(elements.size());
      if (lex_.Peek() != ')') continue;
    } else {
      const Shape* shape;
      if (!shapes_.Parse(&shape) || !Parse(shape, &done)) return false;
    }
    while (true) {
      if (done != nullptr) {
        if (open.empty()) return *out = done, true;
        elements.push_back(done);
        if (lex_.TryChar(',')) break;
      }
      if (!lex_.Expect(')')) return false;
      const auto own = absl::MakeConstSpan(elements).subspan(open.back());
      std::vector<const Shape*> shapes;
      for (const Literal* e : own) shapes.push_back(e->shape);
      done = MakeTupleLiteral(context_, context_.MakeTuple(shapes), own);
      elements.resize(open.back());
      open.pop_back();
    }
  }
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
