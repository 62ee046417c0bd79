// SPDX-License-Identifier: Apache-2.0
// Opcode-specific data of instructions: one immutable record per distinct value, interned in the
// Context and shared by equal instructions. Each struct lists its fields once, in Fields();
// hashing, equality, the deep copy into the arena, and the list of called computations follow from
// that. attributes.inc describes how the fields are read and written, as text and as messages; the
// opcode table (opcode.h) tells which opcode has which struct.
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTES_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTES_H_

#include <cstdint>
#include <utility>

#include "shardcall/partitioner/ir/attribute_fields.h"
#include "shardcall/partitioner/ir/ids.h"
#include "shardcall/partitioner/ir/literal.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/shape.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class AttrKind : uint8_t {
#define SHARDCALL_RECORD(Record) k##Record,
#include "shardcall/partitioner/ir/attributes.inc"
};

struct Attributes {
  explicit Attributes(AttrKind kind) : kind(kind) {}
  AttrKind kind;
};

#define SHARDCALL_ATTR_FIELDS(...) \
  template <typename F>            \
  void Fields(F&& f) {             \
    f(__VA_ARGS__);                \
  }                                \
  template <typename F>            \
  void Fields(F&& f) const {       \
    f(__VA_ARGS__);                \
  }

template <AttrKind K>
struct AttrBase : Attributes {
  static constexpr AttrKind kKind = K;
  AttrBase() : Attributes(K) {}
};

struct NoneAttrs : AttrBase<AttrKind::kNone> {
  template <typename F>
  void Fields(F&& f) const {
    f();
  }
};
struct ResultAccuracyAttrs : AttrBase<AttrKind::kResultAccuracy> {
  TextField result_accuracy;  // "{mode=highest}"; empty = default
  SHARDCALL_ATTR_FIELDS(result_accuracy)
};
enum class Direction : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class CompareType : uint8_t { kFloat, kTotalOrder, kSigned, kUnsigned };
struct CompareAttrs : AttrBase<AttrKind::kCompare> {
  Direction direction = Direction::kEq;
  CompareType type = CompareType::kFloat;  // if the text gives none, NaturalCompareType
  SHARDCALL_ATTR_FIELDS(direction, type)
};
// The comparison type for elements of `type` if none is written.
CompareType NaturalCompareType(ElementType type);
struct ParameterAttrs : AttrBase<AttrKind::kParameter> {
  int64_t number = 0;
  Field<bool> replication;  // one per leaf, or empty
  SHARDCALL_ATTR_FIELDS(number, replication)
};
struct ConstantAttrs : AttrBase<AttrKind::kConstant> {
  const Literal* literal = nullptr;
  SHARDCALL_ATTR_FIELDS(literal)
};
struct IotaAttrs : AttrBase<AttrKind::kIota> {
  int64_t dimension = 0;
  SHARDCALL_ATTR_FIELDS(dimension)
};
struct TupleIndexAttrs : AttrBase<AttrKind::kTupleIndex> {
  int64_t index = 0;
  SHARDCALL_ATTR_FIELDS(index)
};
// broadcast, transpose, reverse, concatenate, {get,set}-dimension-size
struct DimensionsAttrs : AttrBase<AttrKind::kDimensions> {
  Field<int64_t> dimensions;
  SHARDCALL_ATTR_FIELDS(dimensions)
};
struct ReshapeAttrs : AttrBase<AttrKind::kReshape> {
  int64_t inferred_dimension = -1;
  SHARDCALL_ATTR_FIELDS(inferred_dimension)
};
struct SliceAttrs : AttrBase<AttrKind::kSlice> {
  Field<int64_t> starts, limits, strides;
  SHARDCALL_ATTR_FIELDS(starts, limits, strides)
};
struct DynamicSliceAttrs : AttrBase<AttrKind::kDynamicSlice> {
  Field<int64_t> sizes;
  SHARDCALL_ATTR_FIELDS(sizes)
};
struct PadAttrs : AttrBase<AttrKind::kPad> {
  Field<int64_t> low, high, interior;
  SHARDCALL_ATTR_FIELDS(low, high, interior)
};
// reduce, map
struct ReduceAttrs : AttrBase<AttrKind::kReduce> {
  Field<int64_t> dimensions;
  CompId to_apply;
  SHARDCALL_ATTR_FIELDS(dimensions, to_apply)
};
struct Window {  // one entry per dimension each, defaults filled in
  Field<int64_t> size, stride, pad_low, pad_high, lhs_dilate, rhs_dilate, reversal;
  SHARDCALL_ATTR_FIELDS(size, stride, pad_low, pad_high, lhs_dilate, rhs_dilate, reversal)
};
struct ReduceWindowAttrs : AttrBase<AttrKind::kReduceWindow> {
  Window window;
  CompId to_apply;
  SHARDCALL_ATTR_FIELDS(window, to_apply)
};
struct SelectAndScatterAttrs : AttrBase<AttrKind::kSelectAndScatter> {
  Window window;
  CompId select, scatter;
  SHARDCALL_ATTR_FIELDS(window, select, scatter)
};
struct SortAttrs : AttrBase<AttrKind::kSort> {
  int64_t dimension = 0;
  bool is_stable = false;
  CompId to_apply;
  SHARDCALL_ATTR_FIELDS(dimension, is_stable, to_apply)
};
struct TopKAttrs : AttrBase<AttrKind::kTopK> {
  int64_t k = 0;
  bool largest = true;
  int8_t is_stable = -1;  // -1: not written
  SHARDCALL_ATTR_FIELDS(k, largest, is_stable)
};
struct ScanAttrs : AttrBase<AttrKind::kScan> {
  int64_t dimension = 0, num_carries = 0;
  bool is_reverse = false;
  int8_t is_associative = 0;  // 0 false, 1 true, -1 unset
  CompId to_apply;
  SHARDCALL_ATTR_FIELDS(dimension, num_carries, is_reverse, is_associative, to_apply)
};
// dot, ragged-dot, scaled-dot
struct DotAttrs : AttrBase<AttrKind::kDot> {
  Field<int64_t> lhs_batch, lhs_contracting, rhs_batch, rhs_contracting;
  Field<int64_t> lhs_ragged, rhs_group;
  TextField operand_precision;  // "{high,default}"; empty = all default
  TextField algorithm;          // empty = unset
  SHARDCALL_ATTR_FIELDS(lhs_batch, lhs_contracting, rhs_batch, rhs_contracting, lhs_ragged,
                        rhs_group, operand_precision, algorithm)
};
struct ConvolutionAttrs : AttrBase<AttrKind::kConvolution> {
  Window window;
  TextField dim_labels;  // "b01f_01io->b01f"
  int64_t feature_group_count = 1, batch_group_count = 1;
  TextField convolution_kind, operand_precision, algorithm, sparsity_config;
  SHARDCALL_ATTR_FIELDS(window, dim_labels, feature_group_count, batch_group_count,
                        convolution_kind, operand_precision, algorithm, sparsity_config)
};
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
struct FftAttrs : AttrBase<AttrKind::kFft> {
  FftType type = FftType::kFft;
  Field<int64_t> length;
  SHARDCALL_ATTR_FIELDS(type, length)
};
struct CholeskyAttrs : AttrBase<AttrKind::kCholesky> {
  bool lower = false;
  SHARDCALL_ATTR_FIELDS(lower)
};
struct TriangularSolveAttrs : AttrBase<AttrKind::kTriangularSolve> {
  bool left_side = false, lower = false, unit_diagonal = false;
  TextField transpose_a;  // NO_TRANSPOSE, TRANSPOSE, ADJOINT
  SHARDCALL_ATTR_FIELDS(left_side, lower, unit_diagonal, transpose_a)
};
struct GatherAttrs : AttrBase<AttrKind::kGather> {
  Field<int64_t> offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims, slice_sizes;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  SHARDCALL_ATTR_FIELDS(offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
                        start_indices_batching_dims, slice_sizes, index_vector_dim,
                        indices_are_sorted)
};
struct ScatterAttrs : AttrBase<AttrKind::kScatter> {
  Field<int64_t> update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
      input_batching_dims, scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
  CompId to_apply;
  SHARDCALL_ATTR_FIELDS(update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
                        input_batching_dims, scatter_indices_batching_dims, index_vector_dim,
                        indices_are_sorted, unique_indices, to_apply)
};
struct BatchNormAttrs : AttrBase<AttrKind::kBatchNorm> {
  double epsilon = 0;
  int64_t feature_index = 0;
  SHARDCALL_ATTR_FIELDS(epsilon, feature_index)
};
struct RngAttrs : AttrBase<AttrKind::kRng> {
  TextField distribution;
  SHARDCALL_ATTR_FIELDS(distribution)
};
struct RngBitGeneratorAttrs : AttrBase<AttrKind::kRngBitGenerator> {
  TextField algorithm;
  SHARDCALL_ATTR_FIELDS(algorithm)
};
struct RngStateAttrs : AttrBase<AttrKind::kRngState> {
  int64_t delta = 0;
  SHARDCALL_ATTR_FIELDS(delta)
};
struct WhileAttrs : AttrBase<AttrKind::kWhile> {
  CompId condition, body;
  SHARDCALL_ATTR_FIELDS(body, condition)  // in the order of CalledComputations
};
struct ConditionalAttrs : AttrBase<AttrKind::kConditional> {
  Field<CompId> branches;  // pred form: true, false
  bool is_pred = false;    // true_computation= / false_computation=
  SHARDCALL_ATTR_FIELDS(branches, is_pred)
};
struct CallAttrs : AttrBase<AttrKind::kCall> {
  CompId to_apply;
  bool is_composite = false;
  SHARDCALL_ATTR_FIELDS(to_apply, is_composite)
};
struct FusionAttrs : AttrBase<AttrKind::kFusion> {
  TextField kind;      // kLoop, ...
  TextField aliasing;  // output_to_operand_aliasing as text
  CompId calls;
  SHARDCALL_ATTR_FIELDS(kind, aliasing, calls)
};
struct CustomCallAttrs : AttrBase<AttrKind::kCustomCall> {
  TextField target;
  int64_t api_version = 1;  // 1 original .. 4 typed FFI
  bool has_side_effect = false;
  bool has_layout_constraints = false;
  Field<const Shape*> operand_layouts;   // with layouts, one per operand
  TextField output_to_operand_aliasing;  // as text, "{{0}: (1, {})}"
  TextField schedule, padding_type, dim_labels, operand_precision;
  bool has_window = false;
  Window window;
  int64_t feature_group_count = 1, batch_group_count = 1;
  const Literal* literal = nullptr;
  Field<CompId> called_computations;
  SHARDCALL_ATTR_FIELDS(target, api_version, has_side_effect, has_layout_constraints,
                        operand_layouts, output_to_operand_aliasing, schedule, padding_type,
                        dim_labels, operand_precision, has_window, window, feature_group_count,
                        batch_group_count, literal, called_computations)
};
struct InfeedAttrs : AttrBase<AttrKind::kInfeed> {
  TextField config;
  SHARDCALL_ATTR_FIELDS(config)
};
struct OutfeedAttrs : AttrBase<AttrKind::kOutfeed> {
  const Shape* shape = nullptr;
  TextField config;
  SHARDCALL_ATTR_FIELDS(shape, config)
};
struct SendRecvAttrs : AttrBase<AttrKind::kSendRecv> {
  int64_t channel_id = -1;
  bool is_host_transfer = false;
  SHARDCALL_ATTR_FIELDS(channel_id, is_host_transfer)
};
struct DomainAttrs : AttrBase<AttrKind::kDomain> {
  TextField domain;  // "{kind="sharding", entry={..}, exit={..}}"
  SHARDCALL_ATTR_FIELDS(domain)
};
struct CopyStartAttrs : AttrBase<AttrKind::kCopyStart> {
  int64_t cross_program_prefetch_index = -1;
  SHARDCALL_ATTR_FIELDS(cross_program_prefetch_index)
};
struct ReducePrecisionAttrs : AttrBase<AttrKind::kReducePrecision> {
  int64_t exponent_bits = 0, mantissa_bits = 0;
  SHARDCALL_ATTR_FIELDS(exponent_bits, mantissa_bits)
};

// Replica groups: explicit lists, iota `[g,s]<=[dims]T(perm)`, or mesh axes.
struct ReplicaGroups {
  enum class Form : uint8_t { kAll, kLists, kIota, kMesh } form = Form::kAll;
  Field<Ints> lists;
  int64_t num_groups = 0, group_size = 0;
  Field<int64_t> reshape, perm;  // perm empty: identity
  TextField mesh_text;           // kMesh: as written
  SHARDCALL_ATTR_FIELDS(form, lists, num_groups, group_size, reshape, perm, mesh_text)
};
// all-gather, all-reduce, reduce-scatter, all-to-all, ragged-all-to-all,
// collective-broadcast, and the -start forms of the first two
struct CollectiveAttrs : AttrBase<AttrKind::kCollective> {
  int64_t channel_id = -1;  // -1: none
  ReplicaGroups groups;
  int64_t dimension = -1;  // -1: none
  bool constrain_layout = false, use_global_device_ids = false;
  int8_t has_dynamic_root = -1;
  CompId to_apply;
  SHARDCALL_ATTR_FIELDS(channel_id, groups, dimension, constrain_layout, use_global_device_ids,
                        has_dynamic_root, to_apply)
};
// collective-permute and its start
struct PermuteAttrs : AttrBase<AttrKind::kPermute> {
  int64_t channel_id = -1;
  Field<int64_t> sources, targets;  // of equal length
  Field<Ints> slice_sizes;
  SHARDCALL_ATTR_FIELDS(channel_id, sources, targets, slice_sizes)
};
// async-start, -update, -done, and the sugared <op>-start
struct AsyncAttrs : AttrBase<AttrKind::kAsync> {
  CompId calls;
  TextField execution_thread;  // empty = main
  TextField aliasing;
  bool sugar = false;
  SHARDCALL_ATTR_FIELDS(calls, execution_thread, aliasing, sugar)
};

// The interned record equal to `value`; spans and text are copied. Defined for
// every struct above; a hit allocates nothing.
template <typename T>
const T* InternAttributes(Context& context, const T& value);
const Attributes* NoAttributes();

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTES_H_
