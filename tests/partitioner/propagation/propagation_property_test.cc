// SPDX-License-Identifier: Apache-2.0
// What holds of every propagated program: random ones, and those of the corpus
// (tests/support/corpus.h). Chains show that the work is linear.
#include <chrono>
#include <random>

#include "gtest/gtest.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "tests/partitioner/import/import_testing.h"
#include "tests/support/corpus.h"

namespace shardcall {
namespace {

constexpr char kHeader[] =
    "num_partitions=8, allow_spmd_sharding_propagation_to_parameters={true}, "
    "allow_spmd_sharding_propagation_to_output={true}";

// Constraints hold, no axis stands twice, manual axes are in place, and leaves
// of one value agree.
void CheckInvariants(const Program& p, const PropagationResult& r) {
  ASSERT_EQ(r.sharding.size(), p.leaves.num_leaves());
  for (uint32_t l = 0; l < r.sharding.size(); ++l) {
    const LeafId leaf(l);
    const InstrId i = p.leaves.instr(leaf);
    const Shape* shape = p.module.instr(i).shape->leaf(p.leaves.index(leaf));
    const Sharding* s = r.sharding[l];
    if (!shape->IsArray()) continue;
    ASSERT_NE(s, nullptr) << p.module.instr(i).name;
    EXPECT_EQ(s, r.sharding[p.leaves.canonical(leaf).value]);
    ASSERT_EQ(s->rank(), shape->rank());
    int64_t product = AxesSize(s->partial()) * AxesSize(s->manual());
    for (int d = 0; d < s->rank(); ++d) product *= s->num_shards(d);
    if (!s->is_maximal()) {
      EXPECT_EQ(product, AxesSize(s->used())) << s->ToString();
      EXPECT_LE(product, s->mesh()->num_devices());
    }
    const ShardingConstraint* c = p.constraints[l];
    if (c == nullptr || c->unknown || p.leaves.canonical(leaf) != leaf || c->maximal_device >= 0 ||
        s->mesh() != c->mesh || p.annotation[i.value] == AnnotationKind::kManualBoundary) {
      continue;
    }
    for (int d = 0; d < s->rank(); ++d) {
      EXPECT_TRUE(IsPrefix(*s->mesh(), c->dims[d].axes, s->dim(d)))
          << p.module.instr(i).name << " " << s->ToString();
      if (!c->dims[d].open) {
        EXPECT_EQ(AxesSize(s->dim(d)), AxesSize(c->dims[d].axes)) << p.module.instr(i).name;
      }
    }
    EXPECT_FALSE(Overlaps(c->replicated, s->used())) << p.module.instr(i).name;
  }
}

PropagationResult PropagateAll(const Program& p, const TargetRegistry* targets = nullptr) {
  RuleTable rules(p, {.targets = targets});
  absl::StatusOr<PropagationResult> r = Propagate(p, rules, {});
  if (!r.ok()) {
    ADD_FAILURE() << r.status();
    std::abort();
  }
  return *std::move(r);
}

// A random program over f32[8,8]; its lines may stand in any order that keeps
// operands first.
struct RandomProgram {
  std::vector<std::string> lines;
  std::vector<std::vector<int>> operands;
  std::string Text(std::mt19937& order) const {
    std::vector<bool> done(lines.size(), false);
    std::string body;
    for (size_t placed = 0; placed < lines.size(); ++placed) {
      std::vector<int> ready;
      for (size_t i = 0; i < lines.size(); ++i) {
        bool ok = !done[i];
        for (int o : operands[i]) ok = ok && done[o];
        if (ok) ready.push_back(static_cast<int>(i));
      }
      const int pick = ready[order() % ready.size()];
      done[pick] = true;
      body += lines[pick];
    }
    return EntryModule(body, kHeader);
  }
};

RandomProgram MakeRandom(std::mt19937& rng) {
  RandomProgram p;
  const char* dims[] = {"{}", "{?}", "{'a'}", "{'b'}", "{'a',?}", "{'b','a'}", "{'a':(1)2}"};
  auto sharding = [&] {
    while (true) {
      const std::string x = dims[rng() % 7], y = dims[rng() % 7];
      if ((x.find('a') != x.npos && y.find('a') != y.npos) ||
          (x.find('b') != x.npos && y.find('b') != y.npos)) {
        continue;
      }
      return absl::StrCat("sharding={mesh['a'=4,'b'=2], [", x, ", ", y, "]}");
    }
  };
  auto add = [&](const std::string& text, std::vector<int> operands) {
    p.lines.push_back(absl::StrCat("v", p.lines.size(), " = ", text, "\n"));
    p.operands.push_back(std::move(operands));
  };
  for (int k = 0; k < 3; ++k) {
    add(absl::StrCat("f32[8,8] parameter(", k, ")", rng() % 3 != 0 ? ", " + sharding() : ""), {});
  }
  // An operand of rank 2.
  auto pick = [&] {
    int i = rng() % p.lines.size();
    return p.lines[i].find("f32[2,4,8]") == std::string::npos ? i : i + 1;
  };
  const int n = 5 + rng() % 20;
  for (int k = 0; k < n; ++k) {
    const int a = pick(), b = pick();
    const std::string x = absl::StrCat("v", a), y = absl::StrCat("v", b);
    switch (rng() % 8) {
      case 0: add(absl::StrCat("f32[8,8] add(", x, ", ", y, ")"), {a, b}); break;
      case 1: add(absl::StrCat("f32[8,8] tanh(", x, ")"), {a}); break;
      case 2: add(absl::StrCat("f32[8,8] transpose(", x, "), dimensions={1,0}"), {a}); break;
      case 3:
        add(absl::StrCat("f32[8,8] dot(", x, ", ", y,
                         "), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            {a, b});
        break;
      case 4: add(absl::StrCat("f32[8,8] reverse(", x, "), dimensions={0}"), {a}); break;
      case 5:
        add(absl::StrCat("f32[8,8] custom-call(", x, "), custom_call_target=\"Sharding\", ",
                         sharding()),
            {a});
        break;
      case 6: {
        add(absl::StrCat("f32[2,4,8] reshape(", x, ")"), {a});
        const int r = static_cast<int>(p.lines.size()) - 1;
        add(absl::StrCat("f32[8,8] reshape(v", r, ")"), {r});
        break;
      }
      default: add(absl::StrCat("f32[8,8] multiply(", x, ", ", y, ")"), {a, b}); break;
    }
  }
  return p;
}

TEST(PropagationProperty, RandomProgramsKeepTheInvariantsInEveryTextOrder) {
  for (int seed = 0; seed < 300; ++seed) {
    std::mt19937 rng(seed);
    RandomProgram random = MakeRandom(rng);
    const int last = static_cast<int>(random.lines.size()) - 1;
    random.lines.push_back(absl::StrCat("ROOT root = (f32[8,8]) tuple(v", last, ")\n"));
    std::vector<int> all(random.lines.size() - 1);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    random.operands.push_back(all);
    SCOPED_TRACE(seed);
    std::vector<std::string> first;
    for (int order = 0; order < 3; ++order) {
      std::mt19937 shuffle(order);
      const std::string text = random.Text(shuffle);
      const Program p = Import(text);
      const PropagationResult r = PropagateAll(p);
      CheckInvariants(p, r);
      std::vector<std::string> shardings;
      for (size_t i = 0; i + 1 < random.lines.size(); ++i) {
        const std::string name = absl::StrCat("v", i);
        for (int k = 0; k < p.module.num_instructions(); ++k) {
          if (p.module.instr(InstrId(k)).name != name) continue;
          shardings.push_back(
              absl::StrCat(name, " ", r.sharding[p.leaves.leaf(InstrId(k)).value]->ToString()));
        }
      }
      if (order == 0) first = shardings;
      EXPECT_EQ(first, shardings) << text;
    }
    if (HasFailure()) break;
  }
}

// By instruction, in order: names say nothing.
std::vector<std::string> ShardingsOf(const Program& p, const PropagationResult& r) {
  std::vector<std::string> out;
  for (const Sharding* s : r.sharding) out.push_back(s == nullptr ? "" : s->ToString());
  return out;
}

TEST(PropagationProperty, NamesDoNotMatter) {
  for (int seed = 0; seed < 100; ++seed) {
    std::mt19937 rng(seed), order(0);
    const std::string text = MakeRandom(rng).Text(order);
    // v7 is called w92, so that the order of names turns round.
    std::string renamed;
    for (size_t i = 0; i < text.size(); ++i) {
      renamed += text[i];
      if (text[i] != 'v' || i + 1 == text.size() || !std::isdigit(text[i + 1])) continue;
      const int number = std::atoi(&text[i + 1]);
      renamed.back() = 'w';
      absl::StrAppend(&renamed, 99 - number);
      while (std::isdigit(text[i + 1])) ++i;
    }
    ASSERT_NE(text, renamed);
    const Program p = Import(text), q = Import(renamed);
    EXPECT_EQ(ShardingsOf(p, PropagateAll(p)), ShardingsOf(q, PropagateAll(q))) << text;
  }
}

// What is decided stays when it is read again, with all shardings written down.
TEST(PropagationProperty, ItsOwnResultPropagatesToItself) {
  for (int seed = 0; seed < 100; ++seed) {
    std::mt19937 rng(seed), order(0);
    const Program p = Import(MakeRandom(rng).Text(order));
    const PropagationResult r = PropagateAll(p);
    const std::string once = PrintModule(*ExportShardings(p, r.sharding));
    const Program q = Import(once);
    const PropagationResult s = PropagateAll(q);
    EXPECT_EQ(once, PrintModule(*ExportShardings(q, s.sharding)));
  }
}

TEST(PropagationProperty, EveryProgramOfTheCorpusPropagates) {
  TargetRegistry targets;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  int files = 0;
  for (const std::filesystem::path& path : CorpusFiles()) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    SCOPED_TRACE(path.filename().string());
    absl::StatusOr<Program> p = TryImport(text.str());
    ASSERT_TRUE(p.ok()) << p.status();
    CheckInvariants(*p, PropagateAll(*p, &targets));
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(PropagationProperty, LongChainsAreLinear) {
  auto microseconds = [](int n) {
    std::string body = "v0 = f32[8,8] parameter(0), sharding={mesh['a'=4,'b'=2], [{'a'}, {'b'}]}\n";
    for (int i = 1; i <= n; ++i) {
      absl::StrAppend(&body, i == n ? "ROOT " : "", "v", i, " = f32[8,8] tanh(v", i - 1, ")\n");
    }
    const Program p = Import(EntryModule(body, kHeader));
    double best = 1e30;
    for (int k = 0; k < 3; ++k) {
      const auto start = std::chrono::steady_clock::now();
      const PropagationResult r = PropagateAll(p);
      const std::chrono::duration<double, std::micro> d = std::chrono::steady_clock::now() - start;
      best = std::min(best, d.count());
      EXPECT_EQ(r.outputs[0]->ToString(), "[{\"a\"}, {\"b\"}]");
    }
    return best / n;
  };
  const double small = microseconds(1000);
  // Generous: the caches are smaller than the longer chain.
  EXPECT_LT(microseconds(30000), 8 * small + 1);
}

}  // namespace
}  // namespace shardcall
