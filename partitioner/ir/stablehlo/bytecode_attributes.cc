// SPDX-License-Identifier: Apache-2.0
// Attributes and types, by the codes of MLIR's builtin dialect (BuiltinDialectBytecode.td) and of
// StableHLO (StablehloBytecode.cpp). What has no code here becomes kUnknown; an operation that
// needs it is not converted.
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode_reader.h"

namespace shardcall::stablehlo {
namespace {

using Kind = Attribute::Kind;

enum BuiltinAttribute {
  kArrayAttr,
  kDictionaryAttr,
  kStringAttr,
  kStringAttrWithType,
  kFlatSymbolRefAttr,
  kSymbolRefAttr,
  kTypeAttr,
  kUnitAttr,
  kIntegerAttr,
  kFloatAttr,
  kCallSiteLoc,
  kFileLineColLoc,
  kFusedLoc,
  kFusedLocWithMetadata,
  kNameLoc,
  kUnknownLoc,
  kDenseResourceElementsAttr,
  kDenseArrayAttr,
  kDenseElementsAttr,
  kDenseStringElementsAttr,
  kSparseElementsAttr,
  kDistinctAttr,
  kFileLineColRange,
};
enum BuiltinType {
  kInteger,
  kIndex,
  kFunction,
  kBF16,
  kF16,
  kF32,
  kF64,
  kF80,
  kF128,
  kComplex,
  kMemRef,
  kMemRefWithSpace,
  kNone,
  kRankedTensor,
  kRankedTensorWithEncoding,
  kTuple,
  // The codes of 8-bit and narrower floats, as MLIR writes them since 2025; older writers have
  // their names as text.
  kF8E5M2 = 22,
  kF8E4M3,
  kF8E4M3FN,
  kF8E5M2FNUZ,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E3M4,
  kF4E2M1FN,
  kF8E8M0FNU = 32,
};
enum StablehloAttribute {
  kChannelHandle = 1,
  kComparisonDirection,
  kComparisonType,
  kConvDimensionNumbers,
  kDotDimensionNumbers,
  kFftType,
  kGatherDimensionNumbers,
  kPrecision,
  kRngAlgorithm,
  kRngDistribution,
  kScatterDimensionNumbers,
  kTranspose,
  kTypeExtensions,
  kOutputOperandAlias,
};

// Of a signless or unsigned integer; index stands as a 64-bit one in attributes.
ElementType IntegerOf(uint64_t width, uint64_t signedness) {
  constexpr uint64_t kUnsigned = 2;
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

int BitsOf(ElementType t) { return t == ElementType::kPred ? 1 : ElementTypeBits(t); }

// An APInt of known width: a byte, or a signed variable-width integer up to 64 bits.
int64_t ReadInteger(BytecodeCursor& c, int bits) {
  if (bits <= 8) return static_cast<int8_t>(c.Byte());
  return c.SignedVarInt();
}

}  // namespace

std::vector<int64_t> BytecodeReader::SignedList(BytecodeCursor& c) {
  std::vector<int64_t> list(c.Count());
  for (int64_t& v : list) v = c.SignedVarInt();
  return list;
}

void BytecodeReader::ReadAttributesAndTypes(BytecodeCursor offsets, BytecodeCursor data) {
  const uint64_t num_attributes = offsets.VarInt(), num_types = offsets.VarInt();
  struct Entry {
    uint32_t dialect;
    bool custom;
    absl::string_view bytes;
  };
  std::vector<Entry> entries;
  const size_t limit = sections_[3].size();
  if (num_attributes > limit || num_types > limit) offsets.Fail();
  while (offsets.ok() && entries.size() < num_attributes + num_types) {
    const uint64_t dialect = offsets.VarInt();
    const size_t count = offsets.Count();
    if (dialect >= dialects_.size() || count == 0) offsets.Fail();
    for (size_t k = 0; k < count && offsets.ok(); ++k) {
      const uint64_t entry = offsets.VarInt();
      entries.push_back({static_cast<uint32_t>(dialect), (entry & 1) != 0, data.Take(entry >> 1)});
    }
  }
  intact_ = intact_ && offsets.ok() && data.ok() && entries.size() == num_attributes + num_types;
  if (!intact_) return;
  out_.attributes_.resize(num_attributes);
  out_.types_.resize(num_types);
  // Types first: what an integer's bytes are follows from its type.
  for (size_t k = 0; k < num_types; ++k) {
    const Entry& e = entries[num_attributes + k];
    Type& t = out_.types_[k];
    BytecodeCursor c(e.bytes);
    if (!e.custom) {
      const absl::string_view text = c.ZeroTerminated();
      t.element = ElementTypeFromName(absl::AsciiStrToLower(text));
      if (t.element != ElementType::kInvalid) t.kind = Type::Kind::kElement;
    } else if (dialects_[e.dialect] == "builtin") {
      ReadBuiltinType(c, &t);
    } else if (dialects_[e.dialect] == "stablehlo" && c.VarInt() == 0) {
      t.kind = Type::Kind::kToken;
    }
    intact_ = intact_ && c.ok();
  }
  // Complex and tensor types have the type of their elements, which may follow them.
  for (int round = 0; round < 2; ++round) {
    for (Type& t : out_.types_) {
      if (t.element_of < 0) continue;
      const ElementType e = out_.types_[t.element_of].element;
      t.element = !t.is_complex            ? e
                  : e == ElementType::kF32 ? ElementType::kC64
                  : e == ElementType::kF64 ? ElementType::kC128
                                           : ElementType::kInvalid;
    }
  }
  for (size_t k = 0; k < num_attributes; ++k) {
    const Entry& e = entries[k];
    Attribute& a = out_.attributes_[k];
    BytecodeCursor c(e.bytes);
    if (!e.custom) {
      a.kind = Kind::kAssembly;
      a.text = c.ZeroTerminated();
    } else if (dialects_[e.dialect] == "builtin") {
      ReadBuiltinAttribute(c, &a);
    } else if (dialects_[e.dialect] == "stablehlo") {
      ReadStablehloAttribute(c, &a);
    } else if (dialects_[e.dialect] == "sdy") {
      a.kind = Kind::kSdy;
      a.code = static_cast<uint32_t>(c.VarInt());
      a.data = e.bytes;
    }
    intact_ = intact_ && c.ok();
  }
  if (intact_) PrintSdyAttributes();
}

void BytecodeReader::ReadBuiltinType(BytecodeCursor& c, Type* t) {
  t->kind = Type::Kind::kElement;
  switch (c.VarInt()) {
    case kInteger: {
      const uint64_t v = c.VarInt();
      t->element = IntegerOf(v >> 2, v & 3);
      return;
    }
    case kIndex: t->element = ElementType::kS64; return;
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

void BytecodeReader::ReadBuiltinAttribute(BytecodeCursor& c, Attribute* a) {
  const auto items = [&](size_t per_entry) {
    a->items.resize(c.Count() * per_entry);
    for (uint32_t& i : a->items) i = AttributeIndex(c);
  };
  switch (c.VarInt()) {
    case kArrayAttr: a->kind = Kind::kArray; return items(1);
    case kDictionaryAttr: a->kind = Kind::kDictionary; return items(2);
    case kStringAttr:
      a->kind = Kind::kString;
      a->text = String(c);
      return;
    case kStringAttrWithType:
      a->kind = Kind::kString;
      a->text = String(c);
      a->type = TypeIndex(c);
      return;
    case kFlatSymbolRefAttr: {
      a->kind = Kind::kSymbol;
      a->items.push_back(AttributeIndex(c));  // a string
      return;
    }
    case kTypeAttr:
      a->kind = Kind::kType;
      a->type = TypeIndex(c);
      return;
    case kUnitAttr: a->kind = Kind::kUnit; return;
    case kIntegerAttr: {
      a->kind = Kind::kInteger;
      a->type = TypeIndex(c);
      const ElementType t = out_.types_[a->type].element;
      if (t == ElementType::kInvalid) {
        a->kind = Kind::kUnknown;
        return;
      }
      a->integer = ReadInteger(c, BitsOf(t));
      return;
    }
    case kFloatAttr: {
      a->kind = Kind::kFloat;
      a->type = TypeIndex(c);
      const ElementType t = out_.types_[a->type].element;
      if (t == ElementType::kInvalid) {
        a->kind = Kind::kUnknown;
        return;
      }
      a->integer = ReadInteger(c, BitsOf(t));
      return;
    }
    case kCallSiteLoc:
      a->kind = Kind::kCallSite;
      a->items = {AttributeIndex(c), 0};
      a->items[1] = AttributeIndex(c);
      return;
    case kFileLineColLoc: {
      a->kind = Kind::kFileLine;
      a->items.push_back(AttributeIndex(c));
      const int64_t line = static_cast<int64_t>(c.VarInt());
      const int64_t column = static_cast<int64_t>(c.VarInt());
      a->numbers = {line, column, line, column};
      return;
    }
    case kFileLineColRange: {
      // line, column, end column, end line; what is left out equals the start.
      a->kind = Kind::kFileLine;
      a->items.push_back(AttributeIndex(c));
      std::vector<int64_t> n(c.Count());
      for (int64_t& v : n) v = static_cast<int64_t>(c.VarInt());
      n.resize(n.size() < 2 ? 2 : n.size());
      const int64_t end_column = n.size() > 2 ? n[2] : n[1];
      a->numbers = {n[0], n[1], n.size() > 3 ? n[3] : n[0], end_column};
      return;
    }
    case kFusedLoc:
    case kFusedLocWithMetadata: a->kind = Kind::kFused; return items(1);
    case kNameLoc:
      a->kind = Kind::kNamed;
      a->items = {AttributeIndex(c), 0};  // a string, a location
      a->items[1] = AttributeIndex(c);
      return;
    case kDenseArrayAttr:
      a->kind = Kind::kDenseArray;
      a->type = TypeIndex(c);
      c.VarInt();  // the number of elements
      a->data = c.Take(c.VarInt());
      return;
    case kDenseElementsAttr:
      a->kind = Kind::kDense;
      a->type = TypeIndex(c);
      a->data = c.Take(c.VarInt());
      return;
    default: return;
  }
}

void BytecodeReader::ReadStablehloAttribute(BytecodeCursor& c, Attribute* a) {
  a->code = static_cast<uint32_t>(c.VarInt());
  const auto number = [&] { a->numbers.push_back(c.SignedVarInt()); };
  const auto list = [&] { a->lists.push_back(SignedList(c)); };
  switch (a->code) {
    case kComparisonDirection:
    case kComparisonType:
    case kFftType:
    case kPrecision:
    case kRngAlgorithm:
    case kRngDistribution:
    case kTranspose:
      a->kind = Kind::kEnum;
      a->integer = static_cast<int64_t>(c.VarInt());
      return;
    case kChannelHandle:
      a->kind = Kind::kChannel;
      number();
      number();
      return;
    case kConvDimensionNumbers:
      a->kind = Kind::kConvolution;
      for (int part = 0; part < 3; ++part) {
        number();
        number();
        list();
      }
      return;
    case kDotDimensionNumbers:
      a->kind = Kind::kDot;
      for (int k = 0; k < 4; ++k) list();
      return;
    case kGatherDimensionNumbers:
      // offset, collapsed, operand batching, indices batching, start index map
      a->kind = Kind::kGather;
      for (int k = 0; k < 5; ++k) list();
      number();
      return;
    case kScatterDimensionNumbers:
      // update window, inserted, input batching, indices batching, scatter dims to operand dims
      a->kind = Kind::kScatter;
      for (int k = 0; k < 5; ++k) list();
      number();
      return;
    case kOutputOperandAlias:
      a->kind = Kind::kOutputAlias;
      list();
      number();
      list();
      return;
    default: return;
  }
}

}  // namespace shardcall::stablehlo
