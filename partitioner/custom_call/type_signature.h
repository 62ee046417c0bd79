// SPDX-License-Identifier: Apache-2.0
// Element types of a target's operands and results, as text:
//   "T, s32 -> T, real(T)"
// An upper-case letter is any one type, the same at each occurrence; real(T) is the type of the
// real part of complex T, else T itself; complex(T) is the inverse. Several signatures are
// separated by '|', the usual one first: "T -> T, f32 | T -> T, T".
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_TYPE_SIGNATURE_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_TYPE_SIGNATURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall SHARDCALL_PUBLIC {

// RealPartType is f32 for c64, f64 for c128, else the type itself; ComplexTypeOf is the inverse.
ElementType RealPartType(ElementType type);
ElementType ComplexTypeOf(ElementType type);

class TypeSignature {
 public:
  // Errors E110: no arrow, an unknown type, a letter that no operand binds.
  static absl::StatusOr<TypeSignature> Parse(absl::string_view text);  // a single signature
  static absl::StatusOr<std::vector<TypeSignature>> ParseAll(absl::string_view text);

  int num_operands() const { return num_operands_; }
  int num_results() const { return static_cast<int>(values_.size()) - num_operands_; }
  // The results' types. Errors E112: wrong number of operands, or an operand of another type.
  absl::StatusOr<std::vector<ElementType>> Results(absl::Span<const ElementType> operands) const;
  // Types of all tensors with `any` in place of every letter; empty where the signature has no
  // such types (complex(s32)).
  std::vector<ElementType> With(ElementType any) const;
  // Whether tensors of these types, operands and then results, have the signature.
  bool Fits(absl::Span<const ElementType> types) const;
  // Whether some types have both signatures. Of real(T) and complex(T), where no type of either
  // says what T is, all are taken to.
  static bool Overlap(const TypeSignature& a, const TypeSignature& b);
  // Whether all types that have this signature have `other`; false where that is not certain.
  bool IsWithin(const TypeSignature& other) const;
  bool has_letters() const { return has_letters_; }

 private:
  enum class Form : uint8_t { kType, kLetter, kReal, kComplex };
  struct Value {
    Form form = Form::kType;
    ElementType type = ElementType::kInvalid;
    char letter = 0;
  };
  static ElementType Apply(const Value& value, ElementType letter);

  std::vector<Value> values_;
  int num_operands_ = 0;
  bool has_letters_ = false;
  std::string text_;
};

// RuleAlternative::types, and what they say.
struct ParsedTypes {
  std::string text;
  std::vector<TypeSignature> signatures;  // none: not known
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_TYPE_SIGNATURE_H_
