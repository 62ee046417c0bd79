// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_pool.h"

#include <algorithm>
#include <bit>

#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal::stablehlo {
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
  const auto [it, added] =
      string_numbers_.try_emplace(std::string(text), static_cast<uint32_t>(strings_.size()));
  if (added) strings_.emplace_back(text);
  return it->second;
}

uint32_t AttributePool::DialectNumber(absl::string_view name) {
  for (size_t k = 0; k < dialects_.size(); ++k) {
    if (dialects_[k] == name) return static_cast<uint32_t>(k);
  }
  StringNumber(name);
  dialects_.emplace_back(name);
  return static_cast<uint32_t>(dialects_.size() - 1);
}

uint32_t AttributePool::Add(Table* table, absl::string_view dialect, bool custom,
                            const BytecodeSink& bytes) {
  const uint32_t d = DialectNumber(dialect);
  const auto [it, added] =
      table->numbers.try_emplace(std::make_pair(2 * d + (custom ? 1 : 0), bytes.bytes()),
                                 static_cast<uint32_t>(table->entries.size()));
  if (added) table->entries.push_back({d, custom, bytes.bytes()});
  return it->second;
}

uint32_t AttributePool::AddBuiltin(Table* table, uint64_t code, const BytecodeSink& contents) {
  BytecodeSink s;
  s.VarInt(code);
  s.Append(contents.bytes());
  return Add(table, kBuiltin, /*custom=*/true, s);
}

// Attributes.

uint32_t AttributePool::String(absl::string_view text) {
  BytecodeSink s;
  s.VarInt(StringNumber(text));
  return AddBuiltin(&attributes_, codes::kStringAttr, s);
}

uint32_t AttributePool::IntegerOf(int bits, int64_t value) {
  BytecodeSink s;
  s.VarInt(Integer(bits));
  if (bits <= 8) {
    s.Byte(static_cast<uint8_t>(value));
  } else {
    s.SignedVarInt(value);
  }
  return AddBuiltin(&attributes_, codes::kIntegerAttr, s);
}

uint32_t AttributePool::F32(float value) {
  BytecodeSink s;
  s.VarInt(ElementTypeOf(ElementType::kF32));
  s.SignedVarInt(std::bit_cast<uint32_t>(value));
  return AddBuiltin(&attributes_, codes::kFloatAttr, s);
}

uint32_t AttributePool::Unit() {
  return AddBuiltin(&attributes_, codes::kUnitAttr, BytecodeSink());
}

uint32_t AttributePool::TypeAttribute(uint32_t type) {
  BytecodeSink s;
  s.VarInt(type);
  return AddBuiltin(&attributes_, codes::kTypeAttr, s);
}

uint32_t AttributePool::Symbol(absl::string_view name) {
  BytecodeSink s;
  s.VarInt(String(name));
  return AddBuiltin(&attributes_, codes::kFlatSymbolRefAttr, s);
}

uint32_t AttributePool::Array(absl::Span<const uint32_t> items) {
  BytecodeSink s;
  s.VarInt(items.size());
  for (uint32_t item : items) s.VarInt(item);
  return AddBuiltin(&attributes_, codes::kArrayAttr, s);
}

uint32_t AttributePool::Dictionary(Attrs entries) {
  std::sort(entries.begin(), entries.end());
  BytecodeSink s;
  s.VarInt(entries.size());
  for (const auto& [name, value] : entries) {
    s.VarInt(String(name));
    s.VarInt(value);
  }
  return AddBuiltin(&attributes_, codes::kDictionaryAttr, s);
}

uint32_t AttributePool::I64s(absl::Span<const int64_t> values) {
  BytecodeSink s;
  s.VarInt(Integer(64));
  s.VarInt(values.size());
  s.Blob(BytesOf(values));
  return AddBuiltin(&attributes_, codes::kDenseArrayAttr, s);
}

uint32_t AttributePool::Bools(absl::Span<const int64_t> values) {
  BytecodeSink s;
  s.VarInt(Integer(1));
  s.VarInt(values.size());
  std::string bytes;
  for (int64_t v : values) bytes.push_back(v != 0 ? 1 : 0);
  s.Blob(bytes);
  return AddBuiltin(&attributes_, codes::kDenseArrayAttr, s);
}

uint32_t AttributePool::DenseOf(uint32_t tensor, absl::string_view data) {
  BytecodeSink s;
  s.VarInt(tensor);
  s.Blob(data);
  return AddBuiltin(&attributes_, codes::kDenseElementsAttr, s);
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

uint32_t AttributePool::Stablehlo(codes::StablehloAttribute code, const BytecodeSink& contents) {
  BytecodeSink s;
  s.VarInt(code);
  s.Append(contents.bytes());
  return Add(&attributes_, kDialect, /*custom=*/true, s);
}

uint32_t AttributePool::Enum(codes::StablehloAttribute code, uint64_t value) {
  BytecodeSink s;
  s.VarInt(value);
  return Stablehlo(code, s);
}

uint32_t AttributePool::Text(absl::string_view text) {
  BytecodeSink s;
  s.ZeroTerminated(text);
  return Add(&attributes_, kBuiltin, /*custom=*/false, s);
}

// Locations.

uint32_t AttributePool::UnknownLocation() {
  return AddBuiltin(&attributes_, codes::kUnknownLoc, BytecodeSink());
}

uint32_t AttributePool::Named(absl::string_view name, uint32_t inner) {
  BytecodeSink s;
  s.VarInt(String(name));
  s.VarInt(inner);
  return AddBuiltin(&attributes_, codes::kNameLoc, s);
}

uint32_t AttributePool::FileLines(absl::string_view file, const FileRange& range) {
  const int32_t end_line = std::max(range.line, range.end_line);
  const int32_t end_column = range.end_column == 0 ? range.column : range.end_column;
  BytecodeSink s;
  s.VarInt(String(file));
  const bool point = end_line == range.line && end_column == range.column;
  if (!point) s.VarInt(4);  // the number of numbers
  s.VarInt(static_cast<uint64_t>(range.line));
  s.VarInt(static_cast<uint64_t>(range.column));
  if (point) return AddBuiltin(&attributes_, codes::kFileLineColLoc, s);
  s.VarInt(static_cast<uint64_t>(end_column));
  s.VarInt(static_cast<uint64_t>(end_line));
  return AddBuiltin(&attributes_, codes::kFileLineColRange, s);
}

uint32_t AttributePool::CallSite(uint32_t callee, uint32_t caller) {
  BytecodeSink s;
  s.VarInt(callee);
  s.VarInt(caller);
  return AddBuiltin(&attributes_, codes::kCallSiteLoc, s);
}

uint32_t AttributePool::OpName(absl::string_view name) {
  const auto [it, added] =
      op_numbers_.try_emplace(std::string(name), static_cast<uint32_t>(ops_.size()));
  if (added) {
    const size_t dot = name.find('.');
    SHARDCALL_CHECK(dot != absl::string_view::npos);
    ops_.emplace_back(DialectNumber(name.substr(0, dot)), StringNumber(name.substr(dot + 1)));
  }
  return it->second;
}

void AttributePool::WriteTo(BytecodeSink* out) {
  BytecodeSink strings, dialects, offsets, entries;
  strings.VarInt(strings_.size());
  for (size_t k = strings_.size(); k-- > 0;) strings.VarInt(strings_[k].size() + 1);
  for (const std::string& text : strings_) strings.ZeroTerminated(text);

  dialects.VarInt(dialects_.size());
  for (const std::string& name : dialects_) {
    dialects.VarIntWithFlag(StringNumber(name), /*versioned=*/false);
  }
  dialects.VarInt(ops_.size());
  WriteGroups(
      ops_, [](const auto& op) { return op.first; },
      [&](const auto& op) { dialects.VarInt(op.second); }, &dialects);

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

}  // namespace shardcall::inline internal::stablehlo
