// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/proto/wire.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>

#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/ignored_fields.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace pb = google::protobuf;

bool ReadVarint(absl::string_view* bytes, uint64_t* out) {
  uint64_t value = 0;
  for (size_t k = 0; k < 10 && k < bytes->size(); ++k) {
    const auto byte = static_cast<unsigned char>((*bytes)[k]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * k);
    if (byte < 0x80) {
      bytes->remove_prefix(k + 1);
      *out = value;
      return true;
    }
  }
  return false;
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendBytesField(uint32_t number, absl::string_view payload, std::string* out) {
  AppendVarint(uint64_t{number} << 3 | static_cast<uint64_t>(Wire::kBytes), out);
  AppendVarint(payload.size(), out);
  out->append(payload.data(), payload.size());
}

bool AppendIntegers(const WireField& field, std::vector<int64_t>* out) {
  if (field.wire == Wire::kVarint) {
    out->push_back(static_cast<int64_t>(field.value));
    return true;
  }
  if (field.wire != Wire::kBytes) return false;
  absl::string_view rest = field.payload;
  uint64_t value;
  while (!rest.empty()) {
    if (!ReadVarint(&rest, &value)) return false;
    out->push_back(static_cast<int64_t>(value));
  }
  return true;
}

bool WireScanner::Fail(std::string what) {
  fault_ = std::move(what);
  return false;
}

bool WireScanner::Next(WireField* field) {
  if (rest_.empty() || !fault_.empty()) return false;
  absl::string_view p = rest_;
  uint64_t tag;
  if (!ReadVarint(&p, &tag)) return Fail("a field number that does not end");
  const uint64_t number = tag >> 3;
  if (number == 0 || number > (1u << 29) - 1) return Fail(absl::StrCat("field number ", number));
  field->number = static_cast<uint32_t>(number);
  field->wire = static_cast<Wire>(tag & 7);
  field->value = 0;
  field->payload = {};
  switch (field->wire) {
    case Wire::kVarint:
      if (!ReadVarint(&p, &field->value)) return Fail("a number that does not end");
      break;
    case Wire::kFixed64:
    case Wire::kFixed32: {
      const size_t size = field->wire == Wire::kFixed64 ? 8 : 4;
      if (p.size() < size) return Fail(absl::StrCat("a number of ", size, " bytes cut short"));
      for (size_t k = size; k-- > 0;) {
        field->value = field->value << 8 | static_cast<unsigned char>(p[k]);
      }
      p.remove_prefix(size);
      break;
    }
    case Wire::kBytes: {
      uint64_t size;
      if (!ReadVarint(&p, &size)) return Fail("a length that does not end");
      if (size > p.size()) {
        return Fail(absl::StrCat("a length of ", size, " bytes where ", p.size(), " are left"));
      }
      field->payload = p.substr(0, size);
      p.remove_prefix(size);
      break;
    }
    default: return Fail(absl::StrCat("wire type ", tag & 7));
  }
  field->record = rest_.substr(0, rest_.size() - p.size());
  rest_ = p;
  return true;
}

const IgnoredField* FindIgnored(absl::Span<const IgnoredField> rows, absl::string_view message,
                                const WireField& field) {
  for (const IgnoredField& row : rows) {
    if (row.message == message && (row.number == 0 || row.number == field.number) &&
        (!row.only_empty || (field.wire == Wire::kBytes && field.payload.empty()))) {
      return &row;
    }
  }
  return nullptr;
}

bool ParseMessage(absl::string_view bytes, pb::MessageLite* message) {
  if (bytes.size() > INT32_MAX) return false;
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(kMaxMessageDepth);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

namespace {

Wire NaturalWire(const pb::FieldDescriptor* f) {
  switch (f->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_FLOAT: return Wire::kFixed32;
    case pb::FieldDescriptor::CPPTYPE_DOUBLE: return Wire::kFixed64;
    case pb::FieldDescriptor::CPPTYPE_STRING:
    case pb::FieldDescriptor::CPPTYPE_MESSAGE: return Wire::kBytes;
    default: return Wire::kVarint;
  }
}

// The fault in a packed field of numbers; empty if there is none.
std::string PackedFault(const pb::FieldDescriptor* f, absl::string_view bytes) {
  const Wire wire = NaturalWire(f);
  if (wire == Wire::kVarint) {
    uint64_t value;
    while (!bytes.empty()) {
      if (!ReadVarint(&bytes, &value)) return "a number that does not end";
    }
    return "";
  }
  const size_t size = wire == Wire::kFixed32 ? 4 : 8;
  return bytes.size() % size == 0
             ? ""
             : absl::StrCat(bytes.size(), " bytes of numbers of ", size, " bytes each");
}

// "field 104 of HloInstructionProto (5 bytes)"
std::string UnknownText(const pb::Descriptor* type, const WireField& field) {
  const pb::FieldDescriptor* known = type->FindFieldByNumber(static_cast<int>(field.number));
  std::string out = absl::StrCat("field ", field.number, " of ", std::string(type->name()), " (");
  if (field.wire == Wire::kBytes) {
    absl::StrAppend(&out, field.payload.size(), " bytes");
  } else {
    absl::StrAppend(&out, field.value);
  }
  if (known != nullptr)
    absl::StrAppend(&out, ", another type than of ", std::string(known->name()));
  return out + ")";
}

// FindWireFault, or FindUnknownField if `unknown`.
WireFault FindFault(const pb::Descriptor* type, absl::string_view bytes, bool unknown) {
  struct Level {
    const pb::Descriptor* type;
    WireScanner scanner;
    size_t base;  // offset of its bytes
    std::string name;
    std::map<uint32_t, int> counts;
  };
  std::vector<Level> levels;
  levels.push_back({type, WireScanner(bytes), 0, "", {}});
  WireFault fault;
  const auto finish = [&](std::string what, std::string name) {
    for (size_t k = 1; k < levels.size() && k < 12; ++k) {
      absl::StrAppend(&fault.path, fault.path.empty() ? "" : ".", levels[k].name);
    }
    if (levels.size() > 12) fault.path += "...";
    if (!name.empty()) absl::StrAppend(&fault.path, fault.path.empty() ? "" : ".", name);
    fault.offset = levels.back().base + levels.back().scanner.offset();
    fault.what = std::move(what);
    return fault;
  };
  while (!levels.empty()) {
    Level& level = levels.back();
    WireField field;
    if (!level.scanner.Next(&field)) {
      if (!level.scanner.fault().empty()) return finish(level.scanner.fault(), "");
      levels.pop_back();
      continue;
    }
    const pb::FieldDescriptor* f = level.type->FindFieldByNumber(static_cast<int>(field.number));
    if (f == nullptr) {
      const std::string message(level.type->name());
      if (!unknown || FindIgnored(kIgnoredFields, message, field) != nullptr) continue;
      fault.unknown = true;
      return finish(UnknownText(level.type, field), "");
    }
    std::string name(f->name());
    if (f->is_repeated()) absl::StrAppend(&name, "[", level.counts[field.number]++, "]");
    const Wire natural = NaturalWire(f);
    if (field.wire != natural) {
      // Numbers may be packed; the library keeps fields with other mismatches as unknown.
      if (f->is_packable() && field.wire == Wire::kBytes) {
        std::string what = PackedFault(f, field.payload);
        if (!what.empty()) return finish(std::move(what), name);
      } else if (unknown) {
        fault.unknown = true;
        return finish(UnknownText(level.type, field), "");
      }
      continue;
    }
    if (f->message_type() == nullptr) continue;
    if (levels.size() >= kMaxMessageDepth) {
      fault.too_deep = true;
      return finish(absl::StrCat("more than ", kMaxMessageDepth, " levels"), name);
    }
    const size_t base = level.base + level.scanner.offset() - field.payload.size();
    levels.push_back({f->message_type(), WireScanner(field.payload), base, std::move(name), {}});
  }
  return fault;
}

}  // namespace

WireFault FindWireFault(const pb::Descriptor* type, absl::string_view bytes) {
  return FindFault(type, bytes, false);
}

WireFault FindUnknownField(const pb::Descriptor* type, absl::string_view bytes) {
  WireFault fault = FindFault(type, bytes, true);
  return fault.unknown ? fault : WireFault();
}

namespace {

using Grouped = std::map<uint32_t, std::string>;

Grouped ByNumber(absl::string_view bytes) {
  Grouped out;
  WireScanner scanner(bytes);
  WireField field;
  while (scanner.Next(&field)) out[field.number].append(field.record.data(), field.record.size());
  return out;
}

uint64_t HashOf(const std::string& bytes) { return std::hash<std::string>()(bytes); }

}  // namespace

Residue Residue::Between(absl::string_view read, absl::string_view written) {
  Residue out;
  if (read == written) return out;
  Grouped r = ByNumber(read), w = ByNumber(written);
  for (auto& [number, bytes] : w) r.try_emplace(number);
  for (auto& [number, bytes] : r) {
    const std::string& now = w[number];
    if (bytes != now) out.fields_.push_back({number, std::move(bytes), HashOf(now)});
  }
  return out;
}

std::string Residue::Apply(absl::string_view written) const {
  if (fields_.empty()) return std::string(written);
  Grouped w = ByNumber(written);
  for (const Field& f : fields_) {
    std::string& now = w[f.number];
    if (HashOf(now) == f.written_hash) now = f.read;
  }
  std::string out;
  for (const auto& [number, bytes] : w) out += bytes;
  return out;
}

std::vector<uint32_t> Residue::Dropped() const {
  static const uint64_t nothing = HashOf("");
  std::vector<uint32_t> out;
  for (const Field& f : fields_) {
    if (f.written_hash != nothing) continue;
    WireScanner scanner(f.read);
    WireField field;
    bool holds = false;
    while (scanner.Next(&field)) holds |= field.wire != Wire::kBytes || !field.payload.empty();
    if (holds) out.push_back(f.number);
  }
  return out;
}

std::vector<uint32_t> Residue::Fields() const {
  std::vector<uint32_t> out;
  for (const Field& f : fields_) out.push_back(f.number);
  return out;
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
