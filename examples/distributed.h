// SPDX-License-Identifier: Apache-2.0
// What the examples for several processes share: the backend by its flag, how its
// processes find each other, a run, and a comparison with numbers that are known.
#ifndef SHARDCALL_EXAMPLES_DISTRIBUTED_H_
#define SHARDCALL_EXAMPLES_DISTRIBUTED_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

constexpr absl::Duration kDeadline = absl::Seconds(20);  // of every wait for a device

// The other devices, from `--backend=inprocess|mpi|nccl` (inprocess if it is not
// given). In process, devices are threads of this one and the communicator is null.
struct Devices {
  Backend backend = Backend::kInProcess;
  std::string name = "inprocess";
  std::unique_ptr<Communicator> bootstrap;  // over which NCCL's processes find each other
  std::unique_ptr<Communicator> communicator;

  int rank() const { return communicator == nullptr ? 0 : communicator->rank(); }
  bool first() const { return rank() == 0; }
};

inline absl::StatusOr<Devices> Connect(absl::string_view flag) {
  Devices devices;
  if (absl::ConsumePrefix(&flag, "--backend=")) {
    devices.name = std::string(flag);
  } else if (!flag.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("expected --backend=..., found ", flag));
  }
  SHARDCALL_ASSIGN_OR_RETURN(devices.backend, BackendFromName(devices.name));
  if (devices.backend == Backend::kMpi) {
    if (!LaunchedByMpi()) {
      return absl::UnavailableError("--backend=mpi needs a launcher: mpirun -np 4 ...");
    }
    SHARDCALL_ASSIGN_OR_RETURN(devices.communicator, ConnectMpi(kDeadline));
  } else if (devices.backend == Backend::kNccl) {
    // First, so that a machine without a GPU says so before anybody is waited for.
    SHARDCALL_RETURN_IF_ERROR(CheckNcclDevice());
    NcclOptions nccl;  // without a launcher this is the only process
    if (LaunchedByMpi()) {
      SHARDCALL_ASSIGN_OR_RETURN(devices.bootstrap, ConnectMpi(kDeadline));
      nccl.over = devices.bootstrap.get();
    }
    SHARDCALL_ASSIGN_OR_RETURN(devices.communicator, ConnectNccl(kDeadline, nccl));
  }
  return devices;
}

// FNV-1a over all results: equal on every backend.
inline uint64_t Digest(const std::vector<Tensor>& results) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Tensor& t : results) {
    for (int64_t k = 0; k < t.num_elements() * ElementTypeBytes(t.type()); ++k) {
      hash = (hash ^ static_cast<unsigned char>(t.data()[k])) * 0x100000001b3;
    }
  }
  return hash;
}

// Partitions and runs the module, and holds the results against `want`: what may
// differ is `tolerance` of an array's largest value. The first device prints.
inline absl::Status RunOn(Devices& devices, Module module, const TargetRegistry& targets,
                          const HandlerRegistry& handlers, const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& want, double tolerance) {
  RunOptions options;
  options.partition.targets = &targets;
  options.handlers = &handlers;
  options.backend = devices.backend;
  options.deadline = kDeadline;
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), options.partition));
  const int64_t n = program->global->program.num_partitions;
  if (devices.communicator != nullptr && devices.communicator->size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("the program is for ", n, " devices, and there are ",
                     devices.communicator->size(), ": start it with mpirun -np ", n));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> got,
                             RunPartitioned(*program, inputs, options, devices.communicator.get()));
  if (devices.first()) {
    std::printf("%d devices (%s)\n", static_cast<int>(n), devices.name.c_str());
    for (const auto& [opcode, total] : TotalsByOpcode(program->local)) {
      std::printf("  %-20s %3d, %s sent by each device\n", opcode.c_str(),
                  static_cast<int>(total.count), HumanBytes(total.bytes_weighted).c_str());
    }
  }
  double worst = 0;
  for (size_t k = 0; k < want.size(); ++k) {
    const OutputDifference d = Compare(want[k], got[k], /*exact=*/false);
    const double relative = d.largest > 0 ? d.max_abs_diff / d.largest : d.max_abs_diff;
    if (!d.ok || relative > tolerance) {
      return absl::DataLossError(absl::StrCat("result ", k, " is off by ", d.max_abs_diff,
                                              ", its largest value is ", d.largest));
    }
    worst = std::max(worst, relative);
  }
  if (devices.first()) {
    std::printf("largest difference     %.2g of the largest value\n", worst);
    std::printf("digest of the results  %016llx\n", static_cast<unsigned long long>(Digest(got)));
  }
  return absl::OkStatus();
}

// Connects, runs the body, and gives the exit status: 1 failed, 3 results differ, 4 the
// machine lacks the backend. A device that fails tells the others, whatever they wait in.
inline int OnDevices(absl::string_view flag, absl::FunctionRef<absl::Status(Devices&)> body) {
  absl::StatusOr<Devices> devices = Connect(flag);
  absl::Status status = devices.status();
  std::string who;
  if (devices.ok()) {
    status = body(*devices);
    if (status.ok()) return 0;
    if (devices->communicator != nullptr) {
      who = absl::StrCat("rank ", devices->rank(), ": ");
      devices->communicator->Abort(status);
    }
  }
  std::fprintf(stderr, "%s\n", absl::StrCat(who, status.message()).c_str());
  return absl::IsDataLoss(status) ? 3 : absl::IsUnavailable(status) ? 4 : 1;
}

}  // namespace shardcall

#endif  // SHARDCALL_EXAMPLES_DISTRIBUTED_H_
