// SPDX-License-Identifier: Apache-2.0
// Time to plan the reshards between all shardings of an array, each pair once, over meshes of 8 and
// 64 devices. Partial sums are left out.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "shardcall/sharding/reshard/reshard.h"
#include "tests/sharding/all_shardings.h"

namespace shardcall::bench {
namespace {

// Of this thread, which the machine may interrupt.
double ProcessorMicroseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

using Sizes = std::vector<int64_t>;

void Measure(const Sizes& mesh_sizes, const Sizes& dims) {
  Context context;
  int64_t devices = 1;
  for (int64_t s : mesh_sizes) devices *= s;
  const BaseMesh* mesh = InternBaseMesh(context, mesh_sizes, DeviceOrder::Identity(devices));
  const Shape* shape = context.WithDefaultLayout(context.MakeArray(ElementType::kF32, dims));
  const auto all = AllShardings(context, mesh, static_cast<int>(dims.size()));
  std::vector<double> us;
  double sum = 0;
  for (const Sharding* from : all) {
    for (const Sharding* to : all) {
      const double start = ProcessorMicroseconds();
      PlanReshard(context, shape, from, to);
      us.push_back(ProcessorMicroseconds() - start);
      sum += us.back();
    }
  }
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) {
    return us[static_cast<size_t>(share * static_cast<double>(us.size() - 1))];
  };
  std::printf("%-8s %-14s %6zu %8.1f %8.1f %8.1f %8.1f\n", absl::StrJoin(mesh_sizes, "x").c_str(),
              absl::StrJoin(dims, ",").c_str(), us.size(), sum / static_cast<double>(us.size()),
              at(0.5), at(0.99), at(1));
}

}  // namespace
}  // namespace shardcall::bench

int main() {
  using shardcall::bench::Sizes;
  std::printf("%-8s %-14s %6s %8s %8s %8s %8s\n", "mesh", "array", "pairs", "mean us", "median",
              "99 %", "most");
  for (const Sizes& mesh : {Sizes{8}, Sizes{4, 2}, Sizes{2, 2, 2}, Sizes{8, 8}, Sizes{4, 4, 4}}) {
    for (const Sizes& dims : {Sizes{4096}, Sizes{256, 128}, Sizes{64, 128, 256}, Sizes{1000},
                              Sizes{100, 90}, Sizes{60, 100, 33}}) {
      shardcall::bench::Measure(mesh, dims);
    }
  }
  return 0;
}
