// SPDX-License-Identifier: Apache-2.0
// Enumerations that a Module holds as words, in the order of their numbers.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_WORDS_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_WORDS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall::hlo_proto {

using Words = absl::Span<const absl::string_view>;

// Empty words stand for "not set".
inline constexpr absl::string_view kAlgorithms[] = {"",
                                                    "dot_any_f8_any_f8_f32",
                                                    "dot_any_f8_any_f8_f32_fast_accum",
                                                    "dot_f16_f16_f16",
                                                    "dot_f16_f16_f32",
                                                    "dot_bf16_bf16_bf16",
                                                    "dot_bf16_bf16_f32",
                                                    "dot_bf16_bf16_f32_x3",
                                                    "dot_bf16_bf16_f32_x6",
                                                    "dot_tf32_tf32_f32",
                                                    "dot_tf32_tf32_f32_x3",
                                                    "dot_f32_f32_f32",
                                                    "dot_f64_f64_f64",
                                                    "dot_bf16_bf16_f32_x9"};
inline constexpr absl::string_view kPrecisions[] = {"default", "high", "highest"};
inline constexpr absl::string_view kConvolutionKinds[] = {"", "fprop", "dgrad", "wgrad"};
inline constexpr absl::string_view kTransposes[] = {"", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
inline constexpr absl::string_view kDistributions[] = {"", "rng_uniform", "rng_normal"};
inline constexpr absl::string_view kRngAlgorithms[] = {"rng_default", "rng_three_fry",
                                                       "rng_philox"};
inline constexpr absl::string_view kSchedules[] = {"", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
inline constexpr absl::string_view kPaddings[] = {"", "PADDING_VALID", "PADDING_SAME"};
inline constexpr absl::string_view kFusionKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
inline constexpr absl::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
inline constexpr absl::string_view kCompareTypes[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};

// -1 if it is not there.
inline int IndexOf(absl::string_view word, Words words) {
  for (size_t k = 0; k < words.size(); ++k) {
    if (words[k] == word) return static_cast<int>(k);
  }
  return -1;
}

}  // namespace shardcall::hlo_proto

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_WORDS_H_
