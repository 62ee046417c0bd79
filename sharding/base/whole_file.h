// SPDX-License-Identifier: Apache-2.0
// Files are read and written whole. Every file that shardcall writes for a user is written by
// ReplaceFile, so that all of them keep the same promises.
#ifndef SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_
#define SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/max_input.h"

namespace shardcall {
inline namespace internal {

// The error `code`, E060 or E061, that says that a file cannot be `what`: "read" or "written", and
// why, where `error` is not 0 but a value of errno.
absl::Status FileError(const char* code, const std::string& path, const char* what, int error = 0);

// E064, unless a file of `bytes` bytes may be read.
absl::Status CheckInputSize(const std::string& name, int64_t bytes, int64_t max_input);

// E060 if the file cannot be read, which includes a directory, and E064 if it is larger than
// `max_input`. Nothing is read of a regular file that is too large; of a pipe or a device, no more
// than the limit.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t max_input = kMaxInput);
// The same of an open stream, such as standard input.
absl::StatusOr<std::string> ReadWholeStream(std::FILE* stream, const std::string& name,
                                            int64_t max_input = kMaxInput);

// Writes a file whole or not at all. `write` gets the descriptor of an empty regular file, which it
// can seek in and does not close; once it returns OK, that file takes the place of `path`:
// - A file that is there keeps its mode, and its owner and group as far as this user may give files
//   away; one that this user may not write to is not replaced. A new file has mode 0666 less the
//   umask. Other hard links to the old file keep the old content.
// - A symbolic link stays, and the file it leads to is replaced, or made where there is none.
// - A device or a pipe, and an open file named through /proc, is never replaced: the bytes are
//   copied to it at the end.
// Until then the bytes are in a file beside it whose name ends with ".part".
// The error of `write`, or E061, whose reason is then in errno. Any thread may call it.
absl::Status ReplaceFile(const std::string& path, absl::FunctionRef<absl::Status(int file)> write);

// ReplaceFile with these bytes.
absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes);

// All bytes to a descriptor; false where it does not take them, which errno tells.
bool WriteAll(int file, absl::string_view bytes);

// From now on a signal that ends this process by its default (SIGHUP, SIGINT, SIGTERM, SIGXFSZ and
// others) first removes the unfinished files of ReplaceFile, then ends the process as before. A
// signal that is ignored or has a handler keeps that. For commands: a library leaves the signals of
// its process alone.
void RemovePartFilesOnSignals();
// Whether the signal does no more than that, or than the default.
bool EndsTheProcess(int signal_number);
// Removes them now. May be called in a signal handler of a process that is about to end.
void RemovePartFiles();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_
