// SPDX-License-Identifier: Apache-2.0
// Random valid programs against what must hold for each (program_checks.h).
//
//   random_programs [--seed=S] [--count=N] [--seconds=T] [--steps=K] [--emit=DIR]
//                   [--isolate] [--keep=DIR] [--failures=N] [--cases=DIR] [FILE...]
//
// Programs of seeds S, S+1, .., N of them or for T seconds; or the files given.
// On a failure it prints the seed, what failed, and a shrunk program (also kept
// as DIR/SEED.hlo), and stops after N failures (default 1). --isolate checks each
// program in a process of its own, so that a crash or a hang can be shrunk too.
// --emit only writes the programs. --cases writes those that pass with inputs and
// results, for tests/differential/xla_runs. Exit status 1 after a failure.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "tests/fuzz/generator/generator.h"
#include "tests/fuzz/program_checks.h"
#include "tests/support/test_targets.h"
#include "tests/support/write_case.h"

namespace shardcall {
namespace {

constexpr int kMaxSeconds = 60;  // of one isolated check

struct Flags {
  int64_t seed = 1, count = 0, seconds = 0, steps = 0, failures = 1;
  std::string emit, keep, cases;
  bool isolate = false;
  std::vector<std::string> files;
};

char g_current[64] = "";

void TellSeed(int signal) {
  const ssize_t written = write(2, g_current, sizeof(g_current));
  (void)written;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The check in a child process, whose crash or hang is a failure as well.
std::string IsolatedCheck(const std::string& text, CheckCounts* counts,
                          const std::string& reference) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kMaxSeconds);
    CheckCounts mine;
    const std::string why = CheckProgram(text, 1, &mine, reference);
    ssize_t written = write(ends[1], &mine, sizeof(mine));
    written = write(ends[1], why.data(), why.size());
    _exit(written < 0);
  }
  close(ends[1]);
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) answer.append(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.size() < sizeof(CheckCounts)) {
    return absl::StrCat("the process ended with ",
                        WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                                            : absl::StrCat("status ", WEXITSTATUS(status)));
  }
  const auto* mine = reinterpret_cast<const CheckCounts*>(answer.data());
  counts->programs += mine->programs;
  counts->instructions += mine->instructions;
  counts->partitioned += mine->partitioned;
  counts->unsupported += mine->unsupported;
  return answer.substr(sizeof(CheckCounts));
}

// Failures of one kind start alike: codes and numbers aside.
std::string Kind(const std::string& why) {
  std::string kind;
  for (char c : why.substr(0, 60)) {
    if (c < '0' || c > '9') kind.push_back(c);
  }
  return kind.substr(0, 32);
}

int Run(const Flags& flags) {
  CheckCounts counts;
  int failures = 0, written_cases = 0;
  const auto check = [&](const std::string& text, CheckCounts* c,
                         const std::string& reference = "") {
    return flags.isolate ? IsolatedCheck(text, c, reference) : CheckProgram(text, 1, c, reference);
  };
  const auto examine = [&](const std::string& text, const std::string& name,
                           const std::string& reference = "") {
    const std::string why = check(text, &counts, reference);
    if (why.empty()) {
      if (!flags.cases.empty()) {
        RunOptions options;
        options.partition.targets = &TestTargets();
        options.handlers = &TestHandlers();
        const absl::Status written = WriteCase(flags.cases, name, text, options, /*seed=*/1);
        written_cases += written.ok();
      }
      return;
    }
    ++failures;
    std::printf("%s: %s\n", name.c_str(), why.c_str());
    if (!reference.empty()) {  // the pair cannot be shrunk as one text
      if (!flags.keep.empty()) {
        WriteFile(absl::StrCat(flags.keep, "/", name, ".hlo"), text);
        WriteFile(absl::StrCat(flags.keep, "/", name, ".reference.hlo"), reference);
      }
      return;
    }
    const std::string kind = Kind(why);
    const std::string small = ShrinkProgram(text, [&](const std::string& t) {
      CheckCounts ignored;
      return Kind(check(t, &ignored)) == kind;
    });
    CheckCounts ignored;
    std::printf("shrunk, %s\n%s\n", check(small, &ignored).c_str(), small.c_str());
    std::fflush(stdout);
    if (!flags.keep.empty()) WriteFile(absl::StrCat(flags.keep, "/", name, ".hlo"), small);
  };
  for (const std::string& path : flags.files) {
    std::ifstream in(path, std::ios::binary);
    examine(std::string(std::istreambuf_iterator<char>(in), {}), path);
  }
  const std::time_t start = std::time(nullptr);
  for (int64_t k = 0; flags.files.empty() && failures < flags.failures; ++k) {
    if (flags.seconds > 0 ? std::time(nullptr) - start >= flags.seconds : k >= flags.count) break;
    const int64_t seed = flags.seed + k;
    std::snprintf(g_current, sizeof(g_current), "\nin the program of seed %lld\n",
                  static_cast<long long>(seed));
    GeneratorOptions options;
    options.steps =
        flags.steps > 0 ? static_cast<int>(flags.steps) : 4 + static_cast<int>(seed % 16);
    const absl::StatusOr<Module> module = GenerateModule(seed, options);
    if (!module.ok()) {
      std::printf("seed %lld: not generated: %s\n", static_cast<long long>(seed),
                  std::string(module.status().ToString()).c_str());
      ++failures;
      continue;
    }
    const std::string text = PrintModule(*module);
    if (flags.emit.empty()) {
      std::string reference;
      if (absl::StrContains(text, "SPMDFullToShardShape")) {
        options.reference = true;
        const absl::StatusOr<Module> meaning = GenerateModule(seed, options);
        if (meaning.ok()) reference = PrintModule(*meaning);
      }
      examine(text, absl::StrCat("seed", seed), reference);
    } else {
      WriteFile(absl::StrCat(flags.emit, "/seed", seed, ".hlo"), text);
    }
  }
  std::printf("%d programs, %d instructions, %d partitioned, %d unsupported, %d failures\n",
              counts.programs, counts.instructions, counts.partitioned, counts.unsupported,
              failures);
  if (!flags.cases.empty()) std::printf("%d cases written\n", written_cases);
  // A run that examines nothing, or refuses most, shows nothing.
  if (flags.files.empty() && flags.emit.empty() && counts.unsupported * 10 > counts.programs) {
    std::printf("more than a tenth is unsupported\n");
    return 1;
  }
  return failures > 0;
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) {
  shardcall::Flags flags;
  for (int k = 1; k < argc; ++k) {
    const absl::string_view arg = argv[k];
    const std::string value(arg.substr(std::min(arg.size(), arg.find('=') + 1)));
    const std::pair<absl::string_view, int64_t*> numbers[] = {{"--seed=", &flags.seed},
                                                              {"--count=", &flags.count},
                                                              {"--seconds=", &flags.seconds},
                                                              {"--steps=", &flags.steps},
                                                              {"--failures=", &flags.failures}};
    bool known = false;
    for (const auto& [name, out] : numbers) {
      known |= absl::StartsWith(arg, name) && absl::SimpleAtoi(value, out);
    }
    if (absl::StartsWith(arg, "--emit=")) {
      flags.emit = value;
    } else if (absl::StartsWith(arg, "--keep=")) {
      flags.keep = value;
    } else if (absl::StartsWith(arg, "--cases=")) {
      flags.cases = value;
    } else if (arg == "--isolate") {
      flags.isolate = true;
    } else if (!known && absl::StartsWith(arg, "-")) {
      std::fprintf(stderr, "unknown flag %s\n", argv[k]);
      return 2;
    } else if (!known) {
      flags.files.emplace_back(arg);
    }
  }
  for (int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, shardcall::TellSeed);
  return shardcall::Run(flags);
}
