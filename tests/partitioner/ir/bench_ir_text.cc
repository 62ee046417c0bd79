// SPDX-License-Identifier: Apache-2.0
// Speed and memory of reading, verifying and printing HLO text, over the files
// given, each repeated until about half a second has passed. Times are CPU
// times, the smallest of the runs; memory is the heap's peak over reading and
// verifying, the text included, as a multiple of the text.
//   bench_ir_text [--json=OUT] [--once] FILE...
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/benchmarks/heap_counter.h"

namespace {

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename F>
double BestSeconds(bool once, F run) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  int runs = 0;
  do {
    const double t0 = CpuSeconds();
    run();
    best = std::min(best, CpuSeconds() - t0);
  } while (!once &&
           (++runs < 5 || std::chrono::duration<double>(Clock::now() - begin).count() < 0.5));
  return best;
}

struct Row {
  std::string file;
  double bytes = 0, parse = 0, verify = 0, print = 0, memory = 0;
  int instructions = 0;
};

bool Measure(const std::string& file, bool once, Row* row) {
  const int64_t before = shardcall::bench::HeapBytesLive();
  std::string content;
  {
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    if (!in) return false;
    content.resize(in.tellg());
    in.seekg(0);
    in.read(content.data(), static_cast<std::streamsize>(content.size()));
    if (!in) return false;
  }
  const auto text = std::make_shared<const std::string>(std::move(content));
  const auto parse = [&] {
    return shardcall::ParseModule(text, std::make_shared<shardcall::Context>(), file);
  };
  shardcall::bench::ResetHeapBytesPeak();
  const auto module = parse();
  if (!module.ok()) {
    std::fprintf(stderr, "%s\n", std::string(module.status().message()).c_str());
    return false;
  }
  const absl::Status verified = shardcall::VerifyModule(*module, file);
  if (!verified.ok()) {
    std::fprintf(stderr, "%s\n", std::string(verified.message()).c_str());
    return false;
  }
  row->file = file;
  row->bytes = static_cast<double>(text->size());
  row->memory = static_cast<double>(shardcall::bench::HeapBytesPeak() - before) / row->bytes;
  row->instructions = module->num_instructions();
  row->parse = BestSeconds(once, [&] { (void)parse(); });
  row->verify = BestSeconds(once, [&] { (void)shardcall::VerifyModule(*module, file); });
  size_t printed = 0;
  row->print = BestSeconds(once, [&] { printed += shardcall::PrintModule(*module).size(); });
  return printed > 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Row> rows;
  std::string json;
  bool once = false;
  std::printf("%10s %8s %11s %12s %11s %8s  file\n", "bytes", "instrs", "parse MB/s", "verify MB/s",
              "print MB/s", "memory");
  const auto show = [](const Row& r) {
    std::printf("%10.0f %8d %11.1f %12.1f %11.1f %7.1fx  %s\n", r.bytes, r.instructions,
                r.bytes / r.parse / 1e6, r.bytes / r.verify / 1e6, r.bytes / r.print / 1e6,
                r.memory, r.file.c_str());
  };
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    if (absl::ConsumePrefix(&arg, "--json=")) {
      json = std::string(arg);
    } else if (arg == "--once") {
      once = true;
    } else if (Row row; Measure(argv[k], once, &row)) {
      show(row);
      rows.push_back(row);
    } else {
      std::fprintf(stderr, "cannot measure %s\n", argv[k]);
      return 1;
    }
  }
  if (rows.size() > 1) {
    Row all;
    all.file = "all";
    for (const Row& r : rows) {
      all.bytes += r.bytes;
      all.instructions += r.instructions;
      all.parse += r.parse;
      all.verify += r.verify;
      all.print += r.print;
      all.memory = std::max(all.memory, r.memory);
    }
    show(all);
  }
  if (json.empty()) return 0;
  std::ofstream out(json);
  out << "[";
  for (size_t k = 0; k < rows.size(); ++k) {
    const Row& r = rows[k];
    out << (k > 0 ? ",\n" : "\n") << " {\"file\": \"" << r.file << "\", \"bytes\": " << r.bytes
        << ", \"instructions\": " << r.instructions << ", \"parse_s\": " << r.parse
        << ", \"verify_s\": " << r.verify << ", \"print_s\": " << r.print
        << ", \"memory\": " << r.memory << "}";
  }
  out << "\n]\n";
  return out.good() ? 0 : 1;
}
