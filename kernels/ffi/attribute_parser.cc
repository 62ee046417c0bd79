// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/attribute_parser.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kDeepest = 64;                // nesting of dictionaries and lists
constexpr int64_t kMostElements = 1 << 24;  // limits splats, whose few bytes can ask for any number

// The type of an MLIR name; signless integers count as signed. kInvalid for types that the typed
// FFI does not have.
ElementType TypeFromMlir(absl::string_view name) {
  if (name == "i1") return ElementType::kPred;
  if (name == "index") return ElementType::kS64;
  if (absl::StartsWith(name, "si")) return ElementTypeFromName(absl::StrCat("s", name.substr(2)));
  if (absl::StartsWith(name, "ui")) return ElementTypeFromName(absl::StrCat("u", name.substr(2)));
  if (absl::StartsWith(name, "i")) return ElementTypeFromName(absl::StrCat("s", name.substr(1)));
  const std::string lower = absl::AsciiStrToLower(name);
  if (name[0] != 'f' && name[0] != 'b') return ElementType::kInvalid;
  const ElementType type = ElementTypeFromName(lower);
  return IsFloat(type) ? type : ElementType::kInvalid;
}

class Parser {
 public:
  explicit Parser(absl::string_view text, std::vector<NumberPlace>* places = nullptr)
      : text_(text), places_(places) {}

  absl::StatusOr<Attribute::Dictionary> Whole() {
    SkipSpace();
    if (AtEnd()) return Attribute::Dictionary();
    SHARDCALL_ASSIGN_OR_RETURN(Attribute::Dictionary map, Dictionary(0));
    SkipSpace();
    if (!AtEnd()) return Error("the end of the text");
    return map;
  }

 private:
  bool AtEnd() const { return pos_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[pos_]; }
  void SkipSpace() {
    while (!AtEnd() && absl::ascii_isspace(text_[pos_])) ++pos_;
  }
  bool Take(absl::string_view token) {
    SkipSpace();
    if (!absl::StartsWith(text_.substr(pos_), token)) return false;
    pos_ += token.size();
    return true;
  }
  absl::Status Expect(absl::string_view token) {
    return Take(token) ? absl::OkStatus() : Error(absl::StrCat("\"", token, "\""));
  }

  absl::Status ErrorAt(size_t at, absl::string_view expected) const {
    // Kernels may have kilobytes of attributes, so show only the text around the error.
    const size_t begin = at > 40 ? at - 40 : 0;
    std::string excerpt(text_.substr(begin, 80));
    for (char& c : excerpt) {
      if (!absl::ascii_isprint(c)) c = ' ';
    }
    const std::string found = at >= text_.size()
                                  ? "the end"
                                  : absl::StrCat("\"", absl::CEscape(text_.substr(at, 12)), "\"");
    return ToStatus({.code = "E131",
                     .message = "malformed attributes in backend_config",
                     .where = absl::StrCat("column ", at + 1),
                     .expected = std::string(expected),
                     .found = found,
                     .fix = "Write backend_config={name = value : type, ...}, such as {eps = "
                            "1.0e-05 : f32, names = [\"a\"]}",
                     .excerpt = absl::StrCat(excerpt, "\n", std::string(at - begin, ' '), "^")});
  }
  absl::Status Error(absl::string_view expected) const { return ErrorAt(pos_, expected); }

  // [A-Za-z0-9_.+-$]*: a number, a keyword or a type.
  absl::string_view Word() {
    SkipSpace();
    const size_t begin = pos_;
    while (!AtEnd() && (absl::ascii_isalnum(Peek()) || absl::StrContains("_.+-$", Peek()))) ++pos_;
    return text_.substr(begin, pos_ - begin);
  }

  absl::StatusOr<std::string> String() {
    const size_t begin = pos_;
    if (!Take("\"")) return Error("a string");
    std::string result;
    while (!AtEnd()) {
      const char c = text_[pos_++];
      if (c == '"') return result;
      if (c != '\\') {
        result.push_back(c);
        continue;
      }
      const char e = Peek();
      if (e == '\\' || e == '"') {
        result.push_back(e);
        ++pos_;
      } else if (e == 'n' || e == 't') {
        result.push_back(e == 'n' ? '\n' : '\t');
        ++pos_;
      } else if (pos_ + 1 < text_.size() && absl::ascii_isxdigit(e) &&
                 absl::ascii_isxdigit(text_[pos_ + 1])) {
        result.append(absl::HexStringToBytes(text_.substr(pos_, 2)));
        pos_ += 2;
      } else {
        return ErrorAt(pos_ - 1, "an escape: \\\\, \\\", \\n, \\t or \\ and two hex digits");
      }
    }
    return ErrorAt(begin, "a string that is closed by a quote");
  }

  absl::StatusOr<Attribute::Dictionary> Dictionary(int depth) {
    if (depth > kDeepest) return Error(absl::StrCat("at most ", kDeepest, " nested dictionaries"));
    SkipSpace();
    const size_t begin = pos_;
    SHARDCALL_RETURN_IF_ERROR(Expect("{"));
    Attribute::Dictionary map;
    if (Take("}")) return map;
    do {
      SkipSpace();
      const size_t at = pos_;
      std::string name;
      if (Peek() == '"') {
        SHARDCALL_ASSIGN_OR_RETURN(name, String());
      } else {
        name = std::string(Word());
      }
      if (name.empty()) return ErrorAt(at, "an attribute's name");
      SkipSpace();
      if (Peek() == ',' || Peek() == '}') {
        return Error(absl::StrCat("\"=\" and a value; a flag is written ", name, " = true"));
      }
      SHARDCALL_RETURN_IF_ERROR(Expect("="));
      Attribute value;
      const size_t outer = path_.size();
      absl::StrAppend(&path_, outer == 0 ? "" : ".", name);
      SHARDCALL_RETURN_IF_ERROR(Value(depth, &value));
      path_.resize(outer);
      map.emplace_back(std::move(name), std::move(value));
    } while (Take(","));
    if (!Take("}")) return Error("\",\" or \"}\"");
    std::sort(map.begin(), map.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t k = 1; k < map.size(); ++k) {
      if (map[k].first == map[k - 1].first) {
        return ErrorAt(begin, absl::StrCat("each name once, and not two of ", map[k].first));
      }
    }
    return map;
  }

  absl::Status Value(int depth, Attribute* out) {
    SkipSpace();
    if (Peek() == '"') {
      SHARDCALL_ASSIGN_OR_RETURN(out->value, String());
      return absl::OkStatus();
    }
    if (Peek() == '{') {
      SHARDCALL_ASSIGN_OR_RETURN(out->value, Dictionary(depth + 1));
      return absl::OkStatus();
    }
    if (Take("dense<")) return Dense(out);
    if (Take("array<")) return DenseArray(out);
    const size_t at = pos_;
    const absl::string_view word = Word();
    if (word.empty() || absl::StartsWith(word, "dense_resource")) {
      return ErrorAt(at, "a number, true, false, a string, dense<..>, array<..> or {..}");
    }
    AttributeScalar scalar;
    scalar.type = ElementType::kPred;
    if (word != "true" && word != "false") {
      if (Take(":")) {
        SHARDCALL_ASSIGN_OR_RETURN(scalar.type, ScalarType());
      } else {
        // MLIR's default types.
        scalar.type = IsIntegerText(word) ? ElementType::kS64 : ElementType::kF64;
      }
    }
    SHARDCALL_RETURN_IF_ERROR(Number(word, at, scalar.type, &scalar.i, &scalar.f));
    Note(word, at, "", scalar.type, scalar.i);
    out->value = scalar;
    return absl::OkStatus();
  }

  void Note(absl::string_view word, size_t at, absl::string_view index, ElementType type,
            int64_t value) {
    if (places_ == nullptr) return;
    places_->push_back({absl::StrCat(path_, index), type, value, at, word.size()});
  }

  static bool IsIntegerText(absl::string_view word) {
    if (!word.empty() && word[0] == '-') word.remove_prefix(1);
    if (absl::StartsWith(word, "0x")) return true;
    return !word.empty() && std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
  }

  absl::StatusOr<ElementType> ScalarType() {
    SkipSpace();
    const size_t at = pos_;
    const absl::string_view name = Word();
    const ElementType type = name.empty() ? ElementType::kInvalid : TypeFromMlir(name);
    if (type == ElementType::kInvalid) return ErrorAt(at, "a type such as i64, ui8, f32 or i1");
    return type;
  }

  absl::Status Number(absl::string_view word, size_t at, ElementType type, int64_t* i, double* f) {
    if (IsFloat(type)) return FloatNumber(word, at, type, f);
    if (word == "true" || word == "false") {
      if (type != ElementType::kPred) {
        return ErrorAt(at, absl::StrCat("a value of type ", ElementTypeName(type)));
      }
      *i = word == "true";
      return absl::OkStatus();
    }
    const bool negative = absl::StartsWith(word, "-");
    const absl::string_view digits = negative ? word.substr(1) : word;
    uint64_t magnitude = 0;
    const bool number = absl::StartsWith(digits, "0x")
                            ? absl::SimpleHexAtoi(digits, &magnitude)
                            : IsIntegerText(digits) && absl::SimpleAtoi(digits, &magnitude);
    const int bits = type == ElementType::kPred ? 1 : ElementTypeBits(type);
    const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    // As in MLIR, a signless type accepts values that fit either as signed or as unsigned.
    const uint64_t most = negative ? (IsUnsignedInteger(type) ? 0 : all / 2 + 1) : all;
    if (!number || magnitude > most) {
      return ErrorAt(at, absl::StrCat("an integer that fits ", ElementTypeName(type)));
    }
    uint64_t value = negative ? 0 - magnitude : magnitude;
    if (IsSignedInteger(type) && bits < 64 && (value >> (bits - 1) & 1)) value |= ~all;
    *i = static_cast<int64_t>(value);
    return absl::OkStatus();
  }

  absl::Status FloatNumber(absl::string_view word, size_t at, ElementType type, double* f) {
    uint64_t bits = 0;
    if (absl::StartsWith(word, "0x")) {
      const int width = ElementTypeBits(type);
      if (!absl::SimpleHexAtoi(word, &bits) || (width < 64 && bits >> width != 0)) {
        return ErrorAt(at, absl::StrCat("the bits of one ", ElementTypeName(type)));
      }
      *f = FloatFromBits(type, bits);
      return absl::OkStatus();
    }
    absl::string_view digits = word;
    if (absl::StartsWith(digits, "-")) digits.remove_prefix(1);
    double value = 0;
    const auto end = absl::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = !digits.empty() && absl::ascii_isdigit(digits[0]) &&
                       end.ptr == digits.data() + digits.size() &&
                       end.ec != std::errc::invalid_argument;
    if (!whole) return ErrorAt(at, absl::StrCat("a number of type ", ElementTypeName(type)));
    if (word.size() != digits.size()) value = -value;
    *f = RoundToFloatType(type, value);
    return absl::OkStatus();
  }

  struct DenseElement {
    absl::string_view word;
    size_t at;
  };

  // The nested lists of `dense<[[1, 2], [3, 4]]>`. `shape` gets their lengths.
  absl::Status DenseLists(std::vector<DenseElement>* elements, std::vector<int64_t>* shape) {
    std::vector<int64_t> counts;  // elements so far in each open list
    bool need_value = false;
    do {
      SkipSpace();
      if (Take("[")) {
        if (counts.size() >= kDeepest) return Error("fewer nested lists");
        counts.push_back(0);
        if (shape->size() < counts.size()) {
          if (!elements->empty()) return Error("lists of equal depth");
          shape->push_back(-1);  // not yet known
        }
        need_value = false;
      } else if (!need_value && Take("]")) {
        int64_t& extent = (*shape)[counts.size() - 1];
        if (extent >= 0 && extent != counts.back()) return Error("lists of equal length");
        extent = counts.back();
        counts.pop_back();
        if (!counts.empty()) {
          ++counts.back();
          need_value = Take(",");
        }
      } else {
        const size_t at = pos_;
        const absl::string_view word = Word();
        if (word.empty() || counts.size() != shape->size()) {
          return ErrorAt(at, "a number or a list");
        }
        elements->push_back({word, at});
        ++counts.back();
        need_value = Take(",");
        SkipSpace();
        if (!need_value && Peek() != ']') return Error("\",\" or \"]\"");
      }
    } while (!counts.empty());
    return absl::OkStatus();
  }

  // The text after `dense<`.
  absl::Status Dense(Attribute* out) {
    std::vector<DenseElement> elements;
    std::vector<int64_t> shape;  // of the nested lists
    std::string raw;             // of dense<"0x...">
    bool splat = false, hex = false;
    SkipSpace();
    const size_t begin = pos_;
    if (Peek() == '"') {
      SHARDCALL_ASSIGN_OR_RETURN(raw, String());
      hex = true;
    } else if (Peek() == '[') {
      SHARDCALL_RETURN_IF_ERROR(DenseLists(&elements, &shape));
    } else if (Peek() != '>') {
      elements.push_back({Word(), begin});
      splat = true;
    }
    SHARDCALL_RETURN_IF_ERROR(Expect(">"));
    SHARDCALL_RETURN_IF_ERROR(Expect(":"));
    SkipSpace();
    const size_t type_at = pos_;
    if (!Take("tensor<") && !Take("vector<")) return Error("\"tensor<\"");
    AttributeArray array;
    int64_t total = 1;
    std::vector<int64_t> dims;
    SHARDCALL_RETURN_IF_ERROR(TensorType(type_at, &dims, &total, &array.type));
    if (hex) {
      SHARDCALL_RETURN_IF_ERROR(RawBytes(raw, begin, total, &array));
    } else {
      if (!splat && dims != shape && !(total == 0 && elements.empty())) {
        return ErrorAt(type_at, "the shape that the values have");
      }
      for (const DenseElement& element : elements) {
        SHARDCALL_RETURN_IF_ERROR(Append(element.word, element.at, &array, splat));
      }
      if (splat) {
        if (IsFloat(array.type))
          array.floats.resize(total, array.floats[0]);
        else
          array.ints.resize(total, array.ints[0]);
      }
    }
    out->value = std::move(array);
    return absl::OkStatus();
  }

  absl::Status Append(absl::string_view word, size_t at, AttributeArray* array,
                      bool splat = false) {
    int64_t i = 0;
    double f = 0;
    SHARDCALL_RETURN_IF_ERROR(Number(word, at, array->type, &i, &f));
    const size_t index = array->floats.size() + array->ints.size();
    Note(word, at, splat ? "" : absl::StrCat("[", index, "]"), array->type, i);
    if (IsFloat(array->type))
      array->floats.push_back(f);
    else
      array->ints.push_back(i);
    return absl::OkStatus();
  }

  // 2x3xi32>
  absl::Status TensorType(size_t at, std::vector<int64_t>* dims, int64_t* total,
                          ElementType* type) {
    absl::string_view word = Word();
    while (!word.empty() && absl::ascii_isdigit(word[0])) {
      const size_t x = word.find('x');
      int64_t dim = 0;
      if (x == absl::string_view::npos || !absl::SimpleAtoi(word.substr(0, x), &dim)) {
        return ErrorAt(at, "a static shape such as tensor<2x3xi32>");
      }
      dims->push_back(dim);
      if (dim > kMostElements || (*total *= dim) > kMostElements) {
        return ErrorAt(at, absl::StrCat("at most ", kMostElements, " elements"));
      }
      word.remove_prefix(x + 1);
    }
    *type = word.empty() ? ElementType::kInvalid : TypeFromMlir(word);
    if (*type == ElementType::kInvalid) {
      return ErrorAt(at, "a static shape with a known element type, such as tensor<2x3xi32>");
    }
    return Expect(">");
  }

  // dense<"0x0100000002000000">: little-endian elements, or a single one for all.
  absl::Status RawBytes(absl::string_view text, size_t at, int64_t total, AttributeArray* array) {
    const int bytes = ElementTypeBytes(array->type);
    const absl::string_view digits = absl::StartsWith(text, "0x") ? text.substr(2) : "";
    const bool packed_bits = ElementTypeBits(array->type) < 8 || array->type == ElementType::kPred;
    const bool well_formed =
        std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit) && !packed_bits;
    const int64_t count = digits.size() / 2 / bytes;
    if (!well_formed || digits.size() != static_cast<size_t>(count * bytes * 2) ||
        (count != total && count != 1)) {
      return ErrorAt(at, absl::StrCat("\"0x\" and the ", total * bytes, " bytes of the elements"));
    }
    const std::string data = absl::HexStringToBytes(digits);
    for (int64_t k = 0; k < total; ++k) {
      uint64_t bits = 0;
      std::memcpy(&bits, data.data() + (count == 1 ? 0 : k * bytes), bytes);
      if (IsFloat(array->type)) {
        array->floats.push_back(FloatFromBits(array->type, bits));
      } else {
        const int shift = 64 - 8 * bytes;
        array->ints.push_back(IsSignedInteger(array->type)
                                  ? static_cast<int64_t>(bits << shift) >> shift
                                  : static_cast<int64_t>(bits));
      }
    }
    return absl::OkStatus();
  }

  // The text after `array<`: i64: 1, 2>
  absl::Status DenseArray(Attribute* out) {
    AttributeArray array;
    SHARDCALL_ASSIGN_OR_RETURN(array.type, ScalarType());
    if (Take(":")) {
      do {
        SkipSpace();
        const size_t at = pos_;
        const absl::string_view word = Word();
        if (word.empty()) return ErrorAt(at, "a number");
        SHARDCALL_RETURN_IF_ERROR(Append(word, at, &array));
      } while (Take(","));
    }
    SHARDCALL_RETURN_IF_ERROR(Expect(">"));
    out->value = std::move(array);
    return absl::OkStatus();
  }

  absl::string_view text_;
  size_t pos_ = 0;
  std::vector<NumberPlace>* const places_;  // null: they are not wanted
  std::string path_;                        // of the attribute that is being read
};

}  // namespace

absl::StatusOr<Attribute::Dictionary> ParseAttributeDictionary(absl::string_view text) {
  return Parser(text).Whole();
}

absl::StatusOr<std::vector<NumberPlace>> NumbersOfAttributes(absl::string_view text) {
  std::vector<NumberPlace> places;
  SHARDCALL_RETURN_IF_ERROR(Parser(text, &places).Whole().status());
  return places;
}

}  // namespace internal
}  // namespace shardcall
