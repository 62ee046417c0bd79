// SPDX-License-Identifier: Apache-2.0
// The sharding texts of the corpus.
#ifndef SHARDCALL_TESTS_SHARDING_CORPUS_H_
#define SHARDCALL_TESTS_SHARDING_CORPUS_H_

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/corpus.h"

namespace shardcall {

// What stands behind `key` (up to the quote or matching brace that closes it)
// in all files; in quoted values `\"` is unescaped.
inline std::set<std::string> CorpusTexts(const std::string& key) {
  std::set<std::string> out;
  for (const std::filesystem::path& path : CorpusFiles()) {
    std::ifstream file(path);
    std::stringstream stream;
    stream << file.rdbuf();
    const std::string text = stream.str();
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      std::string value;
      size_t i = at + key.size();
      if (text[i] == '"') {
        for (++i; text[i] != '"'; ++i) {
          if (text[i] == '\\') ++i;
          value.push_back(text[i]);
        }
      } else {
        int depth = 0;
        do {
          depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
          value.push_back(text[i++]);
        } while (depth > 0);
      }
      out.insert(value);
    }
  }
  return out;
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SHARDING_CORPUS_H_
