// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/proto/message_faults.h"

#include <google/protobuf/descriptor.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/proto/value_reader.h"
#include "shardcall/partitioner/ir/proto/wire.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool MessageFaults::Fail(absl::string_view code, absl::string_view message, absl::string_view field,
                         absl::string_view expected, absl::string_view found,
                         absl::string_view fix) {
  if (!status_.ok()) return false;
  Diagnostic d;
  d.code = std::string(code);
  d.message = std::string(message);
  d.where = file_;
  std::string place;
  if (computation >= 0) {
    place = absl::StrCat("computations[", computation, "]");
    if (instruction >= 0) {
      absl::StrAppend(&place, ".instructions[", instruction, "]");
      constexpr size_t kLongestShown = 200;
      const std::string& name = at_.name();
      if (!name.empty() && name.size() < kLongestShown && IsUtf8(name)) {
        absl::StrAppend(&place, " (%", name, ")");
      }
    }
  }
  if (!field.empty()) {
    absl::StrAppend(&place, place.empty() ? "" : instruction >= 0 ? " " : ".", field);
  }
  if (!place.empty()) absl::StrAppend(&d.where, ": ", place);
  d.expected = std::string(expected);
  d.found = std::string(found);
  d.fix = fix.empty() ? "mend the program that wrote the file, or write the module as text"
                      : std::string(fix);
  status_ = ToStatus(d);
  return false;
}

bool MessageFaults::FailBytes(const google::protobuf::Descriptor* type, absl::string_view bytes) {
  const WireFault fault = FindWireFault(type, bytes);
  if (fault.too_deep) {
    return Fail("E014", "Messages are nested too deeply", fault.path,
                absl::StrCat("at most ", kMaxMessageDepth, " levels"));
  }
  return Fail("E030", "The bytes are not a message of HLO", fault.path, "a whole protobuf message",
              fault.what.empty() ? "bytes that protobuf refuses"
                                 : absl::StrCat(fault.what, ", at byte ", fault.offset),
              looks_like_text ? "HLO text has the ending .hlo or .txt: rename the file"
                              : "the file is cut short or damaged: write it again");
}

namespace {

constexpr absl::string_view kFixUnknown =
    "use a version of shardcall that knows it, or write the program with jaxlib 0.12 or older";

}  // namespace

bool MessageFaults::RefuseUnknownFields(const google::protobuf::Descriptor* type,
                                        absl::string_view bytes) {
  const WireFault fault = FindUnknownField(type, bytes);
  if (fault.what.empty()) return true;
  status_ = absl::OkStatus();
  return Fail("E036", "A field that is not known here, and may change what the program means",
              fault.path, "the fields that XLA has as of jaxlib 0.12", fault.what, kFixUnknown);
}

bool MessageFaults::FailForeignField(const google::protobuf::Descriptor* type, uint32_t number,
                                     absl::string_view opcode) {
  const auto* field = type->FindFieldByNumber(static_cast<int>(number));
  const std::string name = field == nullptr ? "" : std::string(field->name());
  return Fail("E036", absl::StrCat("A field that is not one of ", opcode), name,
              absl::StrCat("the fields of ", opcode),
              absl::StrCat("field ", number, " of ", std::string(type->name())), kFixUnknown);
}

bool MessageFaults::FailEnum(absl::string_view field, int64_t value, Words words) {
  std::string expected;
  for (size_t k = 0; k < words.size(); ++k) {
    if (words[k].empty()) continue;
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", k, " (", words[k], ")");
  }
  return Fail("E019", "Unknown value of an enumeration", field, expected, absl::StrCat(value));
}

bool MessageFaults::FailWord(absl::string_view field, absl::string_view word, Words words) {
  return Fail("E019", "Unknown value of an enumeration", field, absl::StrJoin(words, ", "),
              absl::StrCat("'", absl::CEscape(word).substr(0, 80), "'"));
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
