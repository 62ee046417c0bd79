// SPDX-License-Identifier: Apache-2.0
// Files are read whole, within a limit.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
namespace {

class MaxInput : public testing::Test {
 protected:
  MaxInput()
      : path_((std::filesystem::path(testing::TempDir()) /
               absl::StrCat("max_input_", std::random_device{}()))
                  .string()) {}
  ~MaxInput() override { std::filesystem::remove(path_); }
  std::string CodeOf(int64_t max_input) const {
    return std::string(DiagnosticCode(internal::ReadWholeFile(path_, max_input).status()));
  }

  const std::string path_;
};

TEST_F(MaxInput, AFileHasAtMostTheBytesOfTheLimit) {
  const std::string text(3 << 20, 'x');
  std::ofstream(path_) << text;
  EXPECT_EQ(internal::ReadWholeFile(path_).value(), text);
  EXPECT_EQ(internal::ReadWholeFile(path_, 3 << 20).value(), text);
  EXPECT_EQ(CodeOf((3 << 20) - 1), "E064");
  EXPECT_EQ(CodeOf(0), "E064");
  std::ofstream(path_).close();
  EXPECT_EQ(internal::ReadWholeFile(path_, 0).value(), "");
}

TEST_F(MaxInput, SparseRoomIsRefusedBeforeItIsRead) {
  std::ofstream(path_).close();
  std::filesystem::resize_file(path_, uint64_t{100} << 30);
  EXPECT_EQ(CodeOf(kMaxInput), "E064");
}

// Its length is known at its end only.
TEST_F(MaxInput, APipeIsReadUpToTheLimit) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  for (const bool enough : {true, false}) {
    std::thread writer([this] { std::ofstream(path_) << std::string(1000, 'x'); });
    const auto read = internal::ReadWholeFile(path_, enough ? 1000 : 999);
    writer.join();
    EXPECT_EQ(read.ok() ? "" : std::string(DiagnosticCode(read.status())), enough ? "" : "E064");
  }
}

TEST_F(MaxInput, WhatIsNoFileIsToldAsSuch) {
  EXPECT_EQ(CodeOf(100), "E060");
  std::filesystem::create_directory(path_);
  EXPECT_EQ(CodeOf(0), "E060");
}

TEST(Bytes, HaveUnitsOf1000AndOf1024) {
  EXPECT_EQ(ParseBytes("12"), 12);
  EXPECT_EQ(ParseBytes("12B"), 12);
  EXPECT_EQ(ParseBytes("1.5 KiB"), 1536);
  EXPECT_EQ(ParseBytes("2MB"), 2e6);
  EXPECT_EQ(ParseBytes("4GiB"), 4.0 * (1 << 30));
  for (const char* text : {"", "B", "GiB", "-1", "nan", "1 GIB", "4Gi", "1e999x"}) {
    EXPECT_FALSE(ParseBytes(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace shardcall
