// SPDX-License-Identifier: Apache-2.0
// The HLO programs that tests read, from the folder in the environment variable SHARDCALL_CORPUS,
// or tests/data/hlo. A folder without programs ends the process, so that no test passes or skips
// because it found nothing to test.
#ifndef SHARDCALL_TESTS_SUPPORT_CORPUS_H_
#define SHARDCALL_TESTS_SUPPORT_CORPUS_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace shardcall {

inline std::filesystem::path CorpusFolder() {
  const char* folder = std::getenv("SHARDCALL_CORPUS");
  if (folder != nullptr && *folder != '\0') return folder;
  return std::filesystem::path(SHARDCALL_SOURCE_DIR) / "tests/data/hlo";
}

// Paths, by name, of the files whose names have this prefix and suffix.
inline std::vector<std::filesystem::path> CorpusFiles(const std::string& prefix = "",
                                                      const std::string& suffix = ".hlo") {
  std::vector<std::filesystem::path> files;
  bool any = false;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(CorpusFolder(), error)) {
    const std::string name = entry.path().filename().string();
    any = any || entry.path().extension() == ".hlo";
    if (name.rfind(prefix, 0) == 0 && name.size() >= suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
      files.push_back(entry.path());
    }
  }
  if (!any) {
    std::fprintf(stderr, "no *.hlo files in %s\n", CorpusFolder().c_str());
    std::exit(1);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_CORPUS_H_
