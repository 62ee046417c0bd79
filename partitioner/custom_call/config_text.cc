// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/config_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace shardcall {

absl::string_view AttributeText(absl::string_view dictionary, absl::string_view key) {
  for (size_t at = dictionary.find(key); at != absl::string_view::npos;
       at = dictionary.find(key, at + 1)) {
    const char before = at == 0 ? '{' : dictionary[at - 1];
    absl::string_view rest = dictionary.substr(at + key.size());
    if ((before == '{' || before == ' ' || before == ',') && absl::ConsumePrefix(&rest, " = ")) {
      return rest;
    }
  }
  return {};
}

bool AttributeInts(absl::string_view dictionary, absl::string_view key, std::vector<int64_t>* out) {
  absl::string_view text = AttributeText(dictionary, key);
  if (absl::ConsumePrefix(&text, "dense<")) {
    text = text.substr(0, text.find('>'));
  } else if (absl::ConsumePrefix(&text, "array<")) {
    text = text.substr(0, text.find('>'));
    text = text.substr(text.find(':') == text.npos ? 0 : text.find(':') + 1);
  } else {
    text = text.substr(0, text.find_first_of(":,}"));
  }
  out->clear();
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(",[]"))) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    int64_t value = 0;
    if (!absl::SimpleAtoi(part, &value)) return false;
    out->push_back(value);
  }
  return !out->empty();
}

}  // namespace shardcall
