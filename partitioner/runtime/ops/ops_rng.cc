// SPDX-License-Identifier: Apache-2.0
// rng and rng-get-and-update-state: random numbers on whose bits programs must not rely. They are
// the same in every run. Each device draws its own, as in other runtimes, so if a program needs
// equal numbers on several devices, the partitioner lets one device draw for all. Device 0 draws
// the numbers of an unpartitioned program.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lanes/philox.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

struct RngOpData : OpData {
  bool normal = false;
};

// A stream of random bits, 64 at a time.
class Bits {
 public:
  explicit Bits(uint64_t key) : key_(key) {}
  uint64_t Next() {
    if (left_ == 0) {
      uint32_t block[4];
      Philox4x32(key_, counter_++, 0, block);
      words_[0] = block[0] | static_cast<uint64_t>(block[1]) << 32;
      words_[1] = block[2] | static_cast<uint64_t>(block[3]) << 32;
      left_ = 2;
    }
    return words_[--left_];
  }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }  // in [0, 1)

 private:
  uint64_t key_, counter_ = 0;
  uint64_t words_[2];
  int left_ = 0;
};

// Rounding to the type may give `high` for a number below it; then another one is drawn.
double UniformFloat(Bits& bits, ElementType type, double low, double high) {
  for (int tries = 0; tries < 64; ++tries) {
    const double x = RoundToFloatType(type, low + (high - low) * bits.Unit());
    if (!(x >= high) || !(low < high)) return x;
  }
  return low;
}

// The device whose numbers the step draws, and its position in the stream.
struct Drawing {
  explicit Drawing(const DeviceContext& context) : device(context.device) {
    if (context.rng == nullptr) return;
    if (context.rng->drawn_on >= 0) device = context.rng->drawn_on;
    stream = &context.rng->streams[device];
  }
  int device;
  RngState::Stream none;
  RngState::Stream* stream = &none;
};

absl::Status RunRng(StepRun& run) {
  const bool normal = run.data<RngOpData>().normal;
  Tensor out = run.NewResult(0);
  const ElementType type = out.type();
  const int64_t count = out.num_elements();
  Drawing drawing(run.device());
  Bits bits(static_cast<uint64_t>(drawing.device) << 40 ^ drawing.stream->calls++);
  if (IsFloat(type)) {
    double a = 0, b = 0;
    LoadFloats(type, run.in(0).data(), 1, &a);
    LoadFloats(type, run.in(1).data(), 1, &b);
    std::vector<double> values(count);
    for (double& v : values) {
      if (normal) {  // Box-Muller
        const double radius = std::sqrt(-2 * std::log(1 - bits.Unit()));
        v = a + b * radius * std::cos(2 * std::numbers::pi * bits.Unit());
      } else {
        v = UniformFloat(bits, type, a, b);
      }
    }
    StoreFloats(type, values.data(), count, out.MutableData());
  } else {
    const uint64_t low = static_cast<uint64_t>(IntElement(run.in(0), 0));
    const uint64_t range = static_cast<uint64_t>(IntElement(run.in(1), 0)) - low;
    const int bytes = out.element_bytes();
    char* to = out.MutableData();
    for (int64_t i = 0; i < count; ++i) {
      // The high part of the product is uniform up to an error of range / 2^64.
      const uint64_t value =
          low + static_cast<uint64_t>(static_cast<unsigned __int128>(bits.Next()) * range >> 64);
      std::memcpy(to + i * bytes, &value, bytes);
    }
    NormalizeElements(type, to, count);
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

struct RngStateData : OpData {
  uint64_t delta = 0;
};

// The state before this step's increment, a number of 128 bits, low half first.
absl::Status RunRngState(StepRun& run) {
  Drawing drawing(run.device());
  unsigned __int128& state = drawing.stream->state;
  const uint64_t device = static_cast<uint64_t>(drawing.device);
  const uint64_t words[] = {static_cast<uint64_t>(state) ^ device << 40,
                            static_cast<uint64_t>(state >> 64)};
  state += run.data<RngStateData>().delta;
  run.Set(0, Tensor::FromBytes(run.shape(0).type, run.shape(0).dims, words));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerRng(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<RngAttrs>();
  auto data = std::make_unique<RngOpData>();
  data->normal = attrs.distribution == "rng_normal";
  const ElementType type = step->shapes[0].type;
  if (!data->normal && attrs.distribution != "rng_uniform") {
    return context.Unimplemented("this distribution");
  }
  if (context.num_operands() != 2) return context.Error("E311", "two parameters are needed");
  for (int k = 0; k < 2; ++k) {
    const Shape& shape = *context.operand_shape(k);
    if (!shape.IsArray() || shape.rank() != 0 || shape.element_type() != type) {
      return context.Error("E311", "the parameters must be scalars of the result's type");
    }
  }
  if (!IsFloat(type) && (data->normal || !IsInteger(type))) {
    return context.Unimplemented("this distribution of this element type");
  }
  step->fn = RunRng;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerRngGetAndUpdateState(const LowerContext& context, Step* step) {
  const LeafShape& shape = step->shapes[0];
  if (shape.type != ElementType::kU64 || shape.dims != Dims{2}) {
    return context.Error("E311", "the state is u64[2]");
  }
  auto data = std::make_unique<RngStateData>();
  data->delta = static_cast<uint64_t>(context.attrs<RngStateAttrs>().delta);
  step->fn = RunRngState;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
