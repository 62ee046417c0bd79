// SPDX-License-Identifier: Apache-2.0
// Attributes and types, by their codes. What has no code here becomes kUnknown; an operation that
// needs it is not converted.
#include <vector>

#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_codes.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_reader.h"
#include "shardcall/sharding/base/utf8.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using Kind = Attribute::Kind;

using namespace codes;

}  // namespace

std::vector<int64_t> BytecodeReader::SignedList(BytecodeCursor& c) {
  std::vector<int64_t> list(c.Count());
  for (int64_t& v : list) v = c.SignedVarInt();
  return list;
}

void BytecodeReader::ReadAttributesAndTypes(BytecodeCursor offsets, BytecodeCursor data) {
  const uint64_t num_attributes = offsets.VarInt(), num_types = offsets.VarInt();
  struct Entry {
    absl::string_view dialect;
    bool custom;
    absl::string_view bytes;
  };
  std::vector<Entry> entries;
  const size_t limit = sections_[kAttrTypeOffsets].size();
  if (num_attributes > limit || num_types > limit) offsets.Fail();
  while (offsets.ok() && entries.size() < num_attributes + num_types) {
    const uint64_t dialect = offsets.VarInt();
    const size_t count = offsets.Count();
    if (dialect >= dialects_.size() || count == 0) offsets.Fail();
    for (size_t k = 0; k < count && offsets.ok(); ++k) {
      const uint64_t entry = offsets.VarInt();
      entries.push_back({dialects_[dialect], (entry & 1) != 0, data.Take(entry >> 1)});
    }
  }
  intact_ = intact_ && offsets.ok() && data.ok() && entries.size() == num_attributes + num_types;
  if (!intact_) return;
  out_.attributes_.resize(num_attributes);
  out_.types_.resize(num_types);
  // Types first: what an integer's bytes are follows from its type.
  for (size_t k = 0; k < num_types; ++k) {
    const Entry& e = entries[num_attributes + k];
    ReadType(e.dialect, e.custom, e.bytes, &out_.types_[k]);
  }
  SetElementTypes();
  for (size_t k = 0; k < num_attributes; ++k) {
    const Entry& e = entries[k];
    ReadAttribute(e.dialect, e.custom, e.bytes, &out_.attributes_[k]);
  }
  CheckDictionaries();
  RefuseBytesInNames();
  if (intact_) PrintSdyAttributes();
}

void BytecodeReader::ReadAttribute(absl::string_view dialect, bool custom, absl::string_view bytes,
                                   Attribute* a) {
  BytecodeCursor c(bytes);
  if (!custom) {
    a->kind = Kind::kAssembly;
    a->text = c.ZeroTerminated();
    if (!IsUtf8(a->text)) *a = Attribute();
  } else if (dialect == "builtin") {
    const uint64_t code = c.VarInt();
    if (!ReadLocation(code, c, a)) ReadBuiltinAttribute(code, c, a);
  } else if (dialect == "stablehlo") {
    ReadStablehloAttribute(c, a);
  } else if (dialect == "sdy") {
    a->kind = Kind::kSdy;
    a->code = static_cast<uint32_t>(c.VarInt());
    a->data = bytes;
    intact_ = intact_ && c.ok();
    return;
  }
  // Bytes behind what is known belong to a newer form, which may mean something else.
  if (c.ok() && !c.empty()) *a = Attribute();
  intact_ = intact_ && c.ok();
}

// Names of a dictionary are strings in ascending order.
void BytecodeReader::CheckDictionaries() {
  for (const Attribute& a : out_.attributes_) {
    if (a.kind != Kind::kDictionary) continue;
    for (size_t k = 0; k < a.items.size() && intact_; k += 2) {
      const Attribute& name = out_.attributes_[a.items[k]];
      intact_ = name.kind == Kind::kString &&
                (k == 0 || out_.attributes_[a.items[k - 2]].text < name.text);
    }
  }
}

// Names of symbols and locations are text in HLO.
void BytecodeReader::RefuseBytesInNames() {
  if (!has_bytes_) return;
  for (const Attribute& a : out_.attributes_) {
    if (a.kind != Kind::kSymbol && a.kind != Kind::kFileLine && a.kind != Kind::kNamed) continue;
    for (uint32_t item : a.items) {
      utf8_ = utf8_ && out_.attributes_[item].kind != Kind::kBytes;
    }
  }
}

// A number of the type, a byte or of variable width.
void BytecodeReader::ReadNumber(Kind kind, BytecodeCursor& c, Attribute* a) {
  a->type = TypeIndex(c);
  if (!c.ok()) return;
  const ElementType type = out_.type(a->type).element;
  const int bits = type == ElementType::kPred ? 1 : ElementTypeBits(type);
  if (type == ElementType::kInvalid || bits > 64) {
    c = BytecodeCursor({});  // what follows cannot be told
    return;
  }
  a->kind = kind;
  a->integer = bits <= 8 ? static_cast<int8_t>(c.Byte()) : c.SignedVarInt();
  // MLIR writes what stands in 64 bits, without the sign of a narrower integer.
  if (kind == Kind::kInteger && bits < 64 && !IsUnsignedInteger(type) && bits > 1) {
    a->integer =
        static_cast<int64_t>(static_cast<uint64_t>(a->integer) << (64 - bits)) >> (64 - bits);
  }
}

// False if the code is none of a location.
bool BytecodeReader::ReadLocation(uint64_t code, BytecodeCursor& c, Attribute* a) {
  const auto pair = [&] {
    a->items.push_back(AttributeIndex(c));
    a->items.push_back(AttributeIndex(c));
  };
  switch (code) {
    case kUnknownLoc: return true;
    case kCallSiteLoc: a->kind = Kind::kCallSite; return pair(), true;
    case kNameLoc: a->kind = Kind::kNamed; return pair(), true;  // a string, a location
    case kFusedLoc:
    case kFusedLocWithMetadata:
      a->kind = Kind::kFused;
      ReadItems(c, 1, a);
      if (code == kFusedLocWithMetadata) AttributeIndex(c);
      return true;
    case kFileLineColLoc: {
      a->kind = Kind::kFileLine;
      a->items.push_back(AttributeIndex(c));
      const int64_t line = static_cast<int64_t>(c.VarInt());
      const int64_t column = static_cast<int64_t>(c.VarInt());
      a->numbers = {line, column, line, column};
      return true;
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
      return true;
    }
    default: return false;
  }
}

void BytecodeReader::ReadItems(BytecodeCursor& c, size_t per_entry, Attribute* a) {
  a->items.resize(c.Count() * per_entry);
  for (uint32_t& i : a->items) i = AttributeIndex(c);
}

void BytecodeReader::ReadBuiltinAttribute(uint64_t code, BytecodeCursor& c, Attribute* a) {
  switch (code) {
    case kArrayAttr: a->kind = Kind::kArray; return ReadItems(c, 1, a);
    case kDictionaryAttr: a->kind = Kind::kDictionary; return ReadItems(c, 2, a);
    case kStringAttr:
    case kStringAttrWithType:
      a->kind = Kind::kString;
      a->text = String(c);
      if (!IsHloText(a->text)) {
        a->kind = Kind::kBytes;
        std::swap(a->data, a->text);
        has_bytes_ = true;
      }
      if (code == kStringAttrWithType) a->type = TypeIndex(c);
      return;
    case kFlatSymbolRefAttr:
      a->kind = Kind::kSymbol;
      a->items.push_back(AttributeIndex(c));  // a string
      return;
    case kTypeAttr:
      a->kind = Kind::kType;
      a->type = TypeIndex(c);
      return;
    case kUnitAttr: a->kind = Kind::kUnit; return;
    case kIntegerAttr: return ReadNumber(Kind::kInteger, c, a);
    case kFloatAttr: return ReadNumber(Kind::kFloat, c, a);
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
    default: c = BytecodeCursor({});  // of no use here: kUnknown
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
    case kReplicaGroupMeshAxes: {
      a->kind = Kind::kMeshGroups;
      a->items.push_back(AttributeIndex(c));
      const size_t axes = c.Count();
      for (size_t k = 0; k < axes && c.ok(); ++k) a->items.push_back(AttributeIndex(c));
      return;
    }
    case kAxisRef:
      a->kind = Kind::kMeshAxis;
      a->text = String(c);
      if (c.Byte() != 0) a->items.push_back(AttributeIndex(c));
      return;
    case kSubAxisInfo:
      a->kind = Kind::kAxisPart;
      number();
      number();
      return;
    default: c = BytecodeCursor({});  // of no use here: kUnknown
  }
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
