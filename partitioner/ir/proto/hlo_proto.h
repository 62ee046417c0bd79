// SPDX-License-Identifier: Apache-2.0
// Modules as protobuf: HloModuleProto, HloProto (what XLA dumps as .hlo.pb) and
// HloSnapshot. Reading does not verify (verifier.h).
//
// Text and messages express the same, and can be converted in both directions. A module that was
// read is written back with the same ids, order and fields. Fields that Module does not represent
// are kept with it; unknown ones that may change the program are E036 (ignored_fields.h). Kept ones
// are written again as long as the fields read with them are unchanged. A module that a pass has
// rebuilt does not have them. Four things that only text can express have fields of their own
// (hlo.proto, numbers 61001): replica and partition counts, what propagation may change, elided
// constants, and defaults that were written explicitly.
//
// Errors name the place, as in `x.pb: computations[2].instructions[7] (%add.1)`. E030 to E036 are
// specific to messages, E001 to E020 mean the same as for text; see sharding/DIAGNOSTICS.md.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_HLO_PROTO_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_HLO_PROTO_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class ProtoForm : uint8_t {
  kModule,    // HloModuleProto
  kHlo,       // HloProto
  kSnapshot,  // HloSnapshot
};

// True for bytes that HLO text cannot begin with.
bool LooksLikeProto(absl::string_view bytes);

// Detects the form from the content. `file_name` is used in error messages only. The module does
// not refer to `bytes` afterwards.
absl::StatusOr<Module> ReadModuleProto(absl::string_view bytes, std::shared_ptr<Context> context,
                                       absl::string_view file_name);

// The form that the module was read from; kModule if it was not.
ProtoForm ProtoFormOf(const Module& module);

// Options for older readers.
struct ProtoOptions {
  // Write replica groups as lists of devices, never as an iota: PJRT plugins before version 0.100
  // read only lists.
  bool list_groups = false;
  // Custom calls, by id, that are written as typed FFI calls of this target and without attributes:
  // for readers that support no other custom calls.
  absl::flat_hash_map<uint32_t, std::string> typed_calls;
  // For a per-device module: the shardings of the entry's parameters (flat) and of its result (a
  // tuple's as a tuple), for frameworks that ask for them.
  std::vector<HloSharding> parameter_shardings;
  absl::optional<HloSharding> result_sharding;
};
// Returns the serialised message. A module that was read from HloProto or HloSnapshot keeps the
// other fields of these messages (buffer assignment, arguments) for these forms.
absl::StatusOr<std::string> WriteModuleProto(const Module& module,
                                             ProtoForm form = ProtoForm::kModule,
                                             const ProtoOptions& options = {});

// A serialised OpSharding. E034 if the message cannot express the sharding.
absl::StatusOr<std::string> WriteShardingProto(const HloSharding& sharding);
// A serialised ShapeProto.
std::string WriteShapeProto(const Shape* shape);
// Reads a serialised OpSharding in any of its forms, or a ShapeProto. `what` is used in error
// messages only. Errors E030, E010, E016, E033.
absl::StatusOr<HloSharding> ReadShardingProto(absl::string_view bytes, absl::string_view what);
absl::StatusOr<const Shape*> ReadShapeProto(absl::string_view bytes,
                                            std::shared_ptr<Context> context,
                                            absl::string_view what);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_HLO_PROTO_H_
