// SPDX-License-Identifier: Apache-2.0
// What the stand-in says of its caller: the record of calls, and misuse.
#ifndef SHARDCALL_TESTS_COLLECTIVES_STAND_IN_RECORD_H_
#define SHARDCALL_TESTS_COLLECTIVES_STAND_IN_RECORD_H_

#include <string>

namespace stand_in {

void Record(std::string call);

// Says what is wrong, and ends the process.
[[noreturn]] void Misuse(const std::string& what);

// Whether this call is the one that FailCall chose; it then does nothing, and says so.
bool Fails(const char* function);

// What ncclGetLastError says; `text` lives for ever.
void SetLastError(const char* text);
const char* LastError();

// Of each kind of thing how many live.
enum class Thing { kCommunicator, kStream, kEvent, kAllocation, kHandle, kDescriptor };
void Made(Thing thing);
void Freed(Thing thing);

}  // namespace stand_in

#endif  // SHARDCALL_TESTS_COLLECTIVES_STAND_IN_RECORD_H_
