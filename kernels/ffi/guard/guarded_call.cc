// SPDX-License-Identifier: Apache-2.0
// No containers of Abseil here: AddressSanitizer changes their layout, and tests build only this
// file with it.
#include "shardcall/kernels/ffi/guard/guarded_call.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/buffer_copy.h"
#include "shardcall/kernels/ffi/guard/fault.h"
#include "shardcall/kernels/ffi/guard/sanitizer.h"

namespace shardcall {
inline namespace internal {
namespace {

// The call that this thread runs, for the report of a sanitizer that ends the process.
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

absl::Status Outside(const HandlerContext& context, absl::string_view what, std::string fix) {
  return HandlerFault(context, "E318",
                      absl::StrCat("the handler of \"", context.target, "\" wrote ", what),
                      absl::StatusCode::kInternal, std::move(fix));
}

// Calls `host` on copies with these fences; returns its status, or E318.
absl::Status CallOnCopies(const HostHandler& host, const HandlerContext& context,
                          absl::Span<const BufferView> operands,
                          absl::Span<const BufferView> results, const CopyPlace& place) {
  const auto copies = std::make_shared<BufferCopies>();
  std::vector<BufferView> views;
  std::vector<std::string> names;
  std::vector<int> copy_of;  // by view; -1: no copy
  for (absl::Span<const BufferView> list : {operands, results}) {
    for (const BufferView& v : list) {
      const bool is_result = views.size() >= operands.size();
      names.push_back(absl::StrCat(is_result ? "result " : "operand ",
                                   views.size() - (is_result ? operands.size() : 0), ", ",
                                   v.ToString()));
      views.push_back(v);
      copy_of.push_back(-1);
      if (v.data == nullptr) continue;
      for (size_t k = 0; k < copies->size() && v.byte_size() > 0; ++k) {
        const BufferView& other = (*copies)[k]->from();
        if (other.data == v.data && other.byte_size() > 0) copy_of.back() = static_cast<int>(k);
      }
      if (copy_of.back() < 0) {
        copy_of.back() = static_cast<int>(copies->size());
        copies->push_back(std::make_unique<BufferCopy>(v, place, names.back(), is_result));
        if (copies->back()->data() == nullptr) throw std::bad_alloc();
      }
      views.back().data = (*copies)[copy_of.back()]->data();
    }
  }
  HandlerContext own = context;
  if (context.keep_buffers) {
    // Work that continues after its deadline may still write into the copies.
    own.keep_buffers = [&context, copies]() -> std::shared_ptr<const void> {
      return std::make_shared<
          std::pair<std::shared_ptr<const void>, std::shared_ptr<BufferCopies>>>(
          context.keep_buffers(), copies);
    };
  }
  const auto given = absl::MakeConstSpan(views);
  absl::Status status;
  {
    const Running running_here(own);
    const FencedCall fenced(*copies);
    status = host(own, given.subspan(0, operands.size()), given.subspan(operands.size()));
  }
  // A handler that is late still uses the copies, so they are not checked.
  if (copies.use_count() > 1 && !status.ok()) return status;
  std::vector<bool> is_result(copies->size());
  for (size_t k = operands.size(); k < views.size(); ++k) {
    if (copy_of[k] >= 0) is_result[copy_of[k]] = true;
  }
  for (size_t k = 0; k < views.size(); ++k) {
    if (copy_of[k] < 0) continue;
    BufferCopy& copy = *(*copies)[copy_of[k]];
    copy.Open();
    if (const std::string damage = copy.Damage(); !damage.empty()) {
      return Outside(context, absl::StrCat("outside of ", names[k], ": ", damage),
                     "Take extents from the buffers: a shard is smaller than the whole array");
    }
    if (!is_result[copy_of[k]] && copy.Changed()) {
      return Outside(context, absl::StrCat("into ", names[k]),
                     "Write into results alone, or let a result alias the operand");
    }
    if (k >= operands.size()) copy.CopyBack();
  }
  return status;
}

// The number of bytes in all buffers of a call, rounded up for elements that a handler may take to
// be wider.
size_t AllBytes(absl::Span<const BufferView> operands, absl::Span<const BufferView> results) {
  size_t bytes = kGuardBytes;
  for (absl::Span<const BufferView> list : {operands, results}) {
    for (const BufferView& v : list) {
      bytes += static_cast<size_t>(v.byte_size() + 16 * v.num_elements());
    }
  }
  return bytes;
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
  return CallOnCopies(host, context, operands, results, {.guard = guard_bytes});
}

HostHandler Guarded(HostHandler host) {
  return [host = std::move(host)](const HandlerContext& context,
                                  absl::Span<const BufferView> operands,
                                  absl::Span<const BufferView> results) {
    return CallOnCopies(host, context, operands, results, {.guard = AllBytes(operands, results)});
  };
}

HostHandler Fenced(HostHandler host, FenceSide side) {
  // As f32 they are about 12 and -24, as integers beyond any extent. So they show in a sum, and an
  // index read from there fails bounds checks.
  const unsigned char fill = side == FenceSide::kBefore ? 0x41 : 0xC1;
  return [host = std::move(host), side, fill](const HandlerContext& context,
                                              absl::Span<const BufferView> operands,
                                              absl::Span<const BufferView> results) {
    constexpr size_t kLeast = size_t{1} << 20;
    return CallOnCopies(
        host, context, operands, results,
        {.guard = kLeast + AllBytes(operands, results), .fence = side, .fill = fill});
  };
}

}  // namespace internal
}  // namespace shardcall
