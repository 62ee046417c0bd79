// SPDX-License-Identifier: Apache-2.0
// Numbered: a builder that reuses what it has already added.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_NUMBERED_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_NUMBERED_H_

#include "shardcall/partitioner/ir/build/builder.h"

namespace shardcall {
inline namespace internal {

// Turns on value numbering during its lifetime, so that partition-id arithmetic and masks are
// shared within a computation.
class Numbered {
 public:
  explicit Numbered(GraphBuilder& b) : b_(b), before_(b.value_numbering()) {
    b.set_value_numbering(true);
  }
  ~Numbered() { b_.set_value_numbering(before_); }

  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;

 private:
  GraphBuilder& b_;
  bool before_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_NUMBERED_H_
