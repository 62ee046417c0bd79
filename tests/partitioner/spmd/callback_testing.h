// SPDX-License-Identifier: Apache-2.0
// A target with a partition callback, in a program of one call.
#ifndef SHARDCALL_TESTS_PARTITIONER_SPMD_CALLBACK_TESTING_H_
#define SHARDCALL_TESTS_PARTITIONER_SPMD_CALLBACK_TESTING_H_

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "tests/support/verify_text.h"

namespace shardcall {

using PartitionFn = std::function<absl::Status(PartitionContext&)>;

// Target "same": gives its operands back.
inline absl::Status Same(const HandlerContext&, absl::Span<const BufferView> in,
                         absl::Span<const BufferView> out) {
  for (size_t k = 0; k < out.size(); ++k) {
    if (out[k].data != in[k].data && out[k].data != nullptr) {
      std::memcpy(out[k].data, in[k].data, in[k].byte_size());
    }
  }
  return absl::OkStatus();
}

// Its handler.
inline void RegisterSame(HandlerRegistry* handlers) {
  HandlerEntry entry;
  entry.target = "same";
  entry.host = Same;
  EXPECT_TRUE(handlers->Register(std::move(entry)).ok());
}

struct CallbackRig {
  explicit CallbackRig(PartitionFn partition) {
    PartitionerCallbacks c;
    c.partition = std::move(partition);
    EXPECT_TRUE(targets.RegisterCustomCallPartitioner("same", c).ok());
    RegisterSame(&handlers);
    options.targets = &targets;
    options.handlers = &handlers;
  }
  TargetRegistry targets;
  HandlerRegistry handlers;
  TextOptions options;
};

inline constexpr char kProgram[] = R"(HloModule m, num_partitions=4

ENTRY e {
  x = s32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  c = s32[8,12] custom-call(x), custom_call_target="same"
  ROOT r = s32[8,12] add(c, x)
}
)";

inline std::string Verified(PartitionFn partition, const std::string& text = kProgram) {
  CallbackRig rig(std::move(partition));
  return WhyNotEqual(text, rig.options);
}
inline absl::Status Refused(PartitionFn partition, const std::string& text = kProgram) {
  CallbackRig rig(std::move(partition));
  return PartitionText(text, rig.options).status();
}

inline const Sharding* ShardingOf(PartitionContext& c, absl::string_view text, int rank = 2) {
  absl::StatusOr<const Sharding*> s = c.call().ParseSharding(text, rank);
  EXPECT_TRUE(s.ok()) << s.status();
  return s.ok() ? *s : nullptr;
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_SPMD_CALLBACK_TESTING_H_
