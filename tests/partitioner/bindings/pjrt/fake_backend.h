// SPDX-License-Identifier: Apache-2.0
// A PJRT backend in PJRT's layout, whose programs give their arguments back. It fails
// where it is told to, and counts what it has handed out.
#ifndef SHARDCALL_TESTS_PARTITIONER_BINDINGS_PJRT_FAKE_BACKEND_H_
#define SHARDCALL_TESTS_PARTITIONER_BINDINGS_PJRT_FAKE_BACKEND_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

class FakeBackend {
 public:
  // One at a time: PJRT's functions do not say whose they are.
  FakeBackend();
  ~FakeBackend();
  const void* api() const { return table_.data(); }
  abi::Version& version() { return reinterpret_cast<abi::Api*>(table_.data())->version; }
  void Truncate(abi::Function after);  // has no functions behind that one

  absl::optional<abi::Function> fails;  // with `code` and "says the backend"
  int32_t code = 9;
  std::string platform = "cpu";
  int devices = 1;                    // unless a client asks for more by cpu_device_count
  size_t results = 1;                 // of its programs
  std::atomic<bool> hangs{false};     // executions wait until it is false again
  std::function<void()> compiles;     // called in the middle of each compilation
  std::string program, options;       // what was compiled last
  std::vector<int64_t> lent;          // arguments of the last execution that are not to be donated
  int puts = 0, copies = 0;           // of arrays: to a device, to the host
  std::vector<std::string> handlers;  // "t for Host", as its FFI extension was given them

  // What is alive.
  std::atomic<int> errors{0}, clients{0}, executables{0}, buffers{0}, events{0};
  int alive() const { return errors + clients + executables + buffers + events; }

 private:
  std::vector<size_t> table_;  // a PJRT_Api
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_BINDINGS_PJRT_FAKE_BACKEND_H_
