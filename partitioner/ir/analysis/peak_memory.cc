// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/peak_memory.h"

#include <algorithm>
#include <map>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/analysis/buffers.h"

namespace shardcall {
inline namespace internal {
namespace {

// Of the results of a program, so many are tried for each buffer.
constexpr int kMostTried = 64;

int64_t Aligned(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The memory of a result of the program, and when it is in use.
struct ResultMemory {
  int64_t bytes;
  std::map<int, int> used;  // the end of each span of time, by its begin; they do not overlap

  bool Take(int begin, int end) {
    const auto after = used.upper_bound(begin);
    if (after != used.end() && after->first <= end) return false;
    if (after != used.begin() && std::prev(after)->second >= begin) return false;
    used.emplace(begin, end);
    return true;
  }
};

// Leaves out what fits into results.
std::vector<Buffer> OutsideResults(const BufferList& list) {
  std::vector<ResultMemory> results;
  for (const Buffer& result : list.results) {
    if (result.bytes > 0) results.push_back({result.bytes, {{result.begin, result.end}}});
  }
  std::stable_sort(results.begin(), results.end(),
                   [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  std::vector<Buffer> buffers = list.temporaries;
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.bytes > b.bytes; });
  std::erase_if(buffers, [&](const Buffer& buffer) {
    if (buffer.is_table) return false;
    auto result = std::lower_bound(results.begin(), results.end(), buffer.bytes,
                                   [](const auto& r, int64_t bytes) { return r.bytes < bytes; });
    for (int k = 0; k < kMostTried && result != results.end(); ++k, ++result) {
      if (result->Take(buffer.begin, buffer.end)) return true;
    }
    return false;
  });
  return buffers;
}

struct Peak {
  int64_t bytes = 0;
  int time = -1;
};
Peak PeakOf(absl::Span<const Buffer> buffers, int end, int64_t alignment) {
  std::vector<int64_t> change(end + 1);
  for (const Buffer& buffer : buffers) {
    change[buffer.begin] += Aligned(buffer.bytes, alignment);
    change[buffer.end + 1] -= Aligned(buffer.bytes, alignment);
  }
  Peak peak;
  int64_t held = 0;
  for (int time = 0; time < end; ++time) {
    held += change[time];
    if (held > peak.bytes) peak = {held, time};
  }
  // The smallest one is the last, with nothing behind it.
  const Buffer* last = nullptr;
  for (const Buffer& buffer : buffers) {
    if (buffer.begin > peak.time || buffer.end < peak.time || buffer.bytes == 0) continue;
    if (last == nullptr || buffer.bytes < last->bytes) last = &buffer;
  }
  if (last != nullptr) peak.bytes -= Aligned(last->bytes, alignment) - last->bytes;
  return peak;
}

}  // namespace

PeakMemory FindPeakMemory(const Module& module, const MemoryRules& rules,
                          absl::FunctionRef<int64_t(InstrId, int)> bytes_of) {
  const BufferList list = ListBuffers(module, rules, bytes_of, [&](const BufferList& called) {
    return PeakOf(called.temporaries, called.end, rules.alignment).bytes;
  });
  const std::vector<Buffer> buffers = OutsideResults(list);
  const Peak peak = PeakOf(buffers, list.end, rules.alignment);
  PeakMemory out;
  out.temporaries = peak.bytes;
  for (const Buffer& buffer : buffers) {  // the largest first
    if (buffer.begin > peak.time || buffer.end < peak.time) continue;
    out.held.push_back({buffer.value, buffer.bytes});
    if (buffer.begin == peak.time) out.at = buffer.value;
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
