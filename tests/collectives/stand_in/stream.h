// SPDX-License-Identifier: Apache-2.0
// The stand-in's streams: what is put on one runs in order, on its thread.
#ifndef SHARDCALL_TESTS_COLLECTIVES_STAND_IN_STREAM_H_
#define SHARDCALL_TESTS_COLLECTIVES_STAND_IN_STREAM_H_

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace stand_in {

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // Called until it returns true; whatever it holds is then gone.
  using Step = std::function<bool()>;

  explicit Stream(int device) : device_(device) {}
  int device() const { return device_; }
  void Start();
  void Push(Step step);
  bool Idle();
  void AwaitIdle();
  void Close();  // what is on it still runs

 private:
  void Run();

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Step> steps_;
  bool closed_ = false;
};

// Of a live stream; anything else is misuse.
std::shared_ptr<Stream> FindStream(cudaStream_t stream, const char* function);

int CurrentDevice();

}  // namespace stand_in

#endif  // SHARDCALL_TESTS_COLLECTIVES_STAND_IN_STREAM_H_
