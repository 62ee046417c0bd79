// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/call_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status CallReader::Unfit(std::string expected, std::string found) const {
  return ToStatus({.code = "E177",
                   .message = absl::StrCat("a call of \"", call_.as<CustomCallAttrs>().target,
                                           "\" does not say what this target needs"),
                   .where = absl::StrCat("%", call_.name),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Write the call as XLA does, or the ops that it stands for"});
}

absl::Status CallReader::BadConfig(std::string expected) const {
  return Unfit(absl::StrCat(expected, " in backend_config"),
               absl::StrCat("\"", call_.backend_config, "\""));
}

const Shape* CallReader::Like(const Dims& dims) const {
  return context().MakeArray(operand(0)->element_type(), dims);
}

absl::Status CallReader::WantOperands(size_t count) const {
  if (operands_.size() != count) {
    return Unfit(absl::StrCat(count, count == 1 ? " operand" : " operands"),
                 absl::StrCat(operands_.size()));
  }
  for (const InstrId o : operands_) {
    const Shape* shape = m_.instr(o).shape;
    if (!shape->IsArray() || shape->IsDynamic()) {
      return Unfit("array operands of fixed sizes", shape->bare()->ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status CallReader::WantResults(int64_t count) const {
  if (call_.shape->IsTuple() && call_.shape->num_leaves() == count) return absl::OkStatus();
  return Unfit(absl::StrCat("a tuple of ", count), call_.shape->bare()->ToString());
}

absl::Status CallReader::ReadConfig() {
  constexpr absl::string_view kForm = "name=number,...";
  absl::string_view rest = call_.backend_config;
  while (!rest.empty()) {
    const size_t equals = rest.find('=');
    if (equals == rest.npos) return BadConfig(std::string(kForm));
    const absl::string_view name = absl::StripAsciiWhitespace(rest.substr(0, equals));
    rest.remove_prefix(equals + 1);
    const bool list = absl::ConsumePrefix(&rest, "[");
    const size_t end = rest.find(list ? ']' : ',');
    if (list && end == rest.npos) return BadConfig(std::string(kForm));
    for (const absl::string_view text : absl::StrSplit(rest.substr(0, end), ',')) {
      int64_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return BadConfig(std::string(kForm));
      config_[name].push_back(value);
    }
    rest.remove_prefix(std::min(end, rest.size()));
    if (list) rest.remove_prefix(1);
    if (!rest.empty() && !absl::ConsumePrefix(&rest, ",")) return BadConfig(std::string(kForm));
  }
  SHARDCALL_ASSIGN_OR_RETURN(dimension_, Number("dimension", operand(0)->rank() - 1));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CallReader::Number(absl::string_view name, int64_t most) const {
  const auto found = config_.find(name);
  if (found != config_.end() && found->second.size() == 1 && found->second[0] >= 0 &&
      found->second[0] <= most) {
    return found->second[0];
  }
  return BadConfig(absl::StrCat(name, "= with a number from 0 to ", most));
}

absl::StatusOr<CallReader::Dims> CallReader::PerDimension(absl::string_view name) const {
  const auto found = config_.find(name);
  if (found != config_.end() && static_cast<int>(found->second.size()) == operand(0)->rank()) {
    return found->second;
  }
  return BadConfig(absl::StrCat(name, "=[..] with ", operand(0)->rank(), " numbers"));
}

}  // namespace internal
}  // namespace shardcall
