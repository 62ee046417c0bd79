// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/arguments.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

std::string Prefix(const HandlerContext& context) {
  std::string prefix = absl::StrCat("target \"", context.target, "\"");
  if (!context.instruction.empty()) absl::StrAppend(&prefix, " (", context.instruction, ")");
  return prefix;
}

// The suggested fix for an error code.
absl::string_view FixOf(absl::string_view code) {
  if (code == "E131") return "Write such a value in the call's backend_config";
  if (code == "E132") return "Give the call these, in this order";
  if (code == "E133") return "Give the call one of that shape";
  if (code == "E134") return "Convert it, or give the call one of that element type";
  return "";
}

}  // namespace

CallArguments::CallArguments(const HandlerContext& context, absl::Span<const BufferView> operands,
                             absl::Span<const BufferView> results, Names operand_names,
                             Names result_names, int optional_operands, int optional_results)
    : context_(context),
      operands_(operands),
      results_(results),
      operand_names_(operand_names.begin(), operand_names.end()),
      result_names_(result_names.begin(), result_names.end()),
      optional_operands_(optional_operands),
      optional_results_(optional_results) {}

std::string CallArguments::Describe(ArgumentPlace place) const {
  return absl::StrCat(place.is_result ? "result " : "operand ", place.index, " (",
                      place.is_result ? result_names_[place.index] : operand_names_[place.index],
                      ")");
}

absl::Status CallArguments::Error(absl::string_view code, std::string message, std::string expected,
                                  std::string found) const {
  return ToStatus({.code = std::string(code),
                   .message = absl::StrCat(Prefix(context_), ": ", message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::string(FixOf(code))});
}

absl::Status CallArguments::CheckCounts() const {
  auto check = [&](absl::string_view what, absl::Span<const BufferView> have, Names names,
                   int optional) -> absl::Status {
    const size_t most = names.size(), least = most - optional;
    if (have.size() < least || have.size() > most) {
      std::vector<std::string> found;
      for (const BufferView& b : have) found.push_back(b.ToString());
      return Error("E132", absl::StrCat("wrong number of ", what, "s"),
                   absl::StrCat(optional > 0 ? absl::StrCat(least, " to ") : "", most, " (",
                                absl::StrJoin(names, ", "), ")"),
                   absl::StrCat(have.size(), " (", absl::StrJoin(found, ", "), ")"));
    }
    for (size_t i = 0; i < have.size(); ++i) {
      if (have[i].data == nullptr && have[i].num_elements() > 0) {
        return Error("E132", absl::StrCat(what, " ", i, " (", names[i], ") has no data"),
                     absl::StrCat(have[i].byte_size(), " bytes"), "none");
      }
    }
    return absl::OkStatus();
  };
  SHARDCALL_RETURN_IF_ERROR(check("operand", operands_, operand_names_, optional_operands_));
  return check("result", results_, result_names_, optional_results_);
}

absl::Status CallArguments::CheckType(ArgumentPlace place,
                                      absl::Span<const ElementType> allowed) const {
  const ElementType type = at(place).type;
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) return absl::OkStatus();
  std::vector<absl::string_view> names;
  for (ElementType t : allowed) names.push_back(ElementTypeName(t));
  return Error("E134", absl::StrCat(Describe(place), " has the wrong element type"),
               absl::StrJoin(names, " or "), at(place).ToString());
}

absl::Status CallArguments::CheckLeastRank(ArgumentPlace place, int least) const {
  if (at(place).rank() >= least) return absl::OkStatus();
  return ShapeError(place, absl::StrCat("rank ", least, " or more"));
}

absl::Status CallArguments::CheckRank(ArgumentPlace place, int rank) const {
  if (at(place).rank() == rank) return absl::OkStatus();
  return ShapeError(place, absl::StrCat("rank ", rank));
}

absl::Status CallArguments::CheckDims(ArgumentPlace place, absl::Span<const int64_t> dims) const {
  const BufferView& buffer = at(place);
  if (absl::MakeConstSpan(buffer.dims) == dims) return absl::OkStatus();
  return ShapeError(place,
                    absl::StrCat(ElementTypeName(buffer.type), "[", absl::StrJoin(dims, ","), "]"));
}

absl::Status CallArguments::ShapeError(ArgumentPlace place, absl::string_view expected) const {
  return Error("E133", absl::StrCat(Describe(place), " has the wrong shape"), std::string(expected),
               at(place).ToString());
}

absl::Status CallArguments::AttributeError(absl::string_view name, absl::string_view expected,
                                           absl::string_view found) const {
  return Error("E131", absl::StrCat("attribute \"", name, "\" has a wrong value"),
               std::string(expected), std::string(found));
}

absl::Status CallArguments::Located(const absl::Status& status) const {
  if (status.ok()) return status;
  const absl::string_view code = DiagnosticCode(status);
  absl::string_view rest = status.message();
  absl::ConsumePrefix(&rest, code);
  return absl::Status(status.code(), absl::StrCat(code, code.empty() ? "" : " ", Prefix(context_),
                                                  ": ", absl::StripLeadingAsciiWhitespace(rest)));
}

}  // namespace internal
}  // namespace shardcall
