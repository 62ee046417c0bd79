// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/common_attribute_parser.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
namespace {

// Guesses the end of a balanced `{...}`, skipping strings in double quotes; null if there is none.
// Only used to look up text that was read before: if the guess is wrong, the lookup finds nothing.
const char* GuessEnd(const char* p, const char* end) {
  int depth = 0;
  for (; p < end; ++p) {
    if (*p == '"') {
      for (++p; p < end && *p != '"'; ++p) {
        if (*p == '\\') ++p;
      }
    } else if (*p == '{') {
      ++depth;
    } else if (*p == '}' && --depth == 0) {
      return p + 1;
    }
  }
  return nullptr;
}

}  // namespace

bool CommonAttributeParser::ParseSharding(const HloSharding** out) {
  if (lex_.Peek() != '{') return lex_.FailExpected("a sharding in {}");
  const char* start = lex_.at();
  absl::string_view text;
  if (!lex_.Balanced(&text)) return false;
  const HloSharding*& found = sharding_memo_[text];
  if (found == nullptr) {
    absl::StatusOr<HloSharding> sharding = ParseHloSharding(text);
    if (!sharding.ok()) {
      // Only the first line, since Fail adds the excerpt.
      const absl::string_view message = sharding.status().message();
      return lex_.Fail(
          start, "E016",
          absl::StrCat("Invalid sharding (", message.substr(0, message.find('\n')), ")"));
    }
    found = InternHloSharding(context_, *std::move(sharding));
  }
  *out = found;
  return true;
}

// `{key="s",key={raw}}`
bool CommonAttributeParser::ParseFrontend(const FrontendAttributes** out) {
  lex_.Skip();
  const char* start = lex_.at();
  if (*start == '{') {
    if (const char* end = GuessEnd(start, lex_.end()); end != nullptr) {
      const auto it = frontend_memo_.find(absl::string_view(start, end - start));
      if (it != frontend_memo_.end()) {
        lex_.set_at(end);
        *out = it->second;
        return true;
      }
    }
  }
  if (!lex_.Expect('{')) return false;
  std::vector<std::pair<absl::string_view, absl::string_view>> entries;
  if (!lex_.TryChar('}')) {
    do {
      absl::string_view key, value;
      lex_.Skip();
      const char* at = lex_.at();
      if (!lex_.Identifier("a key", &key) || !lex_.Expect('=')) return false;
      if (lex_.Peek() == '{') {
        if (!lex_.RawDictionary(&value)) return false;
      } else {
        if (!KeptString(&value)) return false;
      }
      for (const auto& e : entries) {
        if (e.first == key) {
          return lex_.Fail(at, "E007", "A key stands twice", "", lex_.TokenAt(at));
        }
      }
      entries.push_back({key, value});
    } while (lex_.TryChar(','));
    if (!lex_.Expect('}')) return false;
  }
  *out = InternFrontendAttributes(context_, entries);
  frontend_memo_.emplace(absl::string_view(start, lex_.at() - start), *out);
  return true;
}

// Fields separated by blanks; a comma before a field is allowed.
bool CommonAttributeParser::ParseMetadata(const Metadata** out) {
  lex_.Skip();
  const char* const start = lex_.at();
  if (!last_metadata_text_.empty() &&
      absl::StartsWith(absl::string_view(start, lex_.end() - start), last_metadata_text_)) {
    lex_.set_at(start + last_metadata_text_.size());
    *out = last_metadata_;
    return true;
  }
  Metadata m;
  std::vector<int64_t> profile;
  if (!lex_.Expect('{')) return false;
  bool first = true;
  while (lex_.Peek() != '}') {
    if (!first) lex_.TryChar(',');
    first = false;
    absl::string_view key;
    lex_.Skip();
    const char* at = lex_.at();
    if (!lex_.Identifier("a metadata field or '}'", &key) || !lex_.Expect('=')) return false;
    absl::string_view* text = key == "op_name"             ? &m.op_name
                              : key == "op_type"           ? &m.op_type
                              : key == "source_file"       ? &m.source_file
                              : key == "deduplicated_name" ? &m.deduplicated_name
                              : key == "scheduling_name"   ? &m.scheduling_name
                              : key == "metadata_payload"  ? &m.metadata_payload
                                                           : nullptr;
    if (text != nullptr) {
      if (!KeptString(text)) return false;
      continue;
    }
    int32_t* number = key == "stack_frame_id"      ? &m.stack_frame_id
                      : key == "source_line"       ? &m.source_line
                      : key == "source_end_line"   ? &m.source_end_line
                      : key == "source_column"     ? &m.source_column
                      : key == "source_end_column" ? &m.source_end_column
                                                   : nullptr;
    if (number != nullptr) {
      lex_.Skip();
      const char* value_at = lex_.at();
      int64_t value;
      if (!lex_.Integer(&value)) return false;
      if (value < INT32_MIN || value > INT32_MAX) {
        return lex_.Fail(value_at, "E003", "An integer is out of range", "32 bits",
                         lex_.TokenAt(value_at));
      }
      *number = static_cast<int32_t>(value);
      continue;
    }
    if (key == "profile_type") {
      profile.clear();
      if (!lex_.IntList(&profile)) return false;
      continue;
    }
    static constexpr absl::string_view kFields[] = {
        "op_type",           "op_name",         "source_file",       "source_line",
        "source_end_line",   "source_column",   "source_end_column", "profile_type",
        "deduplicated_name", "scheduling_name", "stack_frame_id",    "metadata_payload"};
    return lex_.Fail(at, "E005", "Unknown metadata field", "a field like op_name", lex_.TokenAt(at),
                     DidYouMean(key, kFields));
  }
  lex_.Expect('}');
  m.profile_type = profile;
  // An id outside the table of frames means no frame, as in XLA.
  if (m.stack_frame_id < 0 ||
      m.stack_frame_id > static_cast<int64_t>(module_.header.stack.frames.size())) {
    m.stack_frame_id = 0;
  }
  *out = last_metadata_ = InternMetadata(context_, m);
  last_metadata_text_ = absl::string_view(start, lex_.at() - start);
  return true;
}

bool CommonAttributeParser::ParseBackendConfig(absl::string_view* out) {
  if (lex_.Peek() == '{') {
    if (!lex_.RawDictionary(out)) return false;
  } else if (!KeptString(out)) {
    return false;
  }
  *out = context_.Intern(*out);
  return true;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
