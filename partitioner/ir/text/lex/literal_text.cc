// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/lex/literal_text.h"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/float_format.h"

namespace shardcall {
inline namespace internal {
namespace {

// C's "%.*g".
void AppendGeneral(double value, int digits, std::string* out) {
  char buffer[40];
  // Whole numbers of at most `digits` digits are common and print as such.
  if (value == std::trunc(value) && std::fabs(value) < 1e15 && !(value == 0)) {
    const auto whole = static_cast<int64_t>(value);
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), whole).ptr;
    if (end - buffer - (whole < 0) <= digits) {
      out->append(buffer, end - buffer);
      return;
    }
  }
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits).ptr;
  out->append(buffer, end - buffer);
}

template <typename T>
bool ReadsBack(absl::string_view text, T value) {
  T back;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), back);
  return result.ec == std::errc() && back == value;
}

// With `digits` digits, or with `more` if these do not read back equal.
template <typename T>
void AppendShortest(T value, int digits, int more, std::string* out) {
  const size_t begin = out->size();
  AppendGeneral(value, digits, out);
  if (ReadsBack(absl::string_view(*out).substr(begin), value)) return;
  out->resize(begin);
  AppendGeneral(value, more, out);
}

int Digits(ElementType type) {
  switch (type) {
    case ElementType::kF16: return 5;
    case ElementType::kBF16: return 4;
    case ElementType::kF8E5M2:
    case ElementType::kF8E5M2FNUZ:
    case ElementType::kF8E8M0FNU:
    case ElementType::kF6E3M2FN:
    case ElementType::kF4E2M1FN: return 2;
    default: return 3;
  }
}

void AppendNan(ElementType type, uint64_t bits, std::string* out) {
  const FloatFormat& f = GetFloatFormat(type);
  if (f.special != FloatFormat::Special::kE8m0 &&
      (bits >> (f.exponent_bits + f.mantissa_bits) & 1)) {
    out->push_back('-');
  }
  out->append("nan");
  if (f.special != FloatFormat::Special::kIeee) return;
  const uint64_t payload = bits & ((uint64_t{1} << f.mantissa_bits) - 1);
  if (payload == uint64_t{1} << (f.mantissa_bits - 1)) return;
  absl::StrAppend(out, "(0x", absl::Hex(payload), ")");
}

template <typename T>
T Load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

uint64_t LoadBits(const char* p, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, bytes);
  return bits;
}

void AppendElement(ElementType type, const char* p, bool scalar, std::string* out) {
  switch (type) {
    case ElementType::kPred:
      if (scalar) {
        out->append(*p ? "true" : "false");
      } else {
        out->push_back(*p ? '1' : '0');
      }
      return;
    case ElementType::kS64: return AppendInt(Load<int64_t>(p), out);
    case ElementType::kS32: return AppendInt(Load<int32_t>(p), out);
    case ElementType::kS16: return AppendInt(Load<int16_t>(p), out);
    case ElementType::kS8:
    case ElementType::kS4:
    case ElementType::kS2:
    case ElementType::kS1: return AppendInt(static_cast<int>(Load<int8_t>(p)), out);
    case ElementType::kU64: return AppendInt(Load<uint64_t>(p), out);
    case ElementType::kU32: return AppendInt(Load<uint32_t>(p), out);
    case ElementType::kU16: return AppendInt(Load<uint16_t>(p), out);
    case ElementType::kU8:
    case ElementType::kU4:
    case ElementType::kU2:
    case ElementType::kU1: return AppendInt(static_cast<unsigned>(Load<uint8_t>(p)), out);
    case ElementType::kC64:
    case ElementType::kC128: {
      const ElementType part = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
      const int bytes = ElementTypeBytes(part);
      out->push_back('(');
      AppendReal(part, LoadBits(p, bytes), out);
      out->append(", ");
      AppendReal(part, LoadBits(p + bytes, bytes), out);
      out->push_back(')');
      return;
    }
    default: return AppendReal(type, LoadBits(p, ElementTypeBytes(type)), out);
  }
}

void AppendArray(const Literal& literal, std::string* out) {
  const Shape& shape = *literal.shape;
  const ElementType type = shape.element_type();
  const int bytes = ElementTypeBytes(type);
  const int rank = shape.rank();
  const char* p = literal.data.data();
  if (rank == 0) return AppendElement(type, p, true, out);
  // Counts through the indices of all dimensions but the last, which is printed as a run.
  absl::InlinedVector<int64_t, 8> index(rank, 0);
  const int64_t n = shape.dim(rank - 1);
  const char* open = rank == 1 || n <= 1 ? "{" : "{ ";
  const char* close = rank == 1 || n <= 1 ? "}" : " }";
  int d = 0;  // the brace to open next; braces 0..d-1 are open
  while (true) {
    for (; d < rank - 1; ++d) {
      out->push_back('{');
      if (rank > 3 && d > 0) absl::StrAppend(out, " /*i", d - 1, "=", index[d - 1], "*/");
      out->push_back(' ');
      if (shape.dim(d) == 0) break;
    }
    if (d == rank - 1) {
      out->append(open);
      for (int64_t i = 0; i < n; ++i, p += bytes) {
        if (i > 0) out->append(", ");
        AppendElement(type, p, false, out);
      }
      out->append(close);
    } else {
      out->append(" }");  // an empty dimension that is not the last
    }
    // Close the dimensions that are complete, and advance the next one.
    while (--d >= 0 && ++index[d] == shape.dim(d)) {
      out->append(" }");
      index[d] = 0;
    }
    if (d < 0) return;
    out->append(", ");
    ++d;
  }
}

}  // namespace

void AppendReal(ElementType type, uint64_t bits, std::string* out) {
  const double value = FloatFromBits(type, bits);
  if (std::isnan(value)) return AppendNan(type, bits, out);
  if (std::isinf(value)) {
    out->append(value < 0 ? "-inf" : "inf");
  } else if (value == 0 && std::signbit(value)) {
    out->append("-0.0");
  } else if (type == ElementType::kF32) {
    AppendShortest(static_cast<float>(value), 6, 9, out);
  } else if (type == ElementType::kF64) {
    AppendShortest(value, 15, 17, out);
  } else {
    AppendGeneral(value, Digits(type), out);
  }
}

std::string NumberText(double value) {
  std::string out;
  AppendReal(ElementType::kF64, absl::bit_cast<uint64_t>(value), &out);
  return out;
}

std::string StringText(absl::string_view text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

void AppendLiteral(const Literal& literal, std::string* out, const LiteralPrefix& prefix) {
  // Without recursion, since tuples may nest deeply: a stack of (tuple, next element).
  std::vector<std::pair<const Literal*, size_t>> open;
  const Literal* next = &literal;
  while (true) {
    if (next->shape->IsTuple() && !next->elided) {
      out->append("( ");
      open.emplace_back(next, 0);
    } else {
      if (prefix) prefix(*next);
      if (next->elided) {
        out->append("{...}");
      } else {
        AppendArray(*next, out);
      }
    }
    while (!open.empty() && open.back().second == open.back().first->elements.size()) {
      out->append(" )");
      open.pop_back();
    }
    if (open.empty()) return;
    if (open.back().second > 0) out->append(", ");
    next = open.back().first->elements[open.back().second++];
  }
}

}  // namespace internal
}  // namespace shardcall
