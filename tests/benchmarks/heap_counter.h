// SPDX-License-Identifier: Apache-2.0
// Counts of the heap, by operators new and delete of the whole program. Link
// heap_counter.cc into a benchmark only: it replaces the global operators.
#ifndef SHARDCALL_TESTS_BENCHMARKS_HEAP_COUNTER_H_
#define SHARDCALL_TESTS_BENCHMARKS_HEAP_COUNTER_H_

#include <cstdint>

namespace shardcall::bench {

// On at first. Counting takes time, so what is timed does without.
void CountHeap(bool on);
int64_t HeapAllocations();  // since the start of the process
int64_t HeapBytesLive();    // as the allocator rounds them
int64_t HeapBytesPeak();    // since the last reset
void ResetHeapBytesPeak();

}  // namespace shardcall::bench

#endif  // SHARDCALL_TESTS_BENCHMARKS_HEAP_COUNTER_H_
