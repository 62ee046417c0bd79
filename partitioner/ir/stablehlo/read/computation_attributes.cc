// SPDX-License-Identifier: Apache-2.0
// Attributes of operations, by name.
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/dense_elements.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// The elements of a list. Groups of devices may be many; but a few bytes stand for any number of
// equal elements.
constexpr int64_t kMaxList = int64_t{1} << 24;

}  // namespace

absl::StatusOr<std::vector<int64_t>> ComputationReader::List(const Operation& op,
                                                             absl::string_view name) {
  const Attribute* a = Find(op, name);
  if (a == nullptr) return std::vector<int64_t>();
  const absl::StatusOr<DenseElements> dense = ReadDense(code(), *a);
  if (!dense.ok() || !(IsInteger(dense->type) || dense->type == ElementType::kPred) ||
      dense->count > kMaxList) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with ", name, " of an unknown form"));
  }
  return dense->Integers();
}

int64_t ComputationReader::Integer(const Operation& op, absl::string_view name, int64_t otherwise) {
  const Attribute* a = Find(op, name);
  if (a == nullptr) return otherwise;
  if (a->kind != Attribute::Kind::kInteger) other_kind_ = true;
  return a->integer;
}

absl::StatusOr<int64_t> ComputationReader::Enumerator(const Operation& op, absl::string_view name,
                                                      int64_t least, int64_t most) {
  const Attribute* a = Find(op, name);
  if (a == nullptr || a->kind != Attribute::Kind::kEnum || a->integer < least ||
      a->integer > most) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with ", name, " of an unknown form"));
  }
  return a->integer;
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
