// SPDX-License-Identifier: Apache-2.0
// Open-addressing table of pointers to interned values. The caller hashes and
// compares, so a lookup makes no key object and a hit allocates nothing.
#ifndef SHARDCALL_SHARDING_BASE_INTERN_TABLE_H_
#define SHARDCALL_SHARDING_BASE_INTERN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardcall {
inline namespace internal {

// One step of a multiplicative hash; finish with FinishHash.
inline uint64_t MixHash(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}
inline uint64_t FinishHash(uint64_t h) {
  h *= 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 32);
}

template <typename T>
class InternTable {
 public:
  // The value of that hash for which equal(*value) holds, or null.
  template <typename Equal>
  const T* Find(uint64_t hash, const Equal& equal) const {
    if (slots_.empty()) return nullptr;
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask; slots_[i].value != nullptr; i = (i + 1) & mask) {
      if (slots_[i].hash == hash && equal(*slots_[i].value)) return slots_[i].value;
    }
    return nullptr;
  }

  // Requires that no equal value is present.
  void Insert(uint64_t hash, const T* value) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Place(hash, value);
    ++size_;
  }

  size_t size() const { return size_; }

 private:
  struct Slot {
    uint64_t hash = 0;
    const T* value = nullptr;
  };
  void Place(uint64_t hash, const T* value) {
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i].value != nullptr) i = (i + 1) & mask;
    slots_[i] = {hash, value};
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.value != nullptr) Place(s.hash, s.value);
    }
  }
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_INTERN_TABLE_H_
