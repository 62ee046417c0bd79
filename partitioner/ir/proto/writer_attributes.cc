// SPDX-License-Identifier: Apache-2.0
// The fields of each kind of instruction.
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/proto/reader.h"
#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/proto/writer.h"
#include "shardcall/partitioner/ir/text/lexer.h"

namespace shardcall::hlo_proto {
namespace {

void Set(Ints from, Repeated* to) { to->Add(from.begin(), from.end()); }
std::string Str(Text text) { return std::string(text); }

}  // namespace

bool Writer::WriteDot(const Instruction& i, hlo_pb::HloInstructionProto* p) {
  const DotAttrs& a = i.as<DotAttrs>();
  hlo_pb::DotDimensionNumbers* d;
  if (i.opcode == Opcode::kRaggedDot) {
    hlo_pb::RaggedDotDimensionNumbers* ragged = p->mutable_ragged_dot_dimension_numbers();
    Set(a.lhs_ragged, ragged->mutable_lhs_ragged_dimensions());
    Set(a.rhs_group, ragged->mutable_rhs_group_dimensions());
    d = ragged->mutable_dot_dimension_numbers();
  } else {
    d = p->mutable_dot_dimension_numbers();
  }
  Set(a.lhs_batch, d->mutable_lhs_batch_dimensions());
  Set(a.lhs_contracting, d->mutable_lhs_contracting_dimensions());
  Set(a.rhs_batch, d->mutable_rhs_batch_dimensions());
  Set(a.rhs_contracting, d->mutable_rhs_contracting_dimensions());
  return WritePrecision(a.operand_precision, a.algorithm, 2, p->mutable_precision_config());
}

bool Writer::WriteConvolution(const ConvolutionAttrs& a, hlo_pb::HloInstructionProto* p) {
  WriteWindow(a.window, p->mutable_window());
  p->set_feature_group_count(a.feature_group_count);
  p->set_batch_group_count(a.batch_group_count);
  const int kind = IndexOf(a.convolution_kind, kConvolutionKinds);
  if (kind < 0) {
    return Fail("The kind of convolution has no binary form", a.convolution_kind,
                "name fprop, dgrad or wgrad");
  }
  p->set_conv_kind(kind);
  hlo_pb::SparsityConfig* sparsity = p->mutable_sparsity_config();
  if (!a.sparsity_config.empty() && !ParseSparsity(a.sparsity_config, sparsity)) {
    return Fail("The sparsity has no binary form", a.sparsity_config,
                "write {lhs={sparsity=1x4 dimension=1 stride=1}}");
  }
  return WriteDimLabels(a.dim_labels, p->mutable_convolution_dimension_numbers()) &&
         WritePrecision(a.operand_precision, a.algorithm, 2, p->mutable_precision_config());
}

void Writer::WriteGather(const GatherAttrs& a, hlo_pb::HloInstructionProto* p) {
  hlo_pb::GatherDimensionNumbers* d = p->mutable_gather_dimension_numbers();
  Set(a.offset_dims, d->mutable_offset_dims());
  Set(a.collapsed_slice_dims, d->mutable_collapsed_slice_dims());
  Set(a.start_index_map, d->mutable_start_index_map());
  Set(a.operand_batching_dims, d->mutable_operand_batching_dims());
  Set(a.start_indices_batching_dims, d->mutable_start_indices_batching_dims());
  d->set_index_vector_dim(a.index_vector_dim);
  Set(a.slice_sizes, p->mutable_gather_slice_sizes());
  p->set_indices_are_sorted(a.indices_are_sorted);
}

void Writer::WriteScatter(const ScatterAttrs& a, hlo_pb::HloInstructionProto* p) {
  hlo_pb::ScatterDimensionNumbers* d = p->mutable_scatter_dimension_numbers();
  Set(a.update_window_dims, d->mutable_update_window_dims());
  Set(a.inserted_window_dims, d->mutable_inserted_window_dims());
  Set(a.scatter_dims_to_operand_dims, d->mutable_scatter_dims_to_operand_dims());
  Set(a.input_batching_dims, d->mutable_input_batching_dims());
  Set(a.scatter_indices_batching_dims, d->mutable_scatter_indices_batching_dims());
  d->set_index_vector_dim(a.index_vector_dim);
  p->set_indices_are_sorted(a.indices_are_sorted);
  p->set_unique_indices(a.unique_indices);
}

bool Writer::WriteCustomCall(const Instruction& i, hlo_pb::HloInstructionProto* p) {
  const CustomCallAttrs& a = i.as<CustomCallAttrs>();
  if (!Utf8(a.target, "custom_call_target", p->mutable_custom_call_target())) return false;
  if (a.has_window) WriteWindow(a.window, p->mutable_window());
  if (!a.dim_labels.empty() &&
      !WriteDimLabels(a.dim_labels, p->mutable_convolution_dimension_numbers())) {
    return false;
  }
  p->set_feature_group_count(a.feature_group_count);
  p->set_batch_group_count(a.batch_group_count);
  p->set_padding_type(std::max(IndexOf(a.padding_type, kPaddings), 0));
  p->set_custom_call_schedule(std::max(IndexOf(a.schedule, kSchedules), 0));
  p->set_custom_call_api_version(static_cast<int32_t>(a.api_version));
  p->set_custom_call_has_side_effect(a.has_side_effect);
  if (!options_.typed_calls.empty()) {
    const auto typed = options_.typed_calls.find(at_.value);
    if (typed != options_.typed_calls.end()) {
      constexpr int kTypedFfi = 4;
      p->set_custom_call_target(typed->second);
      p->set_custom_call_api_version(kTypedFfi);
      p->clear_backend_config();
    }
  }
  if (a.has_layout_constraints) {
    p->set_constrain_layout(true);
    for (const Shape* shape : a.operand_layouts) {
      *p->add_operand_shapes_with_layout() = ShapeOf(shape);
    }
  }
  if (a.literal != nullptr && !WriteLiteral(*a.literal, p->mutable_literal())) return false;
  return (a.output_to_operand_aliasing.empty() ||
          ParseAliasing(a.output_to_operand_aliasing, p->mutable_output_operand_aliasing())) &&
         WritePrecision(a.operand_precision, "", static_cast<int>(i.operand_count),
                        p->mutable_precision_config());
}

// An iota of groups, spelled out.
bool Writer::WriteListedGroups(const ReplicaGroups& g, hlo_pb::HloInstructionProto* p) {
  const auto lists = ListedGroups(g, 0);
  if (!lists.has_value()) {
    return Fail("Groups of devices cannot be spelled out", "an iota of another size",
                "ask VerifyModule, which says what is wrong");
  }
  for (const std::vector<int64_t>& list : *lists) {
    Set(list, p->mutable_collective_device_list()->add_replica_groups()->mutable_replica_ids());
  }
  return true;
}

bool Writer::WriteGroups(const ReplicaGroups& g, hlo_pb::HloInstructionProto* p) {
  switch (g.form) {
    case ReplicaGroups::Form::kAll: p->mutable_collective_device_list(); return true;
    case ReplicaGroups::Form::kLists:
      for (Ints list : g.lists) {
        Set(list, p->mutable_collective_device_list()->add_replica_groups()->mutable_replica_ids());
      }
      return true;
    case ReplicaGroups::Form::kIota: {
      if (options_.list_groups) return WriteListedGroups(g, p);
      hlo_pb::IotaReplicaGroupListProto* iota = p->mutable_iota_collective_device_list();
      iota->set_num_replica_groups(g.num_groups);
      iota->set_num_devices_per_group(g.group_size);
      Set(g.reshape, iota->mutable_iota_reshape_dims());
      for (size_t k = 0; k < g.reshape.size(); ++k) {
        iota->add_iota_transpose_perm(static_cast<int32_t>(g.perm.empty() ? k : g.perm[k]));
      }
      return true;
    }
    case ReplicaGroups::Form::kMesh: break;
  }
  // `mesh['a'=2] {'a'}`: read as a sharding of one dimension by these axes.
  const size_t brace = g.mesh_text.rfind('{');
  absl::string_view mesh = g.mesh_text.substr(0, brace == Text::npos ? 0 : brace);
  while (!mesh.empty() && (mesh.back() == ' ' || mesh.back() == ',')) mesh.remove_suffix(1);
  const absl::StatusOr<HloSharding> s = ParseHloSharding(
      absl::StrCat("{", mesh, ", [", brace == Text::npos ? "" : g.mesh_text.substr(brace), "]}"));
  if (!s.ok() || s->kind != HloSharding::Kind::kNamed || s->named.dims.size() != 1) {
    return Fail("The replica groups have no binary form", g.mesh_text,
                "write mesh['a'=2,'b'=4] {'a'}");
  }
  hlo_pb::MeshAxesReplicaGroupListProto* list = p->mutable_mesh_axes_replica_group_list();
  WriteMesh(*s->named.mesh, s->list, list->mutable_mesh());
  WriteAxes(*s->named.mesh, s->named.dims[0].axes, list->mutable_axes());
  return true;
}

bool Writer::WriteChannel(int64_t channel_id, hlo_pb::HloInstructionProto* p) {
  if (channel_id == 0) {
    return Fail("Channel 0 has no binary form", "channel_id=0", "count channels from 1");
  }
  if (channel_id > 0) p->set_channel_id(channel_id);
  return true;
}

bool Writer::WriteCollective(const Instruction& i, hlo_pb::HloInstructionProto* p) {
  const CollectiveAttrs& a = i.as<CollectiveAttrs>();
  if (!WriteChannel(a.channel_id, p)) return false;
  p->set_constrain_layout(a.constrain_layout);
  p->set_use_global_device_ids(a.use_global_device_ids);
  if (a.dimension >= 0) p->add_dimensions(a.dimension);
  if (a.has_dynamic_root > 0) p->set_has_dynamic_root(true);
  if (a.has_dynamic_root == 0) p->set_shardcall_written(2);
  return WriteGroups(a.groups, p);
}

bool Writer::WritePermute(const PermuteAttrs& a, hlo_pb::HloInstructionProto* p) {
  if (!WriteChannel(a.channel_id, p)) return false;
  for (size_t k = 0; k < a.sources.size(); ++k) {
    hlo_pb::SourceTarget* pair = p->add_source_target_pairs();
    pair->set_source(a.sources[k]);
    pair->set_target(a.targets[k]);
  }
  for (Ints sizes : a.slice_sizes) Set(sizes, p->mutable_dynamic_slice_sizes());
  return true;
}

// `{kind="sharding", entry={..}, exit={..}}`; what text calls the entry is the
// message's exit, and the other way round.
bool Writer::WriteDomain(const DomainAttrs& a, hlo_pb::HloInstructionProto* p) {
  const std::string text(a.domain);
  hlo_text::Lexer lex(text, "");
  std::string storage;
  bool ok = lex.Expect('{');
  while (ok && lex.Peek() != '}') {
    absl::string_view key, value;
    ok = lex.Identifier("a key", &key) && lex.Expect('=');
    if (!ok) break;
    if (key == "kind") {
      ok = lex.String(&value, &storage) && value == "sharding";
    } else {
      ok = (key == "entry" || key == "exit") && lex.Balanced(&value);
      const absl::StatusOr<HloSharding> s = ParseHloSharding(ok ? value : absl::string_view());
      ok = ok && s.ok() &&
           WriteSharding(*s, key == "entry" ? p->mutable_domain_exit_sharding()
                                            : p->mutable_domain_entry_sharding());
    }
    lex.TryChar(',');
  }
  return ok || Fail("The domain has no binary form", a.domain,
                    "write {kind=\"sharding\", entry={..}, exit={..}}");
}

bool Writer::WriteAttributes(const Instruction& i, hlo_pb::HloInstructionProto* p) {
  const auto dims = [&](Ints d) {
    Set(d, p->mutable_dimensions());
    return true;
  };
  switch (i.attrs->kind) {
    case AttrKind::kNone:
    case AttrKind::kResultAccuracy:
    case AttrKind::kWhile:
    case AttrKind::kConditional: return true;
    case AttrKind::kCompare: {
      const CompareAttrs& a = i.as<CompareAttrs>();
      p->set_comparison_direction(Str(kDirections[static_cast<int>(a.direction)]));
      p->set_comparison_type(Str(kCompareTypes[static_cast<int>(a.type)]));
      return true;
    }
    case AttrKind::kParameter: {
      const ParameterAttrs& a = i.as<ParameterAttrs>();
      p->set_parameter_number(a.number);
      for (bool b : a.replication) {
        p->mutable_parameter_replication()->add_replicated_at_leaf_buffers(b);
      }
      return true;
    }
    case AttrKind::kConstant:
      return WriteLiteral(*i.as<ConstantAttrs>().literal, p->mutable_literal());
    case AttrKind::kIota: return dims({i.as<IotaAttrs>().dimension});
    case AttrKind::kTupleIndex: p->set_tuple_index(i.as<TupleIndexAttrs>().index); return true;
    case AttrKind::kDimensions: return dims(i.as<DimensionsAttrs>().dimensions);
    case AttrKind::kReshape:
      if (i.as<ReshapeAttrs>().inferred_dimension >= 0) {
        p->add_dimensions(i.as<ReshapeAttrs>().inferred_dimension);
      }
      return true;
    case AttrKind::kSlice: {
      const SliceAttrs& a = i.as<SliceAttrs>();
      for (size_t k = 0; k < a.starts.size(); ++k) {
        auto* d = p->add_slice_dimensions();
        d->set_start(a.starts[k]);
        d->set_limit(a.limits[k]);
        d->set_stride(a.strides[k]);
      }
      return true;
    }
    case AttrKind::kDynamicSlice:
      Set(i.as<DynamicSliceAttrs>().sizes, p->mutable_dynamic_slice_sizes());
      return true;
    case AttrKind::kPad: {
      const PadAttrs& a = i.as<PadAttrs>();
      hlo_pb::PaddingConfig* config = p->mutable_padding_config();
      for (size_t k = 0; k < a.low.size(); ++k) {
        auto* d = config->add_dimensions();
        d->set_edge_padding_low(a.low[k]);
        d->set_edge_padding_high(a.high[k]);
        d->set_interior_padding(a.interior[k]);
      }
      return true;
    }
    case AttrKind::kReduce: return dims(i.as<ReduceAttrs>().dimensions);
    case AttrKind::kReduceWindow:
      WriteWindow(i.as<ReduceWindowAttrs>().window, p->mutable_window());
      return true;
    case AttrKind::kSelectAndScatter:
      WriteWindow(i.as<SelectAndScatterAttrs>().window, p->mutable_window());
      return true;
    case AttrKind::kSort:
      p->set_is_stable(i.as<SortAttrs>().is_stable);
      return dims({i.as<SortAttrs>().dimension});
    case AttrKind::kTopK: {
      const TopKAttrs& a = i.as<TopKAttrs>();
      p->set_k(a.k);
      p->set_largest(a.largest);
      p->set_is_stable(a.is_stable > 0);
      if (a.is_stable == 0) p->set_shardcall_written(1);
      return true;
    }
    case AttrKind::kScan: {
      const ScanAttrs& a = i.as<ScanAttrs>();
      p->set_num_carries(a.num_carries);
      p->set_is_reverse(a.is_reverse);
      p->set_is_associative(a.is_associative < 0 ? 0 : a.is_associative > 0 ? 1 : 2);
      return dims({a.dimension});
    }
    case AttrKind::kDot: return WriteDot(i, p);
    case AttrKind::kConvolution: return WriteConvolution(i.as<ConvolutionAttrs>(), p);
    case AttrKind::kFft:
      p->set_fft_type(static_cast<int32_t>(i.as<FftAttrs>().type));
      Set(i.as<FftAttrs>().length, p->mutable_fft_length());
      return true;
    case AttrKind::kCholesky:
      p->mutable_cholesky_options()->set_lower(i.as<CholeskyAttrs>().lower);
      return true;
    case AttrKind::kTriangularSolve: {
      const TriangularSolveAttrs& a = i.as<TriangularSolveAttrs>();
      hlo_pb::TriangularSolveOptions* o = p->mutable_triangular_solve_options();
      o->set_left_side(a.left_side);
      o->set_lower(a.lower);
      o->set_unit_diagonal(a.unit_diagonal);
      o->set_transpose_a(std::max(IndexOf(a.transpose_a, kTransposes), 0));
      return true;
    }
    case AttrKind::kGather: WriteGather(i.as<GatherAttrs>(), p); return true;
    case AttrKind::kScatter: WriteScatter(i.as<ScatterAttrs>(), p); return true;
    case AttrKind::kBatchNorm:
      p->set_epsilon(static_cast<float>(i.as<BatchNormAttrs>().epsilon));
      p->set_feature_index(i.as<BatchNormAttrs>().feature_index);
      return true;
    case AttrKind::kRng:
      p->set_distribution(std::max(IndexOf(i.as<RngAttrs>().distribution, kDistributions), 0));
      return true;
    case AttrKind::kRngBitGenerator:
      p->set_rng_algorithm(
          std::max(IndexOf(i.as<RngBitGeneratorAttrs>().algorithm, kRngAlgorithms), 0));
      return true;
    case AttrKind::kRngState: p->set_delta(i.as<RngStateAttrs>().delta); return true;
    case AttrKind::kCall: p->set_is_composite(i.as<CallAttrs>().is_composite); return true;
    case AttrKind::kFusion: {
      const FusionAttrs& a = i.as<FusionAttrs>();
      p->set_fusion_kind(Str(a.kind));
      return a.aliasing.empty() || ParseAliasing(a.aliasing, p->mutable_output_operand_aliasing());
    }
    case AttrKind::kCustomCall: return WriteCustomCall(i, p);
    case AttrKind::kInfeed: p->set_infeed_config(Str(i.as<InfeedAttrs>().config)); return true;
    case AttrKind::kOutfeed: {
      const OutfeedAttrs& a = i.as<OutfeedAttrs>();
      p->set_outfeed_config(Str(a.config));
      if (a.shape != nullptr) *p->mutable_outfeed_shape() = ShapeOf(a.shape);
      return true;
    }
    case AttrKind::kSendRecv:
      if (!WriteChannel(i.as<SendRecvAttrs>().channel_id, p)) return false;
      p->set_is_host_transfer(i.as<SendRecvAttrs>().is_host_transfer);
      return true;
    case AttrKind::kDomain: return WriteDomain(i.as<DomainAttrs>(), p);
    case AttrKind::kCopyStart: {
      const int64_t index = i.as<CopyStartAttrs>().cross_program_prefetch_index;
      if (index >= 0) p->set_cross_program_prefetch_index(static_cast<int32_t>(index));
      return true;
    }
    case AttrKind::kReducePrecision:
      p->set_exponent_bits(static_cast<int32_t>(i.as<ReducePrecisionAttrs>().exponent_bits));
      p->set_mantissa_bits(static_cast<int32_t>(i.as<ReducePrecisionAttrs>().mantissa_bits));
      return true;
    case AttrKind::kCollective: return WriteCollective(i, p);
    case AttrKind::kPermute: return WritePermute(i.as<PermuteAttrs>(), p);
    case AttrKind::kAsync: {
      const AsyncAttrs& a = i.as<AsyncAttrs>();
      if (i.opcode == Opcode::kAsyncStart) p->set_async_execution_thread(Str(a.execution_thread));
      return a.aliasing.empty() || ParseAliasing(a.aliasing, p->mutable_output_operand_aliasing());
    }
  }
  return true;
}

}  // namespace shardcall::hlo_proto
