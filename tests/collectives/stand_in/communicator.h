// SPDX-License-Identifier: Apache-2.0
// The stand-in's communicators, and what runs on streams for them.
#ifndef SHARDCALL_TESTS_COLLECTIVES_STAND_IN_COMMUNICATOR_H_
#define SHARDCALL_TESTS_COLLECTIVES_STAND_IN_COMMUNICATOR_H_

#include <nccl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/collectives/stand_in/memory.h"
#include "tests/collectives/stand_in/segment.h"

namespace stand_in {

struct Registration {
  std::shared_ptr<Allocation> memory;
};

struct Comm {
  std::string id;
  int number = 0;  // in this process, for the record
  int rank = 0, count = 1, device = 0;
  bool blocking = true;
  std::shared_ptr<Segment> segment;
  ncclResult_t state = ncclSuccess;
  // While the state is ncclInProgress: called by looks at the state until it gives
  // another one.
  std::function<ncclResult_t()> move_on;
  int launches = 0, splits = 0;
  std::set<Registration*> registrations;
  std::atomic<bool> aborted{false};
  std::atomic<int> running{0};            // what is on streams
  std::atomic<int> failure{ncclSuccess};  // of what ran
};

// Of a live communicator, also one that is not ready; anything else is misuse.
std::shared_ptr<Comm> FindComm(ncclComm_t comm, const char* function);
// Of one that is ready.
std::shared_ptr<Comm> FindReady(ncclComm_t comm, const char* function);
ncclComm_t Keep(std::shared_ptr<Comm> comm);
// Ends what runs, and forgets it.
void End(ncclComm_t comm, bool abort, const char* function);

std::string CommText(const Comm& comm);  // for the record
// How many groups of this thread are open.
int GroupDepth();

// Begins to join the others; its state says when all have come.
std::shared_ptr<Comm> Join(const std::string& id, int rank, int count, bool blocking);
// Looks until it is ready or has failed.
ncclResult_t Advance(Comm& comm);
// Makes the caller of a blocking communicator wait, or leaves it in progress.
ncclResult_t AwaitIfBlocking(Comm& comm);

// One call of NCCL that moves data.
enum class Op { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSend, kRecv };
struct Operation {
  Op op = Op::kAllReduce;
  std::shared_ptr<Comm> comm;
  View in, out;
  int64_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t reduction = ncclSum;
  int root = 0;  // or the peer
};
size_t TypeBytes(ncclDataType_t type);

// Runs operations of one group together; a step of a stream.
std::function<bool()> RunTogether(std::vector<Operation> operations);

// out = a op b, element by element.
void Combine(ncclDataType_t type, ncclRedOp_t reduction, const char* a, const char* b, char* out,
             int64_t count);

}  // namespace stand_in

#endif  // SHARDCALL_TESTS_COLLECTIVES_STAND_IN_COMMUNICATOR_H_
