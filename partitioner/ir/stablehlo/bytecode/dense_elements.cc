// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/bytecode/dense_elements.h"

#include <algorithm>
#include <cstring>

#include "shardcall/partitioner/ir/stablehlo/bytecode/not_converted.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// Bits that MLIR stores packed, eight to a byte; or 0 or 0xff if all are equal.
std::string Unpacked(absl::string_view bits, size_t count) {
  std::string out(count, '\0');
  const bool all = bits == "\xff";
  for (size_t k = 0; k < count; ++k) {
    out[k] = static_cast<char>(all || ((bits[k / 8] >> (k % 8)) & 1) != 0);
  }
  return out;
}

// Integers of less than a byte have a byte each, whose upper bits do not matter.
void ExtendNarrow(ElementType type, std::string* data) {
  const int bits = ElementTypeBits(type);
  if (!IsInteger(type) || bits >= 8) return;
  for (char& c : *data) {
    const uint8_t shifted = static_cast<uint8_t>(static_cast<uint8_t>(c) << (8 - bits));
    c = IsUnsignedInteger(type) ? static_cast<char>(shifted >> (8 - bits))
                                : static_cast<char>(static_cast<int8_t>(shifted) >> (8 - bits));
  }
}

absl::Status Unknown() { return StablehloNotConverted("dense elements of an unknown form"); }

}  // namespace

absl::StatusOr<DenseElements> ReadDense(const Bytecode& code, const Attribute& a) {
  const bool array = a.kind == Attribute::Kind::kDenseArray;
  const Type& type = code.type(a.type);
  DenseElements out;
  out.type = type.element;
  if ((!array && (a.kind != Attribute::Kind::kDense || type.kind != Type::Kind::kTensor)) ||
      out.type == ElementType::kInvalid || type.has_encoding) {
    return Unknown();
  }
  const bool pred = out.type == ElementType::kPred;
  const size_t bytes = static_cast<size_t>(ElementTypeBytes(out.type)), size = a.data.size();
  out.count = 1;
  if (array) {
    out.dims = {static_cast<int64_t>(size / bytes)};
  } else {
    out.dims.assign(type.dims.begin(), type.dims.end());
  }
  for (int64_t d : out.dims) {
    if (d < 0 || __builtin_mul_overflow(out.count, d, &out.count)) return Unknown();
  }
  const uint64_t count = static_cast<uint64_t>(out.count);
  if (size % bytes == 0 && size / bytes == count) {
    out.data = std::string(a.data);
  } else if (!array && pred && count > 0 && size == (count + 7) / 8) {
    out.data = Unpacked(a.data, count);
  } else if (!array && count > 1 && size == bytes) {
    out.data = std::string(a.data);
    out.is_splat = true;
  } else {
    return Unknown();
  }
  if (pred) {
    for (char& c : out.data) c = static_cast<char>(c != 0);
  }
  ExtendNarrow(out.type, &out.data);
  return out;
}

std::vector<int64_t> DenseElements::Integers() const {
  std::vector<int64_t> out;
  const size_t bytes = static_cast<size_t>(ElementTypeBytes(type));
  for (size_t at = 0; at < data.size(); at += bytes) {
    uint64_t v = 0;
    std::memcpy(&v, data.data() + at, bytes);
    const int shift = 64 - 8 * static_cast<int>(bytes);
    out.push_back(IsSignedInteger(type) ? static_cast<int64_t>(v << shift) >> shift
                                        : static_cast<int64_t>(v));
  }
  if (is_splat) out.resize(static_cast<size_t>(count), out[0]);
  return out;
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
