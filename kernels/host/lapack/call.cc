// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/lapack/call.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/math/blas.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace lapack {
namespace {

// "L or U" of "LU".
std::string Spelt(absl::string_view letters) {
  std::string text;
  for (char c : letters) {
    absl::StrAppend(&text, text.empty() ? "" : " or ", std::string(1, c), " (", static_cast<int>(c),
                    ")");
  }
  return text;
}

}  // namespace

absl::Status Call::Begin(ElementType type, Names attributes) {
  UseOneBlasThread();
  SHARDCALL_RETURN_IF_ERROR(args_.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args_.CheckType(Operand(0), {type}));
  SHARDCALL_RETURN_IF_ERROR(args_.CheckLeastRank(Operand(0), 2));
  const std::vector<int64_t>& dims = args_.operand(0).dims;
  batch_dims_.assign(dims.begin(), dims.end() - 2);
  for (int64_t d : batch_dims_) batch_ *= d;
  for (int64_t d : {dims[dims.size() - 2], dims.back()}) {
    if (d > INT32_MAX) return args_.ShapeError(Operand(0), "matrices below 2^31 rows and columns");
  }
  rows_ = static_cast<int>(dims[dims.size() - 2]);
  columns_ = static_cast<int>(dims.back());
  return args_.Located(context_.attribute_map().OnlyKnown(attributes));
}

absl::Status Call::CheckSquare() const {
  return rows_ == columns_ ? absl::OkStatus() : args_.ShapeError(Operand(0), "square matrices");
}

absl::Status Call::Check(ArgumentPlace place, ElementType type,
                         absl::Span<const int64_t> inner) const {
  SHARDCALL_RETURN_IF_ERROR(args_.CheckType(place, {type}));
  std::vector<int64_t> dims = batch_dims_;
  dims.insert(dims.end(), inner.begin(), inner.end());
  for (int64_t d : inner) {
    if (d > INT32_MAX) return args_.ShapeError(place, "matrices below 2^31 rows and columns");
  }
  return args_.CheckDims(place, dims);
}

absl::StatusOr<char> Call::Letter(absl::string_view name, absl::string_view allowed) const {
  SHARDCALL_ASSIGN_ATTRIBUTE(const int64_t value, args_, context_.attribute_map().GetInt(name, -1));
  if (value <= 0 || value > 127 || allowed.find(static_cast<char>(value)) == allowed.npos) {
    return args_.AttributeError(name, Spelt(allowed), value < 0 ? "none" : absl::StrCat(value));
  }
  return static_cast<char>(value);
}

absl::StatusOr<int> Call::Int(absl::string_view name, int64_t fallback) const {
  SHARDCALL_ASSIGN_ATTRIBUTE(const int64_t value, args_,
                             context_.attribute_map().GetInt(name, fallback));
  if (value < INT32_MIN || value > INT32_MAX) {
    return args_.AttributeError(name, "an integer of 32 bits", absl::StrCat(value));
  }
  return static_cast<int>(value);
}

absl::StatusOr<bool> Call::Bool(absl::string_view name) const {
  SHARDCALL_ASSIGN_ATTRIBUTE(const bool value, args_,
                             context_.attribute_map().GetBool(name, false));
  return value;
}

void Call::CopyOperand(int k, int r) const {
  const BufferView& from = args_.operand(k);
  const BufferView& to = args_.result(r);
  if (from.data != to.data && from.byte_size() > 0) {
    std::memcpy(to.data, from.data, static_cast<size_t>(from.byte_size()));
  }
}

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall
