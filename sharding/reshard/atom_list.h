// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_SHARDING_RESHARD_ATOM_LIST_H_
#define SHARDCALL_SHARDING_RESHARD_ATOM_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {

// The number of a part of an axis, of at least two devices (reshard_moves.h).
using Atom = uint8_t;

// Some atoms in order, major to minor, each once. The names are those of std::string; searches make
// and copy many lists, which is cheaper without a heap.
class AtomList {
 public:
  // A mesh of at most 2^31 - 1 devices has no more.
  static constexpr size_t kCapacity = 31;
  static_assert(kMaxDevices < int64_t{1} << kCapacity);
  static constexpr size_t npos = ~size_t{0};

  AtomList() = default;
  AtomList(std::initializer_list<Atom> atoms) {
    for (Atom a : atoms) push_back(a);
  }

  const Atom* begin() const { return atoms_; }
  const Atom* end() const { return atoms_ + size_; }
  // To bring them into another order.
  Atom* begin() { return atoms_; }
  Atom* end() { return atoms_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Atom operator[](size_t k) const { return atoms_[k]; }
  Atom front() const { return atoms_[0]; }
  Atom back() const { return atoms_[size_ - 1]; }

  void push_back(Atom a) {
    SHARDCALL_CHECK(size_ < kCapacity);
    atoms_[size_++] = a;
    set_ |= Bit(a);
  }
  AtomList& operator+=(const AtomList& other) {
    SHARDCALL_CHECK(size_ + other.size_ <= kCapacity);
    std::copy(other.begin(), other.end(), end());
    size_ += other.size_;
    set_ |= other.set_;
    return *this;
  }
  friend AtomList operator+(AtomList a, const AtomList& b) { return a += b; }
  // Keeps the first `size` atoms, of which there are as many.
  void resize(size_t size) {
    while (size_ > size) set_ &= ~Bit(atoms_[--size_]);
  }
  void erase(size_t at) {
    set_ &= ~Bit(atoms_[at]);
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  AtomList substr(size_t from, size_t count = npos) const {
    AtomList out;
    const size_t end = from + std::min(count, size_ - from);
    for (size_t k = from; k < end; ++k) out.push_back(atoms_[k]);
    return out;
  }
  bool contains(Atom a) const { return (set_ & Bit(a)) != 0; }
  // npos: it is not among them.
  size_t find(Atom a) const {
    if (!contains(a)) return npos;
    return static_cast<size_t>(std::find(begin(), end(), a) - begin());
  }
  bool StartsWith(const AtomList& prefix) const {
    return (prefix.set_ & ~set_) == 0 && std::equal(prefix.begin(), prefix.end(), begin());
  }

  friend bool operator==(const AtomList& a, const AtomList& b) {
    return a.set_ == b.set_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  static uint32_t Bit(Atom a) { return uint32_t{1} << a; }

  uint32_t set_ = 0;  // a bit for each atom, of which there is one at most
  uint8_t size_ = 0;
  Atom atoms_[kCapacity];  // `size_` of them
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_ATOM_LIST_H_
