// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/terminal_text.h"

namespace shardcall {

std::string FormatDiagnostic(const Diagnostic& d) {
  std::string out = absl::StrCat(d.code, " ", d.message);
  if (!d.where.empty()) absl::StrAppend(&out, " at ", d.where);
  if (!d.expected.empty() && !d.found.empty()) {
    absl::StrAppend(&out, ": expected ", d.expected, ", found ", d.found);
  } else if (!d.expected.empty()) {
    absl::StrAppend(&out, ": expected ", d.expected);
  } else if (!d.found.empty()) {
    absl::StrAppend(&out, ": found ", d.found);
  }
  if (!d.fix.empty()) absl::StrAppend(&out, ". Fix: ", d.fix);
  if (!d.excerpt.empty()) absl::StrAppend(&out, "\n", d.excerpt);
  // Names of programs and files may hold what steers a terminal.
  return WithoutControls(out);
}

absl::Status ToStatus(const Diagnostic& d, absl::StatusCode code) {
  return absl::Status(code, FormatDiagnostic(d));
}

std::string FailedText(absl::string_view message) {
  return message.empty() ? "failed without a message" : absl::StrCat("failed: ", message);
}

absl::Status In(const absl::Status& status, absl::string_view place) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), "\n  in ", place));
}

absl::string_view DiagnosticCode(absl::string_view text) {
  if (text.size() < 4 || (text[0] != 'E' && text[0] != 'W')) return {};
  size_t end = 1;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  if (end < 4 || (end < text.size() && text[end] != ' ')) return {};
  return text.substr(0, end);
}

}  // namespace shardcall
