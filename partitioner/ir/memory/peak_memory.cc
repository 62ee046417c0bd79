// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/peak_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {
namespace {

// Of the results of a program, so many are tried for each buffer.
constexpr int kMostTried = 64;
// The gaps between more buffers are small change.
constexpr size_t kMostPlaced = 1000;

int64_t Aligned(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The memory of a result of the program, and when it is in use.
struct ResultMemory {
  int64_t bytes;
  int written;
  std::map<int, int> used;  // the end of each span of time, by its begin; they do not overlap

  bool Take(int begin, int end) {
    if (begin > end) return true;
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
  for (const ResultBuffer& result : list.results) {
    if (result.bytes == 0) continue;
    results.push_back({result.bytes, result.written, {{result.written, list.end}}});
    results.back().Take(0, std::min(result.free_from, result.written) - 1);
  }
  // Of those of one size the last one is tried first, as XLA does it.
  std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.written > b.written;
  });
  std::vector<Buffer> buffers = list.temporaries;
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.bytes > b.bytes; });
  std::erase_if(buffers, [&](const Buffer& buffer) {
    if (buffer.leaf == Buffer::kTable) return false;
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
  return peak;
}

// The bytes of a region that has them all, each at one place: the large ones first, each in the
// smallest gap between those that are there already while it lives (XLA's heap simulator).
class Region {
 public:
  explicit Region(int64_t alignment) : alignment_(alignment) {}

  int64_t Place(std::vector<const Buffer*> buffers) {
    int64_t size = 0;
    for (const Buffer* const buffer : buffers) {
      const int64_t offset = OffsetOf(*buffer);
      placed_.push_back({offset, buffer});
      size = std::max(size, offset + buffer->bytes);
    }
    return size;
  }

 private:
  int64_t OffsetOf(const Buffer& buffer) {
    beside_.clear();
    for (const auto& [offset, other] : placed_) {
      if (other->begin <= buffer.end && buffer.begin <= other->end) {
        beside_.push_back({offset, offset + other->bytes});
      }
    }
    std::sort(beside_.begin(), beside_.end());
    int64_t end = 0, best = -1, best_room = 0;
    for (const auto& [from, to] : beside_) {
      const int64_t room = from - end;
      if (room >= buffer.bytes && (best < 0 || room < best_room)) {
        best = end;
        best_room = room;
      }
      end = std::max(end, Aligned(to, alignment_));
    }
    return best >= 0 ? best : end;
  }

  const int64_t alignment_;
  std::vector<std::pair<int64_t, const Buffer*>> placed_;  // by offset
  std::vector<std::pair<int64_t, int64_t>> beside_;        // from, to
};

// In the better of the two orders that XLA tries: by size, and by the time that they live.
int64_t RegionBytes(absl::Span<const Buffer> buffers, int64_t alignment) {
  std::vector<const Buffer*> order;
  for (const Buffer& buffer : buffers) {
    if (buffer.bytes > 0) order.push_back(&buffer);
  }
  const auto life = [](const Buffer* b) { return b->end - b->begin; };
  const auto by_size = [&](const Buffer* a, const Buffer* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : life(a) > life(b);
  };
  const auto by_life = [&](const Buffer* a, const Buffer* b) {
    return life(a) != life(b) ? life(a) > life(b) : a->bytes > b->bytes;
  };
  std::stable_sort(order.begin(), order.end(), by_size);
  const int64_t bytes = Region(alignment).Place(order);
  std::stable_sort(order.begin(), order.end(), by_life);
  return std::min(bytes, Region(alignment).Place(order));
}

// Takes the tables out of the list.
std::vector<Buffer> TakeTables(BufferList* list) {
  std::vector<Buffer> tables;
  std::erase_if(list->temporaries, [&](const Buffer& buffer) {
    if (buffer.leaf == Buffer::kTable) tables.push_back(buffer);
    return buffer.leaf == Buffer::kTable;
  });
  return tables;
}

}  // namespace

PeakMemory FindPeakMemory(const Module& module, const MemoryRules& rules) {
  BufferList list = BuffersOf(module, rules);
  std::vector<Buffer> tables;
  if (rules.keeps_tables) tables = TakeTables(&list);
  const std::vector<Buffer> buffers = OutsideResults(list);
  const Peak peak = PeakOf(buffers, list.end, rules.alignment);
  PeakMemory out;
  out.temporaries =
      buffers.size() <= kMostPlaced ? RegionBytes(buffers, rules.alignment) : peak.bytes;
  for (const Buffer& buffer : buffers) {  // the largest first
    if (buffer.begin > peak.time || buffer.end < peak.time) continue;
    out.held.push_back({buffer.value, buffer.bytes});
    if (buffer.begin == peak.time) out.at = buffer.value;
  }
  for (const Buffer& table : tables) {
    out.temporaries += Aligned(table.bytes, rules.alignment);
    out.held.push_back({table.value, table.bytes});
  }
  std::stable_sort(out.held.begin(), out.held.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

BufferList BuffersOf(const Module& module, const MemoryRules& rules) {
  return ListBuffers(module, rules, [&](const BufferList& called) {
    return PeakOf(called.temporaries, called.end, rules.alignment).bytes;
  });
}

BufferList WithBytes(const Module& module, BufferList buffers,
                     absl::FunctionRef<int64_t(InstrId, int)> bytes_of) {
  for (Buffer& buffer : buffers.temporaries) {
    if (buffer.leaf >= 0) buffer.bytes = bytes_of(buffer.value, buffer.leaf);
  }
  const InstrId root = module.comp(module.entry()).root;
  for (size_t k = 0; k < buffers.results.size(); ++k) {
    buffers.results[k].bytes = bytes_of(root, static_cast<int>(k));
  }
  return buffers;
}

int64_t EstimatePeakTemporaries(const BufferList& buffers, const MemoryRules& rules) {
  return PeakOf(OutsideResults(buffers), buffers.end, rules.alignment).bytes;
}

}  // namespace internal
}  // namespace shardcall
