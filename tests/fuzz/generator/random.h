// SPDX-License-Identifier: Apache-2.0
// Random choices that are the same on every platform.
#ifndef SHARDCALL_TESTS_FUZZ_GENERATOR_RANDOM_H_
#define SHARDCALL_TESTS_FUZZ_GENERATOR_RANDOM_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace shardcall {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Bits() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [low, high].
  int64_t Int(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Bits() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Int(0, 99) < percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& values) {
    return values[Int(0, static_cast<int64_t>(values.size()) - 1)];
  }
  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i)
      std::swap((*values)[i - 1], (*values)[Int(0, i - 1)]);
  }
  // `count` different numbers of 0..n-1, ascending.
  std::vector<int64_t> Subset(int64_t n, int64_t count) {
    std::vector<int64_t> out;
    for (int64_t k = 0; k < n; ++k) {
      if (Int(0, n - k - 1) < count - static_cast<int64_t>(out.size())) out.push_back(k);
    }
    return out;
  }

 private:
  uint64_t state_;
};

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_FUZZ_GENERATOR_RANDOM_H_
