// SPDX-License-Identifier: Apache-2.0
// Bandwidth of the collectives, beside raw MPI or raw NCCL, and memcpy, in the same run.
//
//   bench_collectives [--devices=4] [--ops=all-reduce,...] [--min=1024] [--max=268435456]
//                     [--factor=4] [--rounds=9] [--json=FILE]
//   mpirun -np 4 bench_collectives --backend=mpi ...
//   mpirun -np 4 bench_collectives --backend=nccl ...      one rank a GPU, device memory
//
// Exit status 1 where a result is wrong.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/sharding/base/status.h"
#include "tests/benchmarks/collective_bench.h"

namespace shardcall::bench {
namespace {

struct Flags {
  Options options;
  std::string backend = "inprocess";
  int devices = 4;
  std::string json;
};

bool Parse(int argc, char** argv, Flags* flags) {
  flags->options.ops.assign(std::begin(kAllOps), std::end(kAllOps));
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    Options& o = flags->options;
    if (absl::ConsumePrefix(&arg, "--backend=")) {
      flags->backend = std::string(arg);
      if (arg != "mpi" && arg != "nccl" && arg != "inprocess") return false;
    } else if (absl::ConsumePrefix(&arg, "--devices=")) {
      if (!absl::SimpleAtoi(arg, &flags->devices) || flags->devices < 1) return false;
    } else if (absl::ConsumePrefix(&arg, "--min=")) {
      if (!absl::SimpleAtoi(arg, &o.min_bytes) || o.min_bytes < 4) return false;
    } else if (absl::ConsumePrefix(&arg, "--max=")) {
      if (!absl::SimpleAtoi(arg, &o.max_bytes) || o.max_bytes > (int64_t{1} << 32)) return false;
    } else if (absl::ConsumePrefix(&arg, "--factor=")) {
      if (!absl::SimpleAtoi(arg, &o.factor) || o.factor < 2) return false;
    } else if (absl::ConsumePrefix(&arg, "--rounds=")) {
      if (!absl::SimpleAtoi(arg, &o.rounds) || o.rounds < 1) return false;
    } else if (absl::ConsumePrefix(&arg, "--json=")) {
      flags->json = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--ops=")) {
      o.ops.clear();
      for (absl::string_view name : absl::StrSplit(arg, ',')) {
        const auto* op = std::find_if(std::begin(kAllOps), std::end(kAllOps),
                                      [&](Op candidate) { return name == OpName(candidate); });
        if (op == std::end(kAllOps)) return false;
        o.ops.push_back(*op);
      }
    } else {
      return false;
    }
  }
  return true;
}

void Print(const std::vector<Point>& points) {
  std::printf("%-14s %10s %-18s %11s %11s %9s %9s %7s %6s\n", "op", "bytes", "side", "best us",
              "median us", "algbw", "busbw", "x", "wrong");
  for (const Point& p : points) {
    std::printf("%-14s %10ld %-18s %11.2f %11.2f %9.2f %9.2f %7.3f %6ld\n", p.op.c_str(),
                static_cast<long>(p.bytes), p.side.c_str(), p.best_us, p.median_us, p.algbw,
                p.busbw, p.median_ratio, static_cast<long>(p.wrong));
  }
  std::printf("GB/s of the best round; x: times as fast is shardcall, median over rounds\n");
}

int Finish(const Flags& flags, int devices, const absl::Status& status,
           const std::vector<Point>& points) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  if (points.empty()) return 0;  // not the first rank
  Print(points);
  if (!flags.json.empty()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Point& p : points) {
      list.push_back({{"op", p.op},
                      {"side", p.side},
                      {"bytes", p.bytes},
                      {"best_us", p.best_us},
                      {"median_us", p.median_us},
                      {"algbw", p.algbw},
                      {"busbw", p.busbw},
                      {"ratio", p.median_ratio},
                      {"wrong", p.wrong}});
    }
    const nlohmann::json all = {{"backend", flags.backend},
                                {"devices", devices},
                                {"cores", std::thread::hardware_concurrency()},
                                {"points", list}};
    std::ofstream(flags.json) << all.dump(1) << "\n";
  }
  return std::any_of(points.begin(), points.end(), [](const Point& p) { return p.wrong > 0; });
}

int RunMpi(const Flags& flags) {
  auto connected = ConnectMpi(absl::Seconds(60));
  if (!connected.ok()) return Finish(flags, 0, connected.status(), {});
  Communicator& c = **connected;
  std::vector<Point> points;
  const absl::Status status = Measure(c, flags.options, RawMpiSides, &points);
  return Finish(flags, c.size(), status, points);
}

int RunNccl(const Flags& flags) {
  const absl::Status device = CheckNcclDevice();
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", std::string(device.message()).c_str());
    return 4;
  }
  std::unique_ptr<Communicator> mpi;
  NcclOptions options;
  if (LaunchedByMpi()) {
    auto connected = ConnectMpi(absl::Seconds(60));
    if (!connected.ok()) return Finish(flags, 0, connected.status(), {});
    mpi = *std::move(connected);
    options.over = mpi.get();
  }
  auto connected = ConnectNccl(absl::Seconds(60), options);
  if (!connected.ok()) return Finish(flags, 0, connected.status(), {});
  Communicator& c = **connected;
  const auto raw = RawNcclSides(c);
  if (!raw.ok()) return Finish(flags, c.size(), raw.status(), {});
  Options on_device = flags.options;
  on_device.memory = DeviceMemory();
  std::vector<Point> points;
  const absl::Status status = Measure(c, on_device, *raw, &points);
  return Finish(flags, c.size(), status, points);
}

int RunInProcess(const Flags& flags) {
  InProcessWorld world(flags.devices, absl::Seconds(60));
  std::vector<Point> points;
  std::vector<absl::Status> statuses(flags.devices);
  std::vector<std::thread> devices;
  for (int r = 0; r < flags.devices; ++r) {
    devices.emplace_back([&, r] {
      auto c = world.Rank(r);
      statuses[r] = Measure(*c, flags.options, [](Op) { return std::vector<Side>(); }, &points);
    });
  }
  for (std::thread& device : devices) device.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return Finish(flags, flags.devices, status, {});
  }
  return Finish(flags, flags.devices, absl::OkStatus(), points);
}

}  // namespace
}  // namespace shardcall::bench

int main(int argc, char** argv) {
  shardcall::bench::Flags flags;
  if (!shardcall::bench::Parse(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: %s [--backend=inprocess|mpi|nccl] [--devices=N] [--ops=OP,...] "
                 "[--min=BYTES] [--max=BYTES] [--factor=N] [--rounds=N] [--json=FILE]\n",
                 argv[0]);
    return 2;
  }
  return flags.backend == "mpi"    ? shardcall::bench::RunMpi(flags)
         : flags.backend == "nccl" ? shardcall::bench::RunNccl(flags)
                                   : shardcall::bench::RunInProcess(flags);
}
