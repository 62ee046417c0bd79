// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/stand_in/communicator.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "tests/collectives/stand_in/record.h"
#include "tests/collectives/stand_in/stream.h"

namespace stand_in {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

struct Comms {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<Comm>> live;  // null once ended
  int made = 0;
};
Comms& All() {
  static Comms* const comms = new Comms;
  return *comms;
}

// All have come; two of them on one GPU of one host are refused.
ncclResult_t LookAtMembers(Comm& comm) {
  Shared& shared = comm.segment->shared();
  for (int r = 0; r < comm.count; ++r) {
    if (shared.members[r].joined.load(std::memory_order_acquire) == 0) return ncclInProgress;
  }
  comm.segment->Unlink();
  for (int a = 0; a < comm.count; ++a) {
    for (int b = 0; b < a; ++b) {
      if (shared.members[a].device == shared.members[b].device &&
          std::strcmp(shared.members[a].host, shared.members[b].host) == 0) {
        SetLastError("two ranks of a host are on one device");
        return ncclInvalidUsage;
      }
    }
  }
  return ncclSuccess;
}

}  // namespace

std::shared_ptr<Comm> FindComm(ncclComm_t comm, const char* function) {
  std::lock_guard<std::mutex> lock(All().mutex);
  const auto it = All().live.find(comm);
  if (it == All().live.end()) Misuse(std::string(function) + " of what is no communicator");
  if (it->second == nullptr) Misuse(std::string(function) + " of a communicator after its end");
  return it->second;
}

std::shared_ptr<Comm> FindReady(ncclComm_t comm, const char* function) {
  std::shared_ptr<Comm> found = FindComm(comm, function);
  if (found->state == ncclInProgress) {
    Misuse(std::string(function) + " of a communicator whose last call is in progress");
  }
  return found;
}

std::string CommText(const Comm& comm) { return "comm " + std::to_string(comm.number); }

ncclComm_t Keep(std::shared_ptr<Comm> comm) {
  const auto handle = reinterpret_cast<ncclComm_t>(new char);
  std::lock_guard<std::mutex> lock(All().mutex);
  comm->number = All().made++;
  All().live[handle] = std::move(comm);
  Made(Thing::kCommunicator);
  return handle;
}

void End(ncclComm_t comm, bool abort, const char* function) {
  const std::shared_ptr<Comm> found = FindComm(comm, function);
  Record(std::string(function) + "(" + CommText(*found) + ")");
  {
    std::lock_guard<std::mutex> lock(All().mutex);
    All().live[comm] = nullptr;
  }
  if (abort) {
    found->aborted = true;
    found->segment->Unlink();
  } else if (found->state == ncclInProgress) {
    Misuse(std::string(function) + " of a communicator whose last call is in progress");
  }
  found->move_on = nullptr;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (found->running > 0) {
    if (std::chrono::steady_clock::now() > end) {
      Misuse(std::string(function) + " waits for what does not end");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  for (Registration* registration : found->registrations) {
    --registration->memory->registrations;
    delete registration;
  }
  found->registrations.clear();
  Freed(Thing::kCommunicator);
}

std::shared_ptr<Comm> Join(const std::string& id, int rank, int count, bool blocking) {
  auto comm = std::make_shared<Comm>();
  comm->id = id;
  comm->rank = rank;
  comm->count = count;
  comm->device = CurrentDevice();
  comm->blocking = blocking;
  comm->segment = Segment::Open(id, count);
  if (comm->segment == nullptr) return nullptr;
  Shared::Member& me = comm->segment->shared().members[rank];
  me.device = comm->device;
  const char* const host = std::getenv("NCCL_HOSTID");
  if (host != nullptr) std::strncpy(me.host, host, sizeof(me.host) - 1);
  if (me.joined.exchange(1) != 0) {
    Misuse("two members of a communicator are rank " + std::to_string(rank));
  }
  comm->state = ncclInProgress;
  comm->move_on = [c = comm.get()] { return LookAtMembers(*c); };
  return comm;
}

ncclResult_t Advance(Comm& comm) {
  if (comm.state == ncclInProgress) {
    comm.state = comm.move_on();
    if (comm.state != ncclInProgress) comm.move_on = nullptr;
  }
  const auto failure = static_cast<ncclResult_t>(comm.failure.load());
  return failure != ncclSuccess ? failure : comm.state;
}

ncclResult_t AwaitIfBlocking(Comm& comm) {
  while (comm.blocking && Advance(comm) == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return comm.state;
}

}  // namespace stand_in
