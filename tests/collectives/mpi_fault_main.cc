// SPDX-License-Identifier: Apache-2.0
// One fault on one rank of an MPI job, by name. Every rank that gets an error
// prints "rank R got STATUS in MS ms" and goes on to check that the failure is
// final.
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collectives/mpi.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(1);

absl::Status AllReduceOf(Communicator& c, const std::vector<int>& group, int64_t count) {
  std::vector<float> in(count, 1.0f), out(count);
  return c.AllReduce(group, ReduceKind::kSum, ElementType::kF32, in.data(), out.data(), count,
                     {"%ar.2"});
}

int RunFault(const std::string& fault) {
  auto connected = ConnectMpi(kDeadline);
  if (!connected.ok()) return 1;
  Communicator& c = **connected;
  std::vector<int> all(c.size());
  std::iota(all.begin(), all.end(), 0);
  if (!c.Barrier(all, {"%first"}).ok()) return 1;
  const auto start = std::chrono::steady_clock::now();
  absl::Status status;
  if (c.rank() != 1) {
    status = AllReduceOf(c, all, 100000);
  } else if (fault == "absent") {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // in a kernel
    status = AllReduceOf(c, all, 100000);
  } else if (fault == "mismatch") {
    status = AllReduceOf(c, all, 99999);
  } else if (fault == "abort") {
    c.Abort(absl::InternalError("device 1 ran out of memory"));
    status = c.Barrier(all, {"%after"});
  } else if (fault == "leave") {
    return 0;
  }
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::steady_clock::now() - start)
                      .count();
  const std::string text(status.message());
  std::fprintf(stderr, "rank %d got %s in %ld ms\n", c.rank(), text.c_str(), static_cast<long>(ms));
  const absl::Status again = c.Barrier(all, {"%again"});
  std::fprintf(stderr, "rank %d later got %s\n", c.rank(),
               again == status ? "the same" : std::string(again.message()).c_str());
  // The launcher kills the others as soon as one rank returns an error; on a
  // busy machine they may not have printed theirs yet.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return 1;
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) { return argc == 2 ? shardcall::RunFault(argv[1]) : 2; }
