// SPDX-License-Identifier: Apache-2.0
// Entering and leaving the Python interpreter: the GIL, Ctrl-C, and the interpreter's end.
//
// A thread that asks for the GIL while the interpreter ends is ended by Python (up to 3.13) where
// it stands, which C++ cannot survive. So before that, runs of other threads are stopped, their
// callbacks are waited for, and threads that come back later sleep until the process is gone.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PYTHON_INTERPRETER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PYTHON_INTERPRETER_H_

#include <nanobind/nanobind.h>

#include <optional>

#include "absl/time/time.h"
#include "shardcall/partitioner/bindings/python/core.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
inline namespace internal {
namespace python {

// In place of nanobind's gil_scoped_acquire, for threads of any kind.
class GilAcquire {
 public:
  GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  ~GilAcquire();

 private:
  PyGILState_STATE state_;
};

// In place of nanobind's gil_scoped_release.
class GilRelease {
 public:
  GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease();

 private:
  PyThreadState* const state_;
};

// For C++ that runs Python code with the GIL of its caller, which such code may give away for a
// while.
class RunsPython {
 public:
  RunsPython();
  RunsPython(const RunsPython&) = delete;
  RunsPython& operator=(const RunsPython&) = delete;
  ~RunsPython();
};

// A call of the library that Ctrl-C ends, on the main thread, and that takes no longer than
// `limit`. To be made with the GIL.
class Interruptible {
 public:
  explicit Interruptible(absl::Duration limit = absl::InfiniteDuration());
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

  // Raises the exception of the signal that ended the call, if one has.
  void RaiseIfInterrupted();

  // For an exception of a callback. True if it is to end the innermost call of this thread, as
  // KeyboardInterrupt does, which then raises it.
  static bool Take(const nanobind::python_error& raised);

 private:
  bool Poll();

  Interruptible* const outer_;
  StopSource source_;
  std::optional<nanobind::python_error> raised_;
  std::optional<StopScope> scope_;
};

// The value of body(), a StatusOr, computed without the GIL.
template <typename Body>
auto WithoutGil(Body body, absl::Duration limit = absl::InfiniteDuration()) {
  Interruptible call(limit);
  auto result = [&] {
    const GilRelease release;
    return body();
  }();
  call.RaiseIfInterrupted();
  return Take(std::move(result));
}

// Has the interpreter's end prepared for, and forks of this library. To be called once, with the
// GIL.
void PrepareForEndOfPython();
void PrepareForForks();

}  // namespace python
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PYTHON_INTERPRETER_H_
