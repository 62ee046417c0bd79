// SPDX-License-Identifier: Apache-2.0
// Attribute records of conditionals, custom calls, collectives, async ops and
// domains.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/proto/record_reader.h"
#include "shardcall/partitioner/ir/text/parse/slot_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool RecordReader::Read(RecordType<ConditionalAttrs>, Opcode, const Attributes** out) {
  ConditionalAttrs a;
  if (called_.empty()) {
    return faults_.Fail("E019", "A conditional has no branches", "called_computation_ids",
                        "1 or more");
  }
  a.branches = called_;
  a.is_pred =
      !operands_.empty() && module_.instr(operands_[0]).shape->element_type() == ElementType::kPred;
  if (a.is_pred && !Calls(2)) return false;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<CustomCallAttrs>, Opcode, const Attributes** out) {
  CustomCallAttrs a;
  if (!values_.Utf8(p_.custom_call_target(), "custom_call_target", &a.target) ||
      !values_.Precision(p_.precision_config(), &a.operand_precision, nullptr) ||
      !values_.Word("padding_type", p_.padding_type(), words::kPaddings.words, &a.padding_type) ||
      !values_.Word("custom_call_schedule", p_.custom_call_schedule(), words::kSchedules.words,
                    &a.schedule) ||
      !values_.Aliasing(p_.output_operand_aliasing(), &a.output_to_operand_aliasing)) {
    return false;
  }
  if (p_.custom_call_api_version() < 0 || p_.custom_call_api_version() > 4) {
    return faults_.Fail("E019", "Unknown version of the interface", "custom_call_api_version",
                        "1 to 4", absl::StrCat(p_.custom_call_api_version()));
  }
  // 0 is kept, as in XLA; running the call is an error (E140).
  a.api_version = p_.custom_call_api_version();
  a.has_side_effect = p_.custom_call_has_side_effect();
  a.has_layout_constraints = p_.constrain_layout();
  std::vector<const Shape*> layouts(p_.operand_shapes_with_layout_size());
  if (a.has_layout_constraints) {
    if (layouts.size() != operands_.size()) {
      return faults_.Fail("E019", "Each operand needs one layout constraint",
                          "operand_shapes_with_layout", absl::StrCat(operands_.size()),
                          absl::StrCat(layouts.size()));
    }
    for (size_t k = 0; k < layouts.size(); ++k) {
      if (!values_.ReadShape(p_.operand_shapes_with_layout(static_cast<int>(k)),
                             absl::StrCat("operand_shapes_with_layout[", k, "]"), &layouts[k])) {
        return false;
      }
    }
    a.operand_layouts = layouts;
  }
  a.has_window = p_.has_window();
  if (!values_.ReadWindow(p_.window(), &a.window)) return false;
  if (p_.has_convolution_dimension_numbers() &&
      !values_.DimLabels(p_.convolution_dimension_numbers(), &a.dim_labels)) {
    return false;
  }
  if (p_.feature_group_count() != 0) a.feature_group_count = p_.feature_group_count();
  if (p_.batch_group_count() != 0) a.batch_group_count = p_.batch_group_count();
  if (p_.has_literal() && !values_.ReadLiteral(p_.literal(), "literal", &a.literal)) return false;
  a.called_computations = called_;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::ReadGroups(ReplicaGroups* out) {
  std::vector<Ints>& lists = group_lists_;
  lists.clear();
  if (p_.has_iota_collective_device_list()) {
    const auto& iota = p_.iota_collective_device_list();
    const int rank = iota.iota_reshape_dims_size();
    std::vector<int64_t> perm(iota.iota_transpose_perm().begin(), iota.iota_transpose_perm().end());
    int64_t devices = 0;
    const bool ok = iota.num_replica_groups() >= 0 && iota.num_devices_per_group() >= 0 &&
                    !__builtin_mul_overflow(iota.num_replica_groups(), iota.num_devices_per_group(),
                                            &devices) &&
                    (!perm.empty() || rank == 1) &&
                    IsIota(IntsOf(iota.iota_reshape_dims()), perm, devices);
    if (!ok) {
      return faults_.Fail("E019", "Invalid iota replica groups", "iota_collective_device_list",
                          "groups x size devices, reshaped and permuted");
    }
    out->form = ReplicaGroups::Form::kIota;
    out->num_groups = iota.num_replica_groups();
    out->group_size = iota.num_devices_per_group();
    out->reshape = IntsOf(iota.iota_reshape_dims());
    if (rank > 1) out->perm = context_.arena().Copy(Ints(perm));
    return true;
  }
  if (p_.has_mesh_axes_replica_group_list()) {
    const auto& list = p_.mesh_axes_replica_group_list();
    std::string text = "{";
    if (!values_.MeshText(list.mesh(), "mesh_axes_replica_group_list.mesh", &text)) return false;
    text += ", [{";
    if (!values_.AxesText(list.mesh(), list.axes(), &text)) return false;
    const absl::StatusOr<HloSharding> sharding = ParseHloSharding(text + "}]}");
    if (!sharding.ok() || sharding->named.dims[0].axes.empty()) {
      const absl::string_view why = sharding.ok() ? "no axis" : sharding.status().message();
      return faults_.Fail("E019",
                          absl::StrCat("Invalid mesh groups (", why.substr(0, why.find('\n')), ")"),
                          "mesh_axes_replica_group_list", "a mesh and at least one of its axes");
    }
    out->form = ReplicaGroups::Form::kMesh;
    out->mesh_text = values_.Keep(hlo_text::MeshGroupsText(*sharding));
    return true;
  }
  // Older writers have the groups outside of the device list.
  const auto& groups = p_.has_collective_device_list()
                           ? p_.collective_device_list().replica_groups()
                           : p_.replica_groups();
  for (const hlo_pb::ReplicaGroup& g : groups) lists.push_back(IntsOf(g.replica_ids()));
  if (lists.empty()) return true;
  out->form = ReplicaGroups::Form::kLists;
  out->lists = lists;  // the caller interns it while `lists` is alive
  return true;
}

bool RecordReader::Read(RecordType<CollectiveAttrs>, Opcode opcode, const Attributes** out) {
  CollectiveAttrs a;
  if (p_.channel_id() > 0) {
    a.channel_id = p_.channel_id();
  } else if (p_.all_reduce_id() > 0) {
    a.channel_id = p_.all_reduce_id();
  }
  a.constrain_layout = p_.constrain_layout();
  a.use_global_device_ids = p_.use_global_device_ids();
  if (p_.has_dynamic_root() || (p_.shardcall_written() & 2)) {
    a.has_dynamic_root = p_.has_dynamic_root();
  }
  const bool reduces = HasTrait(opcode, kAppliesToElements);
  if (!Calls(reduces ? 1 : 0) || !ReadGroups(&a.groups)) return false;
  if (reduces) a.to_apply = called_[0];
  // An all-to-all of a tuple has no dimension.
  const bool one = hlo_text::Requires(opcode, hlo_text::Attr::kDimensions) ||
                   (opcode == Opcode::kAllToAll && p_.dimensions_size() > 0);
  if (one && !OneDimension(&a.dimension)) return false;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<PermuteAttrs>, Opcode, const Attributes** out) {
  PermuteAttrs a;
  if (!Calls(0)) return false;
  if (p_.channel_id() > 0) a.channel_id = p_.channel_id();
  std::vector<int64_t> sources, targets;
  for (const hlo_pb::SourceTarget& pair : p_.source_target_pairs()) {
    sources.push_back(pair.source());
    targets.push_back(pair.target());
  }
  a.sources = sources;
  a.targets = targets;
  // The slice sizes of all inputs are concatenated, one list for each input.
  std::vector<Ints> sizes;
  const Ints all = IntsOf(p_.dynamic_slice_sizes());
  if (!all.empty()) {
    const Shape* first = operands_.empty() ? nullptr : module_.instr(operands_[0]).shape;
    const size_t lists = first == nullptr   ? 1
                         : first->IsTuple() ? std::max<size_t>(first->tuple().size(), 1)
                                            : 1;
    if (all.size() % lists != 0) {
      return faults_.Fail("E019", "The sizes of the slices do not fit the operands",
                          "dynamic_slice_sizes", absl::StrCat("a multiple of ", lists),
                          absl::StrCat(all.size()));
    }
    const size_t each = all.size() / lists;
    for (size_t k = 0; k < lists; ++k) sizes.push_back(all.subspan(k * each, each));
    a.slice_sizes = sizes;
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<AsyncAttrs>, Opcode opcode, const Attributes** out) {
  AsyncAttrs a;
  absl::string_view thread;
  if ((opcode == Opcode::kAsyncStart &&
       !values_.Aliasing(p_.output_operand_aliasing(), &a.aliasing)) ||
      !values_.Utf8(p_.async_execution_thread(), "async_execution_thread", &thread)) {
    return false;
  }
  if (thread == "main") thread = {};
  if (opcode == Opcode::kAsyncStart) {
    if (!Calls(1)) return false;
    a.calls = called_[0];
    a.execution_thread = thread;
    *out = InternAttributes(context_, a);
    return true;
  }
  if (operands_.size() != 1) {
    return faults_.Fail("E012", absl::StrCat("Wrong number of operands of ", OpcodeText(opcode)),
                        "operand_ids", "1", absl::StrCat(operands_.size()));
  }
  const Instruction& previous = module_.instr(operands_[0]);
  if (previous.opcode != Opcode::kAsyncStart && previous.opcode != Opcode::kAsyncUpdate) {
    return faults_.Fail("E020", "The operand is not an async start or update", "operand_ids",
                        "the start or update of the same op",
                        absl::StrCat("'", OpcodeText(previous.opcode), "'"));
  }
  const AsyncAttrs& start = previous.as<AsyncAttrs>();
  // Older writers repeat the computation on each op of the chain.
  if (!called_.empty() && (called_.size() > 1 || called_[0] != start.calls)) {
    return faults_.Fail("E020", "Async ops of one chain disagree", "called_computation_ids",
                        "the computation of the start");
  }
  a.calls = start.calls;
  a.execution_thread = start.execution_thread;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<DomainAttrs>, Opcode, const Attributes** out) {
  DomainAttrs a;
  const HloSharding *entry, *exit;
  if (!p_.has_domain_entry_sharding() || !p_.has_domain_exit_sharding()) {
    return faults_.Fail("E019", "A domain has an entry and an exit", "domain_entry_sharding",
                        "shardings of both sides");
  }
  if (!values_.ReadSharding(p_.domain_entry_sharding(), "domain_entry_sharding", &entry) ||
      !values_.ReadSharding(p_.domain_exit_sharding(), "domain_exit_sharding", &exit)) {
    return false;
  }
  // The message's entry is the exit in text, and the other way round.
  const std::string text =
      absl::StrCat("{kind=\"sharding\", entry=", exit->Print(), ", exit=", entry->Print(), "}");
  a.domain = text;
  *out = InternAttributes(context_, a);
  return true;
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
