// SPDX-License-Identifier: Apache-2.0
// Types of MLIR's builtin dialect, by their codes.
#include <vector>

#include "absl/strings/ascii.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_codes.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_reader.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using namespace codes;

// Of a signless or unsigned integer; index stands as a 64-bit one in attributes.
ElementType IntegerOf(uint64_t width, uint64_t signedness) {
  const bool u = signedness == kUnsigned;
  switch (width) {
    case 1: return ElementType::kPred;
    case 2: return u ? ElementType::kU2 : ElementType::kS2;
    case 4: return u ? ElementType::kU4 : ElementType::kS4;
    case 8: return u ? ElementType::kU8 : ElementType::kS8;
    case 16: return u ? ElementType::kU16 : ElementType::kS16;
    case 32: return u ? ElementType::kU32 : ElementType::kS32;
    case 64: return u ? ElementType::kU64 : ElementType::kS64;
    default: return ElementType::kInvalid;
  }
}

}  // namespace

void BytecodeReader::ReadType(absl::string_view dialect, bool custom, absl::string_view bytes,
                              Type* t) {
  BytecodeCursor c(bytes);
  if (!custom) {
    t->element = ElementTypeFromName(absl::AsciiStrToLower(c.ZeroTerminated()));
    if (t->element != ElementType::kInvalid) t->kind = Type::Kind::kElement;
  } else if (dialect == "builtin") {
    ReadBuiltinType(c, t);
  } else if (dialect == "stablehlo" && c.VarInt() == kTokenType) {
    t->kind = Type::Kind::kToken;
  }
  if (c.ok() && !c.empty()) *t = Type();  // of a newer form
  intact_ = intact_ && c.ok();
}

// Complex and tensor types have the type of their elements, which may stand after them.
void BytecodeReader::SetElementTypes() {
  for (int round = 0; round < 2; ++round) {
    for (Type& t : out_.types_) {
      if (t.element_of < 0) continue;
      const Type& of = out_.type(static_cast<uint32_t>(t.element_of));
      const ElementType e = of.kind == Type::Kind::kElement ? of.element : ElementType::kInvalid;
      t.is_other_integer = of.is_other_integer;
      t.element = !t.is_complex            ? e
                  : e == ElementType::kF32 ? ElementType::kC64
                  : e == ElementType::kF64 ? ElementType::kC128
                                           : ElementType::kInvalid;
    }
  }
}

void BytecodeReader::ReadBuiltinType(BytecodeCursor& c, Type* t) {
  t->kind = Type::Kind::kElement;
  switch (c.VarInt()) {
    case kInteger: {
      const uint64_t v = c.VarInt();
      t->element = IntegerOf(v >> 2, v & 3);
      t->is_other_integer = (v & 3) == kSigned;
      return;
    }
    case kIndex:
      t->element = ElementType::kS64;
      t->is_other_integer = true;
      return;
    case kBF16: t->element = ElementType::kBF16; return;
    case kF16: t->element = ElementType::kF16; return;
    case kF32: t->element = ElementType::kF32; return;
    case kF64: t->element = ElementType::kF64; return;
    case kF8E5M2: t->element = ElementType::kF8E5M2; return;
    case kF8E4M3: t->element = ElementType::kF8E4M3; return;
    case kF8E4M3FN: t->element = ElementType::kF8E4M3FN; return;
    case kF8E5M2FNUZ: t->element = ElementType::kF8E5M2FNUZ; return;
    case kF8E4M3FNUZ: t->element = ElementType::kF8E4M3FNUZ; return;
    case kF8E4M3B11FNUZ: t->element = ElementType::kF8E4M3B11FNUZ; return;
    case kF8E3M4: t->element = ElementType::kF8E3M4; return;
    case kF4E2M1FN: t->element = ElementType::kF4E2M1FN; return;
    case kF8E8M0FNU: t->element = ElementType::kF8E8M0FNU; return;
    case kComplex:
      t->is_complex = true;
      t->element_of = TypeIndex(c);
      return;
    case kRankedTensorWithEncoding:
      t->has_encoding = true;
      AttributeIndex(c);
      [[fallthrough]];
    case kRankedTensor: {
      t->kind = Type::Kind::kTensor;
      const std::vector<int64_t> dims = SignedList(c);
      t->dims.assign(dims.begin(), dims.end());
      t->element_of = TypeIndex(c);
      return;
    }
    case kFunction:
      t->kind = Type::Kind::kFunction;
      t->inputs.resize(c.Count());
      for (uint32_t& i : t->inputs) i = TypeIndex(c);
      t->results.resize(c.Count());
      for (uint32_t& i : t->results) i = TypeIndex(c);
      return;
    case kTuple:
      t->kind = Type::Kind::kTuple;
      t->inputs.resize(c.Count());
      for (uint32_t& i : t->inputs) i = TypeIndex(c);
      return;
    default: t->kind = Type::Kind::kUnknown;
  }
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
