// SPDX-License-Identifier: Apache-2.0
// What the ranks of one of the stand-in's communicators share: who has joined, what
// they say of a split, and a ring of bytes for each ordered pair of them.
#ifndef SHARDCALL_TESTS_COLLECTIVES_STAND_IN_SEGMENT_H_
#define SHARDCALL_TESTS_COLLECTIVES_STAND_IN_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace stand_in {

constexpr int kMaxRanks = 16;
constexpr int kMaxSplits = 64;

struct Ring {
  static constexpr size_t kBytes = 32 * 1024;
  std::atomic<uint64_t> written, read;
  char bytes[kBytes];
};

// All zero is the state in which nobody has come.
struct Shared {
  struct Member {
    std::atomic<uint32_t> joined;
    int32_t device;
    char host[64];
  };
  struct Choice {
    std::atomic<uint32_t> made;
    int32_t color, key;
  };
  Member members[kMaxRanks];
  Choice splits[kMaxSplits][kMaxRanks];
  Ring rings[];  // from * count + to
};

class Segment {
 public:
  // Makes it, or finds what another rank made.
  static std::shared_ptr<Segment> Open(const std::string& id, int count);
  ~Segment();

  Shared& shared() { return *shared_; }
  Ring& ring(int from, int to) { return shared_->rings[from * count_ + to]; }
  // Nobody opens it any more; harmless when it is done again.
  void Unlink();

 private:
  Segment() = default;
  std::string name_;
  int count_ = 0;
  size_t bytes_ = 0;
  Shared* shared_ = nullptr;
};

// What both sides say of a message; they wait for ever where it differs.
struct Header {
  int32_t op, type, reduction, root;
  int64_t count;
  bool operator==(const Header&) const = default;
};

// One message's way into a ring, or out of it, as far as there is room or data.
class Transfer {
 public:
  Transfer(Ring& ring, bool sends, const Header& header, char* data, size_t bytes)
      : ring_(ring), sends_(sends), header_(header), data_(data), bytes_(bytes) {}
  const Ring* ring() const { return &ring_; }
  bool sends() const { return sends_; }
  bool done() const { return moved_ == sizeof(Header) + bytes_; }
  // Whether anything could be moved.
  bool Step();

 private:
  size_t Part(size_t room, char** part);

  Ring& ring_;
  const bool sends_;
  Header header_, found_{};
  char* const data_;
  const size_t bytes_;
  size_t moved_ = 0;  // the header counts
  bool stuck_ = false;
};

}  // namespace stand_in

#endif  // SHARDCALL_TESTS_COLLECTIVES_STAND_IN_SEGMENT_H_
