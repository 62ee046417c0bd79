// SPDX-License-Identifier: Apache-2.0
// What a per-device program says of how its values are cut, in frontend attributes: its shapes are
// those of shards. On the entry's parameters, and on loops and conditionals
//
//   p = f32[2,4] parameter(0), frontend_attributes={shardcall.global_shape="f32[10,4]",
//                                                   shardcall.shards={devices=[8,1]<=[8]}}
//
// and on the module, for the entry's result, shardcall.result_shards and
// shardcall.result_global_shape.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_STATED_SHARDINGS_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_STATED_SHARDINGS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/shape.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

class StatedShardings {
 public:
  // Nothing is said where there is one device.
  StatedShardings(Context& context, bool several_devices)
      : context_(context), several_devices_(several_devices) {}

  // `given` without the annotations of any stage, and with what is said of a value of the shape
  // `global`, whose leaves have these shardings. Tokens have none: they are {replicated}. A value
  // that is partial by an operation which text does not have is {unknown}.
  const FrontendAttributes* OfValue(const FrontendAttributes* given, const Shape* global,
                                    absl::Span<const Sharding* const> shardings) {
    return With(given, "shardcall.", global, shardings);
  }
  const FrontendAttributes* OfResult(const FrontendAttributes* given, const Shape* global,
                                     absl::Span<const Sharding* const> shardings) {
    return With(given, "shardcall.result_", global, shardings);
  }

 private:
  const FrontendAttributes* With(const FrontendAttributes* given, absl::string_view prefix,
                                 const Shape* global, absl::Span<const Sharding* const> shardings);
  const std::string& TextOf(const Sharding* sharding);

  Context& context_;
  const bool several_devices_;
  absl::flat_hash_map<const Sharding*, std::string> texts_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_STATED_SHARDINGS_H_
