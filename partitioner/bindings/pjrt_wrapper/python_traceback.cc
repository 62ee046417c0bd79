// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/python_traceback.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace shardcall {
inline namespace internal {
namespace {

// Python's own library and what is installed beside it, also in a virtual environment.
bool IsOfLibrary(absl::string_view frame) { return absl::StrContains(frame, "/lib/python"); }

}  // namespace

PythonTraceback ReadTraceback(absl::string_view text) {
  constexpr absl::string_view kBegin = "Traceback (most recent call last):\n";
  // An exception while another one is handled has a traceback behind that of the other.
  const size_t begin = text.rfind(kBegin);
  if (begin == absl::string_view::npos) return {std::string(text), ""};
  std::vector<absl::string_view> frames, raised;
  absl::string_view innermost;
  for (absl::string_view line : absl::StrSplit(text.substr(begin + kBegin.size()), '\n')) {
    const bool of_frames = raised.empty() && absl::StartsWith(line, "  ");
    if (!of_frames) {
      raised.push_back(line);
    } else if (absl::StartsWith(line, "  File ")) {  // else it is the source of the frame
      innermost = line;
      if (!IsOfLibrary(line)) frames.push_back(line);
    }
  }
  if (frames.empty() && !innermost.empty()) frames.push_back(innermost);
  const std::string said = absl::StrJoin(raised, "\n");
  return {std::string(absl::StripAsciiWhitespace(said)), absl::StrJoin(frames, "\n")};
}

}  // namespace internal
}  // namespace shardcall
