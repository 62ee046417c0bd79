// SPDX-License-Identifier: Apache-2.0
// What each stage of the partitioner costs: CPU time and heap allocations per
// instruction, memo hit rates, peak memory.
//
//   bench_partition [--json=FILE] [--rounds=N] [--max-allocations=X] [--conflicts=ORDER] PROGRAM...
//
// A PROGRAM is a file of HLO text, or chain:N, a made-up chain of N ops. ORDER is that of conflicts
// over axes, "cheapest" if not given: then "propagate" has all orders and their plans. In each
// round every program runs once, so that ratios between programs are of one
// time; the median over the rounds is shown. Exit code 1 where propagation and
// partitioning allocate more than X times per instruction (beyond a fixed
// number for the tables), or a chain's memo misses grow with its length: the
// counts are checked, times are not.
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "tests/benchmarks/heap_counter.h"

namespace shardcall {
namespace {

enum Stage { kParse, kImport, kPropagate, kPlan, kLocalize, kCleanUp, kPrint, kNumStages };
constexpr std::array<const char*, kNumStages> kStageNames = {
    "parse", "import", "propagate", "plan", "localize", "clean-up", "print"};
// Interners, tables and caches grow to their working size whatever the program.
constexpr double kFixedAllocations = 1500;

double CpuMicroseconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

struct Program {
  std::string name;
  std::shared_ptr<const std::string> text;
  int64_t chain = 0;
  // Of the counted run.
  int64_t instructions = 0, instructions_out = 0, bytes_out = 0;
  std::array<int64_t, kNumStages> allocations{};
  int64_t memo_hits = 0, memo_misses = 0, rule_hits = 0, rule_misses = 0, peak_bytes = 0;
  // By stage, of all timed runs: microseconds.
  std::array<std::vector<double>, kNumStages> times;

  double Median(int stage) const {
    std::vector<double> t = times[stage];
    std::nth_element(t.begin(), t.begin() + t.size() / 2, t.end());
    return t[t.size() / 2];
  }
  double Least(int stage) const {
    return *std::min_element(times[stage].begin(), times[stage].end());
  }
  // Import to clean-up.
  double Total() const {
    std::vector<double> sums(times[kImport].size(), 0);
    for (size_t r = 0; r < sums.size(); ++r) {
      for (int s = kImport; s <= kCleanUp; ++s) sums[r] += times[s][r];
    }
    std::nth_element(sums.begin(), sums.begin() + sums.size() / 2, sums.end());
    return sums[sums.size() / 2];
  }
  int64_t PartitionAllocations() const {
    return allocations[kPropagate] + allocations[kPlan] + allocations[kLocalize];
  }
};

// Dot, bias, activation, residual, again and again, on a mesh of 4 by 2.
std::string ChainText(int64_t n) {
  std::string text = R"(HloModule chain, num_partitions=8
ENTRY main {
  x = f32[512,256]{1,0} parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  w = f32[256,256]{1,0} parameter(1), sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}
)";
  std::string last = "x", before = "x";
  for (int64_t i = 0; i < n; ++i) {
    const std::string name = absl::StrCat("v", i);
    absl::StrAppend(&text, "  ", name, " = f32[512,256]{1,0} ");
    switch (i % 4) {
      case 0:
        absl::StrAppend(&text, "dot(", last,
                        ", w), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
        break;
      case 1: absl::StrAppend(&text, "multiply(", last, ", ", before, ")"); break;
      case 2: absl::StrAppend(&text, "tanh(", last, ")"); break;
      case 3: absl::StrAppend(&text, "add(", last, ", ", before, ")"); break;
    }
    absl::StrAppend(&text, "\n");
    if (i % 4 == 3) before = name;
    last = name;
  }
  absl::StrAppend(&text, "  ROOT out = f32[512,256]{1,0} copy(", last, ")\n}\n");
  return text;
}

// Times the stages, or counts their allocations.
absl::Status RunOnce(Program& p, const TargetRegistry& targets,
                     std::optional<ConflictOrder> conflicts, bool counted) {
  int stage = kParse;
  double mark = 0;
  int64_t count = 0;
  auto end_stage = [&] {
    if (!counted) p.times[stage].push_back(CpuMicroseconds() - mark);
    p.allocations[stage] = bench::HeapAllocations() - count;
    ++stage;
    count = bench::HeapAllocations();
    mark = CpuMicroseconds();
  };
  const int64_t live = bench::HeapBytesLive();
  bench::ResetHeapBytesPeak();
  count = bench::HeapAllocations();
  mark = CpuMicroseconds();
  absl::StatusOr<Module> module = ParseModule(p.text, std::make_shared<Context>(), p.name);
  if (!module.ok()) return module.status();
  p.instructions = module->num_instructions();
  PartitionOptions options;
  options.targets = &targets;
  options.verify_output = false;
  options.conflicts = conflicts;
  options.observe = [&](absl::string_view) { end_stage(); };
  end_stage();
  absl::StatusOr<std::unique_ptr<PartitionedProgram>> result =
      Partition(*std::move(module), options);
  if (!result.ok()) return result.status();
  if (stage != kPrint) return absl::InternalError("not every stage reported its end");
  mark = CpuMicroseconds();
  count = bench::HeapAllocations();
  const std::string text = PrintModule((*result)->local.module);
  end_stage();
  p.bytes_out = static_cast<int64_t>(text.size());
  p.instructions_out = (*result)->local.module.num_instructions();
  p.memo_hits = (*result)->plan.memo_hits;
  p.memo_misses = (*result)->plan.memo_misses;
  p.rule_hits = (*result)->global->rules->hits();
  p.rule_misses = (*result)->global->rules->misses();
  p.peak_bytes = bench::HeapBytesPeak() - live;
  return absl::OkStatus();
}

double Rate(int64_t hits, int64_t misses) {
  return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
}

void PrintTables(const std::vector<Program>& programs) {
  std::printf(
      "CPU time, microseconds per instruction read (ratio: import to clean-up, to the "
      "first program)\n%8s",
      "instrs");
  for (const char* s : kStageNames) std::printf(" %9s", s);
  std::printf(" %9s %9s %7s\n", "imp-clean", "ms", "ratio");
  const double first = programs[0].Total() / static_cast<double>(programs[0].instructions);
  for (const Program& p : programs) {
    const double n = static_cast<double>(p.instructions);
    std::printf("%8lld", static_cast<long long>(p.instructions));
    for (int s = 0; s < kNumStages; ++s) std::printf(" %9.3f", p.Median(s) / n);
    std::printf(" %9.3f %9.3f %7.3f  %s\n", p.Total() / n, p.Total() / 1e3, p.Total() / n / first,
                p.name.c_str());
  }
  std::printf("\nHeap allocations per instruction, memo hits, throughput, peak heap\n%8s", "out");
  for (const char* s : kStageNames) std::printf(" %9s", s);
  std::printf(" %9s %6s %6s %10s %10s %8s\n", "prop+part", "plan", "rules", "parse MB/s",
              "print MB/s", "peak MB");
  for (const Program& p : programs) {
    const double n = static_cast<double>(p.instructions);
    std::printf("%8lld", static_cast<long long>(p.instructions_out));
    for (int s = 0; s < kNumStages; ++s) {
      std::printf(" %9.2f", static_cast<double>(p.allocations[s]) / n);
    }
    std::printf(" %9.2f %6.3f %6.3f %10.1f %10.1f %8.2f  %s\n",
                static_cast<double>(p.PartitionAllocations()) / n, Rate(p.memo_hits, p.memo_misses),
                Rate(p.rule_hits, p.rule_misses),
                static_cast<double>(p.text->size()) / p.Median(kParse),
                static_cast<double>(p.bytes_out) / p.Median(kPrint),
                static_cast<double>(p.peak_bytes) / 1e6, p.name.c_str());
  }
}

std::string Json(const std::vector<Program>& programs) {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::string out = absl::StrCat("{\"max_rss_kb\": ", usage.ru_maxrss, ", \"programs\": [");
  for (size_t i = 0; i < programs.size(); ++i) {
    const Program& p = programs[i];
    absl::StrAppend(
        &out, i ? "," : "", "\n {\"name\": \"", p.name, "\", \"instructions\": ", p.instructions,
        ", \"instructions_out\": ", p.instructions_out, ", \"bytes_in\": ", p.text->size(),
        ", \"bytes_out\": ", p.bytes_out, ", \"rounds\": ", p.times[kParse].size());
    absl::StrAppend(&out, ",\n  \"us\": {");
    for (int s = 0; s < kNumStages; ++s) {
      absl::StrAppend(&out, "\"", kStageNames[s], "\": ", absl::StrFormat("%.1f", p.Median(s)),
                      ", ");
    }
    absl::StrAppend(&out, "\"import to clean-up\": ", absl::StrFormat("%.1f", p.Total()),
                    "},\n  \"least_us\": {");
    for (int s = 0; s < kNumStages; ++s) {
      absl::StrAppend(&out, s ? ", " : "", "\"", kStageNames[s],
                      "\": ", absl::StrFormat("%.1f", p.Least(s)));
    }
    absl::StrAppend(&out, "},\n  \"allocations\": {");
    for (int s = 0; s < kNumStages; ++s) {
      absl::StrAppend(&out, s ? ", " : "", "\"", kStageNames[s], "\": ", p.allocations[s]);
    }
    absl::StrAppend(&out, "},\n  \"plan_memo\": [", p.memo_hits, ", ", p.memo_misses,
                    "], \"rule_memo\": [", p.rule_hits, ", ", p.rule_misses,
                    "], \"peak_heap_bytes\": ", p.peak_bytes, "}");
  }
  return out + "\n]}\n";
}

// The counts that must hold.
bool CountsHold(const std::vector<Program>& programs, double max_allocations) {
  bool ok = true;
  int64_t chain_misses = -1;
  for (const Program& p : programs) {
    const double allowed =
        kFixedAllocations + max_allocations * static_cast<double>(p.instructions);
    if (static_cast<double>(p.PartitionAllocations()) > allowed) {
      std::fprintf(stderr, "%s: %lld heap allocations from propagate to localize, allowed %.0f\n",
                   p.name.c_str(), static_cast<long long>(p.PartitionAllocations()), allowed);
      ok = false;
    }
    if (p.chain == 0) continue;
    if (chain_misses >= 0 && p.memo_misses != chain_misses) {
      std::fprintf(stderr, "%s: %lld decisions, %lld in a chain of another length\n",
                   p.name.c_str(), static_cast<long long>(p.memo_misses),
                   static_cast<long long>(chain_misses));
      ok = false;
    }
    chain_misses = p.memo_misses;
  }
  return ok;
}

int Main(int argc, char** argv) {
  std::string json;
  int rounds = 15;
  double max_allocations = 2;
  std::optional<ConflictOrder> conflicts;
  std::vector<Program> programs;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    bool ok = true;
    if (absl::ConsumePrefix(&arg, "--json=")) {
      json = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--rounds=")) {
      ok = absl::SimpleAtoi(arg, &rounds) && rounds > 0;
    } else if (absl::ConsumePrefix(&arg, "--max-allocations=")) {
      ok = absl::SimpleAtod(arg, &max_allocations);
    } else if (absl::ConsumePrefix(&arg, "--conflicts=")) {
      const auto order = ParseConflictOrder(arg);
      ok = order.ok();
      if (ok) conflicts = *order;
    } else if (absl::ConsumePrefix(&arg, "chain:")) {
      Program p;
      p.name = argv[k];
      ok = absl::SimpleAtoi(arg, &p.chain) && p.chain > 0;
      if (ok) p.text = std::make_shared<const std::string>(ChainText(p.chain));
      programs.push_back(std::move(p));
    } else {
      Program p;
      p.name = std::string(arg.substr(arg.rfind('/') + 1));
      std::ifstream in(argv[k], std::ios::binary);
      ok = in.good();
      p.text = std::make_shared<const std::string>(std::istreambuf_iterator<char>(in),
                                                   std::istreambuf_iterator<char>());
      programs.push_back(std::move(p));
    }
    if (!ok) {
      std::fprintf(stderr, "bench_partition: bad argument or file: %s\n", argv[k]);
      return 2;
    }
  }
  if (programs.empty()) {
    std::fprintf(stderr,
                 "usage: bench_partition [--json=FILE] [--rounds=N] "
                 "[--max-allocations=X] [--conflicts=ORDER] FILE|chain:N ...\n");
    return 2;
  }
  // Each round frees all that it made. Memory that goes back to the system then is mapped and
  // cleared again in the next round, unlike in a process that holds other data, too.
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  TargetRegistry targets;
  if (!RegisterBuiltinTargets(targets).ok()) return 2;
  for (int r = 0; r <= rounds; ++r) {
    const bool counted = r == rounds;
    bench::CountHeap(counted);
    for (size_t k = 0; k < programs.size();) {
      const absl::Status status = RunOnce(programs[k], targets, conflicts, counted);
      if (status.ok()) {
        ++k;
        continue;
      }
      std::fprintf(stderr, "left out: %s: %s\n", programs[k].name.c_str(),
                   std::string(status.message()).c_str());
      programs.erase(programs.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  if (programs.empty()) return 2;
  PrintTables(programs);
  if (!json.empty()) {
    std::ofstream out(json);
    out << Json(programs);
    if (!out) {
      std::fprintf(stderr, "bench_partition: cannot write %s\n", json.c_str());
      return 2;
    }
  }
  return CountsHold(programs, max_allocations) ? 0 : 1;
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) { return shardcall::Main(argc, argv); }
