// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/hlo_sharding.h"
#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {

constexpr int64_t kMaxElements = 600;

int64_t Product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

double MaxBound(ElementType type) {
  switch (type) {
    case ElementType::kF32:
    case ElementType::kC64: return 1 << 22;
    case ElementType::kF64:
    case ElementType::kC128: return 0x1p50;
    case ElementType::kBF16: return 128;
    case ElementType::kF16: return 1024;
    case ElementType::kF8E4M3FN: return 8;
    case ElementType::kF8E5M2: return 4;
    default: return kUnbounded;
  }
}

Generator::Generator(uint64_t seed, const GeneratorOptions& options)
    : random_(seed * 0x2545f4914f6cdd1du + 1),
      options_(options),
      context_(std::make_shared<Context>()),
      module_(context_),
      monoids_(&module_) {
  devices_ = options.num_devices != 0 ? options.num_devices
                                      : random_.Pick(std::vector<int64_t>{2, 3, 4, 4, 5, 6, 8, 8});
}

const Shape* Generator::Array(ElementType type, const Dims& dims) {
  Dims layout(dims.size());
  std::iota(layout.rbegin(), layout.rend(), 0);
  return context_->MakeArray(type, dims, layout);
}

Dims Generator::DimsOf(Scope& s, Value v) const {
  const absl::Span<const int64_t> dims = s.b.shape(v.id)->dims();
  return Dims(dims.begin(), dims.end());
}

ElementType Generator::RandomType() {
  static const auto* const kTypes = new std::vector<ElementType>{
      ElementType::kF32, ElementType::kF32,     ElementType::kF32,  ElementType::kF32,
      ElementType::kF32, ElementType::kF32,     ElementType::kS32,  ElementType::kS32,
      ElementType::kS32, ElementType::kS32,     ElementType::kBF16, ElementType::kPred,
      ElementType::kF64, ElementType::kU8,      ElementType::kS8,   ElementType::kS64,
      ElementType::kU32, ElementType::kF16,     ElementType::kC64,  ElementType::kU16,
      ElementType::kS4,  ElementType::kF8E4M3FN};
  return random_.Pick(*kTypes);
}

Dims Generator::RandomDims(int min_rank, int max_rank) {
  static const auto* const kSizes =
      new std::vector<int64_t>{1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8, 8, 9, 10, 12, 16};
  Dims dims(random_.Int(min_rank, max_rank));
  for (int64_t& d : dims) d = random_.Pick(*kSizes);
  while (Product(dims) > kMaxElements) {
    int64_t& d = dims[random_.Int(0, static_cast<int64_t>(dims.size()) - 1)];
    d = (d + 1) / 2;
  }
  if (!dims.empty() && random_.Chance(1)) dims[random_.Int(0, dims.size() - 1)] = 0;
  return dims;
}

Value Generator::Any(Scope& s) {
  if (s.values.empty() || random_.Chance(4)) {
    return Fresh(s, RandomType(), RandomDims(0, 4));
  }
  // Later values more often, so that graphs grow deep.
  const int64_t n = static_cast<int64_t>(s.values.size());
  return s.values[std::max(random_.Int(0, n - 1), random_.Int(0, n - 1))];
}

InstrId Generator::Scalar(Scope& s, ElementType type, int64_t value) {
  return s.b.ConstantInt(type, value);
}

Value Generator::Fresh(Scope& s, ElementType type, const Dims& dims) {
  const double start = IsFloat(type) || IsComplex(type) ? 4 : 7;
  Value v;
  v.bound = start;
  const int way = static_cast<int>(random_.Int(0, 9));
  if (s.depth == 0 && way < 6) {
    v.id = s.b.Parameter(s.parameters++, Array(type, dims));
  } else if (way < 8 && IsInteger(type) && !dims.empty() && ElementTypeBits(type) >= 8) {
    v.id = s.b.Iota(type, dims, random_.Int(0, static_cast<int64_t>(dims.size()) - 1));
    v.bound = 16;
  } else if (way < 8 && type == ElementType::kF32 && !dims.empty()) {
    v.id = s.b.Iota(type, dims, random_.Int(0, static_cast<int64_t>(dims.size()) - 1));
    v.bound = 16;
  } else if (way == 8 && type == ElementType::kS32 && Product(dims) > 0 && Product(dims) <= 24) {
    std::vector<int32_t> data(Product(dims));
    for (int32_t& x : data) x = static_cast<int32_t>(random_.Int(-3, 7));
    v.id = s.b.Constant(MakeLiteral(
        *context_, Array(type, dims),
        absl::MakeConstSpan(reinterpret_cast<const char*>(data.data()), data.size() * 4)));
  } else {
    const int64_t least = IsUnsignedInteger(type) || type == ElementType::kPred ? 0 : -3;
    const int64_t most = type == ElementType::kPred ? 1 : 3;
    const InstrId scalar = Scalar(s, type, random_.Int(least, most));
    v.id = dims.empty() ? scalar : s.b.Broadcast(scalar, dims, {});
  }
  Annotate(s, v.id);
  s.values.push_back(v);
  return v;
}

Value Generator::Like(Scope& s, ElementType type, const Dims& dims) {
  std::vector<Value> same, others;
  for (const Value& v : s.values) {
    if (!v.whole) continue;
    (TypeOf(s, v) == type && DimsOf(s, v) == dims ? same : others).push_back(v);
  }
  if (!same.empty() && random_.Chance(80)) return random_.Pick(same);
  if (!others.empty() && random_.Chance(60)) {
    const Value v = random_.Pick(others);
    if (!IsComplex(TypeOf(s, v)) || IsComplex(type)) return Fit(s, ToType(s, v, type), dims);
  }
  return Fresh(s, type, dims);
}

Value Generator::Fit(Scope& s, Value v, const Dims& dims) {
  const Dims have = DimsOf(s, v);
  if (have == dims) return v;
  const int64_t from = Product(have), to = Product(dims);
  if (from == 1 && to > 1 && random_.Chance(60)) {
    const InstrId scalar = s.b.Reshape(v.id, {});
    return {s.b.Broadcast(scalar, dims, {}), v.bound, v.whole};
  }
  if (from != to) {
    v.id = s.b.Reshape(v.id, {from});
    Annotate(s, v.id);
    if (from > to) {
      const int64_t at = random_.Int(0, from - to);
      v.id = s.b.Slice(v.id, {at}, {at + to});
    } else {
      const int64_t low = random_.Int(0, to - from);
      v.id = s.b.Pad(v.id, Scalar(s, TypeOf(s, v), 1), {low}, {to - from - low});
      v.bound = std::max(v.bound, 1.0);
    }
  }
  v.id = s.b.Reshape(v.id, dims);
  return v;
}

Value Generator::ToType(Scope& s, Value v, ElementType type) {
  const ElementType from = TypeOf(s, v);
  if (from == type) return v;
  if (type == ElementType::kPred) {
    const InstrId zero = s.b.BroadcastScalar(Scalar(s, from, 0), s.b.shape(v.id));
    return {s.b.Compare(Direction::kNe, v.id, zero), 1, true};
  }
  // Floats into integers are defined within range only; integers wrap.
  if (IsFloat(type) || IsComplex(type)) v = Bounded(s, v, std::min(MaxBound(type), 64.0));
  if (IsFloat(from) && IsInteger(type)) {
    v = Bounded(s, v, ElementTypeBits(type) >= 8 ? 100 : 1);
    if (IsUnsignedInteger(type)) v.id = s.b.Unary(Opcode::kAbs, v.id);
  }
  v.id = s.b.Convert(v.id, type);
  if (IsInteger(type) && ElementTypeBits(type) < 32 && v.bound > 100) v.bound = kUnbounded;
  if (IsUnsignedInteger(type) && IsSignedInteger(from)) v.bound = kUnbounded;
  if (IsInteger(type) && ElementTypeBits(type) < 8) v.bound = 15;
  return v;
}

Value Generator::Bounded(Scope& s, Value v, double bound) {
  const ElementType type = TypeOf(s, v);
  if (v.bound <= bound || type == ElementType::kPred || IsComplex(type)) return v;
  int64_t high = static_cast<int64_t>(std::min(bound, 1000.0));
  if (ElementTypeBits(type) < 8) return v;
  if (ElementTypeBits(type) == 8 && IsInteger(type)) high = std::min<int64_t>(high, 100);
  const int64_t low = IsUnsignedInteger(type) ? 0 : -high;
  v.id = s.b.Clamp(Scalar(s, type, low), v.id, Scalar(s, type, high));
  v.bound = static_cast<double>(high);
  return v;
}

Value Generator::Index(Scope& s) {
  Value v;
  if (Find(
          s, [&](Value x) { return TypeOf(s, x) == ElementType::kS32 && DimsOf(s, x).empty(); },
          &v)) {
    return v;
  }
  return Fresh(s, ElementType::kS32, {});
}

InstrId Generator::Emit(Scope& s, Opcode op, std::vector<InstrId> operands, const Attributes* attrs,
                        const Shape* declared) {
  const absl::StatusOr<InstrId> id = s.b.TryAdd(op, operands, attrs, declared);
  if (id.ok()) return *id;
  if (status_.ok()) status_ = id.status();
  return InstrId();
}

namespace {

// Whether a manual region stands in what the instruction calls.
bool NeedsDevices(const Module& module, const Instruction& instr) {
  for (CompId c : CalledComputations(module, instr)) {
    for (InstrId inner : module.comp(c).instructions) {
      const Instruction& i = module.instr(inner);
      const bool manual = i.opcode == Opcode::kCustomCall &&
                          i.as<CustomCallAttrs>().target == "SPMDFullToShardShape";
      if (manual || NeedsDevices(module, i)) return true;
    }
  }
  return false;
}

}  // namespace

bool Generator::Push(Scope& s, InstrId id, double bound, bool whole) {
  if (!id.valid()) return false;
  Annotate(s, id);
  if (s.b.shape(id)->num_elements() <= 4 * kMaxElements) s.values.push_back({id, bound, whole});
  return true;
}

void Generator::Annotate(Scope& s, InstrId id) {
  if (!options_.shardings || !random_.Chance(s.depth == 0 ? 25 : 10)) return;
  Instruction& i = module_.mutable_instr(id);
  if (!i.shape->IsArray() || i.opcode == Opcode::kConstant) return;
  const auto sharding = ParseHloSharding(RandomShardingText(random_, i.shape->rank(), devices_));
  // What all devices do cannot stand in what one device alone runs (E106).
  if (sharding.ok() && sharding->kind == HloSharding::Kind::kMaximal && NeedsDevices(module_, i)) {
    return;
  }
  if (sharding.ok()) {
    i.sharding = InternHloSharding(*context_, *sharding);
  } else if (status_.ok()) {
    status_ = sharding.status();
  }
}

struct OpTable {
  struct Row {
    int weight;
    Generator::Method method;
    bool control;
  };
  static constexpr std::array<Row, 38> kRows = {{
      {8, &Generator::Unary, false},          {3, &Generator::Fractions, false},
      {14, &Generator::Binary, false},        {5, &Generator::CompareSelect, false},
      {4, &Generator::ClampConvert, false},   {2, &Generator::Complexes, false},
      {1, &Generator::MapOp, false},          {5, &Generator::BroadcastOp, false},
      {8, &Generator::ReshapeOp, false},      {6, &Generator::TransposeReverse, false},
      {7, &Generator::SliceOp, false},        {7, &Generator::PadOp, false},
      {5, &Generator::ConcatenateOp, false},  {5, &Generator::DynamicOps, false},
      {3, &Generator::Wrappers, false},       {4, &Generator::ShardingCall, false},
      {8, &Generator::ReduceOp, false},       {2, &Generator::ReduceMany, false},
      {4, &Generator::ReduceWindowOp, false}, {1, &Generator::SelectAndScatterOp, false},
      {4, &Generator::SortOp, false},         {1, &Generator::RandomBits, false},
      {2, &Generator::TopkOp, false},         {2, &Generator::TriangularSolveOp, false},
      {2, &Generator::FftOp, false},          {1, &Generator::CholeskyOp, false},
      {2, &Generator::ScanOp, false},         {1, &Generator::DynamicSizes, false},
      {3, &Generator::ManualRegion, false},   {2, &Generator::FusionOp, true},
      {10, &Generator::DotOp, false},         {5, &Generator::ConvolutionOp, false},
      {5, &Generator::GatherOp, false},       {5, &Generator::ScatterOp, false},
      {3, &Generator::WhileOp, true},         {3, &Generator::ConditionalOp, true},
      {2, &Generator::CallOp, true},          {4, &Generator::CustomCallOp, false},
  }};
};

void Generator::Steps(Scope& s, int count) {
  int total = 0;
  for (const OpTable::Row& row : OpTable::kRows) total += row.weight;
  for (int done = 0, tries = 0; done < count && tries < 10 * count && status_.ok(); ++tries) {
    int at = static_cast<int>(random_.Int(0, total - 1));
    const OpTable::Row* row = OpTable::kRows.data();
    while (at >= row->weight) at -= (row++)->weight;
    if (row->control && (s.depth >= 2 || !options_.control_flow)) continue;
    done += (this->*row->method)(s);
  }
}

absl::StatusOr<Module> Generator::Run() {
  module_.header.name = "generated";
  module_.header.num_partitions = devices_;
  module_.header.has_num_partitions = true;
  if (random_.Chance(30)) module_.header.propagate_to_parameters = {true};
  if (random_.Chance(50)) module_.header.propagate_to_output = {true};
  const CompId main = module_.AddComputation("main");
  module_.set_entry(main);
  Scope s(&module_, main, &monoids_, 0);
  Steps(s, options_.steps);
  if (!status_.ok()) return status_;
  if (s.values.empty()) Fresh(s, ElementType::kF32, {4});

  // Results: what nothing reads, latest first, and now and then something read. The
  // program and its reference must choose alike: constants, which a region of one of
  // them may share, count as read.
  std::vector<bool> read(module_.num_instructions(), false);
  for (int k = 0; k < module_.num_instructions(); ++k) {
    if (module_.instr(InstrId(k)).opcode == Opcode::kConstant) read[k] = true;
    for (InstrId x : module_.operands(InstrId(k))) read[x.value] = true;
  }
  std::vector<InstrId> results;
  for (size_t k = s.values.size(); k-- > 0 && results.size() < 6;) {
    const InstrId id = s.values[k].id;
    const bool also = random_.Chance(8);
    if (!read[id.value] || also) results.push_back(id);
  }
  if (results.empty()) results.push_back(s.values.back().id);
  InstrId root = results[0];
  if (results.size() > 1 || random_.Chance(30)) root = s.b.Tuple(results);
  s.b.SetRoot(root);
  module_.header.entry_result_layout = module_.instr(root).shape;
  for (InstrId p : module_.comp(main).parameters) {
    module_.header.entry_parameter_layouts.push_back(module_.instr(p).shape);
  }
  return std::move(module_);
}

}  // namespace shardcall::generator

namespace shardcall {

absl::StatusOr<Module> GenerateModule(uint64_t seed, const GeneratorOptions& options) {
  return generator::Generator(seed, options).Run();
}

}  // namespace shardcall
