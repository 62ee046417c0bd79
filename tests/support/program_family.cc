// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program_family.h"

#include <cctype>
#include <cstdlib>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace shardcall {
namespace {

// Ranks of the slots in `text`, by number.
std::vector<int> SlotRanks(const std::string& text) {
  std::vector<int> ranks;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    if (at + 4 >= text.size() || !std::isdigit(text[at + 1]) || text[at + 2] != ':') continue;
    const size_t slot = text[at + 1] - '0';
    if (ranks.size() <= slot) ranks.resize(slot + 1, 0);
    ranks[slot] = text[at + 3] - '0';
  }
  return ranks;
}

int64_t SizeValue(const std::string& expression, const Sizes& sizes) {
  int64_t value = 0;
  char op = '+';
  for (size_t i = 0; i < expression.size();) {
    int64_t term = 0;
    if (std::isdigit(expression[i])) {
      while (i < expression.size() && std::isdigit(expression[i])) {
        term = term * 10 + (expression[i++] - '0');
      }
    } else {
      term = sizes.at(expression[i++]);
    }
    switch (op) {
      case '+': value += term; break;
      case '-': value -= term; break;
      case '*': value *= term; break;
      default: value /= term; break;
    }
    if (i < expression.size()) op = expression[i++];
  }
  return value;
}

// Visits the cases; `run` gets text and the number of devices.
class Cases {
 public:
  explicit Cases(const ProgramFamily& family) : family_(family) {
    const std::vector<int> ranks = SlotRanks(family.text);
    for (const TestMesh& mesh : family.meshes) {
      std::vector<std::vector<std::string>> slots;
      for (int rank : ranks) {
        std::vector<std::string> texts{""};
        for (const TestSharding& s : AllShardings(mesh, rank)) {
          texts.push_back(", sharding=" + ShardingText(mesh, s));
        }
        slots.push_back(std::move(texts));
      }
      int64_t n = static_cast<int64_t>(family.sizes.size());
      for (const auto& s : slots) n *= static_cast<int64_t>(s.size());
      counts_.push_back(n);
      total_ += n;
      slots_.push_back(std::move(slots));
    }
  }
  int64_t total() const { return total_; }

  std::string Text(int64_t index, int64_t* num_devices) const {
    size_t m = 0;
    while (index >= counts_[m]) index -= counts_[m++];
    const Sizes& sizes = family_.sizes[index % family_.sizes.size()];
    index /= static_cast<int64_t>(family_.sizes.size());
    std::vector<std::string> chosen;
    for (const auto& s : slots_[m]) {
      chosen.push_back(s[index % s.size()]);
      index /= static_cast<int64_t>(s.size());
    }
    *num_devices = family_.meshes[m].num_devices();
    return Instantiate(family_.text, sizes, family_.meshes[m], chosen);
  }

 private:
  const ProgramFamily& family_;
  std::vector<std::vector<std::vector<std::string>>> slots_;  // [mesh][slot][choice]
  std::vector<int64_t> counts_;
  int64_t total_ = 0;
};

std::string WhyFailed(const std::string& text, const ProgramFamily& family, int64_t devices) {
  TextOptions options = family.options;
  options.num_partitions = devices;
  std::string why = WhyNotEqual(text, options);
  if (!why.empty() || !family.no_fallback) return why;
  const auto program = PartitionText(text, options);
  if (!program.ok()) return std::string(program.status().message());
  return (*program)->plan.fallbacks.empty() ? "" : (*program)->plan.fallbacks[0].reason;
}

}  // namespace

std::string Instantiate(const std::string& text, const Sizes& sizes, const TestMesh& mesh,
                        const std::vector<std::string>& shardings) {
  std::string out = absl::StrCat("HloModule test, num_partitions=", mesh.num_devices(), "\n\n");
  const bool whole = absl::StrContains(text, "ENTRY");
  if (!whole) absl::StrAppend(&out, "ENTRY main {\n");
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '@' && text[i + 1] == '(') {
      const size_t end = text.find(')', i);
      absl::StrAppend(&out, SizeValue(text.substr(i + 2, end - i - 2), sizes));
      i = end;
    } else if (text[i] == '@') {
      absl::StrAppend(&out, sizes.at(text[++i]));
    } else if (text[i] == '<' && i + 4 < text.size() && std::isdigit(text[i + 1]) &&
               text[i + 2] == ':') {
      absl::StrAppend(&out, shardings.at(text[i + 1] - '0'));
      i += 4;
    } else {
      out.push_back(text[i]);
    }
  }
  if (!whole) absl::StrAppend(&out, "}\n");
  return out;
}

void VerifyFamily(const ProgramFamily& family) {
  const Cases cases(family);
  const int64_t total = cases.total();
  const int64_t run = std::min<int64_t>(total, family.max_cases);
  // The step is prime to the number of cases, so that none comes twice and all
  // slots vary.
  int64_t step = 1;
  if (run < total) {
    step = total * 618 / 1000 + 1;
    auto gcd = [](int64_t a, int64_t b) {
      while (b != 0) a = std::exchange(b, a % b);
      return a;
    };
    while (gcd(step, total) != 1) ++step;
  }
  int failures = 0;
  std::map<std::string, int> reasons;
  int64_t index = 0;
  for (int64_t i = 0; i < run; ++i, index = (index + step) % total) {
    int64_t devices = 0;
    const std::string text = cases.Text(index, &devices);
    const std::string why = WhyFailed(text, family, devices);
    if (why.empty()) continue;
    ++reasons[why.substr(0, 60)];
    if (++failures <= 3) ADD_FAILURE() << why << "\n" << text;
  }
  if (failures > 3) {
    std::string all;
    for (const auto& [why, n] : reasons) absl::StrAppend(&all, "\n  ", n, " x ", why);
    ADD_FAILURE() << failures << " of " << run << " programs failed:" << all;
  }
}

}  // namespace shardcall
