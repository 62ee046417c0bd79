// SPDX-License-Identifier: Apache-2.0
// The FFT of a sharded real line, and its inverse, in the four steps of fft_of_line.cc, of which
// half is computed and sent, since the other half are conjugates: with a line of N = P Q elements,
// x[p, q] the element p Q + q, and H = P/2 + 1,
//   Z[r, s] = sum over q of  w(N)^(q r) * (sum over p of x[p, q] w(P)^(p r))  * w(Q)^(q s)
// is needed for r < H only. It is element r + P s of the spectrum; that of place (P - r) + P s is
// the conjugate of Z[r, Q-1-s]. So the devices that have some r give for each s < Q/2 two rows,
// Z[r, s] and that conjugate. Behind them the device that has some s has P elements for each, and
// the one behind them: r = 0 of the second row.
//
// The spectrum has N/2 + 1 elements, whose shards begin a little later than those rows: a halo
// exchange moves fewer elements than there are devices. The inverse does the same backwards.
#include <utility>
#include <vector>

#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/lines/fft_parts.h"
#include "shardcall/partitioner/spmd/strategies/parts/matrices.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsReal(FftType type) { return type == FftType::kRfft || type == FftType::kIrfft; }

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const auto& attrs = op.instr().as<FftAttrs>();
  const Shape* in = op.shapes[0];
  if (!IsReal(attrs.type) || attrs.length.size() != 1 || in->num_elements() == 0) return false;
  const int line = in->rank() - 1;
  if (!op.operands[0]->IsDimSharded(line) && !op.wanted[0]->IsDimSharded(line)) return false;
  *rule = *op.rule;
  rule->factors[rule->operands[0].dims[line][0]].kind = FactorKind::kPermutation;
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

// The sizes of the line of an op whose operand is in state `s`.
struct Sizes {
  int64_t line = 0, shards = 1;
  int64_t rows = 0, columns = 0;  // P, Q; 0: it has none
  int64_t half = 0;               // H
  int64_t tile() const { return line / 2 / shards; }
};
Sizes SizesOf(const FftAttrs& attrs, const Sharding& s) {
  Sizes sizes{.line = attrs.length[0], .shards = s.num_shards(s.rank() - 1)};
  if (sizes.line % 2 != 0) return sizes;
  // Rows of the half are rows of the whole with half as many columns.
  sizes.rows = NumRowsOfLine(sizes.line / 2, sizes.shards);
  if (sizes.rows == 0) return sizes;
  sizes.columns = sizes.line / sizes.rows;
  sizes.half = sizes.rows / 2 + 1;
  return sizes;
}

// The real line as P rows and Q columns, and its transforms as Q rows of H.
struct Planes {
  LineAsPlane real, complex;
};
Planes PlanesOf(Context& context, FftType type, const Shape* in, const Shape* out,
                const Sharding& s, const Sizes& n) {
  const bool forward = type == FftType::kRfft;
  const ElementType real = (forward ? in : out)->element_type();
  const ElementType complex = (forward ? out : in)->element_type();
  return {AsPlane(context, real, in, s, n.rows, n.columns),
          AsPlane(context, complex, in, s, n.columns, n.half)};
}

// Shard i has elements [tile i, tile (i + 1)) of the half, and gets those that its shard of the
// spectrum has; or it has that shard, and gets elements [tile i, tile (i + 1)].
ShardRanges RangesOf(FftType type, const Sizes& n) {
  const bool forward = type == FftType::kRfft;
  ShardRanges r = ShardRanges::Of(forward ? n.line / 2 : n.line / 2 + 1, n.shards);
  r.step = forward ? n.tile() + 1 : n.tile();
  r.length = n.tile() + 1;
  return r;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<FftAttrs>();
  const Shape *in = op.shapes[0], *out = op.result(0);
  const Sharding& s = *c->operands[0];
  const int line = in->rank() - 1;
  if (!s.IsDimSharded(line)) return true;
  const Sizes n = SizesOf(attrs, s);
  if (c->produced[0]->dim(line) != s.dim(line) || n.rows == 0) return false;
  Context& context = op.module.context();
  const auto [real, complex] = PlanesOf(context, attrs.type, in, out, s, n);
  c->AddReshard(context, real.global, real.by_first, real.by_second);
  for (int k = 0; k < 2; ++k) {
    c->AddReshard(context, complex.global, complex.by_first, complex.by_second);
  }
  const bool forward = attrs.type == FftType::kRfft;
  const Shape* spectrum = forward ? out : in;
  const double bits = static_cast<double>(LocalBits(spectrum, forward ? *c->produced[0] : s));
  AddEmittedExchange(context, RangesOf(attrs.type, n), bits / static_cast<double>(n.tile() + 1), s,
                     line, c);
  return true;
}

// Of one device.
class LocalFft {
 public:
  LocalFft(OpBuilder& ops, const LocalOp& op)
      : ops_(ops),
        b_(ops.builder()),
        attrs_(op.instr.as<FftAttrs>()),
        s_(*op.decision.operands[0]),
        line_(s_.rank() - 1),
        n_(SizesOf(attrs_, s_)),
        planes_(PlanesOf(ops.context(), attrs_.type, op.operand_shapes[0], op.instr.shape, s_, n_)),
        shape_(op.result_shapes[0]) {}

  InstrId Forward(InstrId x) {
    const auto& [real, complex] = planes_;
    x = b_.Reshape(x, LocalShape(ops_.context(), real.global, real.by_first)->dims());
    x = TransposeMatrices(
        b_, ops_.emitter().ReshardInside(x, real.global, real.by_first, real.by_second));
    x = Transform(x, FftType::kRfft, n_.rows, line_ + 1);  // [Q/n, H]
    x = TimesTwiddles(b_, x, n_.line, true, Start(complex.by_first, line_), false);
    x = ops_.emitter().ReshardInside(x, complex.global, complex.by_first, complex.by_second);
    x = Transform(x, FftType::kFft, n_.columns, line_);  // [Q, H/n]
    const int64_t middle = n_.columns / 2;
    const InstrId mirrored =
        Conjugate(b_, b_.Reverse(Rows(b_, x, line_, middle, n_.columns), {line_}));
    x = Interleave(Rows(b_, x, line_, 0, middle), mirrored);
    x = ops_.emitter().ReshardInside(x, complex.global, complex.by_second, complex.by_first);
    const auto [first, second] = Separate(x);  // [Q/2n, H]
    const InstrId rest = Rows(b_, second, line_ + 1, 1, n_.rows - n_.half + 1);
    const InstrId behind = Rows(
        b_, Rows(b_, second, line_, n_.columns / 2 / n_.shards - 1, n_.columns / 2 / n_.shards),
        line_ + 1, 0, 1);
    const InstrId ids[] = {first, b_.Reverse(rest, {line_ + 1})};
    return ToSpectrum(Flat(b_.Concatenate(ids, line_ + 1)), Flat(behind));
  }

  InstrId Inverse(InstrId x) {
    const auto& [real, complex] = planes_;
    x = EmitExchange(ops_.emitter(), x, line_, s_.dim(line_), RangesOf(attrs_.type, n_));
    const InstrId first = Rows(b_, InRows(Rows(b_, x, line_, 0, n_.tile())), line_ + 1, 0, n_.half);
    const InstrId next = InRows(Rows(b_, x, line_, 1, n_.tile() + 1));
    const InstrId second =
        Conjugate(b_, Rows(b_, b_.Reverse(next, {line_ + 1}), line_ + 1, 0, n_.half));
    x = ops_.emitter().ReshardInside(Interleave(first, second), complex.global, complex.by_first,
                                     complex.by_second);
    const auto [low, high] = Separate(x);  // [Q/2, H/n]
    const InstrId ids[] = {low, b_.Reverse(high, {line_})};
    x = Transform(b_.Concatenate(ids, line_), FftType::kIfft, n_.columns, line_);
    x = TimesTwiddles(b_, x, n_.line, false, Start(complex.by_second, line_ + 1), true);
    x = ops_.emitter().ReshardInside(x, complex.global, complex.by_second, complex.by_first);
    x = TransposeMatrices(b_, Transform(x, FftType::kIrfft, n_.rows, line_ + 1));  // [P, Q/n]
    x = ops_.emitter().ReshardInside(x, real.global, real.by_second, real.by_first);
    return b_.Reshape(x, shape_->dims());
  }

 private:
  // Along dimension `dim`, of the two behind the lines' others.
  InstrId Transform(InstrId x, FftType type, int64_t length, int dim) {
    FftAttrs attrs;
    attrs.type = type;
    std::vector<int64_t> lengths(b_.shape(x)->dims().end() - 2, b_.shape(x)->dims().end());
    lengths[dim - line_] = length;
    attrs.length = lengths;
    return FftOfDims(b_, x, attrs, {dim});
  }
  InstrId Start(const Sharding* s, int dim) {
    return ops_.emitter().TileStart(*s, planes_.complex.global, dim);
  }
  // The dimensions of x up to the line, with `last` behind them.
  std::vector<int64_t> Dims(InstrId x, std::initializer_list<int64_t> last) {
    std::vector<int64_t> dims(b_.shape(x)->dims().begin(), b_.shape(x)->dims().begin() + line_);
    dims.insert(dims.end(), last);
    return dims;
  }
  // Rows 2 s and 2 s + 1 are row s of `first` and of `second`.
  InstrId Interleave(InstrId first, InstrId second) {
    const int64_t rows = b_.shape(first)->dim(line_), columns = b_.shape(first)->dim(line_ + 1);
    const auto dims = Dims(first, {rows, 1, columns});
    const InstrId ids[] = {b_.Reshape(first, dims), b_.Reshape(second, dims)};
    return b_.Reshape(b_.Concatenate(ids, line_ + 1), Dims(first, {2 * rows, columns}));
  }
  std::pair<InstrId, InstrId> Separate(InstrId x) {
    const int64_t rows = b_.shape(x)->dim(line_) / 2, columns = b_.shape(x)->dim(line_ + 1);
    const InstrId pairs = b_.Reshape(x, Dims(x, {rows, 2, columns}));
    const auto dims = Dims(x, {rows, columns});
    return {b_.Reshape(Rows(b_, pairs, line_ + 1, 0, 1), dims),
            b_.Reshape(Rows(b_, pairs, line_ + 1, 1, 2), dims)};
  }
  InstrId Flat(InstrId x) {
    return b_.Reshape(x, Dims(x, {b_.shape(x)->dim(line_) * b_.shape(x)->dim(line_ + 1)}));
  }
  InstrId InRows(InstrId x) {  // of P
    return b_.Reshape(x, Dims(x, {b_.shape(x)->dim(line_) / n_.rows, n_.rows}));
  }
  // The shard of the spectrum, where x are the elements before its middle that this device has
  // computed, and `behind` is the one behind them.
  InstrId ToSpectrum(InstrId x, InstrId behind) {
    const ShardRanges ranges = RangesOf(attrs_.type, n_);
    x = EmitExchange(ops_.emitter(), x, line_, s_.dim(line_), ranges);
    const InstrId places = PlacesOf(ops_.emitter(), x, line_, s_.dim(line_), ranges);
    const InstrId middle = b_.BroadcastScalar(
        b_.ConstantInt(b_.shape(places)->element_type(), n_.line / 2), b_.shape(places));
    std::vector<int64_t> others(line_);
    for (int d = 0; d < line_; ++d) others[d] = d;
    const InstrId last =
        b_.Broadcast(b_.Reshape(behind, Dims(behind, {})), b_.shape(x)->dims(), others);
    return b_.Select(b_.Compare(Direction::kEq, places, middle), last, x);
  }

  OpBuilder& ops_;
  GraphBuilder& b_;
  const FftAttrs& attrs_;
  const Sharding& s_;  // of the operand
  const int line_;
  const Sizes n_;
  const Planes planes_;
  const Shape* shape_;  // of the result on this device
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const Sharding& s = *op.decision.operands[0];
  if (!s.IsDimSharded(s.rank() - 1)) return ops.Clone(op, op.operands);
  LocalFft fft(ops, op);
  const bool forward = op.instr.as<FftAttrs>().type == FftType::kRfft;
  return {forward ? fft.Forward(op.operands[0]) : fft.Inverse(op.operands[0])};
}

}  // namespace

constexpr Strategy kFftOfRealLineStrategy{.name = "FFT of a real line in four steps",
                                          .rule = Rule,
                                          .crosses = Crosses,
                                          .complete = Complete,
                                          .emit = Emit};

}  // namespace internal
}  // namespace shardcall
