// SPDX-License-Identifier: Apache-2.0
// What it gains to compute while collectives are under way: per-device programs
// as they stand and as pass/overlap.h makes them, in turns in one run.
//
//   bench_overlap [--devices=2] [--seconds=2] [--link=GBPS] [--json=FILE]
//   mpirun -np 2 bench_overlap --backend=mpi ...
//
// --link adds to each collective the time that its bytes take on a link of so
// many GB/s, asleep: memory that one machine shares is moved by the cores that
// compute, which a network's card is not. Exit status 1 where results differ.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "shardcall/collectives/forwarding.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/execute/started_calls.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

struct Flags {
  bool mpi = false;
  int devices = 2;
  double seconds = 2, link = 0;  // GB/s; 0: none
  std::string json;
};

// Counts the time in collectives, and makes each as long as the link takes.
class Link final : public ForwardingCommunicator {
 public:
  Link(Communicator& inner, double gbps) : ForwardingCommunicator(inner), gbps_(gbps) {}
  absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in, void* out,
                         int64_t count, CollectiveTag tag) override {
    return Timed(2 * count * ElementTypeBytes(type),
                 [&] { return inner().AllReduce(group, kind, type, in, out, count, tag); });
  }
  absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                         CollectiveTag tag) override {
    return Timed(bytes * (static_cast<int64_t>(group.size()) - 1),
                 [&] { return inner().AllGather(group, in, out, bytes, tag); });
  }
  absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in, void* out,
                       int64_t bytes, CollectiveTag tag) override {
    return Timed(bytes, [&] { return inner().Permute(pairs, in, out, bytes, tag); });
  }
  double TakeSeconds() { return std::exchange(seconds_, 0); }

 private:
  template <typename F>
  absl::Status Timed(int64_t bytes, F&& call) {
    const absl::Time start = absl::Now();
    absl::Status status = call();
    if (gbps_ > 0) absl::SleepFor(absl::Seconds(static_cast<double>(bytes) / (gbps_ * 1e9)));
    seconds_ += absl::ToDoubleSeconds(absl::Now() - start);
    return status;
  }
  const double gbps_;
  double seconds_ = 0;  // of one thread at a time
};

std::string Groups(int n) {
  return absl::StrCat("channel_id=1, replica_groups=[1,", n, "]<=[", n,
                      "], use_global_device_ids=true");
}

constexpr char kAdd[] =
    "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n";
constexpr char kDot[] = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

// Layers whose weights lie cut over the devices and are gathered where they are
// needed; the batch is cut too.
std::string GatheredWeights(int n) {
  const int layers = 8, hidden = 512;
  const std::string whole = absl::StrCat("f32[", hidden, ",", hidden, "]");
  std::string text = absl::StrCat("HloModule gathered_weights, num_partitions=", n,
                                  "\nENTRY e {\n v.0 = ", whole, " parameter(0)\n");
  for (int k = 1; k <= layers; ++k) {
    absl::StrAppend(&text, " w.", k, " = f32[", hidden / n, ",", hidden, "] parameter(", k, ")\n");
  }
  for (int k = 1; k <= layers; ++k) {
    absl::StrAppend(&text, " g.", k, " = ", whole, " all-gather(w.", k, "), ", Groups(n),
                    ", dimensions={0}\n d.", k, " = ", whole, " dot(v.", k - 1, ", g.", k, "), ",
                    kDot, "\n v.", k, " = ", whole, " tanh(d.", k, ")\n");
  }
  return absl::StrCat(text, " ROOT r = ", whole, " negate(v.", layers, ")\n}\n");
}

// The backward pass of a tensor-parallel block: each layer sums the gradient of its
// input over the devices, and makes that of its weights, which needs no sum.
std::string TensorParallel(int n) {
  const int layers = 8, rows = 512, hidden = 512;
  const std::string whole = absl::StrCat("f32[", rows, ",", hidden, "]");
  const std::string cut = absl::StrCat("f32[", hidden, ",", hidden / n, "]");
  const std::string part = absl::StrCat("f32[", rows, ",", hidden / n, "]");
  std::string text = absl::StrCat("HloModule tensor_parallel, num_partitions=", n, "\n", kAdd,
                                  "ENTRY e {\n y.0 = ", whole, " parameter(0)\n x = ", whole,
                                  " parameter(1)\n w = ", cut, " parameter(2)\n");
  std::string results, shapes;
  for (int k = 1; k <= layers; ++k) {
    absl::StrAppend(&text, " p.", k, " = ", part, " dot(y.", k - 1, ", w), ", kDot, "\n q.", k,
                    " = ", whole, " dot(p.", k,
                    ", w), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n s.", k, " = ",
                    whole, " all-reduce(q.", k, "), ", Groups(n), ", to_apply=add\n y.", k, " = ",
                    whole, " tanh(s.", k, ")\n dw.", k, " = ", cut, " dot(x, p.", k,
                    "), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n");
    absl::StrAppend(&results, "dw.", k, ", ");
    absl::StrAppend(&shapes, cut, ", ");
  }
  return absl::StrCat(text, " ROOT r = (", shapes, whole, ") tuple(", results, "y.", layers,
                      ")\n}\n");
}

// Attention's inner loop over a ring: keys go on while scores are made of them.
std::string Ring(int n) {
  const int rows = 768, width = 512;
  const std::string block = absl::StrCat("f32[", rows, ",", width, "]");
  const std::string scores = absl::StrCat("f32[", rows, ",", rows, "]");
  const std::string carry = absl::StrCat("(s32[], ", block, ", ", block, ", ", block, ")");
  std::string pairs;
  for (int d = 0; d < n; ++d) absl::StrAppend(&pairs, d ? "," : "", "{", d, ",", (d + 1) % n, "}");
  return absl::StrCat(
      "HloModule ring, num_partitions=", n, "\nbody {\n t = ", carry,
      " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n q = ", block,
      " get-tuple-element(t), index=1\n k = ", block,
      " get-tuple-element(t), index=2\n o = ", block,
      " get-tuple-element(t), index=3\n s = ", scores,
      " dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n e = ", scores,
      " tanh(s)\n u = ", block, " dot(e, k), ", kDot, "\n a = ", block,
      " add(o, u)\n next = ", block, " collective-permute(k), channel_id=2, source_target_pairs={",
      pairs, "}\n one = s32[] constant(1)\n j = s32[] add(i, one)\n ROOT r = ", carry,
      " tuple(j, q, next, a)\n}\ngo {\n t = ", carry,
      " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n m = s32[] constant(8)\n"
      " ROOT l = pred[] compare(i, m), direction=LT\n}\nENTRY e {\n q = ",
      block, " parameter(0)\n k = ", block,
      " parameter(1)\n z = s32[] constant(0)\n zero = f32[] "
      "constant(0)\n o = ",
      block, " broadcast(zero), dimensions={}\n t = ", carry, " tuple(z, q, k, o)\n w = ", carry,
      " while(t), condition=go, body=body\n ROOT r = ", block,
      " get-tuple-element(w), index=3\n}\n");
}

struct Measured {
  std::string name;
  double apart_us = 0, together_us = 0;  // medians of one execution: without, with overlap
  double collective_us = 0;              // in collectives, without overlap
  double ratio = 0;                      // median over rounds
  int rounds = 0;
  bool same = true;
};

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<int64_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// What one device measures; all devices make the same calls.
absl::Status MeasureProgram(Communicator& comm, const std::string& text, const Flags& flags,
                            Measured* out) {
  SHARDCALL_ASSIGN_OR_RETURN(
      const Module module,
      ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "bench"));
  SHARDCALL_ASSIGN_OR_RETURN(const absl::optional<Module> overlapped, Overlapped(module));
  if (!overlapped) return absl::InternalError("the program has nothing to overlap");
  std::shared_ptr<const DeviceProgram> programs[2];
  SHARDCALL_ASSIGN_OR_RETURN(programs[0], Lower(module));
  SHARDCALL_ASSIGN_OR_RETURN(programs[1], Lower(*overlapped));
  std::vector<Tensor> inputs =
      RandomInputs(programs[0]->parameters, static_cast<uint64_t>(comm.rank()));
  std::vector<int> everyone(comm.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<double> times[2], ratios, collective;
  std::vector<Tensor> first;
  const absl::Time end = absl::Now() + absl::Seconds(flags.seconds);
  for (int round = 0;; ++round) {
    double taken[2];
    for (int side : {round % 2, 1 - round % 2}) {
      Link link(comm, flags.link);
      SHARDCALL_RETURN_IF_ERROR(comm.Barrier(everyone, {"round"}));
      const absl::Time start = absl::Now();
      StartedCalls started(&link, programs[side]->has_starts);
      DeviceContext device;
      device.device = comm.rank();
      device.num_devices = comm.size();
      device.comm = started.comm();
      device.started = &started;
      SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                                 Execute(*programs[side], absl::MakeConstSpan(inputs), device));
      SHARDCALL_RETURN_IF_ERROR(comm.Barrier(everyone, {"round"}));
      taken[side] = absl::ToDoubleMicroseconds(absl::Now() - start);
      if (side == 0) collective.push_back(link.TakeSeconds() * 1e6);
      if (first.empty()) first = results;
      for (size_t k = 0; k < results.size(); ++k) {
        out->same = out->same && BitwiseEqual(results[k], first[k]);
      }
    }
    if (round > 0) {  // the first fills caches and pools
      times[0].push_back(taken[0]);
      times[1].push_back(taken[1]);
      ratios.push_back(taken[0] / taken[1]);
    }
    int32_t more = absl::Now() < end || round < 5;
    SHARDCALL_RETURN_IF_ERROR(comm.Broadcast(everyone, 0, &more, sizeof(more), {"more"}));
    if (!more) break;
  }
  out->apart_us = Median(times[0]);
  out->together_us = Median(times[1]);
  out->collective_us = Median(collective);
  out->ratio = Median(ratios);
  out->rounds = static_cast<int>(ratios.size());
  return absl::OkStatus();
}

absl::Status MeasureAll(Communicator& comm, const Flags& flags, std::vector<Measured>* out) {
  for (const auto& [name, make] :
       {std::make_pair("gathered weights", GatheredWeights),
        std::make_pair("tensor parallel", TensorParallel), std::make_pair("ring", Ring)}) {
    Measured m;
    m.name = name;
    SHARDCALL_RETURN_IF_ERROR(MeasureProgram(comm, make(comm.size()), flags, &m));
    int32_t same = m.same;
    std::vector<int> everyone(comm.size());
    std::iota(everyone.begin(), everyone.end(), 0);
    SHARDCALL_RETURN_IF_ERROR(
        comm.AllReduce(everyone, ReduceKind::kMin, ElementType::kS32, &same, &same, 1, {"same"}));
    m.same = same != 0;
    out->push_back(m);
  }
  return absl::OkStatus();
}

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (absl::ConsumePrefix(&arg, "--backend=")) {
      flags->mpi = arg == "mpi";
      if (!flags->mpi && arg != "inprocess") return false;
    } else if (absl::ConsumePrefix(&arg, "--devices=")) {
      if (!absl::SimpleAtoi(arg, &flags->devices) || flags->devices < 2) return false;
    } else if (absl::ConsumePrefix(&arg, "--seconds=")) {
      if (!absl::SimpleAtod(arg, &flags->seconds)) return false;
    } else if (absl::ConsumePrefix(&arg, "--link=")) {
      if (!absl::SimpleAtod(arg, &flags->link) || flags->link < 0) return false;
    } else if (absl::ConsumePrefix(&arg, "--json=")) {
      flags->json = std::string(arg);
    } else {
      return false;
    }
  }
  return true;
}

int Finish(const Flags& flags, const absl::Status& status, const std::vector<Measured>& all) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  nlohmann::json list = nlohmann::json::array();
  std::printf(
      "%s, %d devices, %s\n%-18s %12s %12s %14s %7s %7s %6s\n", flags.mpi ? "mpi" : "inprocess",
      flags.devices,
      flags.link > 0 ? absl::StrCat("a link of ", flags.link, " GB/s").c_str() : "memory as it is",
      "program", "apart us", "overlap us", "collectives us", "ratio", "hidden", "same");
  bool same = true;
  for (const Measured& m : all) {
    const double hidden = (m.apart_us - m.together_us) / m.collective_us;
    std::printf("%-18s %12.0f %12.0f %14.0f %7.3f %6.0f%% %6s\n", m.name.c_str(), m.apart_us,
                m.together_us, m.collective_us, m.ratio, 100 * hidden, m.same ? "yes" : "NO");
    list.push_back({{"program", m.name},
                    {"apart_us", m.apart_us},
                    {"overlap_us", m.together_us},
                    {"collectives_us", m.collective_us},
                    {"ratio", m.ratio},
                    {"rounds", m.rounds},
                    {"same", m.same}});
    same = same && m.same;
  }
  std::printf(
      "ratio: times as fast with overlap, median over rounds; hidden: of the time in "
      "collectives\n");
  if (!flags.json.empty()) {
    const nlohmann::json json = {{"backend", flags.mpi ? "mpi" : "inprocess"},
                                 {"devices", flags.devices},
                                 {"link_gbps", flags.link},
                                 {"cores", std::thread::hardware_concurrency()},
                                 {"programs", list}};
    std::ofstream(flags.json) << json.dump(1) << "\n";
  }
  return same ? 0 : 1;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: bench_overlap [--backend=inprocess|mpi] [--devices=N] "
                 "[--seconds=S] [--link=GBPS] [--json=FILE]\n");
    return 2;
  }
  if (flags.mpi) {
    auto comm = ConnectMpi(absl::Seconds(60));
    if (!comm.ok()) return Finish(flags, comm.status(), {});
    flags.devices = (*comm)->size();
    std::vector<Measured> all;
    const absl::Status status = MeasureAll(**comm, flags, &all);
    if (!status.ok()) (*comm)->Abort(status);
    return (*comm)->rank() == 0 || !status.ok() ? Finish(flags, status, all) : 0;
  }
  InProcessWorld world(flags.devices, absl::Seconds(60));
  std::vector<std::unique_ptr<Communicator>> comms;
  for (int d = 0; d < flags.devices; ++d) comms.push_back(world.Rank(d));
  std::vector<absl::Status> status(flags.devices);
  std::vector<std::vector<Measured>> all(flags.devices);
  std::vector<std::thread> threads;
  for (int d = 0; d < flags.devices; ++d) {
    threads.emplace_back([&, d] {
      status[d] = MeasureAll(*comms[d], flags, &all[d]);
      if (!status[d].ok()) comms[d]->Abort(status[d]);
    });
  }
  for (std::thread& t : threads) t.join();
  return Finish(flags, status[0], all[0]);
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) { return shardcall::Main(argc, argv); }
