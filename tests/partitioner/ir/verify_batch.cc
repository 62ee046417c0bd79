// SPDX-License-Identifier: Apache-2.0
// Reads many HLO modules from stdin, each followed by a line "//==", and prints
// one line for each: "ok", or the diagnostic of the parser or the verifier.
// Serves the differential test of the verifier against XLA's.
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"

int main() {
  std::ios::sync_with_stdio(false);
  const std::string all{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  constexpr absl::string_view kEnd = "\n//==\n";
  for (absl::string_view rest = all; !rest.empty();) {
    const size_t end = rest.find(kEnd);
    const absl::string_view text = rest.substr(0, end);
    rest = end == absl::string_view::npos ? "" : rest.substr(end + kEnd.size());
    const auto module = shardcall::ParseModule(std::make_shared<const std::string>(text),
                                               std::make_shared<shardcall::Context>(), "m");
    const absl::Status status =
        module.ok() ? shardcall::VerifyModule(*module, "m") : module.status();
    std::cout << (status.ok() ? "ok" : absl::StrReplaceAll(status.message(), {{"\n", "\\n"}}))
              << "\n";
  }
  return 0;
}
