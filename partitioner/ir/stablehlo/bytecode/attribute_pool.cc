// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_pool.h"

#include <algorithm>
#include <bit>
#include <string>

#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

std::string BytesOf(absl::Span<const int64_t> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
}

// The dialect of an entry, then entries of the same dialect in one group.
template <typename List, typename DialectOf, typename WriteEntry>
void WriteGroups(const List& list, const DialectOf& dialect_of, const WriteEntry& write,
                 BytecodeSink* out) {
  for (size_t k = 0; k < list.size();) {
    size_t end = k;
    while (end < list.size() && dialect_of(list[end]) == dialect_of(list[k])) ++end;
    out->VarInt(dialect_of(list[k]));
    out->VarInt(end - k);
    for (; k < end; ++k) write(list[k]);
  }
}

}  // namespace

uint32_t AttributePool::StringNumber(absl::string_view text) {
  if (const auto it = string_numbers_.find(text); it != string_numbers_.end()) return it->second;
  const uint32_t number = static_cast<uint32_t>(strings_.size());
  strings_.push_back({arena_.Copy(text)});
  string_numbers_.emplace(strings_.back().text, number);
  return number;
}

uint32_t AttributePool::DialectNumber(absl::string_view name) {
  for (size_t k = 0; k < dialects_.size(); ++k) {
    if (dialects_[k] == name) return static_cast<uint32_t>(k);
  }
  dialects_.push_back(arena_.Copy(name));
  return static_cast<uint32_t>(dialects_.size() - 1);
}

uint32_t AttributePool::Add(Table* table, uint32_t dialect, bool custom,
                            const BytecodeSink& bytes) {
  const uint32_t kind = 2 * dialect + (custom ? 1 : 0);
  if (const auto it = table->numbers.find({kind, bytes.bytes()}); it != table->numbers.end()) {
    return it->second;
  }
  const uint32_t number = static_cast<uint32_t>(table->entries.size());
  table->entries.push_back({dialect, custom, arena_.Copy(bytes.bytes())});
  table->numbers.emplace(std::make_pair(kind, table->entries.back().bytes), number);
  return number;
}

// Attributes.

uint32_t AttributePool::String(absl::string_view text) {
  const uint32_t number = StringNumber(text);
  if (strings_[number].attribute < 0) {
    BytecodeSink s(codes::kStringAttr);
    s.VarInt(number);
    strings_[number].attribute = AddBuiltin(&attributes_, s);
  }
  return static_cast<uint32_t>(strings_[number].attribute);
}

uint32_t AttributePool::IntegerOf(int bits, int64_t value) {
  BytecodeSink s(codes::kIntegerAttr);
  s.VarInt(Integer(bits));
  if (bits <= 8) {
    s.Byte(static_cast<uint8_t>(value));
  } else {
    s.SignedVarInt(value);
  }
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::F32(float value) {
  BytecodeSink s(codes::kFloatAttr);
  s.VarInt(ElementTypeOf(ElementType::kF32));
  s.SignedVarInt(std::bit_cast<uint32_t>(value));
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::Unit() { return AddBuiltin(&attributes_, BytecodeSink(codes::kUnitAttr)); }

uint32_t AttributePool::TypeAttribute(uint32_t type) {
  BytecodeSink s(codes::kTypeAttr);
  s.VarInt(type);
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::Symbol(absl::string_view name) {
  BytecodeSink s(codes::kFlatSymbolRefAttr);
  s.VarInt(String(name));
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::Array(absl::Span<const uint32_t> items) {
  BytecodeSink s(codes::kArrayAttr);
  s.VarInt(items.size());
  for (uint32_t item : items) s.VarInt(item);
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::Dictionary(Attrs entries) {
  std::sort(entries.begin(), entries.end());
  BytecodeSink s(codes::kDictionaryAttr);
  s.VarInt(entries.size());
  for (const auto& [name, value] : entries) {
    s.VarInt(String(name));
    s.VarInt(value);
  }
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::I64s(absl::Span<const int64_t> values) {
  BytecodeSink s(codes::kDenseArrayAttr);
  s.VarInt(Integer(64));
  s.VarInt(values.size());
  s.Blob(BytesOf(values));
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::Bools(absl::Span<const int64_t> values) {
  BytecodeSink s(codes::kDenseArrayAttr);
  s.VarInt(Integer(1));
  s.VarInt(values.size());
  std::string bytes;
  for (int64_t v : values) bytes.push_back(v != 0 ? 1 : 0);
  s.Blob(bytes);
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::DenseOf(uint32_t tensor, absl::string_view data) {
  BytecodeSink s(codes::kDenseElementsAttr);
  s.VarInt(tensor);
  s.Blob(data);
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::Index(absl::Span<const int64_t> values) {
  const int64_t n = static_cast<int64_t>(values.size());
  return DenseOf(Tensor({n}, Index()), BytesOf(values));
}

uint32_t AttributePool::Matrix(absl::Span<const int64_t> elements, int64_t columns) {
  const int64_t rows = columns == 0 ? 0 : static_cast<int64_t>(elements.size()) / columns;
  return DenseOf(Tensor({rows, columns}, Integer(64)), BytesOf(elements));
}

uint32_t AttributePool::Dense(const Shape* shape, absl::string_view data) {
  if (shape->element_type() != ElementType::kPred) return DenseOf(Type(shape), data);
  // Bits are packed, and equal ones fill a byte.
  if (data.size() == 1 && shape->num_elements() > 1) {
    return DenseOf(Type(shape), data[0] != 0 ? "\xff" : absl::string_view("\0", 1));
  }
  std::string bits((data.size() + 7) / 8, '\0');
  for (size_t k = 0; k < data.size(); ++k) {
    if (data[k] != 0) bits[k / 8] = static_cast<char>(bits[k / 8] | (1 << (k % 8)));
  }
  return DenseOf(Type(shape), bits);
}

uint32_t AttributePool::Stablehlo(const BytecodeSink& contents) {
  return Add(&attributes_, kStablehlo, /*custom=*/true, contents);
}

uint32_t AttributePool::Enum(codes::StablehloAttribute code, uint64_t value) {
  BytecodeSink s(code);
  s.VarInt(value);
  return Stablehlo(s);
}

uint32_t AttributePool::Text(absl::string_view text) {
  BytecodeSink s;
  s.ZeroTerminated(text);
  return Add(&attributes_, kBuiltin, /*custom=*/false, s);
}

// Locations.

uint32_t AttributePool::UnknownLocation() {
  return AddBuiltin(&attributes_, BytecodeSink(codes::kUnknownLoc));
}

uint32_t AttributePool::Named(absl::string_view name, uint32_t inner) {
  BytecodeSink s(codes::kNameLoc);
  s.VarInt(String(name));
  s.VarInt(inner);
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::FileLines(absl::string_view file, const FileRange& range) {
  const int32_t end_line = std::max(range.line, range.end_line);
  const int32_t end_column = range.end_column == 0 ? range.column : range.end_column;
  const bool point = end_line == range.line && end_column == range.column;
  BytecodeSink s(point ? codes::kFileLineColLoc : codes::kFileLineColRange);
  s.VarInt(String(file));
  if (!point) s.VarInt(4);  // the number of numbers
  s.VarInt(static_cast<uint64_t>(range.line));
  s.VarInt(static_cast<uint64_t>(range.column));
  if (point) return AddBuiltin(&attributes_, s);
  s.VarInt(static_cast<uint64_t>(end_column));
  s.VarInt(static_cast<uint64_t>(end_line));
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::CallSite(uint32_t callee, uint32_t caller) {
  BytecodeSink s(codes::kCallSiteLoc);
  s.VarInt(callee);
  s.VarInt(caller);
  return AddBuiltin(&attributes_, s);
}

uint32_t AttributePool::OpName(absl::string_view name) {
  if (const auto it = op_numbers_.find(name); it != op_numbers_.end()) return it->second;
  const size_t dot = name.find('.');
  SHARDCALL_CHECK(dot != absl::string_view::npos);
  const uint32_t number = static_cast<uint32_t>(ops_.size());
  ops_.emplace_back(DialectNumber(name.substr(0, dot)), StringNumber(name.substr(dot + 1)));
  op_numbers_.emplace(arena_.Copy(name), number);
  return number;
}

void AttributePool::WriteTo(BytecodeSink* out) {
  BytecodeSink strings, dialects, offsets, entries;
  dialects.VarInt(dialects_.size());
  for (absl::string_view name : dialects_) {
    dialects.VarIntWithFlag(StringNumber(name), /*versioned=*/false);
  }
  dialects.VarInt(ops_.size());
  WriteGroups(
      ops_, [](const auto& op) { return op.first; },
      [&](const auto& op) { dialects.VarInt(op.second); }, &dialects);

  strings.VarInt(strings_.size());
  for (size_t k = strings_.size(); k-- > 0;) strings.VarInt(strings_[k].text.size() + 1);
  for (const StringEntry& s : strings_) strings.ZeroTerminated(s.text);

  offsets.VarInt(attributes_.entries.size());
  offsets.VarInt(types_.entries.size());
  for (const Table* table : {&attributes_, &types_}) {
    WriteGroups(
        table->entries, [](const Entry& e) { return e.dialect; },
        [&](const Entry& e) {
          offsets.VarIntWithFlag(e.bytes.size(), e.custom);
          entries.Append(e.bytes);
        },
        &offsets);
  }
  out->Section(codes::kStrings, strings.bytes());
  out->Section(codes::kDialects, dialects.bytes());
  out->Section(codes::kAttrTypes, entries.bytes());
  out->Section(codes::kAttrTypeOffsets, offsets.bytes());
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
