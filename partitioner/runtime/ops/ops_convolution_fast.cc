// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "shardcall/kernels/math/blas.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/ops/convolution.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// Bytes of windows that are laid out at a time: as a rule, and at most if rows are long.
constexpr int64_t kRowsBytes = 256 << 10, kMostRowsBytes = 4 << 20;
constexpr int64_t kMostIndices = 1 << 22;  // in the index tables of one convolution

bool IsIdentity(absl::Span<const int64_t> perm) {
  for (size_t k = 0; k < perm.size(); ++k) {
    if (perm[k] != static_cast<int64_t>(k)) return false;
  }
  return true;
}

// `t` as elements of `type` (f32 or f64), its dimensions permuted.
Tensor Prepare(const Tensor& t, absl::Span<const int64_t> perm, ElementType type) {
  Tensor turned = IsIdentity(perm) ? t : Transpose(t, perm);
  if (turned.type() == type) return turned;
  Tensor wide(type, turned.dims());
  if (type == ElementType::kF32) {
    LoadFloats(t.type(), turned.data(), t.num_elements(), wide.MutableData<float>());
  } else {
    LoadFloats(t.type(), turned.data(), t.num_elements(), wide.MutableData<double>());
  }
  return wide;
}

// Adjacent elements in the last dimension, for one fixed index: input indices `first`, first + 1,
// .., or -1 for all (outside).
struct Segment {
  int64_t first, count;
};
using Segments = std::vector<absl::InlinedVector<Segment, 3>>;  // by the fixed index

// The segments for a fixed output index or a fixed window index. `join`: adjacent elements are
// contiguous.
Segments LastSegments(const WindowIndices& indices, int last, bool fixed_is_output, int64_t fixed,
                      int64_t over, bool join) {
  Segments all(fixed);
  for (int64_t a = 0; a < fixed; ++a) {
    for (int64_t b = 0; b < over; ++b) {
      const int64_t i = fixed_is_output ? indices.at(last, a, b) : indices.at(last, b, a);
      const bool joins =
          join && !all[a].empty() &&
          (i < 0 ? all[a].back().first < 0
                 : all[a].back().first >= 0 && i == all[a].back().first + all[a].back().count);
      if (joins) {
        ++all[a].back().count;
      } else {
        all[a].push_back({i, 1});
      }
    }
  }
  return all;
}

// Merges copies of adjacent runs of input elements, and of zeros, into one.
template <typename T>
class RunCopier {
 public:
  explicit RunCopier(T* to) : to_(to) {}
  // Appends `count` elements from `from`, or zeros if it is null.
  void Add(const T* from, int64_t count) {
    if (from != nullptr ? from_ != nullptr && from == from_ + count_ : from_ == nullptr) {
      count_ += count;
      return;
    }
    Flush();
    from_ = from;
    count_ = count;
  }
  void Flush() {
    if (from_ == nullptr) {
      std::fill_n(to_, count_, T(0));
    } else {
      std::memcpy(to_, from_, count_ * sizeof(T));
    }
    to_ += count_;
    from_ = nullptr;
    count_ = 0;
  }

 private:
  T* to_;
  const T* from_ = nullptr;
  int64_t count_ = 0;
};

// Advances to the next index below `dims`, row-major; from the last one to the first.
void Next(Dims* index, absl::Span<const int64_t> dims) {
  for (size_t k = dims.size(); k-- > 0;) {
    if (++(*index)[k] < dims[k]) return;
    (*index)[k] = 0;
  }
}

// Operands and result in f32 or f64, shared by the algorithms below.
template <typename T>
struct Operands {
  const WindowDims& window;
  Dims in, out;  // space
  Dims strides;  // of the input's space, in elements
  const WindowIndices& indices;
  const Segments& segments;
  const T* lhs;
  const T* rhs;
  T* result;

  // Adds the input's elements (runs of `width`) at all (o, w), where one of the two is given and
  // the other runs over `over`.
  void AddLine(const Dims& given, bool given_is_output, const Dims& over, const T* from,
               int64_t width, RunCopier<T>* copier) const {
    const int last = static_cast<int>(over.size()) - 1;
    Dims other(over.size(), 0);
    const int64_t lines = Product(over) / over[last];
    for (int64_t line = 0; line < lines; ++line) {
      int64_t offset = 0;
      for (int k = 0; k < last && offset >= 0; ++k) {
        const int64_t i =
            given_is_output ? indices.at(k, given[k], other[k]) : indices.at(k, other[k], given[k]);
        offset = i < 0 ? -1 : offset + i * strides[k];
      }
      if (offset >= 0) {
        for (const Segment& part : segments[given[last]]) {
          copier->Add(part.first < 0 ? nullptr : from + offset + part.first * strides[last],
                      part.count * width);
        }
      }
      if (offset < 0) copier->Add(nullptr, over[last] * width);
      for (int k = last - 1; k >= 0; --k) {
        if (++other[k] < over[k]) break;
        other[k] = 0;
      }
    }
  }
};

// Copies n contiguous elements; n is usually small.
template <typename T>
void CopyShort(const T* from, int64_t n, T* to) {
  constexpr int64_t kPiece = 16 / sizeof(T);
  if (n > 16 * kPiece) {
    std::memcpy(to, from, n * sizeof(T));
    return;
  }
  if (n < kPiece) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + kPiece < n; i += kPiece) __builtin_memcpy(to + i, from + i, 16);
  __builtin_memcpy(to + n - kPiece, from + n - kPiece, 16);
}

// im2col: writes the windows of output positions [begin, begin + count) of an image as rows of
// `width` elements per window element. `from`: the image.
template <typename T>
void LayOutRows(const Operands<T>& p, const T* from, int64_t begin, int64_t count, int64_t width,
                T* rows) {
  const int last = static_cast<int>(p.out.size()) - 1;
  const int64_t line = p.out[last], across = p.window.size[last] * width;
  const int64_t windows = Product(p.window.size), row = windows * width;
  Dims o(p.out.size(), 0);
  int64_t rest = begin;
  for (int k = last; k >= 0; --k) {
    o[k] = rest % p.out[k];
    rest /= p.out[k];
  }
  while (count > 0) {
    const int64_t x = o[last], n = std::min(count, line - x);
    Dims w(p.out.size(), 0);  // the last one stays 0
    for (int64_t at = 0; at < row; at += across) {
      int64_t offset = 0;
      for (int k = 0; k < last && offset >= 0; ++k) {
        const int64_t i = p.indices.at(k, o[k], w[k]);
        offset = i < 0 ? -1 : offset + i * p.strides[k];
      }
      T* to = rows + at;
      for (int64_t r = 0; r < n; ++r, to += row) {
        if (offset < 0) {
          std::fill_n(to, across, T(0));
          continue;
        }
        T* piece = to;
        for (const Segment& part : p.segments[x + r]) {
          const int64_t elements = part.count * width;
          if (part.first < 0) {
            std::fill_n(piece, elements, T(0));
          } else {
            CopyShort(from + offset + part.first * p.strides[last], elements, piece);
          }
          piece += elements;
        }
      }
      for (int k = last - 1; k >= 0; --k) {
        if (++w[k] < p.window.size[k]) break;
        w[k] = 0;
      }
    }
    rows += n * row;
    count -= n;
    o[last] = line;
    for (int k = last; k > 0 && o[k] == p.out[k]; --k) {
      o[k] = 0;
      ++o[k - 1];
    }
  }
}

// Whether the im2col matrix is the input itself: windows are single elements without stride,
// dilation or padding.
bool RowsAreInput(const WindowDims& window) {
  for (int k = 0; k < window.rank(); ++k) {
    if (!window.Trivial(k)) return false;
  }
  return true;
}

// Rows are output positions of one image, columns are window elements and features:
// result[position, f] = rows * rhs. lhs is [batch, space.., feature], rhs [space.., in, out].
template <typename T>
void ByPositions(const Operands<T>& p, int64_t images, int64_t groups, int64_t in_features,
                 int64_t out_features) {
  const int64_t positions = Product(p.out), window = Product(p.window.size);
  const int64_t k = window * in_features, n = out_features / groups;
  const int64_t all_features = in_features * groups, image = Product(p.in) * all_features;
  if (RowsAreInput(p.window)) {
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t b = 0; b < images; ++b) {
        BlasGemm(BlasOp::kNone, BlasOp::kNone, positions, n, k, T(1),
                 p.lhs + b * image + g * in_features, all_features, p.rhs + g * n, out_features,
                 T(0), p.result + b * positions * out_features + g * n, out_features);
      }
    }
    return;
  }
  const int64_t row_bytes = k * static_cast<int64_t>(sizeof(T));
  const int64_t least = std::clamp<int64_t>(kMostRowsBytes / row_bytes, 1, 64);
  const int64_t chunk = std::min(std::max(kRowsBytes / row_bytes, least), positions);
  Tensor rows(ElementType::kU8, {chunk * row_bytes});
  T* row = reinterpret_cast<T*>(rows.MutableData());
  for (int64_t b = 0; b < images; ++b) {
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t begin = 0; begin < positions; begin += chunk) {
        const int64_t m = std::min(chunk, positions - begin);
        LayOutRows(p, p.lhs + b * image + g * in_features, begin, m, in_features, row);
        BlasGemm(BlasOp::kNone, BlasOp::kNone, m, n, k, T(1), row, k, p.rhs + g * n, out_features,
                 T(0), p.result + (b * positions + begin) * out_features + g * n, out_features);
      }
    }
  }
}

// out[i] = x[0][i] * y[0][i] + x[1][i] * y[1][i] + ..
template <typename T>
void SumOfProducts(const T* const* x, const T* const* y, int64_t count, T* out, int64_t n) {
  constexpr int64_t kLanes = 32;
  T sum[kLanes];
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t lanes = std::min(kLanes, n - i);
    std::fill_n(sum, kLanes, T(0));
    for (int64_t t = 0; t < count; ++t) {
      const T *a = x[t] + i, *b = y[t] + i;
      if (lanes == kLanes) {
        for (int64_t j = 0; j < kLanes; ++j) sum[j] += a[j] * b[j];
      } else {
        for (int64_t j = 0; j < lanes; ++j) sum[j] += a[j] * b[j];
      }
    }
    std::copy_n(sum, lanes, out + i);
  }
}

// Depthwise: each group has one input and one output feature. Lanes are features.
template <typename T>
void ByFeatures(const Operands<T>& p, int64_t images, int64_t features) {
  const auto sum_of_products = BestForCpu<SumOfProducts<T>>();
  const int64_t image = Product(p.in) * features, window = Product(p.window.size);
  std::vector<const T*> x(window), y(window);
  T* result = p.result;
  for (int64_t b = 0; b < images; ++b) {
    for (IndexCounter o(p.out); !o.done(); o.Next(), result += features) {
      int64_t count = 0, element = 0;
      for (IndexCounter w(p.window.size); !w.done(); w.Next(), ++element) {
        int64_t offset = 0;
        for (size_t k = 0; k < p.out.size() && offset >= 0; ++k) {
          const int64_t i = p.indices.at(static_cast<int>(k), o.index()[k], w.index()[k]);
          offset = i < 0 ? -1 : offset + i * p.strides[k];
        }
        if (offset < 0) continue;
        x[count] = p.lhs + b * image + offset;
        y[count++] = p.rhs + element * features;
      }
      sum_of_products(x.data(), y.data(), count, result, features);
    }
  }
}

// For windows that are larger than the result, as in gradients of kernels. Rows are window elements
// of one feature, columns are output positions and images: result[position, image, f] = rows^T *
// rhs, summed over rows. lhs is [feature, space.., batch], rhs [in, space.., out].
template <typename T>
void ByWindowElements(const Operands<T>& p, int64_t images, int64_t in_features,
                      int64_t out_features) {
  const int64_t positions = Product(p.out), window = Product(p.window.size);
  const int64_t m = positions * images, feature = Product(p.in) * images;
  const int64_t row_bytes = m * static_cast<int64_t>(sizeof(T));
  const int64_t least = std::clamp<int64_t>(kMostRowsBytes / row_bytes, 1, 64);
  const int64_t chunk = std::min(std::max(kRowsBytes / row_bytes, least), window);
  Tensor rows(ElementType::kU8, {chunk * m * static_cast<int64_t>(sizeof(T))});
  T* row = reinterpret_cast<T*>(rows.MutableData());
  T beta = 0;
  for (int64_t f = 0; f < in_features; ++f) {
    const T* from = p.lhs + f * feature;
    Dims w(p.window.size.size(), 0);
    for (int64_t begin = 0; begin < window; begin += chunk, beta = 1) {
      const int64_t k = std::min(chunk, window - begin);
      RunCopier<T> copier(row);
      for (int64_t r = 0; r < k; ++r, Next(&w, p.window.size)) {
        p.AddLine(w, false, p.out, from, images, &copier);
      }
      copier.Flush();
      BlasGemm(BlasOp::kTranspose, BlasOp::kNone, m, out_features, k, T(1), row, m,
               p.rhs + (f * window + begin) * out_features, out_features, beta, p.result,
               out_features);
    }
  }
}

// Moves entry `from` of a permutation to place `to`.
Dims Moved(Dims perm, size_t from, size_t to) {
  const int64_t d = perm[from];
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, d);
  return perm;
}

template <typename T>
absl::Status Run(StepRun& run, const ConvolutionData& data, ElementType type) {
  const int rank = data.window.rank();
  const LeafShape& shape = run.shape(0);
  Dims out_space, in_space;
  for (int k = 0; k < rank; ++k) {
    out_space.push_back(shape.dims[data.out_perm[k + 1]]);
    in_space.push_back(run.in(0).dim(static_cast<int>(data.lhs_perm[k + 1])));
  }
  const int64_t images = shape.dims[data.out_perm[0]];
  const int64_t out_features = shape.dims[data.out_perm.back()];
  const int64_t in_features = run.in(1).dim(static_cast<int>(data.rhs_perm[rank]));
  const bool by_window = data.feature_groups == 1 && Product(out_space) < Product(data.window.size);
  // The orders of dimensions that the chosen algorithm needs.
  Dims lhs_perm = data.lhs_perm, rhs_perm = data.rhs_perm, out_perm = data.out_perm;
  if (by_window) {
    std::swap(lhs_perm.front(), lhs_perm.back());  // feature, space.., batch
    rhs_perm = Moved(rhs_perm, rank, 0);           // in, space.., out
    out_perm = Moved(out_perm, 0, rank);           // space.., batch, feature
  }
  const Tensor lhs = Prepare(run.in(0), lhs_perm, type);
  const Tensor rhs = Prepare(run.in(1), rhs_perm, type);
  Dims out_dims;
  for (int64_t d : out_perm) out_dims.push_back(shape.dims[d]);
  Tensor out(type, out_dims);
  if (out.num_elements() > 0) {
    const WindowIndices indices(data.window, out_space, in_space);
    const int64_t last_out = out_space.back(), last_window = data.window.size.back();
    const Segments segments =
        LastSegments(indices, rank - 1, !by_window, by_window ? last_window : last_out,
                     by_window ? last_out : last_window, data.feature_groups == 1);
    Operands<T> p{data.window, in_space,      out_space,     RowMajorStrides(in_space), indices,
                  segments,    lhs.data<T>(), rhs.data<T>(), out.MutableData<T>()};
    const int64_t together = by_window ? images : in_features * data.feature_groups;
    for (int64_t& stride : p.strides) stride *= together;
    if (in_features == 1 && data.feature_groups == out_features && out_features > 1) {
      ByFeatures(p, images, out_features);
    } else if (by_window) {
      ByWindowElements(p, images, in_features, out_features);
    } else {
      ByPositions(p, images, data.feature_groups, in_features, out_features);
    }
  }
  if (type != shape.type) {
    Tensor narrow(shape.type, out_dims);
    StoreFloats(shape.type, out.data<T>(), out.num_elements(), narrow.MutableData());
    out = std::move(narrow);
  }
  Dims inverse(out_perm.size());
  for (size_t k = 0; k < out_perm.size(); ++k) inverse[out_perm[k]] = static_cast<int64_t>(k);
  run.Set(0, IsIdentity(inverse) ? std::move(out) : Transpose(out, inverse));
  return absl::OkStatus();
}

}  // namespace

bool IsFastConvolution(const ConvolutionData& data, ElementType lhs, ElementType rhs,
                       const LeafShape& result, int64_t in_features, int64_t out_features) {
  constexpr int64_t kSmallPanel = 64, kMostElements = kMostBlasExtent;
  if (!IsFloat(lhs) || !IsFloat(rhs) || !IsFloat(result.type) || data.batch_groups != 1) {
    return false;
  }
  const int64_t window = Product(data.window.size);
  const int64_t n = out_features / data.feature_groups;
  int64_t indices = 0;
  for (int k = 0; k < data.window.rank(); ++k) {
    const int64_t out = result.dims[data.out_perm[k + 1]];
    if (data.window.size[k] > kMostIndices / std::max<int64_t>(out, 1)) return false;
    indices += out * data.window.size[k];
  }
  const bool by_features = in_features == 1 && n == 1 && out_features > 1;
  return data.window.rank() > 0 && indices <= kMostIndices && window > 0 && in_features > 0 &&
         n > 0 && window <= kMostElements / in_features &&
         (by_features || window * in_features > kSmallPanel / n) &&
         result.num_elements() <= kMostElements;
}

absl::Status RunFastConvolution(StepRun& run) {
  const auto& data = run.data<ConvolutionData>();
  const bool wide = run.in(0).type() == ElementType::kF64 ||
                    run.in(1).type() == ElementType::kF64 || run.shape(0).type == ElementType::kF64;
  return wide ? Run<double>(run, data, ElementType::kF64)
              : Run<float>(run, data, ElementType::kF32);
}

}  // namespace internal
}  // namespace shardcall
