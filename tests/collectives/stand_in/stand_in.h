// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime and NCCL as far as we call them, over host memory, between the
// processes of one machine: what the NCCL backend does is tested where there is
// no GPU, and what handlers do with cuBLASLt and cuSPARSE (tests/kernels/stand_in). It
// computes what NCCL computes, takes as long as it likes, and ends the process with
// a message where a caller does what NCCL forbids:
//
//   memory       device memory cannot be read by the host; copies, reductions and
//                messages stay within it; none is freed while it is in use or
//                registered, or by the other library than gave it
//   streams      what is put on them runs later, on a thread of the stream
//   groups       balanced, and what is received overlaps nothing that is sent
//   communicators  not used before they are ready, or after their end
//
// Ranks that disagree on what they call wait for ever, as with NCCL; so does who
// waits for an absent rank. Environment: STAND_IN_GPUS, the devices that there
// are (8); two ranks on one of them are refused, as NCCL does, unless their
// NCCL_HOSTID differ.
#ifndef SHARDCALL_TESTS_COLLECTIVES_STAND_IN_STAND_IN_H_
#define SHARDCALL_TESTS_COLLECTIVES_STAND_IN_STAND_IN_H_

#include <string>
#include <vector>

namespace stand_in {

// The calls of this process since the last look, the latest 10,000, as in
//   ncclSend(64 int8 to 1, comm 0)
// Looks at the state of a stream, an event or a communicator are not among them.
std::vector<std::string> TakeCalls();

// From now on the communicator of the next operation that runs reports this
// ncclResult_t by ncclCommGetAsyncError, and moves nothing any more.
void FailNextOperation(int nccl_result);

// The call of this number from now on fails, 0 is the next one; -1: none does. Those of
// cuBLASLt and cuSPARSE count, and those of CUDA's runtime that handlers make.
void FailCall(int number);
// The function that failed so; empty if there were not so many calls.
std::string FailedCall();

// What has not been freed: "2 communicators, 1 stream"; empty if all has.
std::string Unfreed();

}  // namespace stand_in

#endif  // SHARDCALL_TESTS_COLLECTIVES_STAND_IN_STAND_IN_H_
