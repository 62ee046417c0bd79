// SPDX-License-Identifier: Apache-2.0
// The words that fields of attributes may have as values (Word in attributes.inc).
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTE_WORDS_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTE_WORDS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

using Words = absl::Span<const absl::string_view>;

// In the order of their numbers in messages. An empty first word means "not set"; text may write
// it as `unset`, unless that is empty.
struct WordList {
  Words words;
  absl::string_view unset;
};

namespace words {

namespace in_order {

inline constexpr absl::string_view kDotAlgorithms[] = {"",
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
inline constexpr absl::string_view kFftTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
inline constexpr absl::string_view kTransposes[] = {"", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
inline constexpr absl::string_view kDistributions[] = {"", "rng_uniform", "rng_normal"};
inline constexpr absl::string_view kRngAlgorithms[] = {"rng_default", "rng_three_fry",
                                                       "rng_philox"};
inline constexpr absl::string_view kSchedules[] = {"", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
inline constexpr absl::string_view kPaddings[] = {"", "PADDING_VALID", "PADDING_SAME"};
inline constexpr absl::string_view kFusionKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
inline constexpr absl::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
inline constexpr absl::string_view kCompareTypes[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
inline constexpr absl::string_view kCompareOrders[] = {"PARTIAL", "TOTAL"};
inline constexpr absl::string_view kApiVersions[] = {
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
inline constexpr absl::string_view kModes[] = {"cross_replica", "cross_partition",
                                               "cross_replica_and_partition", "flattened_id"};

}  // namespace in_order

inline constexpr WordList kDotAlgorithms = {in_order::kDotAlgorithms, "unset"};
inline constexpr WordList kPrecisions = {in_order::kPrecisions, ""};
inline constexpr WordList kConvolutionKinds = {in_order::kConvolutionKinds, "unset"};
inline constexpr WordList kFftTypes = {in_order::kFftTypes, ""};
inline constexpr WordList kTransposes = {in_order::kTransposes, "TRANSPOSE_INVALID"};
inline constexpr WordList kDistributions = {in_order::kDistributions, ""};
inline constexpr WordList kRngAlgorithms = {in_order::kRngAlgorithms, ""};
inline constexpr WordList kSchedules = {in_order::kSchedules, "SCHEDULE_NONE"};
inline constexpr WordList kPaddings = {in_order::kPaddings, "PADDING_INVALID"};
inline constexpr WordList kFusionKinds = {in_order::kFusionKinds, ""};
inline constexpr WordList kDirections = {in_order::kDirections, ""};
inline constexpr WordList kCompareTypes = {in_order::kCompareTypes, ""};
inline constexpr WordList kCompareOrders = {in_order::kCompareOrders, ""};
inline constexpr WordList kApiVersions = {in_order::kApiVersions, ""};
inline constexpr WordList kModes = {in_order::kModes, ""};

}  // namespace words

// The API version of calls of XLA's typed FFI: API_VERSION_TYPED_FFI.
inline constexpr int64_t kTypedFfiCall = 4;

// The index of `word`; -1 if it is not in the list.
inline int IndexOf(absl::string_view word, Words words) {
  for (size_t k = 0; k < words.size(); ++k) {
    if (words[k] == word) return static_cast<int>(k);
  }
  return -1;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTE_WORDS_H_
