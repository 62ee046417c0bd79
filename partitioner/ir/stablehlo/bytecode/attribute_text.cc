// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/dense_elements.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/not_converted.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using Kind = Attribute::Kind;

constexpr int kMaxNesting = 32;
// Shared parts of attributes are printed at each place, so a small file may stand for a long text.
constexpr size_t kMaxText = size_t{1} << 22;

// A letter or an underscore, then letters, digits and `_$.`: MLIR's bare-id.
bool IsBareId(absl::string_view name) {
  if (name.empty() || !(absl::ascii_isalpha(name[0]) || name[0] == '_')) return false;
  return absl::c_all_of(name, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '$' || c == '.';
  });
}

// "i64", "ui8", "f32": MLIR's names.
std::string TypeName(ElementType type) {
  if (type == ElementType::kPred) return "i1";
  const std::string name(ElementTypeName(type));
  if (name[0] == 's') return "i" + name.substr(1);
  return name[0] == 'u' ? "ui" + name.substr(1) : name;
}

// A finite number as llvm::APFloat::toString prints it, which is not always the nearest text:
// digits beyond those that `digits` may need are cut off before the rest is rounded. `bits`: of the
// significand. With an exponent where more than `max_padding` zeros would be needed; `fill`: always
// with an exponent, and with zeros up to that many digits after the point.
std::string ApFloatText(double v, int bits, int digits, int max_padding, bool fill) {
  int binary = 0;
  double significand = std::ldexp(std::frexp(std::fabs(v), &binary), bits);  // an integer
  binary -= bits;
  while (significand != 0 && std::fmod(significand, 2) == 0) {
    significand /= 2;
    ++binary;
  }
  // v = number * 10^exponent, exactly.
  int exponent = std::min(binary, 0);
  std::string number = absl::StrFormat("%.*f", -exponent, std::fabs(v));
  number.erase(std::remove(number.begin(), number.end(), '.'), number.end());
  number.erase(0, std::min(number.find_first_not_of('0'), number.size() - 1));
  const int active = significand == 0
                         ? 0
                         : 1 + static_cast<int>(std::floor(
                                   std::log2(significand) +
                                   (binary < 0 ? -binary * std::log2(5.0L) : 0.0L + binary)));
  const int needed = (digits * 196 + 58) / 59;
  const auto drop = [&](size_t count) {
    number.resize(number.size() - count);
    exponent += static_cast<int>(count);
  };
  if (active > needed) drop(static_cast<size_t>((active - needed) * 59 / 196));
  const auto drop_zeros = [&] {
    while (number.size() > 1 && number.back() == '0') drop(1);
  };
  drop_zeros();
  if (const size_t keep = static_cast<size_t>(digits); number.size() > keep) {
    const bool up = number[keep] >= '5';
    drop(number.size() - keep);
    while (up && !number.empty() && number.back() == '9') drop(1);
    if (up && number.empty())
      number = "1";
    else if (up)
      ++number.back();
    drop_zeros();
  }
  const int size = static_cast<int>(number.size()), leading = exponent + size - 1;
  const std::string sign = std::signbit(v) ? "-" : "";
  const bool scientific =
      max_padding == 0 || (exponent >= 0 ? exponent > max_padding || size + exponent > digits
                                         : leading < 0 && -leading > max_padding);
  if (scientific) {
    std::string rest = number.substr(1);
    if (rest.empty() && !fill) rest = "0";
    if (fill && rest.size() < static_cast<size_t>(digits))
      rest.resize(static_cast<size_t>(digits), '0');
    return absl::StrFormat("%s%c.%s%c%c%0*d", sign, number[0], rest, fill ? 'e' : 'E',
                           leading < 0 ? '-' : '+', fill ? 2 : 1, std::abs(leading));
  }
  if (exponent >= 0) return sign + number + std::string(static_cast<size_t>(exponent), '0');
  if (leading >= 0) {
    number.insert(static_cast<size_t>(leading) + 1, ".");
  } else {
    number.insert(0, "0." + std::string(static_cast<size_t>(-leading - 1), '0'));
  }
  return sign + number;
}

// Of f32 and f64, by their bits.
std::string FloatText(ElementType type, uint64_t bits) {
  const bool narrow = type == ElementType::kF32;
  const float f = std::bit_cast<float>(static_cast<uint32_t>(bits));
  const double v = narrow ? static_cast<double>(f) : std::bit_cast<double>(bits);
  const int precision = narrow ? 24 : 53;
  if (std::isfinite(v)) {
    std::string text = ApFloatText(v, precision, 6, 0, /*fill=*/true);
    const bool same = narrow ? std::bit_cast<uint32_t>(std::strtof(text.c_str(), nullptr)) ==
                                   static_cast<uint32_t>(bits)
                             : std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)) == bits;
    if (same) return text;
    text = ApFloatText(v, precision, 2 + precision * 59 / 196, 3, /*fill=*/false);
    if (text.find('.') != std::string::npos) return text;
  }
  return narrow ? absl::StrFormat("0x%08X", static_cast<uint32_t>(bits))
                : absl::StrFormat("0x%016X", bits);
}

class Printer {
 public:
  explicit Printer(const Bytecode& code) : code_(code) {}

  absl::StatusOr<std::string> Print(const Attribute& a) && {
    Append(a, 0, /*elide=*/false);
    if (!known_ || out_.size() > kMaxText) {
      return StablehloNotConverted("an attribute of a custom call of an unknown form");
    }
    return std::move(out_);
  }

 private:
  // `elide`: the type of i64 and f64 is left out, as within arrays.
  void Append(const Attribute& a, int depth, bool elide) {
    if (depth > kMaxNesting || out_.size() > kMaxText) known_ = false;
    if (!known_) return;
    switch (a.kind) {
      case Kind::kString: out_ += QuotedText(a.text); return;
      case Kind::kBytes: out_ += QuotedText(a.data); return;
      case Kind::kUnit: out_ += "unit"; return;
      case Kind::kInteger: return AppendInteger(a, elide);
      case Kind::kFloat: return AppendFloat(a, elide);
      case Kind::kArray:
        out_ += "[";
        for (size_t k = 0; k < a.items.size(); ++k) {
          if (k > 0) out_ += ", ";
          Append(code_.attribute(a.items[k]), depth + 1, /*elide=*/true);
        }
        out_ += "]";
        return;
      case Kind::kDictionary: return AppendDictionary(a, depth);
      case Kind::kDenseArray:
      case Kind::kDense: return AppendDense(a);
      default: known_ = false;
    }
  }

  void AppendInteger(const Attribute& a, bool elide) {
    const Type& type = code_.type(a.type);
    if (type.element == ElementType::kInvalid || type.is_other_integer) {
      known_ = false;
    } else if (type.element == ElementType::kPred) {
      out_ += a.integer != 0 ? "true" : "false";
    } else {
      if (IsUnsignedInteger(type.element)) {
        const int shift = 64 - ElementTypeBits(type.element);
        absl::StrAppend(&out_, static_cast<uint64_t>(a.integer) << shift >> shift);
      } else {
        absl::StrAppend(&out_, a.integer);
      }
      if (elide && type.element == ElementType::kS64) return;
      absl::StrAppend(&out_, " : ", TypeName(type.element));
    }
  }

  void AppendFloat(const Attribute& a, bool elide) {
    const ElementType type = code_.type(a.type).element;
    if (type != ElementType::kF32 && type != ElementType::kF64) {
      known_ = false;
      return;
    }
    out_ += FloatText(type, static_cast<uint64_t>(a.integer));
    if (elide && type == ElementType::kF64) return;
    absl::StrAppend(&out_, " : ", TypeName(type));
  }

  void AppendDictionary(const Attribute& a, int depth) {
    out_ += "{";
    for (size_t k = 0; k + 1 < a.items.size(); k += 2) {
      const absl::string_view name = code_.attribute(a.items[k]).text;
      if (!IsBareId(name)) known_ = false;
      absl::StrAppend(&out_, k > 0 ? ", " : "", name);
      const Attribute& value = code_.attribute(a.items[k + 1]);
      if (value.kind == Kind::kUnit) continue;
      out_ += " = ";
      Append(value, depth + 1, /*elide=*/false);
    }
    out_ += "}";
  }

  // Dense elements of one dimension, or equal ones.
  void AppendDense(const Attribute& a) {
    const absl::StatusOr<DenseElements> dense = ReadDense(code_, a);
    if (!dense.ok() || code_.type(a.type).is_other_integer || dense->data.size() > kMaxText ||
        !(IsInteger(dense->type) || dense->type == ElementType::kPred ||
          dense->type == ElementType::kF32 || dense->type == ElementType::kF64)) {
      known_ = false;
      return;
    }
    std::vector<std::string> elements = TextsOf(*dense);
    const std::string type = TypeName(dense->type);
    if (a.kind == Kind::kDenseArray) {
      absl::StrAppend(&out_, "array<", type, elements.empty() ? "" : ": ",
                      absl::StrJoin(elements, ", "), ">");
      return;
    }
    const bool equal = !elements.empty() && absl::c_all_of(elements, [&](const std::string& e) {
      return e == elements[0];
    });
    if (equal) elements.resize(1);
    const bool list = !equal && !elements.empty();
    if (list && dense->dims.size() != 1) known_ = false;
    absl::StrAppend(&out_, "dense<", list ? "[" : "", absl::StrJoin(elements, ", "),
                    list ? "]" : "", "> : tensor<");
    for (int64_t d : dense->dims) absl::StrAppend(&out_, d, "x");
    absl::StrAppend(&out_, type, ">");
  }

  static std::vector<std::string> TextsOf(const DenseElements& dense) {
    std::vector<std::string> out;
    const size_t bytes = static_cast<size_t>(ElementTypeBytes(dense.type));
    for (size_t at = 0; at < dense.data.size(); at += bytes) {
      uint64_t bits = 0;
      std::memcpy(&bits, dense.data.data() + at, bytes);
      const int shift = 64 - 8 * static_cast<int>(bytes);
      if (dense.type == ElementType::kPred) {
        out.push_back(bits != 0 ? "true" : "false");
      } else if (IsFloat(dense.type)) {
        out.push_back(FloatText(dense.type, bits));
      } else if (IsUnsignedInteger(dense.type)) {
        out.push_back(absl::StrCat(bits));
      } else {
        out.push_back(absl::StrCat(static_cast<int64_t>(bits << shift) >> shift));
      }
    }
    return out;
  }

  const Bytecode& code_;
  std::string out_;
  bool known_ = true;
};

}  // namespace

std::string QuotedText(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (u >= 0x20 && u < 0x7f && c != '"') {
      out.push_back(c);
    } else {
      absl::StrAppendFormat(&out, "\\%02X", u);
    }
  }
  return out + "\"";
}

std::string SymbolName(absl::string_view name) {
  return IsBareId(name) ? std::string(name) : QuotedText(name);
}

absl::StatusOr<std::string> AttributeText(const Bytecode& code, const Attribute& a) {
  return Printer(code).Print(a);
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
