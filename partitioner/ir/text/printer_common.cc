// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/lex/literal_text.h"
#include "shardcall/partitioner/ir/text/printer_internal.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

void Printer::ShapeText(const Shape* shape, bool with_layout) {
  Memoised(with_layout ? &shapes_ : &bare_shapes_, shape, [&] {
    if (!with_layout) {
      out_ += shape->ToString(false);
    } else {
      out_ += module_.context().WithDefaultLayout(shape)->ToString(true);
    }
  });
}

void Printer::Escaped(absl::string_view text) {
  out_.push_back('"');
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u > 0x7e || c == '"' || c == '\'' || c == '\\') {
      out_ += absl::CEscape(text);
      out_.push_back('"');
      return;
    }
  }
  out_.append(text.data(), text.size());
  out_.push_back('"');
}

void Printer::RawOrQuoted(absl::string_view text) {
  if (LexesAsRawDictionary(text)) {
    out_.append(text.data(), text.size());
  } else {
    Escaped(text);
  }
}

void Printer::ShardingText(const Instruction& i) {
  out_ += ", sharding=";
  if (!i.shape->IsTuple() || i.sharding->kind == HloSharding::Kind::kTuple) {
    Memoised(&shardings_, i.sharding, [&] { out_ += i.sharding->Print(); });
    return;
  }
  // One sharding on a tuple applies to each leaf; the empty tuple has one.
  const std::string one = i.sharding->Print();
  out_.push_back('{');
  for (int leaf = 0; leaf < std::max(i.shape->num_leaves(), 1); ++leaf) {
    if (leaf > 0) out_ += ", ";
    if (leaf > 0 && leaf % 5 == 0) absl::StrAppend(&out_, "/*index=", leaf, "*/");
    out_ += one;
  }
  out_.push_back('}');
}

void Printer::FrontendText(const FrontendAttributes& f) {
  Memoised(&frontends_, &f, [&] {
    out_ += "frontend_attributes={";
    bool first = true;
    for (const auto& [key, value] : f.entries) {
      if (!first) out_.push_back(',');
      first = false;
      out_.append(key.data(), key.size());
      out_.push_back('=');
      RawOrQuoted(value);
    }
    out_.push_back('}');
  });
}

void Printer::MetadataText(const Metadata& m) {
  const size_t begin = out_.size();
  out_ += ", metadata={";
  bool first = true;
  const auto field = [&](absl::string_view name) {
    if (!first) out_.push_back(' ');
    first = false;
    out_.append(name.data(), name.size());
  };
  const auto text = [&](absl::string_view name, absl::string_view value) {
    if (value.empty()) return;
    field(name);
    Escaped(value);
  };
  const auto number = [&](absl::string_view name, int32_t value) {
    if (value == 0) return;
    field(name);
    AppendInt(value, &out_);
  };
  text("op_type=", m.op_type);
  text("op_name=", m.op_name);
  text("source_file=", m.source_file);
  number("source_line=", m.source_line);
  number("source_end_line=", m.source_end_line);
  number("source_column=", m.source_column);
  number("source_end_column=", m.source_end_column);
  if (!m.profile_type.empty()) {
    field("profile_type=");
    IntListValue(m.profile_type);
  }
  text("deduplicated_name=", m.deduplicated_name);
  text("scheduling_name=", m.scheduling_name);
  number("stack_frame_id=", m.stack_frame_id);
  text("metadata_payload=", m.metadata_payload);
  if (first) {  // nothing is set
    out_.resize(begin);
  } else {
    out_.push_back('}');
  }
}

void Printer::CommonAttributes(const Instruction& i) {
  if (i.sharding != nullptr) ShardingText(i);
  if (i.frontend != nullptr && !i.frontend->entries.empty()) {
    out_ += ", ";
    FrontendText(*i.frontend);
  }
  const RareAttributes* rare = module_.rare(i);
  if (rare != nullptr) {
    if (!rare->control_predecessors.empty()) {
      out_ += ", control-predecessors={";
      for (size_t k = 0; k < rare->control_predecessors.size(); ++k) {
        if (k > 0) out_ += ", ";
        Name(NameOf(rare->control_predecessors[k]));
      }
      out_.push_back('}');
    }
    Word("statistics", rare->statistics);
  }
  if (i.attrs->kind == AttrKind::kResultAccuracy) {
    Word("result_accuracy", i.as<ResultAccuracyAttrs>().result_accuracy);
  } else if (rare != nullptr) {
    Word("result_accuracy", rare->result_accuracy);
  }
  if (rare != nullptr) Word("origin", rare->origin);
  if (i.metadata != nullptr && metadata_) MetadataText(*i.metadata);
  if (!i.backend_config.empty()) {
    out_ += ", backend_config=";
    RawOrQuoted(i.backend_config);
  }
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
