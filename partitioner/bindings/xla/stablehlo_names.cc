// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/stablehlo_names.h"

#include "absl/strings/str_cat.h"

namespace shardcall::inline internal {

const char* StableHloTypeName(ElementType type) {
  switch (type) {
    case ElementType::kPred: return "i1";
    case ElementType::kS8: return "i8";
    case ElementType::kS16: return "i16";
    case ElementType::kS32: return "i32";
    case ElementType::kS64: return "i64";
    case ElementType::kU8: return "ui8";
    case ElementType::kU16: return "ui16";
    case ElementType::kU32: return "ui32";
    case ElementType::kU64: return "ui64";
    case ElementType::kF16: return "f16";
    case ElementType::kBF16: return "bf16";
    case ElementType::kF32: return "f32";
    case ElementType::kF64: return "f64";
    case ElementType::kC64: return "complex<f32>";
    case ElementType::kC128: return "complex<f64>";
    case ElementType::kF8E5M2: return "f8E5M2";
    case ElementType::kF8E4M3FN: return "f8E4M3FN";
    case ElementType::kF8E4M3B11FNUZ: return "f8E4M3B11FNUZ";
    case ElementType::kF8E5M2FNUZ: return "f8E5M2FNUZ";
    case ElementType::kF8E4M3FNUZ: return "f8E4M3FNUZ";
    case ElementType::kF8E4M3: return "f8E4M3";
    case ElementType::kF8E3M4: return "f8E3M4";
    case ElementType::kF8E8M0FNU: return "f8E8M0FNU";
    case ElementType::kS4: return "i4";
    case ElementType::kU4: return "ui4";
    default: return nullptr;
  }
}

std::string StableHloPlainOp(Opcode op) {
  const absl::string_view name = GetOpcodeInfo(op).stablehlo;
  return name.empty() ? "" : absl::StrCat("stablehlo.", name);
}

}  // namespace shardcall::inline internal
