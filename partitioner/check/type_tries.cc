// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/type_tries.h"

#include <algorithm>

#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Types = std::vector<ElementType>;

constexpr ElementType kWide[] = {ElementType::kF32,  ElementType::kF64, ElementType::kC64,
                                 ElementType::kC128, ElementType::kS32, ElementType::kS64,
                                 ElementType::kU32,  ElementType::kU64};
constexpr ElementType kNarrow[] = {ElementType::kBF16, ElementType::kF16,  ElementType::kS8,
                                   ElementType::kU8,   ElementType::kPred, ElementType::kS16,
                                   ElementType::kU16};

}  // namespace

absl::StatusOr<std::vector<Types>> TypesOfSignature(const std::string& text) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<TypeSignature> signatures,
                             TypeSignature::ParseAll(text));
  std::vector<Types> tries;
  auto add = [&](ElementType any) {
    for (const TypeSignature& s : signatures) {
      Types types = s.With(any);
      if (!types.empty() && std::find(tries.begin(), tries.end(), types) == tries.end()) {
        tries.push_back(std::move(types));
      }
    }
  };
  for (ElementType any : kWide) add(any);
  for (ElementType any : kNarrow) add(any);
  return tries;
}

std::vector<Types> TypesToTry(const CheckedCall& call) {
  if (!call.type_tries.empty()) return call.type_tries;
  const size_t n = call.types.size();
  std::vector<Types> tries;
  for (ElementType any : kWide) tries.emplace_back(n, any);
  constexpr size_t kMost = 6;  // most tensors for mixtures: 3^6 of them per type
  for (ElementType any :
       {ElementType::kF32, ElementType::kF64, ElementType::kC64, ElementType::kC128}) {
    const ElementType forms[] = {any, ElementType::kS32,
                                 IsComplex(any) ? RealPartType(any) : ComplexTypeOf(any)};
    size_t count = n <= kMost ? 1 : 0;
    for (size_t t = 0; t < n; ++t) count *= 3;
    for (size_t k = 1; k < count; ++k) {
      Types types;
      for (size_t t = 0, rest = k; t < n; ++t, rest /= 3) types.push_back(forms[rest % 3]);
      tries.push_back(std::move(types));
    }
  }
  for (ElementType any : kNarrow) tries.emplace_back(n, any);
  return tries;
}

}  // namespace internal
}  // namespace shardcall
