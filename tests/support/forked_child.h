// SPDX-License-Identifier: Apache-2.0
// Tests of what a child of fork() finds, in which there is one thread only.
#ifndef SHARDCALL_TESTS_SUPPORT_FORKED_CHILD_H_
#define SHARDCALL_TESTS_SUPPORT_FORKED_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace shardcall {

// The wait status of a child that runs `body`, which returns its exit status; -1 if there is no
// child. It is killed where it takes longer than `most`, also where it never comes out of fork().
template <typename Body>
int StatusOfChild(Body body, std::chrono::seconds most = std::chrono::seconds(10)) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  if (child < 0) return -1;
  const auto end = std::chrono::steady_clock::now() + most;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
    if (std::chrono::steady_clock::now() > end) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return ended == child ? status : -1;
}

// Forks a child that calls `use`, `after` another thread began to. All that in a child: `use`,
// which returns 0, is the first in its process, if it was never called in this one.
template <typename Use>
int StatusOfForkAtFirstUse(Use use, std::chrono::microseconds after = {}) {
  const auto first = [&] {
    std::atomic<bool> starts{false};
    int of_other = 0;
    std::thread other([&] {
      while (!starts) {
      }
      of_other = use();
    });
    starts = true;
    if (after.count() > 0) std::this_thread::sleep_for(after);
    const int status = StatusOfChild(use);
    other.join();
    return status == 0 && of_other == 0 ? 0 : 1;
  };
  return StatusOfChild(first, std::chrono::seconds(20));
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_FORKED_CHILD_H_
