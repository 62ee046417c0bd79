// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/step_observer.h"

#include <utility>

namespace shardcall {
inline namespace internal {
namespace {

thread_local StepObserver* current = nullptr;

}  // namespace

StepObserver* StepObserver::OfThisThread() { return current; }
StepObserver::Scope::Scope(StepObserver* observer) : before_(std::exchange(current, observer)) {}
StepObserver::Scope::~Scope() { current = before_; }

}  // namespace internal
}  // namespace shardcall
