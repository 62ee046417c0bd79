// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL that we call, but for those that move data.
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/collectives/stand_in/communicator.h"
#include "tests/collectives/stand_in/record.h"
#include "tests/collectives/stand_in/stream.h"

namespace stand_in {
namespace {

std::string Id(const ncclUniqueId& id) {
  return std::string(id.internal, strnlen(id.internal, sizeof(id.internal)));
}

// The groups of a split, once all have chosen; a member joins its own.
ncclResult_t Split(Comm& parent, int number, ncclComm_t* made, bool blocking) {
  Shared::Choice* const choices = parent.segment->shared().splits[number];
  for (int r = 0; r < parent.count; ++r) {
    if (choices[r].made.load(std::memory_order_acquire) == 0) return ncclInProgress;
  }
  const int color = choices[parent.rank].color;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int r = 0; r < parent.count; ++r) {
    if (choices[r].color == color) members.push_back({choices[r].key, r});
  }
  std::sort(members.begin(), members.end());
  int rank = 0;
  while (members[rank].second != parent.rank) ++rank;
  auto child = Join(parent.id + "." + std::to_string(number) + "." + std::to_string(color), rank,
                    static_cast<int>(members.size()), blocking);
  if (child == nullptr) return ncclSystemError;
  *made = Keep(std::move(child));
  return ncclSuccess;
}

void CheckConfig(const ncclConfig_t* config, const char* function) {
  const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  if (config != nullptr && (config->size != initial.size || config->magic != initial.magic)) {
    Misuse(std::string(function) + " with a configuration that nobody initialised");
  }
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;  // NOLINT

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "an error of the stand-in for NCCL";
}
const char* ncclGetLastError(ncclComm_t) { return LastError(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  *id = {};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::snprintf(id->internal, sizeof(id->internal), "%d.%d.%lld", static_cast<int>(getpid()),
                made++, static_cast<long long>(now));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int count, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  CheckConfig(config, "ncclCommInitRankConfig");
  if (count < 1 || count > kMaxRanks || rank < 0 || rank >= count) return ncclInvalidArgument;
  auto made = Join(Id(id), rank, count, config == nullptr || config->blocking != 0);
  if (made == nullptr) return ncclSystemError;
  *comm = Keep(made);
  Record("ncclCommInitRankConfig(rank " + std::to_string(rank) + " of " + std::to_string(count) +
         ", " + CommText(*made) + ")");
  return AwaitIfBlocking(*made);
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int count, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, count, id, rank, nullptr);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  const std::shared_ptr<Comm> parent = FindReady(comm, "ncclCommSplit");
  CheckConfig(config, "ncclCommSplit");
  const int number = parent->splits++;
  if (number == kMaxSplits) Misuse("more splits than the stand-in has room for");
  Record("ncclCommSplit(color " + std::to_string(color) + ", key " + std::to_string(key) + ", " +
         CommText(*parent) + ")");
  Shared::Choice& mine = parent->segment->shared().splits[number][parent->rank];
  mine.color = color;
  mine.key = key;
  mine.made.store(1, std::memory_order_release);
  *made = nullptr;
  const bool blocking = config == nullptr ? parent->blocking : config->blocking != 0;
  parent->state = ncclInProgress;
  parent->move_on = [p = parent.get(), number, made, blocking] {
    return Split(*p, number, made, blocking);
  };
  const ncclResult_t result = AwaitIfBlocking(*parent);
  if (result == ncclSuccess && blocking && *made != nullptr) {
    return AwaitIfBlocking(*FindComm(*made, "ncclCommSplit"));
  }
  return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = Advance(*FindComm(comm, "ncclCommGetAsyncError"));
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  End(comm, /*abort=*/true, "ncclCommAbort");
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (GroupDepth() > 0) Misuse("ncclCommDestroy within a group");
  End(comm, /*abort=*/false, "ncclCommDestroy");
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  *pointer = Allocate(bytes, /*of_nccl=*/true);
  return *pointer == nullptr ? ncclSystemError : ncclSuccess;
}
ncclResult_t ncclMemFree(void* pointer) {
  Free(pointer, /*of_nccl=*/true, "ncclMemFree");
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t bytes, void** handle) {
  const auto found = FindReady(comm, "ncclCommRegister");
  LookAtDevice(buffer, bytes, "ncclCommRegister");
  auto* const made = new Registration{Find(buffer)};
  ++made->memory->registrations;
  found->registrations.insert(made);
  *handle = made;
  Record("ncclCommRegister(" + std::to_string(bytes) + ", " + CommText(*found) + ")");
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  const auto found = FindReady(comm, "ncclCommDeregister");
  auto* const registration = static_cast<Registration*>(handle);
  if (found->registrations.erase(registration) == 0) {
    Misuse("ncclCommDeregister of what is not registered with the communicator");
  }
  --registration->memory->registrations;
  delete registration;
  Record("ncclCommDeregister(" + CommText(*found) + ")");
  return ncclSuccess;
}

}  // extern "C"
