// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/stand_in/record.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include "tests/collectives/stand_in/stand_in.h"

namespace stand_in {
namespace {

constexpr size_t kKept = 10000;
std::atomic<const char*> last_error{""};

// Never destroyed: threads of streams may outlive main.
struct Records {
  std::mutex mutex;
  std::deque<std::string> calls;
  int live[6] = {};
  int until_failure = -1;  // calls before it; -1: none fails
  std::string failed;
};
Records& All() {
  static Records* const records = new Records;
  return *records;
}

void Count(Thing thing, int change) {
  std::lock_guard<std::mutex> lock(All().mutex);
  All().live[static_cast<int>(thing)] += change;
}

}  // namespace

void Record(std::string call) {
  std::lock_guard<std::mutex> lock(All().mutex);
  if (All().calls.size() == kKept) All().calls.pop_front();
  All().calls.push_back(std::move(call));
}

std::vector<std::string> TakeCalls() {
  std::lock_guard<std::mutex> lock(All().mutex);
  std::vector<std::string> calls(All().calls.begin(), All().calls.end());
  All().calls.clear();
  return calls;
}

bool Fails(const char* function) {
  std::lock_guard<std::mutex> lock(All().mutex);
  if (All().until_failure < 0 || All().until_failure-- > 0) return false;
  All().failed = function;
  return true;
}
void FailCall(int number) {
  std::lock_guard<std::mutex> lock(All().mutex);
  All().until_failure = number;
  All().failed.clear();
}
std::string FailedCall() {
  std::lock_guard<std::mutex> lock(All().mutex);
  return All().failed;
}

void Misuse(const std::string& what) {
  std::fprintf(stderr, "stand-in for NCCL: misuse: %s\n", what.c_str());
  std::abort();
}

void SetLastError(const char* text) { last_error = text; }
const char* LastError() { return last_error; }

void Made(Thing thing) { Count(thing, 1); }
void Freed(Thing thing) { Count(thing, -1); }

std::string Unfreed() {
  static const char* const kNames[] = {"communicator", "stream", "event",
                                       "allocation",   "handle", "descriptor"};
  std::lock_guard<std::mutex> lock(All().mutex);
  std::string text;
  for (int k = 0; k < 6; ++k) {
    const int n = All().live[k];
    if (n == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(n) + " " + kNames[k] + (n == 1 ? "" : "s");
  }
  return text;
}

}  // namespace stand_in
