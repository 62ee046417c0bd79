// SPDX-License-Identifier: Apache-2.0
// What the evaluator costs on one device: CPU time of one execution and peak
// memory.
//
//   bench_evaluator [--rounds=N] [--seconds=S] [--no-fusion] [--json=FILE] PROGRAM.hlo...
//
// Each program runs until N rounds and S seconds are over; the smallest CPU time
// is shown, for machines that do other things too. Memory is the process's
// resident set above what it was before the arguments were made, so it holds
// arguments, results and everything between.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
namespace {

double Seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// "VmRSS" or "VmHWM" of this process in bytes.
int64_t MemoryStatus(absl::string_view key) {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line)) {
    if (absl::string_view(line).substr(0, key.size()) != key) continue;
    int64_t kib = 0;
    std::sscanf(line.c_str() + key.size(), ": %ld", &kib);
    return kib * 1024;
  }
  return 0;
}

// Random inputs, floats of at most 1/4, so that products stay moderate.
std::vector<Tensor> Inputs(const DeviceProgram& program) {
  std::vector<Tensor> inputs = RandomInputs(program.parameters, 1);
  for (Tensor& t : inputs) {
    if (!IsFloat(t.type())) continue;
    std::vector<float> block(4096);
    const int64_t bytes = t.element_bytes();
    for (int64_t i = 0; i < t.num_elements(); i += 4096) {
      const int64_t n = std::min<int64_t>(4096, t.num_elements() - i);
      LoadFloats(t.type(), t.data() + i * bytes, n, block.data());
      for (int64_t j = 0; j < n; ++j) block[j] /= 16;
      StoreFloats(t.type(), block.data(), n, t.MutableData() + i * bytes);
    }
  }
  return inputs;
}

struct Settings {
  int rounds = 3;
  double seconds = 1;
  LowerOptions lower;
  HandlerRegistry handlers;
};

struct Measured {
  double seconds = 0;
  int64_t peak_bytes = 0;
  int rounds = 0;
};

absl::StatusOr<Measured> Run(const std::string& path, const Settings& settings) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, " cannot be opened"));
  auto text = std::make_shared<const std::string>(std::istreambuf_iterator<char>(in),
                                                  std::istreambuf_iterator<char>());
  std::shared_ptr<const DeviceProgram> program;
  {
    SHARDCALL_ASSIGN_OR_RETURN(const Module module,
                               ParseModule(text, std::make_shared<Context>(), path));
    SHARDCALL_ASSIGN_OR_RETURN(program, Lower(module, settings.lower));
  }
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak starts anew
  const int64_t before = MemoryStatus("VmRSS");
  const std::vector<Tensor> inputs = Inputs(*program);
  DeviceContext device;
  device.handlers = &settings.handlers;
  Measured m;
  const double end = Seconds(CLOCK_MONOTONIC) + settings.seconds;
  while (m.rounds < settings.rounds || Seconds(CLOCK_MONOTONIC) < end) {
    const double start = Seconds(CLOCK_PROCESS_CPUTIME_ID);
    SHARDCALL_RETURN_IF_ERROR(Execute(*program, absl::MakeConstSpan(inputs), device).status());
    const double taken = Seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    m.seconds = m.rounds == 0 ? taken : std::min(m.seconds, taken);
    ++m.rounds;
  }
  m.peak_bytes = MemoryStatus("VmHWM") - before;
  return m;
}

int Main(int argc, char** argv) {
  Settings settings;
  if (!RegisterBuiltinHandlers(settings.handlers).ok()) return 1;
  std::string json;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    bool good = true;
    if (absl::ConsumePrefix(&arg, "--rounds=")) {
      good = absl::SimpleAtoi(arg, &settings.rounds);
    } else if (absl::ConsumePrefix(&arg, "--seconds=")) {
      good = absl::SimpleAtod(arg, &settings.seconds);
    } else if (absl::ConsumePrefix(&arg, "--json=")) {
      json = std::string(arg);
    } else if (arg == "--no-fusion") {
      settings.lower.fuse = false;
    } else if (absl::ConsumePrefix(&arg, "--")) {
      good = false;
    } else {
      paths.emplace_back(arg);
    }
    if (!good) {
      std::fprintf(stderr, "bench_evaluator: bad argument %s\n", argv[i]);
      return 2;
    }
  }
  std::string rows;
  std::printf("%12s %10s %7s\n", "CPU ms", "peak MB", "rounds");
  for (const std::string& path : paths) {
    const absl::StatusOr<Measured> m = Run(path, settings);
    if (!m.ok()) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), m.status().ToString().c_str());
      return 1;
    }
    std::printf("%12.3f %10.1f %7d  %s\n", m->seconds * 1e3,
                static_cast<double>(m->peak_bytes) * 1e-6, m->rounds, path.c_str());
    std::fflush(stdout);
    absl::StrAppend(
        &rows, rows.empty() ? "" : ",\n",
        absl::StrFormat("  {\"seconds\": %.9f, \"peak_bytes\": %d}", m->seconds, m->peak_bytes));
  }
  if (!json.empty()) std::ofstream(json) << "[\n" << rows << "\n]\n";
  return 0;
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) { return shardcall::Main(argc, argv); }
