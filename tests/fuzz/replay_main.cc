// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where the compiler has none: runs a target on the kept
// inputs and on a fixed number of mutations of them, the same everywhere.
//
//   TARGET [--mutations=N] [--seed=S] [--max-length=BYTES] [--dictionary=FILE]
//          [--save=FILE] FILE_OR_FOLDER...
//
// A target ends the process where a demand is broken; the input then stands in
// the file named by --save (default: <target>.failed). One input may take 5 s of
// processor time (an input of 100 KB should take far below one).
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr double kMaxSeconds = 5;

std::string g_save = "fuzz.failed";
const std::string* g_input = nullptr;

void SaveInput(int signal) {
  if (g_input != nullptr) {
    if (std::FILE* out = std::fopen(g_save.c_str(), "wb")) {
      std::fwrite(g_input->data(), 1, g_input->size(), out);
      std::fclose(out);
      std::fprintf(stderr, "the input stands in %s\n", g_save.c_str());
    }
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(const std::string& input) {
  g_input = &input;
  const std::clock_t start = std::clock();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (seconds > kMaxSeconds) {
    std::fprintf(stderr, "one input took %.1f s\n", seconds);
    std::abort();
  }
  g_input = nullptr;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// The quoted words of a libFuzzer dictionary, one a line.
std::vector<std::string> ReadDictionary(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t begin = line.find('"'), end = line.rfind('"');
    if (line.empty() || line[0] == '#' || begin == end) continue;
    std::string word;
    for (size_t i = begin + 1; i < end; ++i) {
      if (line[i] == '\\' && i + 3 < end && line[i + 1] == 'x') {
        word.push_back(static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16)));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        word.push_back(line[i]);
      }
    }
    words.push_back(word);
  }
  return words;
}

class Mutator {
 public:
  Mutator(uint64_t seed, std::vector<std::string> words, size_t max_length)
      : random_(seed), words_(std::move(words)), max_length_(max_length) {}

  std::string Mutate(const std::vector<std::string>& seeds) {
    std::string text = seeds[Below(seeds.size())];
    if (text.size() > max_length_) {
      text = text.substr(Below(text.size() - max_length_ + 1), max_length_);
    }
    for (size_t k = 1 + Below(3); k > 0; --k) Change(&text, seeds);
    if (text.size() > max_length_) text.resize(max_length_);
    return text;
  }

 private:
  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }

  void Change(std::string* text, const std::vector<std::string>& seeds) {
    static constexpr const char* kNumbers[] = {"0",
                                               "1",
                                               "-1",
                                               "2",
                                               "3",
                                               "7",
                                               "255",
                                               "65536",
                                               "2147483647",
                                               "2147483648",
                                               "4294967296",
                                               "9223372036854775807",
                                               "-9223372036854775808",
                                               "18446744073709551615",
                                               "1000000000",
                                               "1e400"};
    const size_t at = Below(text->size() + 1);
    const size_t length = std::min(text->size() - at, 1 + Below(Below(2) != 0 ? 4 : 60));
    const std::string& other = seeds[Below(seeds.size())];
    switch (Below(16)) {
      case 0:
        if (at < text->size()) (*text)[at] = static_cast<char>(random_());
        break;
      case 1: text->erase(at, length); break;
      case 2: text->insert(Below(text->size() + 1), text->substr(at, length)); break;
      case 3:
        if (!words_.empty()) text->insert(at, words_[Below(words_.size())]);
        break;
      case 4:
        text->replace(at, length, other.substr(Below(other.size() + 1), 1 + Below(200)));
        break;
      case 5: SwapPieces(text, at, length); break;
      case 6: ReplaceNumber(text, at, kNumbers[Below(std::size(kNumbers))]); break;
      case 7: ReplaceNumber(text, at, std::to_string(Below(10)).c_str()); break;
      case 8: ReplaceNumber(text, at, std::to_string(Below(4)).c_str()); break;
      case 9: ReplaceLine(text, at, ""); break;
      case 10: ReplaceLine(text, at, WholeLine(other, Below(other.size() + 1))); break;
      case 11: InsertLine(text, at, WholeLine(other, Below(other.size() + 1))); break;
      case 12:
        if (!words_.empty()) ReplaceWord(text, at, words_[Below(words_.size())]);
        break;
      default: ReplaceWord(text, at, LikeWord(WordAt(*text, at), Below(2) != 0 ? other : *text));
    }
  }

  // A word of `text` that starts with the same kind of character, mostly: what
  // is written stays readable.
  std::string LikeWord(const std::string& word, const std::string& text) {
    auto kind = [](const std::string& w) {
      return w.empty()                                        ? 0
             : w[0] == '%'                                    ? 1
             : std::isdigit(static_cast<unsigned char>(w[0])) ? 2
                                                              : 3;
    };
    std::string found;
    for (int k = 0; k < 8; ++k) {
      found = WordAt(text, Below(text.size() + 1));
      if (kind(found) == kind(word)) break;
    }
    return found;
  }

  static bool InWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
           c == '%';
  }
  // The word at or behind `at`: [begin, end), empty at the end of the text.
  static std::pair<size_t, size_t> WordRange(const std::string& text, size_t at) {
    while (at < text.size() && !InWord(text[at])) ++at;
    size_t begin = at, end = at;
    while (begin > 0 && InWord(text[begin - 1])) --begin;
    while (end < text.size() && InWord(text[end])) ++end;
    return at == text.size() ? std::make_pair(at, at) : std::make_pair(begin, end);
  }
  static std::string WordAt(const std::string& text, size_t at) {
    const auto [begin, end] = WordRange(text, at);
    return text.substr(begin, end - begin);
  }
  static void ReplaceWord(std::string* text, size_t at, const std::string& word) {
    const auto [begin, end] = WordRange(*text, at);
    text->replace(begin, end - begin, word);
  }
  static std::pair<size_t, size_t> LineRange(const std::string& text, size_t at) {
    size_t begin = at, end = at;
    while (begin > 0 && text[begin - 1] != '\n') --begin;
    while (end < text.size() && text[end] != '\n') ++end;
    return {begin, std::min(end + 1, text.size())};
  }
  static std::string WholeLine(const std::string& text, size_t at) {
    const auto [begin, end] = LineRange(text, at);
    return text.substr(begin, end - begin);
  }
  static void ReplaceLine(std::string* text, size_t at, const std::string& line) {
    const auto [begin, end] = LineRange(*text, at);
    text->replace(begin, end - begin, line);
  }
  static void InsertLine(std::string* text, size_t at, const std::string& line) {
    text->insert(LineRange(*text, at).first, line);
  }

  // The first number behind `at`.
  static void ReplaceNumber(std::string* text, size_t at, const char* number) {
    const size_t begin = text->find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    size_t end = text->find_first_not_of("0123456789", begin);
    if (end == std::string::npos) end = text->size();
    text->replace(begin, end - begin, number);
  }

  void SwapPieces(std::string* text, size_t at, size_t length) {
    const std::string piece = text->substr(at, length);
    text->erase(at, length);
    text->insert(Below(text->size() + 1), piece);
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
  size_t max_length_;
};

void LimitMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  size_t mutations = 0, max_length = 20000;
  uint64_t seed = 1;
  std::vector<std::string> words, seeds;
  g_save = std::filesystem::path(argv[0]).filename().string() + ".failed";
  std::vector<std::filesystem::path> files;
  for (int k = 1; k < argc; ++k) {
    const std::string arg = argv[k];
    const std::string value = arg.substr(arg.find('=') + 1);
    if (arg.rfind("--mutations=", 0) == 0) {
      mutations = std::stoull(value);
    } else if (arg.rfind("--seed=", 0) == 0) {
      seed = std::stoull(value);
    } else if (arg.rfind("--max-length=", 0) == 0) {
      max_length = std::stoull(value);
    } else if (arg.rfind("--save=", 0) == 0) {
      g_save = value;
    } else if (arg.rfind("--dictionary=", 0) == 0) {
      words = ReadDictionary(value);
    } else if (std::filesystem::is_directory(arg)) {
      for (const auto& e : std::filesystem::directory_iterator(arg)) files.push_back(e.path());
    } else {
      files.push_back(arg);
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& f : files) {
    if (std::filesystem::is_regular_file(f)) seeds.push_back(ReadFile(f));
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "no inputs\n");
    return 2;
  }
  std::signal(SIGABRT, SaveInput);
  std::signal(SIGSEGV, SaveInput);
  LimitMemory();
  for (const std::string& s : seeds) Run(s);
  Mutator mutator(seed, words, max_length);
  for (size_t k = 0; k < mutations; ++k) Run(mutator.Mutate(seeds));
  std::printf("%zu inputs, %zu mutations\n", seeds.size(), mutations);
  return 0;
}
