// SPDX-License-Identifier: Apache-2.0
// How far plans are from the best ones: small random programs, each planned by the partitioner and
// by exhaustive search.
//
//   plan_search [--seed=S] [--count=N] [--most=P] [--search=none] [--show=R]
//               [--geometric_mean=G] [--worst=W] [FILE...]
//
// N programs that have at most P states in all, from seed S on; or the files. Prints those whose
// plan takes R times the time of the best or more, and a summary. Exit status 1 if the geometric
// mean of the ratios exceeds G, or one of them W.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/spmd/plan/state_search.h"
#include "tests/plan_search/search.h"
#include "tests/plan_search/small_graphs.h"

namespace shardcall {
namespace {

struct Flags {
  int64_t seed = 1, count = 100, most = 10000;
  double show = 1e9, geometric_mean = 1e9, worst = 1e9;
  StateSearch search = StateSearch::kSmall;
  std::vector<std::string> files;
};

class Summary {
 public:
  // Returns false if the program was not searched.
  bool Add(const std::string& name, const std::string& text, const Flags& flags) {
    const absl::StatusOr<SearchResult> found = SearchPlans(text, flags.most, flags.search);
    if (!found.ok()) {
      std::printf("%s: %s\n%s", name.c_str(), found.status().ToString().c_str(), text.c_str());
      ++errors_;
      return true;
    }
    if (found->tried == 0) return false;
    const double ratio = found->best_seconds == 0 ? 1 : found->seconds / found->best_seconds;
    logs_ += std::log(ratio);
    worst_ = std::max(worst_, ratio);
    best_ += ratio == 1;
    above_ += ratio > 1.05;
    ++count_;
    if (ratio >= flags.show) {
      std::printf("%s: %.3f, %.1f us in place of %.1f, %.0f bytes in place of %.0f\n%s%s\n",
                  name.c_str(), ratio, found->seconds * 1e6, found->best_seconds * 1e6,
                  found->bytes, found->best_bytes, found->best.c_str(), text.c_str());
      std::fflush(stdout);
    }
    return true;
  }
  int count() const { return count_; }

  int Print(const Flags& flags) const {
    const double mean = count_ == 0 ? 1 : std::exp(logs_ / count_);
    std::printf(
        "%d programs: %d as the best, %d above 1.05, geometric mean %.4f, worst %.3f, %d errors\n",
        count_, best_, above_, mean, worst_, errors_);
    return errors_ > 0 || mean > flags.geometric_mean || worst_ > flags.worst;
  }

 private:
  int count_ = 0, best_ = 0, above_ = 0, errors_ = 0;
  double logs_ = 0, worst_ = 1;
};

bool ReadSearch(absl::string_view text, StateSearch* search) {
  const absl::StatusOr<StateSearch> read = ParseStateSearch(text);
  if (read.ok()) *search = *read;
  return read.ok();
}

int Run(const Flags& flags) {
  Summary summary;
  for (const std::string& path : flags.files) {
    std::ifstream in(path, std::ios::binary);
    summary.Add(path, std::string(std::istreambuf_iterator<char>(in), {}), flags);
  }
  for (int64_t seed = flags.seed; flags.files.empty() && summary.count() < flags.count; ++seed) {
    const std::string text = SmallGraph(seed, {});
    if (!text.empty()) summary.Add(absl::StrCat("seed ", seed), text, flags);
  }
  return summary.Print(flags);
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) {
  shardcall::Flags flags;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    if (!absl::ConsumePrefix(&arg, "--")) {
      flags.files.emplace_back(arg);
      continue;
    }
    const size_t equals = arg.find('=');
    const absl::string_view name = arg.substr(0, equals), value = arg.substr(equals + 1);
    const bool read = name == "seed"             ? absl::SimpleAtoi(value, &flags.seed)
                      : name == "count"          ? absl::SimpleAtoi(value, &flags.count)
                      : name == "most"           ? absl::SimpleAtoi(value, &flags.most)
                      : name == "show"           ? absl::SimpleAtod(value, &flags.show)
                      : name == "geometric_mean" ? absl::SimpleAtod(value, &flags.geometric_mean)
                      : name == "worst"          ? absl::SimpleAtod(value, &flags.worst)
                      : name == "search"         ? shardcall::ReadSearch(value, &flags.search)
                                                 : false;
    if (!read) {
      std::fprintf(stderr, "plan_search: what is %s?\n", argv[k]);
      return 2;
    }
  }
  return shardcall::Run(flags);
}
