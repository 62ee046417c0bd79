// SPDX-License-Identifier: Apache-2.0
// Throughput of reading and printing HLO text, over the files given, each
// repeated until about half a second has passed; the median run counts.
//   bench_ir_text FILE...
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "partitioner/ir/parser.h"
#include "partitioner/ir/printer.h"

namespace {

using Clock = std::chrono::steady_clock;

template <typename F>
double MedianSeconds(F run) {
  std::vector<double> times;
  const auto begin = Clock::now();
  do {
    const auto t0 = Clock::now();
    run();
    times.push_back(std::chrono::duration<double>(Clock::now() - t0).count());
  } while (times.size() < 5 ||
           std::chrono::duration<double>(Clock::now() - begin).count() < 0.5);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  double bytes = 0, parse_seconds = 0, print_seconds = 0;
  std::printf("%10s %8s %12s %12s  file\n", "bytes", "instrs", "parse MB/s", "print MB/s");
  for (int k = 1; k < argc; ++k) {
    std::ifstream in(argv[k], std::ios::binary);
    std::stringstream buffer;
    buffer << in.rdbuf();
    const auto text = std::make_shared<const std::string>(buffer.str());
    int instructions = 0;
    bool ok = true;
    const double parse = MedianSeconds([&] {
      auto module =
          shardcall::ParseModule(text, std::make_shared<shardcall::Context>(), argv[k]);
      ok = module.ok();
      if (ok) instructions = module->num_instructions();
    });
    if (!in || !ok) {
      std::fprintf(stderr, "cannot read %s\n", argv[k]);
      return 1;
    }
    const auto module =
        shardcall::ParseModule(text, std::make_shared<shardcall::Context>(), argv[k]);
    size_t printed = 0;
    const double print =
        MedianSeconds([&] { printed += shardcall::PrintModule(*module).size(); });
    if (printed == 0) return 1;
    const double size = static_cast<double>(text->size());
    std::printf("%10.0f %8d %12.1f %12.1f  %s\n", size, instructions, size / parse / 1e6,
                size / print / 1e6, argv[k]);
    bytes += size;
    parse_seconds += parse;
    print_seconds += print;
  }
  if (argc > 2) {
    std::printf("%10.0f %8s %12.1f %12.1f  all\n", bytes, "", bytes / parse_seconds / 1e6,
                bytes / print_seconds / 1e6);
  }
  return 0;
}
