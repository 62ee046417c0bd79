// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_reader.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_codes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using namespace codes;
constexpr int kMaxDepth = 64;

absl::Status Unsupported(std::string what) {
  return ToStatus({.code = "E035",
                   .message = "this StableHLO bytecode cannot be read",
                   .expected = "MLIR bytecode of version 4 or older, all text in UTF-8",
                   .found = std::move(what),
                   .fix = "Convert it to HLO by a PJRT plugin: --converter=FILE"},
                  absl::StatusCode::kUnimplemented);
}

// A section: its id and contents. False at the end.
bool NextSection(BytecodeCursor& c, int* id, absl::string_view* contents) {
  if (c.empty() || !c.ok()) return false;
  const uint8_t head = c.Byte();
  const uint64_t length = c.VarInt();
  *id = head & ~kAligned;
  if (head & kAligned) {
    const uint64_t alignment = c.VarInt();
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) c.Fail();
    while (c.ok() && c.position() % alignment != 0) c.Byte();
  }
  *contents = c.Take(length);
  return c.ok();
}

}  // namespace

absl::StatusOr<Bytecode> BytecodeReader::Read(absl::string_view bytes) {
  SHARDCALL_RETURN_IF_ERROR(ReadSections(bytes));
  const auto damaged = [] {
    return ToStatus({.code = "E035",
                     .message = "the StableHLO bytecode is cut off or damaged",
                     .expected = "one builtin.module in MLIR bytecode",
                     .fix = "Write the module again"});
  };
  ReadStrings(BytecodeCursor(sections_[kStrings]));
  ReadDialects(BytecodeCursor(sections_[kDialects]));
  ReadAttributesAndTypes(BytecodeCursor(sections_[kAttrTypeOffsets]),
                         BytecodeCursor(sections_[kAttrTypes]));
  if (!intact_) return damaged();
  if (!utf8_) return Unsupported("other bytes in a text");
  BytecodeCursor ir(sections_[kIr]);
  Scope scope;
  out_.root_.blocks.resize(1);
  ReadBlock(ir, &scope, 0, &out_.root_.blocks[0]);
  if (!supported_) return Unsupported("successors, or regions in too many levels");
  if (!utf8_) return Unsupported("other bytes in a text");
  if (!ir.ok() || !intact_ || out_.root_.blocks[0].operations.size() != 1 ||
      out_.root().name != "builtin.module" || out_.root().regions.size() != 1) {
    return damaged();
  }
  return std::move(out_);
}

absl::Status BytecodeReader::ReadSections(absl::string_view bytes) {
  BytecodeCursor c(bytes);
  const bool magic = c.Take(4) == kMagic;
  version_ = c.VarInt();
  c.ZeroTerminated();  // the producer
  if (magic && c.ok() && version_ > kNewestVersion) {
    return Unsupported(absl::StrCat("version ", version_));
  }
  int id = 0;
  absl::string_view contents;
  while (NextSection(c, &id, &contents)) {
    if (id < static_cast<int>(sections_.size())) sections_[id] = contents;
  }
  intact_ = magic && c.ok();
  return absl::OkStatus();
}

void BytecodeReader::ReadStrings(BytecodeCursor c) {
  const size_t n = c.Count();
  std::vector<uint64_t> lengths(n);
  for (size_t k = n; k-- > 0;) lengths[k] = c.VarInt();  // with the zero at the end
  strings_.resize(n);
  for (size_t k = 0; k < n; ++k) {
    strings_[k] = c.Take(lengths[k]);
    if (!strings_[k].empty()) strings_[k].remove_suffix(1);
  }
  intact_ = intact_ && c.ok();
}

void BytecodeReader::ReadDialects(BytecodeCursor c) {
  const size_t n = c.Count();
  for (size_t k = 0; k < n && c.ok(); ++k) {
    uint64_t name = c.VarInt();
    const bool versioned = version_ >= kDialectVersions && (name & 1);
    if (version_ >= kDialectVersions) name >>= 1;
    if (name >= strings_.size()) c.Fail();
    if (!c.ok()) break;
    dialects_.push_back(strings_[name]);
    utf8_ = utf8_ && IsHloText(strings_[name]);
    int id;
    absl::string_view version;
    if (versioned) NextSection(c, &id, &version);
  }
  if (version_ >= kElidedLocations && !c.empty()) c.VarInt();  // the number of all names
  while (!c.empty() && c.ok()) {
    const uint64_t dialect = c.VarInt();
    const size_t names = c.Count();
    for (size_t k = 0; k < names && c.ok(); ++k) {
      const absl::string_view name = Text(c);
      if (dialect >= dialects_.size()) c.Fail();
      if (!c.ok()) break;
      out_.names_.push_back(absl::StrCat(dialects_[dialect], ".", name));
      op_names_.push_back(out_.names_.back());
    }
  }
  intact_ = intact_ && c.ok();
}

absl::string_view BytecodeReader::String(BytecodeCursor& c) {
  const uint64_t k = c.VarInt();
  if (k < strings_.size()) return strings_[k];
  c.Fail();
  return {};
}

absl::string_view BytecodeReader::Text(BytecodeCursor& c) {
  const absl::string_view text = String(c);
  utf8_ = utf8_ && IsHloText(text);
  return text;
}

// The configuration of a call is bytes in HLO, too.
void BytecodeReader::RefuseBytesInTexts(const Operation& op) {
  if (!has_bytes_ || op.attributes < 0) return;
  const Attribute& dictionary = out_.attribute(static_cast<uint32_t>(op.attributes));
  if (dictionary.kind != Attribute::Kind::kDictionary) return;
  for (size_t k = 0; k + 1 < dictionary.items.size(); k += 2) {
    if (out_.attribute(dictionary.items[k + 1]).kind != Attribute::Kind::kBytes) continue;
    const absl::string_view name = out_.attribute(dictionary.items[k]).text;
    utf8_ = utf8_ && (name == kBackendConfig || name == kMhloBackendConfig);
  }
}

uint32_t BytecodeReader::AttributeIndex(BytecodeCursor& c) {
  const uint64_t k = c.VarInt();
  if (k >= out_.attributes_.size()) c.Fail();
  return c.ok() ? static_cast<uint32_t>(k) : 0;
}

uint32_t BytecodeReader::TypeIndex(BytecodeCursor& c) {
  const uint64_t k = c.VarInt();
  if (k >= out_.types_.size()) c.Fail();
  return c.ok() ? static_cast<uint32_t>(k) : 0;
}

uint32_t BytecodeReader::Define(BytecodeCursor& c, Scope* scope, uint32_t type) {
  if (scope->next >= scope->end) {
    c.Fail();
    return 0;
  }
  if (scope->next >= scope->values.size()) scope->values.resize(scope->next + 1, kUndefined);
  const uint32_t value = out_.num_values();
  out_.value_types_.push_back(type);
  return scope->values[scope->next++] = value;
}

void BytecodeReader::SkipUseListOrders(BytecodeCursor& c, size_t num_values) {
  const size_t orders = num_values > 1 ? c.Count() : 1;
  for (size_t k = 0; k < orders && c.ok(); ++k) {
    if (num_values > 1) c.VarInt();  // which of the values
    const uint64_t indices = c.VarInt() >> 1;
    for (uint64_t i = 0; i < indices && c.ok(); ++i) c.VarInt();
  }
}

void BytecodeReader::ReadBlock(BytecodeCursor& c, Scope* scope, int depth, Block* block) {
  const uint64_t encoding = c.VarInt();
  if (encoding & 1) {
    const size_t count = c.Count();
    for (size_t k = 0; k < count && c.ok(); ++k) {
      uint32_t type;
      if (version_ >= kElidedLocations) {
        const uint64_t head = c.VarInt();
        if (head >> 1 >= out_.types_.size()) return c.Fail();
        type = static_cast<uint32_t>(head >> 1);
        block->argument_locations.push_back(head & 1 ? AttributeIndex(c) : kNoLocation);
      } else {
        type = TypeIndex(c);
        block->argument_locations.push_back(AttributeIndex(c));
      }
      block->arguments.push_back(Define(c, scope, type));
    }
    if (version_ >= kUseListOrders && c.Byte() != 0) SkipUseListOrders(c, count);
  }
  const uint64_t ops = encoding >> 1;
  for (uint64_t k = 0; k < ops && c.ok(); ++k) {
    block->operations.emplace_back();
    ReadOperation(c, scope, depth, &block->operations.back());
  }
}

void BytecodeReader::ReadOperation(BytecodeCursor& c, Scope* scope, int depth, Operation* op) {
  const uint64_t name = c.VarInt();
  if (name >= op_names_.size()) return c.Fail();
  op->name = op_names_[name];
  const uint8_t mask = c.Byte();
  if (mask > kHasAttributes + kHasResults + kHasOperands + kHasSuccessors + kHasRegions +
                 kHasUseListOrders) {
    supported_ = false;  // a bit of a newer version
    return c.Fail();
  }
  op->location = AttributeIndex(c);
  if (mask & kHasAttributes) op->attributes = AttributeIndex(c);
  RefuseBytesInTexts(*op);
  size_t results = 0;
  if (mask & kHasResults) {
    results = c.Count();
    // Types stand before operands, which cannot be the operation's own results.
    for (size_t k = 0; k < results; ++k) op->results.push_back(TypeIndex(c));
  }
  if (mask & kHasOperands) {
    const size_t operands = c.Count();
    for (size_t k = 0; k < operands && c.ok(); ++k) {
      const uint64_t value = c.VarInt();
      if (value >= scope->values.size() || scope->values[value] == kUndefined) return c.Fail();
      op->operands.push_back(scope->values[value]);
    }
  }
  if (mask & kHasSuccessors) {
    supported_ = false;
    return c.Fail();
  }
  if (mask & kHasUseListOrders) SkipUseListOrders(c, results);
  for (uint32_t& r : op->results) r = Define(c, scope, r);
  if ((mask & kHasRegions) == 0) return;
  const uint64_t encoding = c.VarInt();
  const bool isolated = encoding & 1;
  if (depth >= kMaxDepth) {
    supported_ = false;
    return c.Fail();
  }
  const auto read = [&](BytecodeCursor& from, Scope* values) {
    for (uint64_t k = 0; k < encoding >> 1 && from.ok(); ++k) {
      op->regions.emplace_back();
      ReadRegion(from, values, depth + 1, &op->regions.back());
    }
  };
  if (!isolated) return read(c, scope);
  Scope own;
  if (version_ < kLazyRegions) return read(c, &own);
  // One section has all regions of the operation.
  int id;
  absl::string_view contents;
  if (!NextSection(c, &id, &contents) || id != kIr) return c.Fail();
  BytecodeCursor inner(contents);
  read(inner, &own);
  if (!inner.ok()) c.Fail();
}

// The values of a region are numbered from the number of those of all regions around it.
void BytecodeReader::ReadRegion(BytecodeCursor& c, Scope* scope, int depth, Region* region) {
  const size_t blocks = c.Count();
  if (blocks == 0) return;
  const uint64_t values = c.VarInt();
  if (values > sections_[kIr].size()) return c.Fail();
  const size_t next = scope->next, end = scope->end;
  scope->next = end;
  scope->end = end + values;
  for (size_t k = 0; k < blocks && c.ok(); ++k) {
    region->blocks.emplace_back();
    ReadBlock(c, scope, depth, &region->blocks.back());
  }
  // Its values are seen by no other region, and their numbers are given anew.
  for (size_t k = end; k < scope->next && k < scope->values.size(); ++k) {
    scope->values[k] = kUndefined;
  }
  scope->next = next;
  scope->end = end;
}

absl::StatusOr<Bytecode> Bytecode::Read(absl::string_view bytes) {
  return BytecodeReader().Read(bytes);
}

const Attribute* Bytecode::Find(const Operation& op, absl::string_view name) const {
  return op.attributes < 0 ? nullptr : Find(attribute(static_cast<uint32_t>(op.attributes)), name);
}

const Attribute* Bytecode::Find(const Attribute& dictionary, absl::string_view name) const {
  if (dictionary.kind != Attribute::Kind::kDictionary) return nullptr;
  for (size_t k = 0; k + 1 < dictionary.items.size(); k += 2) {
    if (attribute(dictionary.items[k]).text == name) return &attribute(dictionary.items[k + 1]);
  }
  return nullptr;
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
