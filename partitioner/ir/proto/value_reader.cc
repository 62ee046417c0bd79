// SPDX-License-Identifier: Apache-2.0
// Shapes, windows and other small values.
#include "shardcall/partitioner/ir/proto/value_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool ValueReader::Utf8(absl::string_view text, absl::string_view field, absl::string_view* out) {
  if (!IsUtf8(text)) {
    return faults_.Fail("E033", "Text is not UTF-8", field, "valid UTF-8", "",
                        "write the text in UTF-8 where the message is made");
  }
  *out = Keep(text);
  return true;
}

bool ValueReader::WordNumber(absl::string_view field, int64_t value, Words words, int* out) {
  if (value < 0 || value >= static_cast<int64_t>(words.size())) {
    return faults_.FailEnum(field, value, words);
  }
  *out = static_cast<int>(value);
  return true;
}

bool ValueReader::Word(absl::string_view field, int64_t value, Words words, Text* out) {
  int number;
  if (!WordNumber(field, value, words, &number)) return false;
  *out = words[number];
  return true;
}

bool ValueReader::ReadShape(const hlo_pb::ShapeProto& p, absl::string_view field,
                            const Shape** out) {
  const auto type = static_cast<ElementType>(p.element_type());
  if (p.element_type() <= 0 || p.element_type() >= kNumElementTypes) {
    return faults_.Fail("E010", "Unknown element type", field, "a number of a type",
                        absl::StrCat(p.element_type()), "give every shape its element_type");
  }
  if (IsArrayType(type)) return ReadArrayShape(p, field, out);
  if (p.dimensions_size() > 0) {
    return faults_.Fail("E010", "This type has no dimensions", field, "none",
                        absl::StrCat(p.dimensions_size()));
  }
  if (type == ElementType::kToken) return *out = context_.MakeToken(), true;
  if (type == ElementType::kOpaque) return *out = context_.MakeOpaque(), true;
  absl::InlinedVector<const Shape*, 8> elements(p.tuple_shapes_size());
  for (int k = 0; k < p.tuple_shapes_size(); ++k) {
    if (!ReadShape(p.tuple_shapes(k), field, &elements[k])) return false;
  }
  if (type == ElementType::kTuple) return *out = context_.MakeTuple(elements), true;
  if (elements.size() != 1) {
    return faults_.Fail("E010", "A buffer holds one shape", field, "1",
                        absl::StrCat(elements.size()));
  }
  *out = context_.MakeBuffer(elements[0]);
  return true;
}

bool ValueReader::ReadArrayShape(const hlo_pb::ShapeProto& p, absl::string_view field,
                                 const Shape** out) {
  const int rank = p.dimensions_size();
  for (int64_t d : p.dimensions()) {
    if (d < 0 && d != kUnboundedDim) {
      return faults_.Fail("E010", "A dimension is negative", field, "0 or more", absl::StrCat(d));
    }
  }
  if (p.is_dynamic_dimension_size() != 0 && p.is_dynamic_dimension_size() != rank) {
    return faults_.Fail("E010", "is_dynamic_dimension does not fit the dimensions", field,
                        absl::StrCat(rank, " of them"),
                        absl::StrCat(p.is_dynamic_dimension_size()));
  }
  absl::InlinedVector<bool, 8> dynamic(rank);
  bool any = false;
  for (int d = 0; d < rank; ++d) {
    dynamic[d] = p.dimensions(d) == kUnboundedDim ||
                 (p.is_dynamic_dimension_size() > 0 && p.is_dynamic_dimension(d));
    any |= dynamic[d];
  }
  // Without a layout it is descending, as in text.
  absl::InlinedVector<int64_t, 8> layout;
  std::string suffix;
  const Repeated& given = p.layout().minor_to_major();
  if (given.empty()) {
    for (int d = rank - 1; d >= 0; --d) layout.push_back(d);
  } else {
    layout.assign(given.begin(), given.end());
    std::vector<bool> seen(rank, false);
    bool ok = given.size() == rank;
    for (int k = 0; ok && k < rank; ++k) {
      ok = layout[k] >= 0 && layout[k] < rank && !seen[layout[k]];
      if (ok) seen[layout[k]] = true;
    }
    if (!ok) {
      return faults_.Fail("E010", "A layout does not fit the shape", absl::StrCat(field, ".layout"),
                          absl::StrCat("each of the ", rank, " dimensions once in minor_to_major"));
    }
  }
  if (p.has_layout() && !LayoutSuffix(p.layout(), field, &suffix)) return false;
  *out =
      context_.MakeArray(static_cast<ElementType>(p.element_type()), IntsOf(p.dimensions()), layout,
                         suffix, any ? absl::MakeConstSpan(dynamic) : absl::Span<const bool>());
  return true;
}

// The part of a layout after the colon in text.
bool ValueReader::LayoutSuffix(const hlo_pb::LayoutProto& p, absl::string_view field,
                               std::string* out) {
  const std::string at = absl::StrCat(field, ".layout");
  bool ok = true;
  const auto number = [&](absl::string_view letter, int64_t value, int64_t omitted) {
    ok = ok && value >= 0;
    if (value != omitted) absl::StrAppend(out, letter, "(", value, ")");
  };
  const auto type = [&](absl::string_view letter, int32_t value) {
    if (value == 0) return;
    const bool known =
        value > 0 && value < kNumElementTypes && IsInteger(static_cast<ElementType>(value));
    ok = ok && known;
    if (known) {
      absl::StrAppend(out, letter, "(", ElementTypeName(static_cast<ElementType>(value)), ")");
    }
  };
  if (p.tiles_size() > 0) out->push_back('T');
  for (const hlo_pb::TileProto& tile : p.tiles()) {
    out->push_back('(');
    for (int k = 0; k < tile.dimensions_size(); ++k) {
      if (k > 0) out->push_back(',');
      const int64_t d = tile.dimensions(k);
      if (d == INT64_MIN) {  // "merge with the next"
        out->push_back('*');
      } else {
        ok = ok && d >= 0;
        absl::StrAppend(out, d);
      }
    }
    out->push_back(')');
  }
  const int64_t padding = p.tail_padding_alignment_in_elements();
  number("L", padding == 0 ? 1 : padding, 1);
  type("#", p.index_primitive_type());
  type("*", p.pointer_primitive_type());
  number("E", p.element_size_in_bits(), 0);
  number("S", p.memory_space(), 0);
  if (p.split_configs_size() > 0) absl::StrAppend(out, "SC");
  for (const hlo_pb::SplitConfigProto& split : p.split_configs()) {
    ok = ok && split.dimension() >= 0 && split.split_indices_size() > 0;
    absl::StrAppend(out, "(", split.dimension(), ":");
    for (int k = 0; k < split.split_indices_size(); ++k) {
      ok = ok && split.split_indices(k) >= 0;
      absl::StrAppend(out, k > 0 ? "," : "", split.split_indices(k));
    }
    out->push_back(')');
  }
  number("M", p.dynamic_shape_metadata_prefix_bytes(), 0);
  return ok || faults_.Fail("E010", "A layout has an invalid value", at,
                            "numbers that are not negative, and integer types");
}

bool ValueReader::ReadWindow(const hlo_pb::Window& p, Window* out) {
  const int n = p.dimensions_size();
  std::vector<int64_t> values(7 * static_cast<size_t>(n));
  for (int k = 0; k < n; ++k) {
    const hlo_pb::WindowDimension& d = p.dimensions(k);
    const int64_t fields[7] = {d.size(),           d.stride(),        d.padding_low(),
                               d.padding_high(),   d.base_dilation(), d.window_dilation(),
                               d.window_reversal()};
    for (int f = 0; f < 7; ++f) {
      if (fields[f] < 0 && f != 2 && f != 3) {
        return faults_.Fail("E019", "A window has a negative value", "window", "0 or more",
                            absl::StrCat(fields[f]));
      }
      values[f * n + k] = fields[f];
    }
  }
  const Ints kept = context_.arena().Copy(Ints(values));
  Ints* parts[] = {&out->size,       &out->stride,     &out->pad_low, &out->pad_high,
                   &out->lhs_dilate, &out->rhs_dilate, &out->reversal};
  for (int f = 0; f < 7; ++f) *parts[f] = kept.subspan(f * n, n);
  return true;
}

// `b01f_01io->b01f`
bool ValueReader::DimLabels(const hlo_pb::ConvolutionDimensionNumbers& p, Text* out) {
  std::string text;
  const auto side = [&](char first, int64_t first_at, char second, int64_t second_at,
                        const Repeated& spatial) {
    constexpr int64_t kMost = 64;  // most dimensions
    std::string labels;
    const auto put = [&](char c, int64_t at) {
      if (at < 0 || at >= kMost) return false;
      if (static_cast<size_t>(at) >= labels.size()) labels.resize(at + 1, '?');
      if (labels[at] != '?') return false;
      labels[at] = c;
      return true;
    };
    bool ok = spatial.size() <= 10 && put(first, first_at) && put(second, second_at);
    for (int k = 0; ok && k < spatial.size(); ++k) {
      ok = put(static_cast<char>('0' + k), spatial[k]);
    }
    text += labels;
    return ok;
  };
  bool ok = side('b', p.input_batch_dimension(), 'f', p.input_feature_dimension(),
                 p.input_spatial_dimensions());
  text.push_back('_');
  ok = ok && side('i', p.kernel_input_feature_dimension(), 'o', p.kernel_output_feature_dimension(),
                  p.kernel_spatial_dimensions());
  text += "->";
  ok = ok && side('b', p.output_batch_dimension(), 'f', p.output_feature_dimension(),
                  p.output_spatial_dimensions());
  ok = ok && p.input_spatial_dimensions_size() == p.kernel_spatial_dimensions_size() &&
       p.input_spatial_dimensions_size() == p.output_spatial_dimensions_size();
  if (!ok) {
    return faults_.Fail("E019", "Invalid dimension numbers", "convolution_dimension_numbers",
                        "each dimension in one role, as many spatial ones on each side");
  }
  *out = Keep(text);
  return true;
}

bool ValueReader::Precision(const hlo_pb::PrecisionConfig& p, Text* precision, Text* algorithm) {
  std::string text = "{";
  bool all_default = true;
  for (int32_t value : p.operand_precision()) {
    Text word;
    if (!Word("precision_config.operand_precision", value, words::kPrecisions.words, &word))
      return false;
    all_default = all_default && value == 0;
    absl::StrAppend(&text, text.size() > 1 ? "," : "", word);
  }
  if (!all_default) *precision = Keep(text + "}");
  Text word;
  if (!Word("precision_config.algorithm", p.algorithm(), words::kDotAlgorithms.words, &word))
    return false;
  if (algorithm != nullptr) *algorithm = word;
  return true;
}

// `{{0}: (1, {}), {1}: (2, {0})}`
bool ValueReader::Aliasing(
    const google::protobuf::RepeatedPtrField<hlo_pb::OutputOperandAliasing>& p, Text* out) {
  if (p.empty()) return true;
  std::string text = "{";
  bool ok = true;
  const auto index = [&](const Repeated& ints) {
    text.push_back('{');
    for (int k = 0; k < ints.size(); ++k) {
      ok = ok && ints[k] >= 0;
      absl::StrAppend(&text, k > 0 ? "," : "", ints[k]);
    }
    text.push_back('}');
  };
  for (const hlo_pb::OutputOperandAliasing& a : p) {
    if (text.size() > 1) text += ", ";
    index(a.output_shape_index());
    ok = ok && a.operand_index() >= 0;
    absl::StrAppend(&text, ": (", a.operand_index(), ", ");
    index(a.operand_shape_index());
    text.push_back(')');
  }
  if (!ok) {
    return faults_.Fail("E019", "An index is negative", "output_operand_aliasing", "0 or more");
  }
  *out = Keep(text + "}");
  return true;
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
