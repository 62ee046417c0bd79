// SPDX-License-Identifier: Apache-2.0
// Modules as protobuf: HloModuleProto, HloProto (what XLA dumps as .hlo.pb) and
// HloSnapshot. Reading does not verify (verifier.h).
//
// What text says, the messages say too, and the other way round; a module that
// was read is written back with the same ids, order and fields. Fields that
// nothing here knows, and known ones that a Module has no place for, are kept
// with the module, its computations and its instructions, and written again as
// long as what was read with them is unchanged. A module that a pass has made
// anew has no such fields. Four things that only text says have fields of their
// own (hlo.proto, numbers 61001): the counts of replicas and partitions, what
// propagation may change, elided constants, defaults that were spelled out.
//
// Errors name the place, as in `x.pb: computations[2].instructions[7] (%add.1)`.
// E030 to E034 are about messages, E001 to E020 mean what they mean in text; see
// sharding/DIAGNOSTICS.md.
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

// The form is told by the content. `file_name` stands in error messages only.
// The module does not refer to `bytes` afterwards.
absl::StatusOr<Module> ReadModuleProto(absl::string_view bytes, std::shared_ptr<Context> context,
                                       absl::string_view file_name);

// The form that the module was read from; kModule if it was not.
ProtoForm ProtoFormOf(const Module& module);

// What readers older than this writer need.
struct ProtoOptions {
  // Groups of collectives as lists of devices, never as an iota: PJRT plugins before
  // version 0.100 read nothing else.
  bool list_groups = false;
  // Custom calls, by id, that are written as calls of the typed FFI of this target, and
  // without attributes: for readers that have no other calls.
  absl::flat_hash_map<uint32_t, std::string> typed_calls;
  // Of a per-device module, how the devices together hold the entry's parameters, flat,
  // and its result, a tuple's as a tuple; for frameworks that ask.
  std::vector<HloSharding> parameter_shardings;
  absl::optional<HloSharding> result_sharding;
};
// Serialised. A module that was read from HloProto or HloSnapshot keeps what
// stood beside it (buffer assignment, arguments) for these forms.
absl::StatusOr<std::string> WriteModuleProto(const Module& module,
                                             ProtoForm form = ProtoForm::kModule,
                                             const ProtoOptions& options = {});

// A serialised OpSharding. E034 for what the message cannot say.
absl::StatusOr<std::string> WriteShardingProto(const HloSharding& sharding);
// A serialised ShapeProto.
std::string WriteShapeProto(const Shape* shape);
// A serialised OpSharding in any of its forms, and a ShapeProto. `what` stands in
// error messages only. Errors E030, E010, E016, E033.
absl::StatusOr<HloSharding> ReadShardingProto(absl::string_view bytes, absl::string_view what);
absl::StatusOr<const Shape*> ReadShapeProto(absl::string_view bytes,
                                            std::shared_ptr<Context> context,
                                            absl::string_view what);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_HLO_PROTO_H_
