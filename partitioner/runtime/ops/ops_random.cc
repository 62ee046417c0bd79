// SPDX-License-Identifier: Apache-2.0
// rng-bit-generator: ThreeFry2x32 with 20 rounds and Philox4x32 with 10, with the same bits and new
// states as XLA's CPU backend. The state is the key, then a counter of 64 bits (or 128, low half
// first). Philox with a 64-bit counter takes the key as the upper half. The default is Philox.
// Float results have the bits of the integer of their width.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lanes/philox.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Pair32 {
  uint32_t low, high;
};

Pair32 ThreeFry2x32(uint64_t key, uint64_t counter) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const uint32_t schedule[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDA};
  uint32_t x = static_cast<uint32_t>(counter) + k0;
  uint32_t y = static_cast<uint32_t>(counter >> 32) + k1;
  for (uint32_t round = 0; round < 5; ++round) {
    for (int rotation : kRotations[round % 2]) {
      x += y;
      y = std::rotl(y, rotation) ^ x;
    }
    x += schedule[(round + 1) % 3];
    y += schedule[(round + 2) % 3] + round + 1;
  }
  return {x, y};
}

}  // namespace

void Philox4x32(uint64_t key, uint64_t low, uint64_t high, uint32_t out[4]) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c[4] = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                   static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
        static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    std::copy(next, next + 4, c);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  std::copy(c, c + 4, out);
}

namespace {

// n 32-bit words for an array of `dims`. The two words of a counter are adjacent along the first
// even dimension, or else along the longest one, rounded up to even.
std::vector<uint32_t> ThreeFryWords(uint64_t key, uint64_t* counter,
                                    absl::Span<const int64_t> dims) {
  if (dims.empty()) return {ThreeFry2x32(key, (*counter)++).low};
  int split = -1;
  for (int k = 0; k < static_cast<int>(dims.size()) && split < 0; ++k) {
    if (dims[k] % 2 == 0) split = k;
  }
  for (int k = 0; k < static_cast<int>(dims.size()) && (split < 0 || dims[split] % 2 != 0); ++k) {
    if (split < 0 || dims[k] > dims[split]) split = k;
  }
  const int64_t outer = Product(dims.first(split)), inner = Product(dims.subspan(split + 1));
  const int64_t half = (dims[split] + 1) / 2;
  std::vector<uint32_t> words(Product(dims));
  for (int64_t a = 0; a < outer; ++a) {
    for (int64_t h = 0; h < half; ++h) {
      for (int64_t b = 0; b < inner; ++b) {
        const Pair32 pair = ThreeFry2x32(key, *counter + (a * half + h) * inner + b);
        const int64_t at = (a * dims[split] + 2 * h) * inner + b;
        words[at] = pair.low;
        if (2 * h + 1 < dims[split]) words[at + inner] = pair.high;
      }
    }
  }
  *counter += static_cast<uint64_t>(outer * half * inner);
  return words;
}

std::vector<uint32_t> PhiloxWords(uint64_t key, uint64_t* low, uint64_t* high, int64_t n) {
  std::vector<uint32_t> words(n);
  for (int64_t i = 0; i < n; i += 4) {
    uint32_t block[4];
    Philox4x32(key, *low, *high, block);
    std::copy(block, block + std::min<int64_t>(4, n - i), words.begin() + i);
    if (++*low == 0) ++*high;
  }
  return words;
}

struct RngData : OpData {
  bool threefry = false;
};

absl::Status RunRngBitGenerator(StepRun& run) {
  const Tensor& state = run.in(0);
  const uint64_t* s = state.data<uint64_t>();
  const uint64_t key = s[0];
  uint64_t low = s[1], high = state.num_elements() > 2 ? s[2] : key;
  Tensor bits = run.NewResult(1);
  const int bytes = bits.element_bytes();
  const int64_t n = bits.num_elements();
  std::vector<uint32_t> words;
  if (run.data<RngData>().threefry) {
    if (bytes == 8) {  // both words of a counter make one element
      for (int64_t i = 0; i < n; ++i) {
        const Pair32 pair = ThreeFry2x32(key, low++);
        words.push_back(pair.low);
        words.push_back(pair.high);
      }
    } else {
      words = ThreeFryWords(key, &low, bits.dims());
    }
  } else {
    words = PhiloxWords(key, &low, &high, bytes == 8 ? 2 * n : n);
  }
  char* to = bits.MutableData();
  for (int64_t i = 0; i < n; ++i) {
    switch (bytes) {
      case 1: reinterpret_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(words[i]); break;
      case 2: reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(words[i]); break;
      case 4: reinterpret_cast<uint32_t*>(to)[i] = words[i]; break;
      default:
        reinterpret_cast<uint64_t*>(to)[i] = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1])
                                                                << 32;
    }
  }
  NormalizeElements(bits.type(), to, n);
  std::vector<uint64_t> next = {key, low, high};
  next.resize(state.num_elements());
  run.Set(0, Tensor::FromBytes(run.shape(0).type, run.shape(0).dims, next.data()));
  run.Set(1, std::move(bits));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerRngBitGenerator(const LowerContext& context, Step* step) {
  const absl::string_view algorithm = context.attrs<RngBitGeneratorAttrs>().algorithm;
  auto data = std::make_unique<RngData>();
  data->threefry = algorithm == "rng_three_fry";
  const Shape& state = *context.operand_shape(0);
  if (state.element_type() != ElementType::kU64 || state.rank() != 1 || state.dim(0) < 2 ||
      state.dim(0) > (data->threefry ? 2 : 3) || step->shapes.size() != 2 ||
      step->shapes[0].dims != Dims(state.dims().begin(), state.dims().end())) {
    return context.Unimplemented("this form of the generator's state");
  }
  const ElementType bits = step->shapes[1].type;
  if (!IsInteger(bits) && !IsFloat(bits)) return context.Unimplemented("bits of this type");
  step->fn = RunRngBitGenerator;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
