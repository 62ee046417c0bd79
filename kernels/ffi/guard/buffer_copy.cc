// SPDX-License-Identifier: Apache-2.0
// No containers of Abseil here, as in guarded_call.cc.
#include "shardcall/kernels/ffi/guard/buffer_copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/sanitizer.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kAlignment = 64;
// The part of a guard, next to the data, that is filled and checked; the rest keeps overruns from
// other memory.
constexpr size_t kMostChecked = 4096;

size_t RoundedUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t PageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Fenced calls in progress; further ones are not described in crash reports.
constexpr int kMostCalls = 64;
std::atomic<const BufferCopies*> calls[kMostCalls];

}  // namespace

BufferCopy::BufferCopy(const BufferView& from, const CopyPlace& place, std::string name,
                       bool is_result)
    : from_(from),
      size_(static_cast<size_t>(from.byte_size())),
      place_(place),
      name_(std::move(name)) {
  if (place.fence.has_value()) {
    const size_t fence = RoundedUp(std::max<size_t>(place.guard, 1), PageBytes());
    const size_t inner = RoundedUp(std::max<size_t>(size_, 1), PageBytes());
    mapped_ = inner + 2 * fence;
    void* const pages =
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return;
    pages_ = static_cast<char*>(pages);
    char* const open = pages_ + fence;
    if (mprotect(open, inner, PROT_READ | PROT_WRITE) != 0) return;
    data_ = *place.fence == FenceSide::kBefore ? open : open + inner - RoundedUp(size_, kAlignment);
    before_ = static_cast<size_t>(data_ - open);
    after_ = inner - size_ - before_;
  } else {
    const size_t guard = place.guard;
    memory_.reset(new char[kAlignment + 2 * guard + size_]);
    const auto address = reinterpret_cast<uintptr_t>(memory_.get()) + guard;
    data_ = memory_.get() + guard + (kAlignment - address % kAlignment) % kAlignment;
    before_ = after_ = std::min(guard, kMostChecked);
  }
  if (is_result && place.fill.has_value()) {
    std::memset(data_, *place.fill, size_);
  } else if (size_ > 0) {
    std::memcpy(data_, from.data, size_);
  }
  for (size_t k = 0; k < before_; ++k) (data_ - before_)[k] = GuardByte(k);
  for (size_t k = 0; k < after_; ++k) (data_ + size_)[k] = GuardByte(k);
  Poison(true);
}

BufferCopy::~BufferCopy() {
  if (data_ != nullptr) Poison(false);
  if (pages_ != nullptr) munmap(pages_, mapped_);
}

void BufferCopy::Open() { Poison(false); }

void BufferCopy::CopyBack() const {
  if (size_ > 0) std::memcpy(from_.data, data_, size_);
}

bool BufferCopy::Changed() const { return size_ > 0 && std::memcmp(from_.data, data_, size_) != 0; }

std::string BufferCopy::Damage() const {
  size_t first = after_, bytes = 0;
  for (size_t k = 0; k < after_; ++k) {
    if ((data_ + size_)[k] == GuardByte(k)) continue;
    first = std::min(first, k);
    ++bytes;
  }
  if (bytes > 0) return absl::StrCat(bytes, " bytes from ", first, " past its end");
  for (size_t k = 0; k < before_; ++k) bytes += (data_ - before_)[k] != GuardByte(k);
  return bytes > 0 ? absl::StrCat(bytes, " bytes before its start") : "";
}

bool BufferCopy::InFence(const char* address, size_t* bytes, bool* past_end) const {
  if (pages_ == nullptr || address < pages_ || address >= pages_ + mapped_) return false;
  *past_end = address >= data_ + size_;
  if (!*past_end && address >= data_) return false;
  *bytes = static_cast<size_t>(*past_end ? address - (data_ + size_) : data_ - address);
  return true;
}

char BufferCopy::GuardByte(size_t k) const {
  return static_cast<char>(place_.fill.has_value() ? *place_.fill : 0xA5 ^ (k & 0xff));
}

void BufferCopy::Poison(bool poison) {
  if (poison) {
    PoisonBytes(data_ - before_, before_);
    PoisonBytes(data_ + size_, after_);
  } else {
    UnpoisonBytes(data_ - before_, before_ + size_ + after_);
  }
}

FencedCall::FencedCall(const BufferCopies& copies) {
  for (int k = 0; k < kMostCalls && slot_ < 0; ++k) {
    const BufferCopies* none = nullptr;
    if (calls[k].compare_exchange_strong(none, &copies)) slot_ = k;
  }
}

FencedCall::~FencedCall() {
  if (slot_ >= 0) calls[slot_] = nullptr;
}

bool DescribeFence(const void* address, char* text, size_t size) {
  if (size > 0) text[0] = '\0';
  for (const auto& slot : calls) {
    const BufferCopies* const copies = slot.load();
    if (copies == nullptr) continue;
    for (const auto& copy : *copies) {
      size_t bytes = 0;
      bool past_end = false;
      if (!copy->InFence(static_cast<const char*>(address), &bytes, &past_end)) continue;
      std::snprintf(text, size, "%zu bytes %s of %s", bytes,
                    past_end ? "past the end" : "before the start", copy->name().c_str());
      return true;
    }
  }
  return false;
}

}  // namespace internal
}  // namespace shardcall
