// SPDX-License-Identifier: Apache-2.0
// What a run allocates is linear in its devices: no device has a copy of what concerns them all.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/partitioner/runtime/run_text.h"

namespace {

std::atomic<int64_t> allocated{0};

void* Allocate(size_t bytes) {
  allocated.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  void* const p = std::malloc(bytes);
  if (p == nullptr) std::abort();
  return p;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }

namespace shardcall {
namespace {

constexpr char kAdd[] =
    "add {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b)\n}\n";

// The bytes that a run of n devices allocates, from the start of its threads to the end. Device d's
// argument is d; each device's result must be `expected(d)`.
int64_t AllocatedBy(const std::string& body, int n, int64_t (*expected)(int d, int n)) {
  const auto program = LowerText(
      absl::StrCat(kAdd, "ENTRY e {\n p = s32[] parameter(0)\n ROOT r = s32[] ", body, "\n}\n"),
      absl::StrCat("num_partitions=", n));
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return 0;
  std::vector<std::vector<Tensor>> arguments;
  for (int d = 0; d < n; ++d) arguments.push_back({S32({}, {d})});
  const int64_t before = allocated;
  const auto results = RunOnThreads(**program, std::move(arguments), n, nullptr, absl::Seconds(60));
  const int64_t bytes = allocated - before;
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return 0;
  for (int d = 0; d < n; ++d) {
    EXPECT_EQ(IntElement((*results)[d][0], 0), expected(d, n)) << "device " << d;
  }
  return bytes;
}

int64_t Sum(int /*d*/, int n) { return int64_t{n} * (n - 1) / 2; }
int64_t SumOfHalf(int d, int n) {
  int64_t sum = 0;
  for (int e = d % 2; e < n; e += 2) sum += e;
  return sum;
}
int64_t Before(int d, int n) { return (d + n - 1) % n; }

// 16 times the devices allocate about 16 times as much, or somewhat more, since few find threads of
// earlier runs. A list of all devices for each of them would be 256 times as much.
void ExpectLinear(std::string (*body)(int n), int64_t (*expected)(int d, int n)) {
  const int64_t few = AllocatedBy(body(64), 64, expected);
  const int64_t many = AllocatedBy(body(1024), 1024, expected);
  EXPECT_LT(many, 16 * few * 2) << few;
}

TEST(ManyDevices, AGroupOfAllIsStoredOnce) {
  ExpectLinear([](int) -> std::string { return "all-reduce(p), channel_id=1, to_apply=add"; }, Sum);
}

TEST(ManyDevices, GroupsInIotaFormAreStoredOnce) {
  ExpectLinear(
      [](int n) {
        return absl::StrCat("all-reduce(p), channel_id=1, use_global_device_ids=true, ",
                            "to_apply=add, replica_groups=[2,", n / 2, "]<=[", n / 2, ",2]T(1,0)");
      },
      SumOfHalf);
}

TEST(ManyDevices, ListedGroupsAreStoredOnce) {
  ExpectLinear(
      [](int n) {
        std::string groups = "{0";
        for (int d = 2; d < n; d += 2) absl::StrAppend(&groups, ",", d);
        absl::StrAppend(&groups, "},{1");
        for (int d = 3; d < n; d += 2) absl::StrAppend(&groups, ",", d);
        return absl::StrCat("all-reduce(p), channel_id=1, use_global_device_ids=true, ",
                            "to_apply=add, replica_groups={", groups, "}}");
      },
      SumOfHalf);
}

TEST(ManyDevices, ThePairsOfAPermuteAreStoredOnce) {
  ExpectLinear(
      [](int n) {
        std::string pairs;
        for (int d = 0; d < n; ++d) {
          absl::StrAppend(&pairs, d > 0 ? "," : "", "{", d, ",", (d + 1) % n, "}");
        }
        return absl::StrCat("collective-permute(p), channel_id=1, source_target_pairs={", pairs,
                            "}");
      },
      Before);
}

}  // namespace
}  // namespace shardcall
