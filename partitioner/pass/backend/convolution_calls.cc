// SPDX-License-Identifier: Apache-2.0
// What XLA:GPU makes of convolutions so that cuDNN can compute them (its ConvRewriter,
// ConvPaddingLegalization and layout assignment). cuDNN pads alike on both sides and does not
// dilate what it reads, and images and filters have their features in the minor dimension:
//   before:  y = convolution(x, w), window={size=3x3 stride=2x2 pad=0_1x0_1},
//                dim_labels=b01f_01io->b01f
//   after:   y = convolution(pad(x), transpose(w)), window={size=3x3 stride=2x2},
//                dim_labels=b01f_o01i->b01f
#include <algorithm>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

using Extents = absl::InlinedVector<int64_t, 6>;

// What a convolution computes: a result, the gradient of its input, or that of its filter.
enum class CuDnnCall { kForward, kBackwardInput, kBackwardFilter };

// The paddings of one dimension of what a call reads, or for the gradient of an input, gives.
struct Sides {
  int64_t low = 0, high = 0;
};

class CuDnnConvolution {
 public:
  // `id` is a convolution.
  CuDnnConvolution(const Module& m, InstrId id)
      : m_(m),
        i_(m.instr(id)),
        attrs_(i_.as<ConvolutionAttrs>()),
        lhs_(*m.instr(m.operand(id, 0)).shape),
        rhs_(m.instr(m.operand(id, 1))) {
    known_ = ParseDimLabels(attrs_.dim_labels, &labels_) && attrs_.batch_group_count == 1 &&
             !labels_.lhs.has_unknown && !labels_.rhs.has_unknown && !labels_.out.has_unknown &&
             num_spatial() >= 1 && num_spatial() <= 3 && lhs_.num_elements() > 0 &&
             rhs_.shape->num_elements() > 0 && IsFloat(lhs_.element_type());
    if (!known_) return;
    const Window& w = attrs_.window;
    pad_low_.assign(w.pad_low.begin(), w.pad_low.end());
    pad_high_.assign(w.pad_high.begin(), w.pad_high.end());
    lhs_dilate_.assign(w.lhs_dilate.begin(), w.lhs_dilate.end());
    reversal_.assign(w.reversal.begin(), w.reversal.end());
    if (IsBackwardFilter()) {
      call_ = CuDnnCall::kBackwardFilter;
    } else if (IsBackwardInput()) {
      call_ = CuDnnCall::kBackwardInput;
    }
  }

  bool known() const { return known_; }

  void Make(InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
    InstrId x = cloner->OperandsOf(id)[0], w = cloner->OperandsOf(id)[1];
    Extents starts(i_.shape->rank()), limits(i_.shape->dims().begin(), i_.shape->dims().end());
    if (call_ == CuDnnCall::kForward) {
      if (!IsEvenlyPadded()) x = PadAndDilate(x, b);
    } else if (call_ == CuDnnCall::kBackwardFilter) {
      x = PadUnevenSides(x, b);
    } else {
      if (rhs_.opcode == Opcode::kReverse) {
        w = cloner->now(m_.operand(m_.operand(id, 1), 0));
        reversal_.assign(num_spatial(), 1);
      }
      MakeMoreThanNeeded(&starts, &limits);
    }
    ConvolutionAttrs attrs = attrs_;
    if (HasFeaturesMinor()) attrs.dim_labels = PutFeaturesMinor(b, &x, &w);
    attrs.window.pad_low = pad_low_;
    attrs.window.pad_high = pad_high_;
    attrs.window.lhs_dilate = lhs_dilate_;
    attrs.window.reversal = reversal_;
    InstrId y = b.Add(Opcode::kConvolution, {x, w}, InternAttributes(b.context(), attrs));
    cloner->Replace(id, y);
    if (HasFeaturesMinor()) y = InOrder(y, Back(OutOrder()), b);
    if (!absl::c_equal(b.shape(y)->dims(), i_.shape->dims())) y = b.Slice(y, starts, limits);
    cloner->Set(id, y);
  }

 private:
  int num_spatial() const { return static_cast<int>(labels_.lhs.spatial.size()); }
  int64_t Filter(int k) const { return rhs_.shape->dims()[labels_.rhs.spatial[k]]; }
  int64_t In(int k) const { return lhs_.dims()[labels_.lhs.spatial[k]]; }
  int64_t Out(int k) const { return i_.shape->dims()[labels_.out.spatial[k]]; }
  bool All(absl::Span<const int64_t> of_window, int64_t value) const {
    return absl::c_all_of(of_window, [&](int64_t x) { return x == value; });
  }

  // Filters are smaller than what they make, but where the one is the gradient of the other.
  bool IsBackwardFilter() const {
    const Window& w = attrs_.window;
    if (attrs_.feature_group_count > 1 || !All(w.stride, 1) || !All(w.lhs_dilate, 1) ||
        !All(w.reversal, 0)) {
      return false;
    }
    bool is_larger = lhs_.dims()[labels_.lhs.batch] != i_.shape->dims()[labels_.out.batch];
    int small = 0;
    for (int k = 0; k < num_spatial(); ++k) {
      if (w.pad_low[k] < 0) return false;
      is_larger |= Filter(k) > Out(k);
      small += Filter(k) <= Out(k);
    }
    if (!is_larger || (small > 0 && All(w.rhs_dilate, 1))) return false;
    return absl::c_all_of(FilterSides(), [](const Sides& s) { return s.high >= 0; });
  }

  // Of the sides that lead to the same result, the most even ones.
  static Sides Chosen(int64_t low, int64_t least_high, int64_t stride) {
    return {low, std::clamp(low, least_high, least_high + stride - 1)};
  }

  absl::InlinedVector<Sides, 3> FilterSides() const {
    absl::InlinedVector<Sides, 3> out;
    for (int k = 0; k < num_spatial(); ++k) {
      const int64_t stride = attrs_.window.rhs_dilate[k], low = attrs_.window.pad_low[k];
      out.push_back(Chosen(low, Out(k) + (Filter(k) - 1) * stride - In(k) - low, stride));
    }
    return out;
  }

  bool IsBackwardInput() const {
    const Window& w = attrs_.window;
    if (attrs_.feature_group_count > 1 || !All(w.stride, 1) || !All(w.rhs_dilate, 1) ||
        !All(w.reversal, 0)) {
      return false;
    }
    const bool dilated = !All(w.lhs_dilate, 1);
    const bool turned =
        rhs_.opcode == Opcode::kReverse &&
        absl::c_is_permutation(rhs_.as<DimensionsAttrs>().dimensions, labels_.rhs.spatial);
    if (!turned && !(dilated && (rhs_.opcode == Opcode::kConstant || All(w.size, 1)))) return false;
    return absl::c_all_of(InputSides(), [](const Sides& s) { return s.low >= 0 && s.high >= 0; });
  }

  absl::InlinedVector<Sides, 3> InputSides() const {
    absl::InlinedVector<Sides, 3> out;
    for (int k = 0; k < num_spatial(); ++k) {
      const int64_t stride = attrs_.window.lhs_dilate[k];
      const int64_t low = Filter(k) - 1 - attrs_.window.pad_low[k];
      out.push_back(Chosen(low, Filter(k) + stride * (In(k) - 1) - Out(k) - low, stride));
    }
    return out;
  }

  bool IsEvenlyPadded() const {
    const Window& w = attrs_.window;
    return absl::c_equal(w.pad_low, w.pad_high) && All(w.lhs_dilate, 1) &&
           absl::c_all_of(w.pad_low, [](int64_t pad) { return pad >= 0; });
  }

  InstrId PadAndDilate(InstrId x, GraphBuilder& b) {
    Extents low(lhs_.rank()), high(lhs_.rank()), interior(lhs_.rank());
    for (int k = 0; k < num_spatial(); ++k) {
      const int64_t d = labels_.lhs.spatial[k];
      low[d] = pad_low_[k];
      high[d] = pad_high_[k];
      interior[d] = lhs_dilate_[k] - 1;
      pad_low_[k] = pad_high_[k] = 0;
      lhs_dilate_[k] = 1;
    }
    return b.Pad(x, b.Zero(lhs_.element_type()), low, high, interior);
  }

  // By as much as one side is padded more than the other one.
  InstrId PadUnevenSides(InstrId x, GraphBuilder& b) {
    Extents low(lhs_.rank()), high(lhs_.rank());
    const auto sides = FilterSides();
    for (int k = 0; k < num_spatial(); ++k) {
      const int64_t d = labels_.lhs.spatial[k], even = std::min(sides[k].low, sides[k].high);
      low[d] = sides[k].low - even;
      high[d] = sides[k].high - even;
      pad_low_[k] -= low[d];
      pad_high_[k] -= high[d];
    }
    if (All(low, 0) && All(high, 0)) return x;
    return b.Pad(x, b.Zero(lhs_.element_type()), low, high);
  }

  // A gradient of more than the input, from which that of the input is cut.
  void MakeMoreThanNeeded(Extents* starts, Extents* limits) {
    const auto sides = InputSides();
    for (int k = 0; k < num_spatial(); ++k) {
      const int64_t d = labels_.out.spatial[k], more = sides[k].low - sides[k].high;
      if (more > 0) {
        pad_low_[k] += more;
        (*starts)[d] += more;
        (*limits)[d] += more;
      } else {
        pad_high_[k] -= more;
      }
    }
  }

  bool HasFeaturesMinor() const {
    return num_spatial() == 2 && lhs_.element_type() != ElementType::kF64;
  }

  static Extents Order(const DimLabels::Side& side, int first, int last) {
    Extents out = {first};
    out.insert(out.end(), side.spatial.begin(), side.spatial.end());
    out.push_back(last);
    return out;
  }
  Extents OutOrder() const {
    const DimLabels::Side& s = labels_.out;
    return call_ == CuDnnCall::kBackwardFilter ? Order(s, s.feature, s.batch)
                                               : Order(s, s.batch, s.feature);
  }
  static Extents Back(const Extents& order) {
    Extents out(order.size());
    for (size_t k = 0; k < order.size(); ++k) out[order[k]] = static_cast<int64_t>(k);
    return out;
  }

  static InstrId InOrder(InstrId x, const Extents& order, GraphBuilder& b) {
    return absl::c_is_sorted(order) ? x : b.Transpose(x, order);
  }

  // The labels.
  absl::string_view PutFeaturesMinor(GraphBuilder& b, InstrId* x, InstrId* w) const {
    const DimLabels::Side &l = labels_.lhs, &r = labels_.rhs;
    const bool filter = call_ == CuDnnCall::kBackwardFilter;
    const bool forward = call_ == CuDnnCall::kForward;
    *x = InOrder(*x, filter ? Order(l, l.feature, l.batch) : Order(l, l.batch, l.feature), b);
    *w = InOrder(*w, forward ? Order(r, r.feature, r.batch) : Order(r, r.batch, r.feature), b);
    return filter ? "f01b_i01o->f01b" : forward ? "b01f_o01i->b01f" : "b01f_i01o->b01f";
  }

  const Module& m_;
  const Instruction& i_;
  const ConvolutionAttrs& attrs_;
  const Shape& lhs_;
  const Instruction& rhs_;
  DimLabels labels_;
  Extents pad_low_, pad_high_, lhs_dilate_, reversal_;  // as they are made
  bool known_ = false;
  CuDnnCall call_ = CuDnnCall::kForward;
};

}  // namespace

PassResult CallCuDnnConvolutions(const Module& m) {
  return RewriteInstructions(
      m,
      [&](InstrId id) {
        return m.instr(id).opcode == Opcode::kConvolution && CuDnnConvolution(m, id).known();
      },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        b.set_value_numbering(true);
        CuDnnConvolution(m, id).Make(id, b, cloner);
      });
}

}  // namespace internal
}  // namespace shardcall
