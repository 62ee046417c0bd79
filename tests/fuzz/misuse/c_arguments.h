// SPDX-License-Identifier: Apache-2.0
// Arguments of C functions: mostly right structs and texts.
#ifndef SHARDCALL_TESTS_FUZZ_MISUSE_C_ARGUMENTS_H_
#define SHARDCALL_TESTS_FUZZ_MISUSE_C_ARGUMENTS_H_

#include <deque>
#include <string>
#include <utility>

#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "tests/fuzz/misuse/misuse.h"

namespace shardcall::misuse {

class CArguments {
 protected:
  explicit CArguments(Caller& c) : c_(c) {}

  // A struct of zeros, at times of another size than its own.
  template <typename T>
  T Sized() {
    T t = SHARDCALL_INIT(T);
    if (c_.Chance(3)) t.struct_size = static_cast<size_t>(c_.Number());
    return t;
  }
  // Lives as long as this; at times null.
  const char* Text(std::string text) {
    if (c_.Chance(3)) return nullptr;
    texts_.push_back(std::move(text));
    return texts_.back().c_str();
  }

  Caller& c_;
  std::deque<std::string> texts_;
};

}  // namespace shardcall::misuse

#endif  // SHARDCALL_TESTS_FUZZ_MISUSE_C_ARGUMENTS_H_
