// SPDX-License-Identifier: Apache-2.0
// Errors as absl::Status with a stable code, and the macros that pass them on.
//
// A diagnostic has a code (E101, ...), what is wrong, where, what was expected and found, and one
// fix. Its text is
//   E101 <message>[ at <where>][: expected <expected>, found <found>][. Fix: <fix>]
// and its absl code is chosen by the caller (kInvalidArgument for input that is
// at fault, kUnimplemented, kUnavailable for what the environment lacks).
#ifndef SHARDCALL_SHARDING_BASE_STATUS_H_
#define SHARDCALL_SHARDING_BASE_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct Diagnostic {
  std::string code;        // "E101"; required
  std::string message;     // one sentence without a final period; required
  std::string where = {};  // file:line:column, or the instruction's name
  std::string expected = {};
  std::string found = {};
  std::string fix = {};      // what the user can do, one sentence
  std::string excerpt = {};  // source line and caret, printed on lines of their own
};

std::string FormatDiagnostic(const Diagnostic& d);
absl::Status ToStatus(const Diagnostic& d,
                      absl::StatusCode code = absl::StatusCode::kInvalidArgument);

// The same error with a line "  in <place>" that says where it arose. OK stays OK.
absl::Status In(const absl::Status& status, absl::string_view place);
// The text for a user's function that failed: "failed: <message>", or "failed without a message"
// where its status has none.
std::string FailedText(absl::string_view message);

// The leading "E101" or "W202" of a status message; empty if there is none.
absl::string_view DiagnosticCode(absl::string_view message);
inline absl::string_view DiagnosticCode(const absl::Status& status) {
  return DiagnosticCode(status.message());
}

}  // namespace shardcall

#define SHARDCALL_RETURN_IF_ERROR(expr)                    \
  do {                                                     \
    absl::Status shardcall_status_ = (expr);               \
    if (!shardcall_status_.ok()) return shardcall_status_; \
  } while (false)

#define SHARDCALL_CONCAT_INNER_(a, b) a##b
#define SHARDCALL_CONCAT_(a, b) SHARDCALL_CONCAT_INNER_(a, b)
#define SHARDCALL_ASSIGN_OR_RETURN(lhs, expr) \
  SHARDCALL_ASSIGN_OR_RETURN_IMPL_(SHARDCALL_CONCAT_(shardcall_or_, __LINE__), lhs, expr)
#define SHARDCALL_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                     \
  if (!tmp.ok()) return tmp.status();                    \
  lhs = *std::move(tmp)

// For invariants of shardcall itself, never for checks of input.
#define SHARDCALL_CHECK(cond)                                                       \
  do {                                                                              \
    if (!(cond)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #cond); \
      std::abort();                                                                 \
    }                                                                               \
  } while (false)

#endif  // SHARDCALL_SHARDING_BASE_STATUS_H_
