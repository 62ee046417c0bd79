// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program_family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/charged.h"

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

// What may stand in the slots of a family on one mesh.
using Choices = std::vector<std::vector<std::string>>;  // [slot][choice]

Choices ChoicesOn(const ProgramFamily& family, const TestMesh& mesh) {
  Choices slots;
  for (int rank : SlotRanks(family.text)) {
    std::vector<std::string> texts{""};
    for (const TestSharding& s : AllShardings(mesh, rank)) {
      texts.push_back(", sharding=" + ShardingText(mesh, s));
    }
    slots.push_back(std::move(texts));
  }
  return slots;
}

using Digits = std::vector<int64_t>;

// Numbers below `side`, each as often as any other: one shuffled deck after another.
std::vector<int64_t> Shuffled(int64_t side, int64_t count, uint64_t seed) {
  std::minstd_rand random(static_cast<uint32_t>(seed));
  std::vector<int64_t> out;
  while (static_cast<int64_t>(out.size()) < count) {
    std::vector<int64_t> deck(side);
    std::iota(deck.begin(), deck.end(), 0);
    // Of std::shuffle each library may have its own.
    for (size_t k = deck.size(); k > 1; --k) std::swap(deck[k - 1], deck[random() % k]);
    out.insert(out.end(), deck.begin(), deck.end());
  }
  return out;
}

// `count` different points of the grid with these sides, in every dimension as evenly as
// can be. Many of all are taken in order, with a step prime to the total.
std::vector<Digits> SpreadOver(const std::vector<int64_t>& sides, int64_t count, int64_t total) {
  std::set<Digits> seen;
  std::vector<Digits> out;
  const auto take = [&](Digits d) {
    if (static_cast<int64_t>(out.size()) < count && seen.insert(d).second) {
      out.push_back(std::move(d));
    }
  };
  if (count <= total / 2) {
    std::vector<std::vector<int64_t>> drawn;
    for (size_t k = 0; k < sides.size(); ++k) drawn.push_back(Shuffled(sides[k], count, k + 1));
    for (int64_t i = 0; i < count; ++i) {
      Digits d;
      for (const auto& side : drawn) d.push_back(side[i]);
      take(std::move(d));
    }
  }
  int64_t step = total * 618 / 1000 + 1;
  while (std::gcd(step, total) != 1) ++step;
  for (int64_t i = 0, index = 0; i < total; ++i, index = (index + step) % total) {
    if (static_cast<int64_t>(out.size()) >= count) break;
    Digits d;
    int64_t rest = index;
    for (int64_t side : sides) {
      d.push_back(rest % side);
      rest /= side;
    }
    take(std::move(d));
  }
  return out;
}

// What the local programs of a family hold in all.
struct Totals {
  int64_t cases = 0, bytes = 0, local = 0, fallbacks = 0, collectives = 0;
  std::map<std::string, int64_t> by_opcode;

  void Add(const PartitionedProgram& program) {
    for (const CollectiveRecord& r : program.local.collectives) {
      bytes += std::llround(r.bytes_moved * r.trip_count);
      ++by_opcode[std::string(OpcodeText(r.opcode))];
      ++collectives;
    }
    // What is made of arrays on a device: whoever gathers all to compute all makes more.
    const Module& m = program.local.module;
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& i = m.instr(InstrId(k));
      if (!i.shape->IsArray() || i.opcode == Opcode::kParameter ||
          i.opcode == Opcode::kGetTupleElement || i.opcode == Opcode::kConstant) {
        continue;
      }
      local += i.shape->byte_size();
    }
    fallbacks += static_cast<int64_t>(program.plan.fallbacks.size());
  }
  std::string Row(const std::string& name) const {
    std::string row = absl::StrCat(name, " cases=", cases, " bytes=", bytes, " local=", local,
                                   " fallbacks=", fallbacks);
    for (const auto& [opcode, n] : by_opcode) absl::StrAppend(&row, " ", opcode, "=", n);
    return row;
  }
};

Totals ParseRow(absl::string_view row) {
  Totals t;
  for (absl::string_view part : absl::StrSplit(row, ' ')) {
    const std::pair<absl::string_view, absl::string_view> kv = absl::StrSplit(part, '=');
    int64_t value = 0;
    if (!absl::SimpleAtoi(kv.second, &value)) continue;  // the name
    if (kv.first == "cases") {
      t.cases = value;
    } else if (kv.first == "bytes") {
      t.bytes = value;
    } else if (kv.first == "local") {
      t.local = value;
    } else if (kv.first == "fallbacks") {
      t.fallbacks = value;
    } else {
      t.by_opcode[std::string(kv.first)] = value;
      t.collectives += value;
    }
  }
  return t;
}

// Rows of the golden file by name.
std::map<std::string, std::string> ReadRows(const std::string& path) {
  std::map<std::string, std::string> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    rows[line.substr(0, line.find(' '))] = line;
  }
  return rows;
}

void CheckTotals(const Totals& now) {
  const std::string path = absl::StrCat(SHARDCALL_SOURCE_DIR, "/tests/data/spmd/families.txt");
  // A test may hold several families; properties are those of this run of it.
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const int number = test->result()->test_property_count();
  testing::Test::RecordProperty(absl::StrCat("family", number), std::to_string(now.bytes));
  std::string name = absl::StrCat(test->test_suite_name(), ".", test->name());
  if (number > 0) absl::StrAppend(&name, "#", number + 1);

  std::map<std::string, std::string> rows = ReadRows(path);
  if (std::getenv("SHARDCALL_UPDATE_GOLDENS") != nullptr) {
    rows[name] = now.Row(name);
    std::ofstream file(path);
    file << "# What the families of programs in tests/partitioner/spmd send in all; see\n"
            "# tests/support/program_family.h. Written by SHARDCALL_UPDATE_GOLDENS=1.\n";
    for (const auto& [key, row] : rows) file << row << "\n";
    return;
  }
  const std::string fix = absl::StrCat("\n  now:  ", now.Row(name), "\n  row:  ", rows[name],
                                       "\nIf that is meant, run with SHARDCALL_UPDATE_GOLDENS=1");
  ASSERT_FALSE(rows[name].empty()) << "no row in " << path << fix;
  const Totals most = ParseRow(rows[name]);
  EXPECT_EQ(now.cases, most.cases) << fix;
  EXPECT_LE(now.bytes, most.bytes) << "more bytes are sent" << fix;
  EXPECT_LE(now.local, most.local) << "devices make more" << fix;
  EXPECT_LE(now.collectives, most.collectives) << "there are more collectives" << fix;
  EXPECT_LE(now.fallbacks, most.fallbacks) << "there are more fallbacks" << fix;
}

std::string WhyFailed(const std::string& text, const ProgramFamily& family, int64_t devices,
                      Totals* totals) {
  TextOptions options = family.options;
  options.num_partitions = devices;
  // The programs are so small that the latency of collectives alone would decide.
  if (options.spmd.cost.latency == CostModel().latency) options.spmd.cost.latency = 1e-15;
  std::string why = WhyNotEqual(text, options);
  if (!why.empty()) return why;
  const auto program = PartitionText(text, options);
  if (!program.ok()) return std::string(program.status().message());
  why = WhyChargedOtherwise(**program, options.spmd);
  if (!why.empty()) return why;
  totals->Add(**program);
  const std::vector<Fallback>& fallbacks = (*program)->plan.fallbacks;
  return !family.no_fallback || fallbacks.empty() ? "" : fallbacks[0].reason;
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

std::vector<ProgramCase> CasesOf(const ProgramFamily& family) {
  const size_t meshes = family.meshes.size();
  std::vector<std::vector<int64_t>> radices(meshes);
  std::vector<int64_t> totals(meshes, 1);
  for (size_t m = 0; m < meshes; ++m) {
    radices[m].push_back(static_cast<int64_t>(family.sizes.size()));
    for (const auto& s : ChoicesOn(family, family.meshes[m])) {
      radices[m].push_back(static_cast<int64_t>(s.size()));
    }
    for (int64_t r : radices[m]) totals[m] *= r;
  }
  // Meshes with few cases give what they do not need to the others.
  std::vector<size_t> by_total(meshes);
  std::iota(by_total.begin(), by_total.end(), 0);
  std::stable_sort(by_total.begin(), by_total.end(),
                   [&](size_t a, size_t b) { return totals[a] < totals[b]; });
  std::vector<int64_t> share(meshes);
  int64_t left = family.max_cases;
  for (size_t k = 0; k < meshes; ++k) {
    const size_t m = by_total[k];
    share[m] = std::min<int64_t>(totals[m], left / static_cast<int64_t>(meshes - k));
    left -= share[m];
  }
  std::vector<ProgramCase> cases;
  for (size_t m = 0; m < meshes; ++m) {
    for (const Digits& digits : SpreadOver(radices[m], share[m], totals[m])) {
      ProgramCase c;
      c.mesh = m;
      c.sizes = static_cast<size_t>(digits[0]);
      c.slots.assign(digits.begin() + 1, digits.end());
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

void VerifyFamily(const ProgramFamily& family) {
  std::vector<Choices> choices;
  for (const TestMesh& mesh : family.meshes) choices.push_back(ChoicesOn(family, mesh));
  const std::vector<ProgramCase> cases = CasesOf(family);
  int failures = 0;
  std::map<std::string, int> reasons;
  Totals totals;
  totals.cases = static_cast<int64_t>(cases.size());
  for (const ProgramCase& c : cases) {
    std::vector<std::string> chosen;
    for (size_t k = 0; k < c.slots.size(); ++k) chosen.push_back(choices[c.mesh][k][c.slots[k]]);
    const TestMesh& mesh = family.meshes[c.mesh];
    const std::string text = Instantiate(family.text, family.sizes[c.sizes], mesh, chosen);
    const std::string why = WhyFailed(text, family, mesh.num_devices(), &totals);
    if (why.empty()) continue;
    ++reasons[why.substr(0, 60)];
    if (++failures <= 3) ADD_FAILURE() << why << "\n" << text;
  }
  if (failures > 3) {
    std::string all;
    for (const auto& [why, n] : reasons) absl::StrAppend(&all, "\n  ", n, " x ", why);
    ADD_FAILURE() << failures << " of " << cases.size() << " programs failed:" << all;
  }
  if (failures == 0) CheckTotals(totals);
}

}  // namespace shardcall
