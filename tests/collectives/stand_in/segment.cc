// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/stand_in/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/collectives/stand_in/record.h"

namespace stand_in {

std::shared_ptr<Segment> Segment::Open(const std::string& id, int count) {
  auto made = std::shared_ptr<Segment>(new Segment);
  made->name_ = "/shardcall_stand_in." + id;
  made->count_ = count;
  made->bytes_ = sizeof(Shared) + sizeof(Ring) * count * count;
  const int file = shm_open(made->name_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, made->bytes_) == 0) {
    memory = mmap(nullptr, made->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) return nullptr;
  made->shared_ = static_cast<Shared*>(memory);
  if (count == 1) made->Unlink();  // nobody else comes
  return made;
}

Segment::~Segment() {
  if (shared_ != nullptr) munmap(shared_, bytes_);
}

void Segment::Unlink() { shm_unlink(name_.c_str()); }

// The next bytes of header or data, at most `room` of them.
size_t Transfer::Part(size_t room, char** part) {
  Header& header = sends_ ? header_ : found_;
  if (moved_ < sizeof(Header)) {
    *part = reinterpret_cast<char*>(&header) + moved_;
    return std::min(room, sizeof(Header) - moved_);
  }
  const size_t done = moved_ - sizeof(Header);
  *part = data_ + done;
  return std::min(room, bytes_ - done);
}

bool Transfer::Step() {
  bool any = false;
  while (!done() && !stuck_) {
    const uint64_t written = ring_.written.load(std::memory_order_acquire);
    const uint64_t read = ring_.read.load(std::memory_order_acquire);
    const size_t at = (sends_ ? written : read) % Ring::kBytes;
    const size_t there = sends_ ? Ring::kBytes - (written - read) : written - read;
    char* part = nullptr;
    const size_t bytes = Part(std::min(there, Ring::kBytes - at), &part);
    if (bytes == 0) return any;
    if (sends_) {
      std::memcpy(ring_.bytes + at, part, bytes);
      ring_.written.store(written + bytes, std::memory_order_release);
    } else {
      std::memcpy(part, ring_.bytes + at, bytes);
      ring_.read.store(read + bytes, std::memory_order_release);
    }
    moved_ += bytes;
    any = true;
    if (!sends_ && moved_ == sizeof(Header) && !(found_ == header_)) {
      stuck_ = true;
      Record("the ranks disagree");
    }
  }
  return any;
}

}  // namespace stand_in
