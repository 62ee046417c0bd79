// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/python/interpreter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "shardcall/partitioner/check/trial_process.h"
#include "shardcall/partitioner/runtime/execute/active_runs.h"
#include "shardcall/sharding/base/of_this_process.h"

namespace nb = nanobind;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

// Threads that hold the GIL for this module, or wait for it, and whether they still may.
class Interpreter {
 public:
  // Whether a thread asks for the GIL to go back to Python, or for a callback.
  enum class For { kReturn, kCallback };

  // Before a thread asks for the GIL. Returns when it may, which may be never.
  void Enter(For what) {
    if (!MayEnter(what)) SleepForGood();
  }
  // Before a thread that has the GIL runs Python code. Returns when it may, which may be never.
  void EnterWithGil() {
    if (MayEnter(For::kReturn)) return;
    PyEval_SaveThread();
    SleepForGood();
  }
  // When it has it, or has given it back.
  void Leave() { --inside_; }

  // Called with the GIL, by the thread that ends the interpreter.
  void End() {
    PyThreadState* const state = PyEval_SaveThread();
    main_ = std::this_thread::get_id();
    ending_ = Ending::kReturns;
    StopRunsOfOtherThreads();  // which may be in callbacks
    ending_ = Ending::kAll;
    AwaitOthers();
    PyEval_RestoreThread(state);
  }

  // Calls of the library by the thread that ends the interpreter, which may need others.
  void BeginCall() {
    if (ending_ != Ending::kNo && std::this_thread::get_id() == main_) ++calls_of_main_;
  }
  void EndCall() {
    if (calls_of_main_ == 0 || std::this_thread::get_id() != main_) return;
    --calls_of_main_;
    AwaitOthers();
  }

 private:
  // Counts the thread as inside, if it may be.
  bool MayEnter(For what) {
    ++inside_;
    const Ending ending = ending_;
    if (ending == Ending::kNo || std::this_thread::get_id() == main_) return true;
    if (what == For::kCallback && (ending == Ending::kReturns || calls_of_main_ > 0)) return true;
    --inside_;
    return false;
  }

  // Python would end the thread. The process is about to end instead.
  [[noreturn]] static void SleepForGood() {
    while (true) pause();
  }

  void AwaitOthers() const {
    constexpr auto kLongest = std::chrono::seconds(5);
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (inside_ > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Who may no longer have the GIL, but for the thread that ends the interpreter: nobody, threads
  // that return from the library, or callbacks, too.
  enum class Ending { kNo, kReturns, kAll };

  std::atomic<int> inside_{0}, calls_of_main_{0};
  std::atomic<Ending> ending_{Ending::kNo};
  std::thread::id main_;  // set before ending_
};

Interpreter& OfProcess() { return *OfThisProcess<Interpreter>(); }

// Python runs its signal handlers on this thread only.
bool IsMainThread() { return syscall(SYS_gettid) == getpid(); }

thread_local Interruptible* innermost = nullptr;

// PyOS_BeforeFork without what frameworks warn of there: JAX, that its threads are not in the
// child, which here runs kernels alone.
void BeforeForkQuietly() {
  PyObject* const warnings = PyImport_ImportModule("warnings");
  PyObject* const scope =
      warnings == nullptr ? nullptr : PyObject_CallMethod(warnings, "catch_warnings", nullptr);
  PyObject* const entered =
      scope == nullptr ? nullptr : PyObject_CallMethod(scope, "__enter__", nullptr);
  if (entered != nullptr) {
    Py_XDECREF(PyObject_CallMethod(warnings, "simplefilter", "s", "ignore"));
  }
  PyErr_Clear();
  PyOS_BeforeFork();
  if (entered != nullptr) {
    Py_XDECREF(PyObject_CallMethod(scope, "__exit__", "OOO", Py_None, Py_None, Py_None));
    PyErr_Clear();
  }
  Py_XDECREF(entered);
  Py_XDECREF(scope);
  Py_XDECREF(warnings);
}

// Of the thread that forks. Without all this the GIL could belong in the child to a thread that is
// not there.
thread_local PyGILState_STATE before_fork;
constexpr ForkHooks kForkHooks{
    .before =
        [] {
          OfProcess().Enter(Interpreter::For::kCallback);
          before_fork = PyGILState_Ensure();
          BeforeForkQuietly();
        },
    .in_parent =
        [] {
          PyOS_AfterFork_Parent();
          PyGILState_Release(before_fork);
          OfProcess().Leave();
        },
    // In which nobody is inside.
    .in_child =
        [] {
          PyOS_AfterFork_Child();
          PyGILState_Release(before_fork);
        },
};

}  // namespace

GilAcquire::GilAcquire() {
  OfProcess().Enter(Interpreter::For::kCallback);
  state_ = PyGILState_Ensure();
}
GilAcquire::~GilAcquire() {
  PyGILState_Release(state_);
  OfProcess().Leave();
}

GilRelease::GilRelease() : state_(PyEval_SaveThread()) { OfProcess().BeginCall(); }
GilRelease::~GilRelease() {
  OfProcess().EndCall();
  OfProcess().Enter(Interpreter::For::kReturn);
  PyEval_RestoreThread(state_);
  OfProcess().Leave();
}

RunsPython::RunsPython() { OfProcess().EnterWithGil(); }
RunsPython::~RunsPython() { OfProcess().Leave(); }

Interruptible::Interruptible(absl::Duration limit) : outer_(std::exchange(innermost, this)) {
  const bool main = IsMainThread();
  if (!main && limit == absl::InfiniteDuration()) return;
  StopOptions options;
  options.source = &source_;
  options.limit = limit;
  if (main) options.poll = [this] { return Poll(); };
  scope_.emplace(std::move(options));
}

Interruptible::~Interruptible() { innermost = outer_; }

bool Interruptible::Poll() {
  const GilAcquire acquire;
  if (PyErr_CheckSignals() == 0) return false;
  raised_.emplace();
  return true;
}

void Interruptible::RaiseIfInterrupted() {
  if (raised_.has_value()) throw nb::python_error(std::move(*raised_));
}

bool Interruptible::Take(const nb::python_error& raised) {
  if (innermost == nullptr || !raised.matches(PyExc_KeyboardInterrupt)) return false;
  innermost->raised_.emplace(raised);
  innermost->source_.Request();
  return true;
}

void PrepareForForks() { SetForkHooks(kForkHooks); }

void PrepareForEndOfPython() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { OfProcess().End(); }));
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
