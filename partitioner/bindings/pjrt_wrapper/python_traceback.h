// SPDX-License-Identifier: Apache-2.0
// What a framework that is written in Python says of a function that raised.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_PYTHON_TRACEBACK_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_PYTHON_TRACEBACK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

struct PythonTraceback {
  // "ValueError: no such axis": what was raised last. The whole text if it has no traceback.
  std::string raised;
  // Lines such as `  File "model.py", line 12, in partition`, the innermost last: those of files
  // that are in no library, or the innermost alone if all are. Empty without a traceback.
  std::string frames;
};

// Of a text with a traceback as Python's module `traceback` writes it.
PythonTraceback ReadTraceback(absl::string_view text);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_PYTHON_TRACEBACK_H_
