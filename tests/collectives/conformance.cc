// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/collectives/program_check.h"
#include "shardcall/collectives/reduce.h"
#include "shardcall/collectives/split.h"
#include "shardcall/sharding/base/status.h"
#include "tests/collectives/reference.h"

namespace shardcall::testing {
namespace {

using Ranks = std::vector<int>;
using Groups = std::vector<Ranks>;

#define EXPECT_OK(expr)                             \
  do {                                              \
    const absl::Status status_ = (expr);            \
    EXPECT_TRUE(status_.ok()) << status_.message(); \
  } while (false)

constexpr unsigned char kUntouched = 0xa5;

Ranks Iota(int n) {
  Ranks ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

const Ranks* GroupOf(const Groups& groups, int rank) {
  for (const Ranks& group : groups) {
    if (std::find(group.begin(), group.end(), rank) != group.end()) return &group;
  }
  return nullptr;
}

int PositionIn(const Ranks& group, int rank) {
  return static_cast<int>(std::find(group.begin(), group.end(), rank) - group.begin());
}

// Partitions of the ranks: all, all reversed, singletons, neighbours, strided,
// strided and reversed, one rank left out.
std::vector<Groups> GroupForms(int size) {
  const Ranks all = Iota(size);
  std::vector<Groups> forms = {{all}, {Ranks(all.rbegin(), all.rend())}};
  Groups singletons, neighbours, strided(2), backwards(2);
  for (int r = 0; r < size; ++r) {
    singletons.push_back({r});
    if (r % 2 == 0) neighbours.push_back({});
    neighbours.back().push_back(r);
    strided[r % 2].push_back(r);
    backwards[r % 2].insert(backwards[r % 2].begin(), r);
  }
  forms.insert(forms.end(), {singletons, neighbours, strided, backwards});
  if (size > 1) forms.push_back({Ranks(all.begin() + 1, all.end())});
  return forms;
}

struct Shape {
  ReduceKind kind = ReduceKind::kSum;
  ElementType type = ElementType::kF32;
  int64_t count = 0;
  bool in_place = false;
  uint32_t seed = 0;
};

void TestAllReduce(Communicator& c, const Ranks& group, const Shape& s) {
  std::vector<Bytes> inputs;
  for (int rank : group) inputs.push_back(Data(rank, s.seed, s.type, s.count));
  Bytes in = inputs[PositionIn(group, c.rank())];
  const Bytes before = in;
  Bytes out(in.size(), kUntouched);
  Bytes& result = s.in_place ? in : out;
  EXPECT_OK(c.AllReduce(group, s.kind, s.type, in.data(), result.data(), s.count, {"%ar"}));
  EXPECT_EQ(result, ReferenceReduce(s.kind, s.type, inputs, 0, s.count))
      << ReduceKindName(s.kind) << " " << ElementTypeName(s.type) << "[" << s.count << "]";
  if (!s.in_place) {
    EXPECT_EQ(in, before) << "the input was changed";
  }
}

void TestReduceScatter(Communicator& c, const Ranks& group, const Shape& s) {
  const int64_t n = static_cast<int64_t>(group.size());
  const int me = PositionIn(group, c.rank());
  std::vector<Bytes> inputs;
  for (int rank : group) inputs.push_back(Data(rank, s.seed, s.type, n * s.count));
  Bytes in = inputs[me];
  const int64_t out_bytes = s.count * ElementTypeBytes(s.type);
  Bytes out(out_bytes, kUntouched);
  void* result = s.in_place ? in.data() : out.data();
  EXPECT_OK(c.ReduceScatter(group, s.kind, s.type, in.data(), result, s.count, {"%rs"}));
  const Bytes expected = ReferenceReduce(s.kind, s.type, inputs, me * s.count, s.count);
  if (s.in_place) out.assign(in.begin(), in.begin() + out_bytes);
  EXPECT_EQ(out, expected) << ReduceKindName(s.kind) << " " << ElementTypeName(s.type) << "["
                           << s.count << "] of " << n;
}

void TestAllGather(Communicator& c, const Ranks& group, int64_t bytes, bool in_place,
                   uint32_t seed) {
  Bytes expected;
  for (int rank : group) {
    const Bytes part = RawData(rank, seed, bytes);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  const Bytes in = RawData(c.rank(), seed, bytes);
  Bytes out(expected.size(), kUntouched);
  if (in_place) std::copy(in.begin(), in.end(), out.begin());
  EXPECT_OK(c.AllGather(group, in_place ? out.data() : in.data(), out.data(), bytes, {"%ag"}));
  EXPECT_EQ(out, expected) << bytes << " bytes, " << group.size() << " members";
}

void TestAllToAll(Communicator& c, const Ranks& group, int64_t bytes, bool in_place,
                  uint32_t seed) {
  const int64_t n = static_cast<int64_t>(group.size());
  const int me = PositionIn(group, c.rank());
  Bytes expected;
  for (int rank : group) {
    const Bytes all = RawData(rank, seed, n * bytes);
    expected.insert(expected.end(), all.begin() + me * bytes, all.begin() + (me + 1) * bytes);
  }
  Bytes in = RawData(c.rank(), seed, n * bytes);
  Bytes out(in.size(), kUntouched);
  Bytes& result = in_place ? in : out;
  EXPECT_OK(c.AllToAll(group, in.data(), result.data(), bytes, {"%a2a"}));
  EXPECT_EQ(result, expected) << bytes << " bytes, " << n << " members";
}

// Block sizes are a function of sender and receiver; blocks lie apart, in an
// order of their own, and what is between them must stay.
void TestAllToAllV(Communicator& c, const Ranks& group, int64_t scale, bool in_place,
                   uint32_t seed) {
  const int n = static_cast<int>(group.size());
  const int me = PositionIn(group, c.rank());
  const auto size_of = [&](int from, int to) -> int64_t {
    return (from * 7 + to * 3 + seed) % 5 * scale;
  };
  const int64_t slot = 4 * scale + 3;
  std::vector<int64_t> send_offsets(n), send_sizes(n), recv_offsets(n), recv_sizes(n);
  for (int j = 0; j < n; ++j) {
    send_offsets[j] = (n - 1 - j) * slot + 1;
    send_sizes[j] = size_of(me, j);
    recv_offsets[j] = j * slot + 2;
    recv_sizes[j] = size_of(j, me);
  }
  Bytes in = RawData(c.rank(), seed, n * slot + 2);
  Bytes out(in.size(), kUntouched);
  Bytes& result = in_place ? in : out;
  Bytes expected = result;
  for (int i = 0; i < n; ++i) {
    const Bytes from = RawData(group[i], seed, n * slot + 2);
    const auto begin = from.begin() + (n - 1 - me) * slot + 1;
    std::copy(begin, begin + size_of(i, me), expected.begin() + recv_offsets[i]);
  }
  EXPECT_OK(c.AllToAllV(group, in.data(), send_offsets, send_sizes, result.data(), recv_offsets,
                        recv_sizes, {"%ra2a"}));
  EXPECT_EQ(result, expected) << n << " members, scale " << scale;
}

void TestPermute(Communicator& c, const std::vector<std::pair<int, int>>& pairs, int64_t bytes,
                 bool in_place, uint32_t seed) {
  Bytes expected(bytes, 0);
  for (const auto& [from, to] : pairs) {
    if (to == c.rank()) expected = RawData(from, seed, bytes);
  }
  Bytes in = RawData(c.rank(), seed, bytes);
  Bytes out(bytes, kUntouched);
  Bytes& result = in_place ? in : out;
  EXPECT_OK(c.Permute(pairs, in.data(), result.data(), bytes, {"%cp"}));
  EXPECT_EQ(result, expected) << bytes << " bytes";
}

void TestBroadcast(Communicator& c, const Ranks& group, int root, int64_t bytes, uint32_t seed) {
  Bytes buffer = RawData(c.rank(), seed, bytes);
  EXPECT_OK(c.Broadcast(group, root, buffer.data(), bytes, {"%cb"}));
  EXPECT_EQ(buffer, RawData(group[root], seed, bytes)) << bytes << " bytes from member " << root;
}

// Small enough to travel with a message's header, around a message's limit, and
// large enough to be cut into pieces; odd ones too.
const int64_t kSizes[] = {0, 1, 7, 64, 1023, 4096, 4099, 65536, 100003, 400009};

void ReducesEveryTypeAndKind(Communicator& c) {
  const Ranks all = Iota(c.size());
  uint32_t seed = 1;
  for (ElementType type : ReducibleTypes()) {
    for (ReduceKind kind : AllKinds()) {
      if (!CheckReduction(kind, type).ok()) continue;
      for (int64_t count : {1, 33, 3001}) {
        TestAllReduce(c, all, {kind, type, count, false, ++seed});
        TestReduceScatter(c, all, {kind, type, count, false, ++seed});
      }
    }
  }
}

void GroupsOfEveryForm(Communicator& c) {
  uint32_t seed = 5000;
  for (const Groups& groups : GroupForms(c.size())) {
    for (int64_t count : {0, 5, 3000}) {
      seed += 10;
      const Ranks* group = GroupOf(groups, c.rank());
      if (group == nullptr) continue;
      const Shape shape{ReduceKind::kSum, ElementType::kF32, count, false, seed};
      EXPECT_OK(c.Barrier(*group, {"%barrier"}));
      TestAllReduce(c, *group, shape);
      TestReduceScatter(c, *group, shape);
      TestAllGather(c, *group, count, false, seed + 1);
      TestAllToAll(c, *group, count, false, seed + 2);
      TestAllToAllV(c, *group, count, false, seed + 3);
      TestBroadcast(c, *group, static_cast<int>(group->size()) - 1, count, seed + 4);
    }
  }
}

void EverySizeOutOfPlaceAndInPlace(Communicator& c) {
  const Ranks all = Iota(c.size());
  const int64_t n = c.size();
  uint32_t seed = 9000;
  for (int64_t size : kSizes) {
    for (bool in_place : {false, true}) {
      seed += 10;
      const Shape floats{ReduceKind::kSum, ElementType::kF32, size / 4, in_place, seed};
      const Shape bf16s{ReduceKind::kSum, ElementType::kBF16, size / 2, in_place, seed};
      TestAllReduce(c, all, floats);
      TestAllReduce(c, all, bf16s);
      TestReduceScatter(c, all, {floats.kind, floats.type, floats.count / n, in_place, seed + 5});
      TestReduceScatter(c, all, {bf16s.kind, bf16s.type, bf16s.count / n, in_place, seed + 6});
      TestAllGather(c, all, size, in_place, seed + 1);
      TestAllToAll(c, all, size / n, in_place, seed + 2);
      TestAllToAllV(c, all, size / 4, in_place, seed + 3);
      TestBroadcast(c, all, static_cast<int>(seed / 10) % c.size(), size, seed + 4);
    }
  }
}

// Several megabytes, which backends may cut into pieces.
void LongOnesOutOfPlaceAndInPlace(Communicator& c) {
  const Ranks all = Iota(c.size());
  uint32_t seed = 15000;
  for (bool in_place : {false, true}) {
    seed += 10;
    TestAllReduce(c, all, {ReduceKind::kSum, ElementType::kF32, 1200001, in_place, seed});
    TestReduceScatter(c, all,
                      {ReduceKind::kMax, ElementType::kF32, 1200001 / c.size(), in_place, seed});
  }
}

void Permutes(Communicator& c) {
  const int n = c.size();
  uint32_t seed = 20000;
  for (int64_t bytes : kSizes) {
    for (bool in_place : {false, true}) {
      std::vector<std::pair<int, int>> ring, shift, selves, swap, none;
      for (int r = 0; r < n; ++r) {
        ring.push_back({r, (r + 1) % n});
        if (r + 1 < n) shift.push_back({r, r + 1});
        selves.push_back({r, r});
      }
      if (n > 1) swap = {{0, n - 1}, {n - 1, 0}};
      for (const auto& pairs : {ring, shift, selves, swap, none}) {
        TestPermute(c, pairs, bytes, in_place, ++seed);
      }
    }
  }
}

void SendsAndReceives(Communicator& c) {
  uint32_t seed = 30000;
  for (int64_t bytes : kSizes) {
    ++seed;
    // A token runs through the ranks: each adds one to what it received.
    Bytes token = RawData(0, seed, bytes);
    if (c.rank() > 0) {
      EXPECT_OK(c.Recv(c.rank() - 1, token.data(), bytes, {"%recv"}));
      for (unsigned char& b : token) ++b;
    }
    if (c.rank() + 1 < c.size()) {
      EXPECT_OK(c.Send(c.rank() + 1, token.data(), bytes, {"%send"}));
    }
    Bytes expected = RawData(0, seed, bytes);
    for (unsigned char& b : expected) b = static_cast<unsigned char>(b + c.rank());
    EXPECT_EQ(token, expected);
  }
}

void RandomSequence(Communicator& c) {
  std::mt19937 random(4711);  // every rank draws the same
  for (uint32_t call = 0; call < 400; ++call) {
    Ranks order = Iota(c.size());
    std::shuffle(order.begin(), order.end(), random);
    Groups groups(1);
    for (int rank : order) {
      groups.back().push_back(rank);
      if (random() % 3 == 0) groups.push_back({});
    }
    const uint32_t op = random() % 8;
    const int64_t size = kSizes[random() % 8];
    const bool in_place = random() % 2 == 0;
    const uint32_t seed = 40000 + 10 * call;
    const uint32_t root = random();
    const Ranks* group = GroupOf(groups, c.rank());
    ASSERT_NE(group, nullptr);
    const Shape shape{ReduceKind::kSum, ElementType::kF32, size / 4, in_place, seed};
    switch (op) {
      case 0: TestAllReduce(c, *group, shape); break;
      case 1: TestReduceScatter(c, *group, shape); break;
      case 2: TestAllGather(c, *group, size, in_place, seed); break;
      case 3: TestAllToAll(c, *group, size, in_place, seed); break;
      case 4: TestAllToAllV(c, *group, size / 4, in_place, seed); break;
      case 5: TestBroadcast(c, *group, static_cast<int>(root % group->size()), size, seed); break;
      case 6: {
        std::vector<std::pair<int, int>> pairs;
        for (int r = 0; r < c.size(); ++r) {
          if ((root >> r % 16) % 4 != 0) pairs.push_back({r, order[r]});
        }
        TestPermute(c, pairs, size, in_place, seed);
        break;
      }
      default: EXPECT_OK(c.Barrier(*group, {"%barrier"}));
    }
  }
}

// Several calls under way, over different groups, awaited in another order; an
// ordinary call runs after them.
void StartedCallsRunInOrder(Communicator& c) {
  const Ranks all = Iota(c.size());
  const int64_t n = c.size();
  const Groups neighbours = GroupForms(c.size())[3];
  const Ranks& pair = *GroupOf(neighbours, c.rank());
  for (uint32_t seed = 50000; seed < 50020; ++seed) {
    const int64_t count = kSizes[seed % 9] / 4;
    const Bytes in = Data(c.rank(), seed, ElementType::kF32, count);
    Bytes sum(in.size(), kUntouched), gathered(n * in.size(), kUntouched);
    Bytes max(in.size(), kUntouched), sum_of_sums(in.size(), kUntouched);
    std::vector<std::unique_ptr<Communicator::Pending>> pending;
    pending.push_back(c.Start([&](Communicator& inner) {
      return inner.AllReduce(all, ReduceKind::kSum, ElementType::kF32, in.data(), sum.data(), count,
                             {"%sum"});
    }));
    pending.push_back(c.Start([&](Communicator& inner) {
      return inner.AllReduce(pair, ReduceKind::kMax, ElementType::kF32, in.data(), max.data(),
                             count, {"%max"});
    }));
    // Reads what the first one wrote: started later, so it runs later.
    pending.push_back(c.Start([&](Communicator& inner) {
      return inner.AllGather(all, sum.data(), gathered.data(), sum.size(), {"%ag"});
    }));
    if (seed % 3 == 0) {
      EXPECT_OK(c.AllReduce(all, ReduceKind::kMax, ElementType::kF32, sum.data(),
                            sum_of_sums.data(), count, {"%after"}));
      EXPECT_EQ(sum_of_sums, sum);
    }
    std::vector<Bytes> inputs, pair_inputs;
    for (int rank : all) inputs.push_back(Data(rank, seed, ElementType::kF32, count));
    for (int rank : pair) pair_inputs.push_back(Data(rank, seed, ElementType::kF32, count));
    EXPECT_OK(pending[2]->Done());
    EXPECT_OK(pending[0]->Done());
    EXPECT_OK(pending[1]->Done());
    const Bytes expected = ReferenceReduce(ReduceKind::kSum, ElementType::kF32, inputs, 0, count);
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(max, ReferenceReduce(ReduceKind::kMax, ElementType::kF32, pair_inputs, 0, count));
    Bytes all_expected;
    for (int r = 0; r < n; ++r) {
      all_expected.insert(all_expected.end(), expected.begin(), expected.end());
    }
    EXPECT_EQ(gathered, all_expected);
  }
  // A status is that of the call, and what nobody awaits is awaited at the end.
  EXPECT_EQ(DiagnosticCode(c.Start([](Communicator& inner) {
                              return inner.Broadcast({inner.rank()}, 7, nullptr, 4, {"%bad"});
                            })->Done()),
            "E306");
  c.Start([&](Communicator& inner) { return inner.Barrier(all, {"%unawaited"}); });
  EXPECT_OK(c.Barrier(all, {"%after"}));
}

// A split communicator is one of its own: groups, ranks and roots are its own.
void SplitsIntoGroupsOfEveryForm(Communicator& c) {
  for (const Groups& groups : GroupForms(c.size())) {
    const Ranks* group = GroupOf(groups, c.rank());
    if (group == nullptr) {
      EXPECT_EQ(DiagnosticCode(Split(c, groups[0]).status()), "E306");
      continue;
    }
    auto split = Split(c, *group);
    ASSERT_TRUE(split.ok()) << split.status();
    Communicator& s = **split;
    EXPECT_EQ(s.size(), static_cast<int>(group->size()));
    EXPECT_EQ((*group)[s.rank()], c.rank());
    TestAllReduce(s, Iota(s.size()), {ReduceKind::kSum, ElementType::kF32, 3000, false, 60000});
    TestReduceScatter(s, Iota(s.size()), {ReduceKind::kMax, ElementType::kBF16, 7, false, 60001});
    TestAllGather(s, Iota(s.size()), 33, false, 60002);
    TestAllToAll(s, Iota(s.size()), 5000, true, 60003);
    TestAllToAllV(s, Iota(s.size()), 10, false, 60004);
    TestBroadcast(s, Iota(s.size()), s.size() - 1, 100, 60005);
    std::vector<std::pair<int, int>> ring;
    for (int r = 0; r < s.size(); ++r) ring.push_back({r, (r + 1) % s.size()});
    TestPermute(s, ring, 4000, false, 60006);
    const auto started = s.Start(
        [](Communicator& inner) { return inner.Barrier(Iota(inner.size()), {"%started"}); });
    EXPECT_OK(started->Done());
    EXPECT_EQ(DiagnosticCode(s.Barrier({s.rank(), s.size()}, {"%bad"})), "E306");
  }
}

void AllToAllOfBuffersThatLieApart(Communicator& c) {
  const Ranks all = Iota(c.size());
  for (int64_t bytes : kSizes) {
    for (bool in_place : {false, true}) {
      std::vector<Bytes> in, out, expected;
      for (int j = 0; j < c.size(); ++j) {
        in.push_back(RawData(c.rank(), 70000 + j, bytes));
        out.push_back(Bytes(bytes, kUntouched));
        expected.push_back(RawData(j, 70000 + c.rank(), bytes));
      }
      std::vector<const void*> sources;
      std::vector<void*> targets;
      for (int j = 0; j < c.size(); ++j) {
        sources.push_back(in[j].data());
        targets.push_back(in_place ? in[(j + 1) % c.size()].data() : out[j].data());
      }
      EXPECT_OK(AllToAllBuffers(c, all, sources, targets, bytes, {"%a2a"}));
      for (int j = 0; j < c.size(); ++j) {
        EXPECT_EQ(in_place ? in[(j + 1) % c.size()] : out[j], expected[j]) << bytes;
      }
    }
  }
}

void BadArgumentsAreRefusedAtOnce(Communicator& c) {
  const Ranks all = Iota(c.size());
  float x = 0;
  const auto code = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(DiagnosticCode(status));
  };
  const auto reduce = [&](const Ranks& group, ReduceKind kind, ElementType type, int64_t count) {
    return c.AllReduce(group, kind, type, &x, &x, count, {"%bad"});
  };
  EXPECT_EQ(code(reduce({}, ReduceKind::kSum, ElementType::kF32, 1)), "E306");
  EXPECT_EQ(code(reduce({c.rank(), c.size()}, ReduceKind::kSum, ElementType::kF32, 1)), "E306");
  EXPECT_EQ(code(reduce({c.rank(), -1}, ReduceKind::kSum, ElementType::kF32, 1)), "E306");
  EXPECT_EQ(code(reduce({c.rank(), c.rank()}, ReduceKind::kSum, ElementType::kF32, 1)), "E306");
  EXPECT_EQ(code(reduce(all, ReduceKind::kAnd, ElementType::kF32, 1)), "E306");
  EXPECT_EQ(code(reduce(all, ReduceKind::kMax, ElementType::kC64, 1)), "E306");
  EXPECT_EQ(code(reduce(all, ReduceKind::kSum, ElementType::kToken, 1)), "E306");
  EXPECT_EQ(code(reduce(all, ReduceKind::kSum, ElementType::kF32, -1)), "E306");
  EXPECT_EQ(code(reduce(all, ReduceKind::kSum, ElementType::kF32, int64_t{1} << 62)), "E306");
  EXPECT_EQ(code(c.AllGather(all, nullptr, &x, 4, {"%bad"})), "E306");
  EXPECT_EQ(code(c.Broadcast(all, c.size(), &x, 4, {"%bad"})), "E306");
  EXPECT_EQ(code(c.AllToAllV(all, &x, {}, {}, &x, {}, {}, {"%bad"})), "E306");
  EXPECT_EQ(code(c.Send(c.size(), &x, 4, {"%bad"})), "E306");
  EXPECT_EQ(code(c.Send(c.rank(), &x, 4, {"%bad"})), "E306");
  const std::pair<int, int> twice[] = {{0, 0}, {0, 0}};
  EXPECT_EQ(code(c.Permute(twice, &x, &x, 4, {"%bad"})), "E306");
  if (c.size() > 1) {
    const Ranks others = {(c.rank() + 1) % c.size()};
    EXPECT_EQ(code(reduce(others, ReduceKind::kSum, ElementType::kF32, 1)), "E306");
  }
  EXPECT_OK(c.Barrier(all, {"%after"}));
}

void EqualProgramsPassTheCheckAndUnequalOnesAreNamed(Communicator& c) {
  EXPECT_OK(CheckProgram(c, {0xabcdef, c.size(), "0.1.0"}));
  const absl::Status few = CheckProgram(c, {0xabcdef, c.size() + 1, "0.1.0"});
  EXPECT_EQ(DiagnosticCode(few), "E051") << few;
  if (c.size() == 1) return;
  const absl::Status mixed =
      CheckProgram(c, {c.rank() == 1 ? 0x17u : 0xabcdefu, c.size(), "0.1.0"});
  EXPECT_EQ(DiagnosticCode(mixed), "E308") << mixed;
  EXPECT_NE(mixed.message().find("rank 1 has program 0000000000000017"), absl::string_view::npos)
      << mixed;
}

void ValuesThatRanksShareAreComparedAndThoseThatDifferAreNamed(Communicator& c) {
  const std::string mine = absl::StrCat(c.rank());
  const auto check = [&](std::vector<SharedValue> values) {
    return CheckProgram(c, {0xabcdef, c.size(), "0.1.0", std::move(values)});
  };
  EXPECT_OK(check({{"input 0", "a\tb\n", "F"}, {"input 1", "", "F"}}));
  // Only some ranks have it, or each has another.
  EXPECT_OK(check({{absl::StrCat("part ", c.rank()), mine, "F"}}));
  EXPECT_OK(check(c.rank() == 0 ? std::vector<SharedValue>{{"part 0", "x", "F"}}
                                : std::vector<SharedValue>{}));
  if (c.size() == 1) return;
  const std::string last = absl::StrCat(c.size() - 1);
  const absl::Status one = check({{"input 0", "same", "Not this"},
                                  {"input 1", c.rank() + 1 == c.size() ? "B" : "A", "Do this"}});
  EXPECT_EQ(DiagnosticCode(one), "E308") << one;
  EXPECT_TRUE(absl::StrContains(one.message(),
                                absl::StrCat("input 1 (rank", c.size() == 2 ? " 0 has" : "s 0")))
      << one;
  EXPECT_TRUE(absl::StrContains(one.message(), absl::StrCat("; rank ", last, " has B)"))) << one;
  EXPECT_TRUE(absl::StrContains(one.message(), "Fix: Do this")) << one;
  EXPECT_FALSE(absl::StrContains(one.message(), "input 0")) << one;
  const absl::Status many = check(
      {{"a", mine, "F"}, {"b", mine, "F"}, {"c", mine, "F"}, {"d", mine, "F"}, {"e", mine, "F"}});
  EXPECT_TRUE(absl::StrContains(many.message(), "in 2 more")) << many;
  EXPECT_OK(c.Barrier(Iota(c.size()), {"%after"}));
}

}  // namespace

const std::vector<ConformanceCase>& ConformanceCases() {
  static const std::vector<ConformanceCase> kCases = {
      {"ReducesEveryTypeAndKind", ReducesEveryTypeAndKind},
      {"GroupsOfEveryForm", GroupsOfEveryForm},
      {"EverySizeOutOfPlaceAndInPlace", EverySizeOutOfPlaceAndInPlace},
      {"LongOnesOutOfPlaceAndInPlace", LongOnesOutOfPlaceAndInPlace},
      {"Permutes", Permutes},
      {"SendsAndReceives", SendsAndReceives},
      {"RandomSequence", RandomSequence},
      {"StartedCallsRunInOrder", StartedCallsRunInOrder},
      {"SplitsIntoGroupsOfEveryForm", SplitsIntoGroupsOfEveryForm},
      {"AllToAllOfBuffersThatLieApart", AllToAllOfBuffersThatLieApart},
      {"BadArgumentsAreRefusedAtOnce", BadArgumentsAreRefusedAtOnce},
      {"EqualProgramsPassTheCheckAndUnequalOnesAreNamed",
       EqualProgramsPassTheCheckAndUnequalOnesAreNamed},
      {"ValuesThatRanksShareAreComparedAndThoseThatDifferAreNamed",
       ValuesThatRanksShareAreComparedAndThoseThatDifferAreNamed},
  };
  return kCases;
}

}  // namespace shardcall::testing
