// SPDX-License-Identifier: Apache-2.0
// The sharding texts of the corpus that the environment variable
// SHARDCALL_CORPUS names; empty where it is not set.
#ifndef SHARDCALL_TESTS_SHARDING_CORPUS_H_
#define SHARDCALL_TESTS_SHARDING_CORPUS_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace shardcall {

// What stands behind `key` (up to the quote or matching brace that closes it)
// in all files; in quoted values `\"` is unescaped.
inline std::set<std::string> CorpusTexts(const std::string& key) {
  std::set<std::string> out;
  const char* corpus = std::getenv("SHARDCALL_CORPUS");
  if (corpus == nullptr || *corpus == '\0') return out;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    if (entry.path().extension() != ".hlo") continue;
    std::ifstream file(entry.path());
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
