// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/program_source.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_handlers.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_types.h"
#include "shardcall/partitioner/bindings/xla/for_xla.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

absl::Status NotForPjrt(std::string message, std::string where, std::string fix) {
  return ToStatus({.code = "E336",
                   .message = std::move(message),
                   .where = std::move(where),
                   .fix = std::move(fix)},
                  absl::StatusCode::kUnimplemented);
}

// Fills in parameters and results; returns whether the only parameter is a tuple.
absl::StatusOr<bool> SetLeaves(const Module& local, ProgramSource* source) {
  const Computation& entry = local.comp(local.entry());
  const auto append = [&](InstrId id, const Shape* laid_out,
                          std::vector<ProgramSource::Leaf>* out) {
    const Instruction& instr = local.instr(id);
    for (int k = 0; k < instr.shape->num_leaves(); ++k) {
      const Shape* leaf = instr.shape->leaf(k);
      if (leaf->IsArray() && BufferType(leaf->element_type()) == 0) {
        return NotForPjrt(
            absl::StrCat("PJRT has no arrays of ", ElementTypeName(leaf->element_type())),
            absl::StrCat("%", instr.name), "Convert the value to another type");
      }
      out->push_back({leaf->element_type(), Dims(leaf->dims().begin(), leaf->dims().end()), {}});
      if (laid_out == nullptr || !laid_out->leaf(k)->has_layout()) continue;
      const absl::Span<const int64_t> order = laid_out->leaf(k)->minor_to_major();
      out->back().minor_to_major.assign(order.begin(), order.end());
    }
    return absl::OkStatus();
  };
  bool tupled = false;
  const std::vector<const Shape*>& layouts = local.header.entry_parameter_layouts;
  for (size_t p = 0; p < entry.parameters.size(); ++p) {
    const Instruction& instr = local.instr(entry.parameters[p]);
    tupled = tupled || instr.shape->IsTuple();
    if (tupled && entry.parameters.size() > 1) {
      return NotForPjrt("PJRT takes a tuple as the only parameter of a program",
                        absl::StrCat("%", instr.name), "Give the tuple's parts as parameters");
    }
    SHARDCALL_RETURN_IF_ERROR(append(entry.parameters[p], p < layouts.size() ? layouts[p] : nullptr,
                                     &source->parameters));
  }
  SHARDCALL_RETURN_IF_ERROR(append(entry.root, nullptr, &source->results));
  return tupled;
}

}  // namespace

absl::StatusOr<ProgramSource> MakeProgramSource(const Plugin& plugin, absl::string_view platform,
                                                absl::Span<const int64_t> device_ids,
                                                const Module& per_device,
                                                const HandlerRegistry* handlers) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::optional<Module> for_xla, ForXla(per_device, platform));
  const Module& local = for_xla.has_value() ? *for_xla : per_device;
  ProgramSource source;
  SHARDCALL_ASSIGN_OR_RETURN(const bool tupled, SetLeaves(local, &source));
  ProtoOptions proto;
  proto.list_groups = plugin.minor_version() < abi::kIotaGroupsMinorVersion;
  if (handlers != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(
        proto.typed_calls,
        RegisterHandlers(plugin, platform, local, static_cast<int>(device_ids.size()), *handlers));
  }
  SHARDCALL_ASSIGN_OR_RETURN(source.code, WriteModuleProto(local, ProtoForm::kModule, proto));
  source.options = PerDeviceOptions(device_ids, tupled);
  return source;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
