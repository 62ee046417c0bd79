// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/type_signature.h"

#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

absl::Status Malformed(absl::string_view text, std::string message, std::string expected,
                       absl::string_view found) {
  return ToStatus({.code = "E110",
                   .message = absl::StrCat("element types \"", text, "\": ", message),
                   .expected = std::move(expected),
                   .found = std::string(found),
                   .fix = "Write them as \"T, s32 -> T\""});
}

}  // namespace

ElementType RealPartType(ElementType type) {
  if (type == ElementType::kC64) return ElementType::kF32;
  return type == ElementType::kC128 ? ElementType::kF64 : type;
}

ElementType ComplexTypeOf(ElementType type) {
  if (type == ElementType::kF32 || type == ElementType::kC64) return ElementType::kC64;
  if (type == ElementType::kF64 || type == ElementType::kC128) return ElementType::kC128;
  return ElementType::kInvalid;
}

absl::StatusOr<TypeSignature> TypeSignature::Parse(absl::string_view text) {
  TypeSignature out;
  out.text_ = std::string(text);
  const std::vector<absl::string_view> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) {
    return Malformed(text, "there is not one arrow", "operands -> results", text);
  }
  std::array<bool, 128> bound{};
  for (int side = 0; side < 2; ++side) {
    const absl::string_view list = absl::StripAsciiWhitespace(sides[side]);
    for (absl::string_view word : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
      word = absl::StripAsciiWhitespace(word);
      Value value;
      absl::string_view inner = word;
      if (absl::ConsumePrefix(&inner, "real(") && absl::ConsumeSuffix(&inner, ")")) {
        value.form = Form::kReal;
      } else if (inner = word;
                 absl::ConsumePrefix(&inner, "complex(") && absl::ConsumeSuffix(&inner, ")")) {
        value.form = Form::kComplex;
      } else {
        inner = word;
        if (word.size() == 1) value.form = Form::kLetter;
      }
      inner = absl::StripAsciiWhitespace(inner);
      if (value.form == Form::kType) {
        value.type = ElementTypeFromName(inner);
        if (!IsArrayType(value.type) && value.type != ElementType::kToken) {
          return Malformed(text, "there is no such type",
                           "the name of a type, or one upper-case "
                           "letter",
                           word);
        }
      } else {
        if (inner.size() != 1 || !absl::ascii_isupper(inner[0])) {
          return Malformed(text, "a type that may vary is one letter", "an upper-case letter",
                           word);
        }
        value.letter = inner[0];
        out.has_letters_ = true;
        if (side == 0) bound[value.letter] = true;
        if (!bound[value.letter]) {
          return Malformed(text, "a result's type follows from no operand",
                           "a letter that an operand has", word);
        }
      }
      out.values_.push_back(value);
      out.num_operands_ += side == 0;
    }
  }
  return out;
}

absl::StatusOr<std::vector<TypeSignature>> TypeSignature::ParseAll(absl::string_view text) {
  std::vector<TypeSignature> out;
  for (absl::string_view one : absl::StrSplit(text, '|')) {
    SHARDCALL_ASSIGN_OR_RETURN(TypeSignature signature, Parse(absl::StripAsciiWhitespace(one)));
    out.push_back(std::move(signature));
  }
  return out;
}

ElementType TypeSignature::Apply(const Value& value, ElementType letter) {
  switch (value.form) {
    case Form::kType: return value.type;
    case Form::kLetter: return letter;
    case Form::kReal: return RealPartType(letter);
    case Form::kComplex: return ComplexTypeOf(letter);
  }
  return ElementType::kInvalid;
}

absl::StatusOr<std::vector<ElementType>> TypeSignature::Results(
    absl::Span<const ElementType> operands) const {
  auto misfit = [&](std::string message, std::string found) {
    return ToStatus({.code = "E112",
                     .message = std::move(message),
                     .expected = text_,
                     .found = std::move(found),
                     .fix = "Convert the operand, or register other types"});
  };
  if (static_cast<int>(operands.size()) != num_operands_) {
    return misfit("the call has another number of operands than its types say",
                  absl::StrCat(operands.size()));
  }
  std::array<ElementType, 128> letters;
  letters.fill(ElementType::kInvalid);
  // Plain letters are bound first; real(T) and complex(T) are compared with them afterwards.
  for (int k = 0; k < num_operands_; ++k) {
    const Value& v = values_[k];
    ElementType& bound = letters[v.letter];
    if (v.form == Form::kLetter && bound == ElementType::kInvalid) bound = operands[k];
  }
  for (int k = 0; k < num_operands_; ++k) {
    const Value& v = values_[k];
    ElementType& bound = letters[v.letter];
    if (v.form == Form::kComplex && bound == ElementType::kInvalid && IsComplex(operands[k])) {
      bound = RealPartType(operands[k]);
    }
    if (v.form == Form::kReal && bound == ElementType::kInvalid) bound = operands[k];
    if (Apply(v, bound) != operands[k]) {
      return misfit(absl::StrCat("operand ", k, " has a type that the target is not for"),
                    std::string(ElementTypeName(operands[k])));
    }
  }
  std::vector<ElementType> results;
  for (size_t k = num_operands_; k < values_.size(); ++k) {
    results.push_back(Apply(values_[k], letters[values_[k].letter]));
    if (results.back() == ElementType::kInvalid) {
      return misfit(absl::StrCat("result ", k - num_operands_, " has no type"),
                    "an operand that has no complex form");
    }
  }
  return results;
}

bool TypeSignature::Fits(absl::Span<const ElementType> types) const {
  if (types.size() != values_.size()) return false;
  const auto results = Results(types.first(num_operands_));
  return results.ok() && absl::c_equal(*results, types.subspan(num_operands_));
}

bool TypeSignature::Overlap(const TypeSignature& a, const TypeSignature& b) {
  if (a.values_.size() != b.values_.size() || a.num_operands_ != b.num_operands_) return false;
  // The letters of both sides, 'A' to 'Z' each; which stand for one type, and which that is.
  constexpr int kLetters = 26;
  std::array<int, 2 * kLetters> same;
  std::array<ElementType, 2 * kLetters> types;
  types.fill(ElementType::kInvalid);
  for (int k = 0; k < 2 * kLetters; ++k) same[k] = k;
  const auto letter = [&](int side, const Value& v) {
    return same[side * kLetters + v.letter - 'A'];
  };
  const auto bind = [&](int k, ElementType type) {
    if (types[k] == ElementType::kInvalid) types[k] = type;
    return types[k] == type;
  };
  for (size_t k = 0; k < a.values_.size(); ++k) {
    const Value &x = a.values_[k], &y = b.values_[k];
    const bool plain_x = x.form == Form::kLetter, plain_y = y.form == Form::kLetter;
    if (x.form == Form::kType && y.form == Form::kType && x.type != y.type) return false;
    if (plain_x && y.form == Form::kType && !bind(letter(0, x), y.type)) return false;
    if (plain_y && x.form == Form::kType && !bind(letter(1, y), x.type)) return false;
    if (!plain_x || !plain_y) continue;
    const int from = letter(0, x), to = letter(1, y);
    if (types[from] != ElementType::kInvalid && !bind(to, types[from])) return false;
    for (int& s : same) {
      if (s == from) s = to;
    }
  }
  // What is bound by now decides the others.
  const auto type_of = [&](int side, const Value& v) {
    if (v.form == Form::kType) return v.type;
    const ElementType bound = types[letter(side, v)];
    return bound == ElementType::kInvalid ? bound : Apply(v, bound);
  };
  for (size_t k = 0; k < a.values_.size(); ++k) {
    const ElementType x = type_of(0, a.values_[k]), y = type_of(1, b.values_[k]);
    if (x != ElementType::kInvalid && y != ElementType::kInvalid && x != y) return false;
  }
  return true;
}

bool TypeSignature::IsWithin(const TypeSignature& other) const {
  // Examples in which each letter has different types, and any two letters do: the digits of a
  // letter's number, in base 2, say which of two types it has. Real and complex forms of all exist.
  constexpr std::array<std::array<ElementType, 2>, 2> kTypes = {
      {{ElementType::kC64, ElementType::kC128}, {ElementType::kF32, ElementType::kF64}}};
  constexpr int kDigits = 5;  // 26 letters
  for (const auto& types : kTypes) {
    for (int digit = 0; digit < kDigits; ++digit) {
      for (const int other_way : {0, 1}) {
        std::vector<ElementType> example;
        for (const Value& v : values_) {
          const int number = v.form == Form::kType ? 0 : v.letter - 'A';
          const ElementType any = types[(number >> digit & 1) ^ other_way];
          example.push_back(Apply(v, v.form == Form::kType ? v.type : any));
        }
        if (!other.Fits(example)) return false;
      }
    }
  }
  return true;
}

std::vector<ElementType> TypeSignature::With(ElementType any) const {
  std::vector<ElementType> out;
  for (const Value& v : values_) {
    out.push_back(Apply(v, any));
    if (out.back() == ElementType::kInvalid) return {};
  }
  return out;
}

}  // namespace shardcall
