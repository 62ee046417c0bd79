// SPDX-License-Identifier: Apache-2.0
// Version, errors and texts of the C interface.
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/sharding/base/status.h"

// Split into parts once, so that the C strings stay valid.
struct Shardcall_Error {
  absl::StatusCode status;
  std::string text, code, message, fix;
};

namespace shardcall {
inline namespace internal {

Shardcall_Error* ToError(const absl::Status& status) {
  if (status.ok()) return nullptr;
  auto error = std::make_unique<Shardcall_Error>();
  error->status = status.code();
  error->text = std::string(status.message());
  error->code = std::string(DiagnosticCode(status));
  constexpr absl::string_view kFix = ". Fix: ";
  absl::string_view rest = error->text, lines;
  // The fix is that of the first diagnostic; further ones are part of the message.
  size_t end = rest.size();
  for (size_t at = rest.find("\nE"); at != rest.npos && end == rest.size();
       at = rest.find("\nE", at + 1)) {
    if (!DiagnosticCode(rest.substr(at + 1)).empty()) end = at;
  }
  const size_t fix = rest.substr(0, end).rfind(kFix);
  if (fix != rest.npos) {
    const absl::string_view tail = rest.substr(fix + kFix.size());
    error->fix = std::string(tail.substr(0, tail.find('\n')));
    rest = rest.substr(0, fix);
    lines = tail.substr(error->fix.size());  // the excerpt, or further text
  }
  if (!error->code.empty()) rest.remove_prefix(error->code.size() + 1);
  error->message = absl::StrCat(rest, lines);
  return error.release();
}

absl::Status ThrownStatus(absl::string_view who) {
  std::string what = "threw";
  try {
    throw;
  } catch (const std::bad_alloc& e) {
    return OutOfMemoryStatus(e, who);
  } catch (const std::exception& e) {
    what = absl::StrCat("threw: ", e.what());
  } catch (...) {
  }
  return ToStatus({.code = "E121",
                   .message = absl::StrCat("a function that ", who, " called ", what),
                   .fix = "Let it return a code instead"},
                  absl::StatusCode::kInternal);
}

absl::Status BadArgument(absl::string_view function, std::string expected, std::string found) {
  return ToStatus({.code = "E148",
                   .message = absl::StrCat(function, " is called with a wrong argument"),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "see the function in the headers shardcall_c_*.h"});
}

}  // namespace internal
}  // namespace shardcall

extern "C" {

void Shardcall_Version(int32_t* major, int32_t* minor) {
  if (major != nullptr) *major = SHARDCALL_C_MAJOR;
  if (minor != nullptr) *minor = SHARDCALL_C_MINOR;
}

const char* Shardcall_Error_Text(const Shardcall_Error* e) {
  return e == nullptr ? "" : e->text.c_str();
}
const char* Shardcall_Error_Code(const Shardcall_Error* e) {
  return e == nullptr ? "" : e->code.c_str();
}
const char* Shardcall_Error_Message(const Shardcall_Error* e) {
  return e == nullptr ? "" : e->message.c_str();
}
const char* Shardcall_Error_Fix(const Shardcall_Error* e) {
  return e == nullptr ? "" : e->fix.c_str();
}
int32_t Shardcall_Error_Status(const Shardcall_Error* e) {
  return e == nullptr ? 0 : static_cast<int32_t>(e->status);
}
void Shardcall_Error_Destroy(Shardcall_Error* e) { delete e; }

const char* Shardcall_Text_Data(const Shardcall_Text* t) {
  return t == nullptr ? "" : t->text.c_str();
}
size_t Shardcall_Text_Size(const Shardcall_Text* t) { return t == nullptr ? 0 : t->text.size(); }
void Shardcall_Text_Destroy(Shardcall_Text* t) { delete t; }

}  // extern "C"
