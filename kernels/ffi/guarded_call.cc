// SPDX-License-Identifier: Apache-2.0
// No containers of Abseil here: with AddressSanitizer their layout is another one, and
// tests link this file alone with it.
#include "kernels/ffi/guarded_call.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/ffi/fault.h"

#if defined(__SANITIZE_ADDRESS__)
#define SHARDCALL_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARDCALL_HAS_ASAN 1
#endif
#endif
#ifdef SHARDCALL_HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace shardcall {
namespace {

constexpr size_t kAlignment = 64;
// What is filled and looked at of a guard, next to the data; the rest is there so that
// nothing else is hit.
constexpr size_t kMostChecked = 4096;

char GuardByte(size_t k) { return static_cast<char>(0xA5 ^ (k & 0xff)); }

// What this thread runs, for the report of a sanitizer that ends the process.
thread_local const HandlerContext* running = nullptr;

#ifdef SHARDCALL_HAS_ASAN
void SayWhatRan() {
  if (running == nullptr) return;
  std::fprintf(stderr, "shardcall: this was in the handler of \"%s\" (%%%s) on device %d\n",
               std::string(running->target).c_str(), std::string(running->instruction).c_str(),
               running->device_ordinal);
}
#endif

class Running {
 public:
  explicit Running(const HandlerContext& context) : before_(std::exchange(running, &context)) {
#ifdef SHARDCALL_HAS_ASAN
    static const bool set = (__sanitizer_set_death_callback(SayWhatRan), true);
    (void)set;
#endif
  }
  ~Running() { running = before_; }

 private:
  const HandlerContext* const before_;
};

// A copy of a buffer: guard, data, rounding, guard.
class Copy {
 public:
  Copy(const BufferView& from, size_t guard)
      : from_(from),
        size_(static_cast<size_t>(from.byte_size())),
        checked_(std::min(guard, kMostChecked)),
        memory_(new char[kAlignment + 2 * guard + size_]) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get()) + guard;
    data_ = memory_.get() + guard + (kAlignment - address % kAlignment) % kAlignment;
    if (size_ > 0) std::memcpy(data_, from.data, size_);
    for (size_t k = 0; k < checked_; ++k) Before()[k] = After()[k] = GuardByte(k);
    Poison(true);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy() { Poison(false); }

  char* data() const { return data_; }
  const BufferView& from() const { return from_; }
  void Open() { Poison(false); }
  void CopyBack() const {
    if (size_ > 0) std::memcpy(from_.data, data_, size_);
  }
  bool Changed() const { return size_ > 0 && std::memcmp(from_.data, data_, size_) != 0; }
  // "3 bytes from 4 past its end"; empty if the guards are whole.
  std::string Damage() const {
    size_t first = checked_, bytes = 0;
    for (size_t k = 0; k < checked_; ++k) {
      if (After()[k] == GuardByte(k)) continue;
      first = std::min(first, k);
      ++bytes;
    }
    if (bytes > 0) return absl::StrCat(bytes, " bytes from ", first, " past its end");
    for (size_t k = 0; k < checked_; ++k) bytes += Before()[k] != GuardByte(k);
    return bytes > 0 ? absl::StrCat(bytes, " bytes before its start") : "";
  }

 private:
  char* Before() const { return data_ - checked_; }
  char* After() const { return data_ + size_; }
  void Poison(bool poison) {
#ifdef SHARDCALL_HAS_ASAN
    if (poison) {
      __asan_poison_memory_region(Before(), checked_);
      __asan_poison_memory_region(After(), checked_);
    } else {
      __asan_unpoison_memory_region(Before(), checked_ + size_ + checked_);
    }
#else
    (void)poison;
#endif
  }

  const BufferView from_;
  const size_t size_, checked_;
  const std::unique_ptr<char[]> memory_;
  char* data_ = nullptr;
};

absl::Status Outside(const HandlerContext& context, absl::string_view what, std::string fix) {
  return HandlerFault(context, "E318",
                      absl::StrCat("the handler of \"", context.target, "\" wrote ", what),
                      absl::StatusCode::kInternal, std::move(fix));
}

}  // namespace

bool GuardsHandlers() {
#ifdef SHARDCALL_HAS_ASAN
  return true;
#else
  return false;
#endif
}

absl::Status CallGuarded(const HostHandler& host, const HandlerContext& context,
                         absl::Span<const BufferView> operands,
                         absl::Span<const BufferView> results, size_t guard_bytes) {
  using Copies = std::vector<std::unique_ptr<Copy>>;
  const auto copies = std::make_shared<Copies>();
  std::vector<BufferView> views;
  std::vector<int> copy_of;  // by view; -1: none
  for (absl::Span<const BufferView> list : {operands, results}) {
    for (const BufferView& v : list) {
      views.push_back(v);
      copy_of.push_back(-1);
      if (v.data == nullptr) continue;
      for (size_t k = 0; k < copies->size() && v.byte_size() > 0; ++k) {
        const BufferView& other = (*copies)[k]->from();
        if (other.data == v.data && other.byte_size() > 0) copy_of.back() = static_cast<int>(k);
      }
      if (copy_of.back() < 0) {
        copy_of.back() = static_cast<int>(copies->size());
        copies->push_back(std::make_unique<Copy>(v, guard_bytes));
      }
      views.back().data = (*copies)[copy_of.back()]->data();
    }
  }
  HandlerContext own = context;
  if (context.keep_buffers) {
    // Work that goes on after its deadline writes into the copies.
    own.keep_buffers = [&context, copies]() -> std::shared_ptr<const void> {
      return std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<Copies>>>(
          context.keep_buffers(), copies);
    };
  }
  const auto given = absl::MakeConstSpan(views);
  absl::Status status;
  {
    const Running running_here(own);
    status = host(own, given.subspan(0, operands.size()), given.subspan(operands.size()));
  }
  // Of a handler that is late, the buffers are still its own.
  if (copies.use_count() > 1 && !status.ok()) return status;
  std::vector<bool> is_result(copies->size());
  for (size_t k = operands.size(); k < views.size(); ++k) {
    if (copy_of[k] >= 0) is_result[copy_of[k]] = true;
  }
  for (size_t k = 0; k < views.size(); ++k) {
    if (copy_of[k] < 0) continue;
    Copy& copy = *(*copies)[copy_of[k]];
    copy.Open();
    const bool operand = k < operands.size();
    const std::string name =
        absl::StrCat(operand ? "operand " : "result ", operand ? k : k - operands.size(), ", ",
                     views[k].ToString());
    if (const std::string damage = copy.Damage(); !damage.empty()) {
      return Outside(context, absl::StrCat("outside of ", name, ": ", damage),
                     "Take extents from the buffers: a shard is smaller than the whole array");
    }
    if (!is_result[copy_of[k]] && copy.Changed()) {
      return Outside(context, absl::StrCat("into ", name),
                     "Write into results alone, or let a result alias the operand");
    }
    if (!operand) copy.CopyBack();
  }
  return status;
}

}  // namespace shardcall
