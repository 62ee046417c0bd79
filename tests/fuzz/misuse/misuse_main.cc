// SPDX-License-Identifier: Apache-2.0
// Random misuse of the C++ and C entry points (misuse.h):
//
//   misuse [--seed=N] [--count=N | --seconds=S] [--family=NAME] [--one=SEED]
//
// Sequence k has the seed N + k; --one runs one alone, as a failure names it. The
// counts are printed at the end. A crash or a broken demand ends the process, with the
// seed on stderr.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/fuzz/misuse/misuse.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace shardcall::misuse {
namespace {

struct Family {
  const char* name;
  void (*run)(Caller&);
};
constexpr Family kFamilies[] = {{"builders", MisuseBuilders},
                                {"callbacks", MisuseCallbacks},
                                {"registries", MisuseRegistries},
                                {"c", MisuseCInterface},
                                {"runs", MisuseRuns},
                                {"shardings", MisuseShardings},
                                {"entries", MisuseEntries},
                                {"c_entries", MisuseCEntries},
                                {"c_pjrt", MisuseCPjrt},
                                {"collectives", MisuseCollectives}};

char at[128];  // what runs, for the handler of signals

void SayWhere() {
  const ssize_t written = write(2, at, strnlen(at, sizeof(at)));
  (void)written;
}

void Died(int signal) {
  SayWhere();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void CatchDeath() {
  std::signal(SIGABRT, Died);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(SayWhere);  // its own handlers say more
  std::signal(SIGILL, Died);
#else
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, Died);
#endif
}

void RunOne(const Family& family, uint64_t seed, Tally* tally) {
  std::snprintf(at, sizeof(at), "\nmisuse: --family=%s --one=%llu\n", family.name,
                static_cast<unsigned long long>(seed));
  Caller caller(seed, tally);
  family.run(caller);
  ++tally->sequences;
}

int Main(int argc, char** argv) {
  int64_t seed = 1, count = 1000, one = -1;
  double seconds = 0;
  std::string chosen;
  for (int k = 1; k < argc; ++k) {
    const std::string arg = argv[k];
    const std::string value = arg.substr(std::min(arg.size(), arg.find('=') + 1));
    const bool known = absl::StartsWith(arg, "--seed=")      ? absl::SimpleAtoi(value, &seed)
                       : absl::StartsWith(arg, "--count=")   ? absl::SimpleAtoi(value, &count)
                       : absl::StartsWith(arg, "--one=")     ? absl::SimpleAtoi(value, &one)
                       : absl::StartsWith(arg, "--seconds=") ? absl::SimpleAtod(value, &seconds)
                                                             : absl::StartsWith(arg, "--family=");
    if (absl::StartsWith(arg, "--family=")) chosen = value;
    if (!known) {
      std::fprintf(stderr, "unknown flag %s\n", argv[k]);
      return 2;
    }
  }
  CatchDeath();
  const absl::Time end = absl::Now() + absl::Seconds(seconds);
  int64_t done = 0;
  for (const Family& family : kFamilies) {
    if (!chosen.empty() && chosen != family.name) continue;
    Tally tally;
    if (one >= 0) RunOne(family, one, &tally);
    // Families take turns by their share of the time.
    const absl::Time until = chosen.empty() ? end - absl::Seconds(seconds) *
                                                        (std::end(kFamilies) - &family - 1) /
                                                        static_cast<int64_t>(std::size(kFamilies))
                                            : end;
    for (int64_t k = 0; one < 0 && (seconds > 0 ? absl::Now() < until : k < count); ++k) {
      RunOne(family, seed + k, &tally);
    }
    std::string codes;
    for (const auto& [code, n] : tally.codes) absl::StrAppend(&codes, " ", code, ":", n);
    std::printf("%-10s %lld sequences, %lld calls, %lld refused by %zu codes:%s\n", family.name,
                static_cast<long long>(tally.sequences), static_cast<long long>(tally.calls),
                static_cast<long long>(tally.refused), tally.codes.size(), codes.c_str());
    done += tally.sequences;
  }
  return done > 0 ? 0 : 2;
}

}  // namespace
}  // namespace shardcall::misuse

int main(int argc, char** argv) { return shardcall::misuse::Main(argc, argv); }
