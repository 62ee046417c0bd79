// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/rank_identity.h"

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/version.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/runtime/io/shard_io.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/stable_hash.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/synchronized.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace {

std::string HashText(uint64_t hash) { return absl::StrCat(absl::Hex(hash, absl::kZeroPad16)); }

// The value of a handler's source, as the file was when it was first asked for: what a process has
// loaded stays what it is. Paths are not compared, since hosts may keep a library elsewhere.
std::string SourceText(const std::string& source) {
  auto& sources =
      MadeAtFirstUse([] { return new Synchronized<std::map<std::string, std::string>>; });
  {
    const auto known = sources.Lock();
    if (const auto it = known->find(source); it != known->end()) return it->second;
  }
  const absl::StatusOr<std::string> bytes = ReadWholeFile(source);
  std::string text = bytes.ok() ? absl::StrCat("a library of ", bytes->size(), " bytes with hash ",
                                               HashText(StableHash().AddBulk(*bytes).value()))
                                : absl::StrCat("one of \"", source, "\"");
  return sources.Lock()->try_emplace(source, std::move(text)).first->second;
}

void AddHandlers(const DeviceProgram& lowered, const HandlerRegistry* handlers,
                 std::vector<SharedValue>* values) {
  if (handlers == nullptr) return;
  std::set<std::string> added;
  for (const DeviceProgram::TargetUse& use : lowered.targets) {
    const auto entry = handlers->FindForRun(use.target, use.backend_config);
    if (!entry.ok()) continue;  // the run says so
    std::string what = absl::StrCat("the handler of \"", use.target, "\"");
    if ((*entry)->backend_config != "") absl::StrAppend(&what, " (", use.backend_config, ")");
    if (!added.insert(what).second) continue;
    values->push_back({std::move(what), SourceText((*entry)->source),
                       "Start every rank with the same --plugin, and the same file behind it"});
  }
}

std::string BytesText(const Tensor& array) {
  const absl::string_view bytes(array.data(), array.byte_size());
  return absl::StrCat("values with hash ", HashText(StableHash().AddBulk(bytes).value()));
}

}  // namespace

absl::StatusOr<ProgramIdentity> IdentityOfRank(const PartitionedProgram& program,
                                               const DeviceProgram& lowered,
                                               const std::vector<Tensor>& inputs, int64_t device,
                                               const RunOptions& options) {
  ProgramIdentity identity;
  // Overlapped collectives run in another order, so ranks must agree on it.
  identity.program_hash = StableHash()
                              .Add(PrintModule(program.local.module))
                              .Add(lowered.has_starts ? "overlap" : "")
                              .value();
  identity.world_size = static_cast<int>(program.global->program.num_partitions);
  identity.version = kVersion;
  AddHandlers(lowered, options.handlers, &identity.values);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!IsArrayType(inputs[k].type())) continue;
    std::string what =
        absl::StrCat("input ", k, ", ", TypeAndDims(inputs[k].type(), inputs[k].dims()));
    if (!options.own_shards_only) {
      identity.values.push_back({std::move(what), BytesText(inputs[k]),
                                 "Give every rank the same inputs (--inputs, or --random-inputs "
                                 "with one seed)"});
      continue;
    }
    if (device >= identity.world_size) continue;  // E051
    const LocalState& state = *program.local.parameters[k];
    SHARDCALL_ASSIGN_OR_RETURN(const int64_t buffer,
                               BufferOfDevice(state, inputs[k].dims(), device));
    SHARDCALL_ASSIGN_OR_RETURN(const Tensor part,
                               ShardForDevice(inputs[k], state, device, PadFill::kZero));
    identity.values.push_back({absl::StrCat(what, ", part ", buffer), BytesText(part),
                               "Give the ranks that hold one shard the same values for it"});
  }
  return identity;
}

}  // namespace internal
}  // namespace shardcall
