// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/proto/text_values.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/lex/literal_text.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace {

using hlo_text::Lexer;

// A lexer over a copy of the text: texts of a Module need not end in NUL.
struct Input {
  explicit Input(absl::string_view text) : storage(text), lex(storage, "") {}
  std::string storage, strings;
  Lexer lex;
  bool End() { return lex.AtEnd() && !lex.failed(); }
  bool Text(std::string* out) {
    absl::string_view view;
    if (!lex.String(&view, &strings)) return false;
    out->assign(view.data(), view.size());
    return true;
  }
  // `key=`
  bool Key(absl::string_view* key) { return lex.Identifier("a key", key) && lex.Expect('='); }
};

template <typename Ints>
std::string IndexText(const Ints& ints) {
  std::string out = "{";
  for (int k = 0; k < ints.size(); ++k) absl::StrAppend(&out, k > 0 ? "," : "", ints[k]);
  return out + "}";
}

template <typename Field>
bool ParseIndex(Lexer& lex, Field* out) {
  std::vector<int64_t> ints;
  if (!lex.IntList(&ints)) return false;
  out->Add(ints.begin(), ints.end());
  return true;
}

// `{"name" {index}}`, `{"name"}` or `{}`
bool ParseArray(Input& in, hlo_pb::OriginalArrayProto* p, bool* named) {
  *named = false;
  if (!in.lex.Expect('{')) return false;
  if (in.lex.Peek() == '"') {
    if (!in.Text(p->mutable_instruction_name())) return false;
    *named = true;
    if (in.lex.Peek() == '{' && !ParseIndex(in.lex, p->mutable_shape_index())) return false;
  }
  return in.lex.Expect('}');
}

}  // namespace

std::string StatisticsText(const hlo_pb::StatisticsViz& p) {
  if (p.statistics_size() == 0) return "";
  std::string out = absl::StrCat("{visualizing_index=", p.stat_index_to_visualize());
  for (const hlo_pb::Statistic& s : p.statistics()) {
    absl::StrAppend(&out, ",", s.stat_name(), "=", NumberText(s.stat_val()));
  }
  return out + "}";
}

bool ParseStatistics(absl::string_view text, hlo_pb::StatisticsViz* p) {
  Input in(text);
  absl::string_view key;
  int64_t index;
  if (!in.lex.Expect('{') || !in.Key(&key) || key != "visualizing_index" ||
      !in.lex.Integer(&index)) {
    return false;
  }
  p->set_stat_index_to_visualize(index);
  while (in.lex.TryChar(',')) {
    double value;
    if (!in.Key(&key) || !in.lex.Number(&value)) return false;
    hlo_pb::Statistic* s = p->add_statistics();
    s->set_stat_name(std::string(key));
    s->set_stat_val(value);
  }
  return in.lex.Expect('}') && in.End();
}

std::string AccuracyText(const hlo_pb::ResultAccuracy& p) {
  if (p.has_tolerance()) {
    const auto& t = p.tolerance();
    return absl::StrCat("{tolerance={atol=", NumberText(t.atol()), ",rtol=", NumberText(t.rtol()),
                        ",ulps=", t.ulps(), "}}");
  }
  return p.mode() == 1 ? "{mode=highest}" : "";
}

bool ParseAccuracy(absl::string_view text, hlo_pb::ResultAccuracy* p) {
  Input in(text);
  absl::string_view key, word;
  if (!in.lex.Expect('{') || !in.Key(&key)) return false;
  if (key == "mode") {
    if (!in.lex.Identifier("a mode", &word) || (word != "default" && word != "highest")) {
      return false;
    }
    p->set_mode(word == "highest");
  } else if (key != "tolerance" || !in.lex.Expect('{')) {
    return false;
  } else {
    hlo_pb::ResultAccuracyTolerance* t = p->mutable_tolerance();
    do {
      double number = 0;
      int64_t ulps = 0;
      if (!in.Key(&key)) return false;
      if (key == "ulps" ? !in.lex.Integer(&ulps) : !in.lex.Number(&number)) return false;
      if (key == "ulps") {
        t->set_ulps(ulps);
      } else if (key == "atol") {
        t->set_atol(number);
      } else if (key == "rtol") {
        t->set_rtol(number);
      } else {
        return false;
      }
    } while (in.lex.TryChar(','));
    if (!in.lex.Expect('}')) return false;
  }
  return in.lex.Expect('}') && in.End();
}

std::string SparsityText(const hlo_pb::SparsityConfig& p) {
  std::string out;
  const auto side = [&](const char* name, const hlo_pb::SparsityConfigTensorSparsityConfig& s) {
    absl::StrAppend(&out, out.empty() ? "{" : " ", name, "={sparsity=", s.num_non_zero(), "x",
                    s.block_size(), " dimension=", s.dimension(), " stride=", s.stride());
    if (s.idx() != 0) absl::StrAppend(&out, " idx=", s.idx());
    out += "}";
  };
  if (p.has_lhs()) side("lhs", p.lhs());
  if (p.has_rhs()) side("rhs", p.rhs());
  return out.empty() ? out : out + "}";
}

bool ParseSparsity(absl::string_view text, hlo_pb::SparsityConfig* p) {
  Input in(text);
  if (!in.lex.Expect('{')) return false;
  absl::string_view key;
  while (in.lex.Peek() != '}') {
    if (!in.Key(&key) || (key != "lhs" && key != "rhs") || !in.lex.Expect('{')) return false;
    auto* s = key == "lhs" ? p->mutable_lhs() : p->mutable_rhs();
    while (in.lex.Peek() != '}') {
      int64_t value;
      if (!in.Key(&key) || !in.lex.Integer(&value)) return false;
      if (key == "sparsity") {
        s->set_num_non_zero(value);
        // The lexer takes `1x4` as one word, so the part after the number is read here.
        if (*in.lex.at() != 'x') return false;
        in.lex.set_at(in.lex.at() + 1);
        if (!in.lex.Integer(&value)) return false;
        s->set_block_size(value);
      } else if (key == "dimension") {
        s->set_dimension(value);
      } else if (key == "stride") {
        s->set_stride(value);
      } else if (key == "idx") {
        s->set_idx(static_cast<int32_t>(value));
      } else {
        return false;
      }
    }
    if (!in.lex.Expect('}')) return false;
  }
  return in.lex.Expect('}') && in.End();
}

std::string OriginalArrayText(const hlo_pb::OriginalArrayProto& p) {
  std::string out = absl::StrCat("{", StringText(p.instruction_name()));
  if (p.shape_index_size() > 0) absl::StrAppend(&out, " ", IndexText(p.shape_index()));
  return out + "}";
}

std::string OriginText(const hlo_pb::OriginalValueProto& p, const Shape& shape) {
  if (p.is_synthetic_call()) return "{[synthetic_call]}";
  std::vector<int64_t> at;
  if (p.elements_size() == 0) return "{()}";
  std::string out = "{";
  // Elements come in the order of the leaves; the few that do not are searched for.
  int next = 0;
  const auto find = [&]() -> const hlo_pb::OriginalValueElementProto* {
    for (int tries = 0; tries < p.elements_size(); ++tries) {
      const auto& e = p.elements((next + tries) % p.elements_size());
      if (absl::MakeConstSpan(e.shape_index().data(), e.shape_index_size()) !=
          absl::MakeConstSpan(at)) {
        continue;
      }
      next = (next + tries + 1) % p.elements_size();
      return &e;
    }
    return nullptr;
  };
  const std::function<void(const Shape&)> node = [&](const Shape& s) {
    if (s.IsTuple()) {
      out.push_back('(');
      for (size_t k = 0; k < s.tuple().size(); ++k) {
        if (k > 0) out += ", ";
        at.push_back(static_cast<int64_t>(k));
        node(*s.tuple()[k]);
        at.pop_back();
      }
      out.push_back(')');
      return;
    }
    const auto* e = find();
    out += e != nullptr && e->has_original_array() ? OriginalArrayText(e->original_array()) : "{}";
  };
  node(shape);
  return out + "}";
}

bool ParseOrigin(absl::string_view text, hlo_pb::OriginalValueProto* p) {
  Input in(text);
  if (!in.lex.Expect('{')) return false;
  if (in.lex.TryChar('[')) {
    p->set_is_synthetic_call(true);
    return in.lex.TryWord("synthetic_call") && in.lex.Expect(']') && in.lex.Expect('}') && in.End();
  }
  if (in.lex.Peek() == '}') return in.lex.Expect('}') && in.End();
  std::vector<int64_t> at;  // the path; one entry per open parenthesis
  while (true) {
    if (in.lex.TryChar('(')) {
      at.push_back(0);
      if (in.lex.Peek() != ')') continue;
    } else {
      hlo_pb::OriginalValueElementProto* e = p->add_elements();
      e->mutable_shape_index()->Add(at.begin(), at.end());
      hlo_pb::OriginalArrayProto array;
      bool named;
      if (!ParseArray(in, &array, &named)) return false;
      if (named) *e->mutable_original_array() = std::move(array);
    }
    while (!at.empty() && in.lex.TryChar(')')) at.pop_back();
    if (at.empty()) return in.lex.Expect('}') && in.End();
    if (!in.lex.Expect(',')) return false;
    ++at.back();
  }
}

std::string MetadataText(const hlo_pb::OpMetadata& p) {
  std::string out = "{";
  const auto text = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    absl::StrAppend(&out, out.size() > 1 ? " " : "", name, "=", StringText(value));
  };
  const auto number = [&](const char* name, int64_t value) {
    if (value != 0) absl::StrAppend(&out, out.size() > 1 ? " " : "", name, "=", value);
  };
  text("op_type", p.op_type());
  text("op_name", p.op_name());
  text("source_file", p.source_file());
  number("source_line", p.source_line());
  number("source_end_line", p.source_end_line());
  number("source_column", p.source_column());
  number("source_end_column", p.source_end_column());
  if (p.profile_type_size() > 0) {
    absl::StrAppend(&out, out.size() > 1 ? " " : "", "profile_type=", IndexText(p.profile_type()));
  }
  text("deduplicated_name", p.deduplicated_name());
  text("scheduling_name", p.scheduling_name());
  number("stack_frame_id", p.stack_frame_id());
  text("metadata_payload", p.metadata_payload().value());
  return out + "}";
}

bool ParseMetadata(absl::string_view text, hlo_pb::OpMetadata* p) {
  Input in(text);
  if (!in.lex.Expect('{')) return false;
  bool first = true;
  while (in.lex.Peek() != '}') {
    if (!first) in.lex.TryChar(',');
    first = false;
    absl::string_view key;
    if (!in.Key(&key)) return false;
    std::string* word = key == "op_type"             ? p->mutable_op_type()
                        : key == "op_name"           ? p->mutable_op_name()
                        : key == "source_file"       ? p->mutable_source_file()
                        : key == "deduplicated_name" ? p->mutable_deduplicated_name()
                        : key == "scheduling_name"   ? p->mutable_scheduling_name()
                        : key == "metadata_payload" ? p->mutable_metadata_payload()->mutable_value()
                                                    : nullptr;
    if (word != nullptr) {
      if (!in.Text(word)) return false;
      continue;
    }
    if (key == "profile_type") {
      std::vector<int64_t> ints;
      if (!in.lex.IntList(&ints)) return false;
      for (int64_t v : ints) p->add_profile_type(static_cast<int32_t>(v));
      continue;
    }
    int64_t value;
    if (!in.lex.Integer(&value) || value < INT32_MIN || value > INT32_MAX) return false;
    const auto number = static_cast<int32_t>(value);
    if (key == "source_line") {
      p->set_source_line(number);
    } else if (key == "source_end_line") {
      p->set_source_end_line(number);
    } else if (key == "source_column") {
      p->set_source_column(number);
    } else if (key == "source_end_column") {
      p->set_source_end_column(number);
    } else if (key == "stack_frame_id") {
      p->set_stack_frame_id(number);
    } else {
      return false;
    }
  }
  return in.lex.Expect('}') && in.End();
}

bool ParseAliasing(absl::string_view text,
                   google::protobuf::RepeatedPtrField<hlo_pb::OutputOperandAliasing>* out) {
  Input in(text);
  if (!in.lex.Expect('{')) return false;
  do {
    hlo_pb::OutputOperandAliasing* a = out->Add();
    int64_t operand;
    if (!ParseIndex(in.lex, a->mutable_output_shape_index()) || !in.lex.Expect(':') ||
        !in.lex.Expect('(') || !in.lex.NonNegative(&operand) || !in.lex.Expect(',') ||
        !ParseIndex(in.lex, a->mutable_operand_shape_index()) || !in.lex.Expect(')')) {
      return false;
    }
    a->set_operand_index(operand);
  } while (in.lex.TryChar(','));
  return in.lex.Expect('}') && in.End();
}

bool ParseRecoveryTable(
    absl::string_view text, hlo_pb::OriginalValueRecoveryTableProto* p,
    const std::function<bool(const std::string& module, hlo_pb::HloModuleProto*)>& read) {
  Input in(text);
  if (!in.lex.Expect('{')) return false;
  while (in.lex.Peek() != '}') {
    auto* e = p->add_entries();
    bool named;
    if (!ParseArray(in, e->mutable_old_original_array(), &named) || !in.lex.Expect(':') ||
        !ParseArray(in, e->mutable_new_original_array(), &named)) {
      return false;
    }
    if (!in.lex.TryChar(',')) continue;
    std::string module;
    if (!in.Text(&module) || !read(module, e->mutable_recovery_module())) return false;
  }
  return in.lex.Expect('}') && in.End();
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
