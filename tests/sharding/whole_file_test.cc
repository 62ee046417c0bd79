// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/whole_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

namespace fs = std::filesystem;

class WholeFile : public ::testing::Test {
 protected:
  WholeFile() {
    std::string folder = (fs::temp_directory_path() / "whole_file.XXXXXX").string();
    if (mkdtemp(folder.data()) != nullptr) folder_ = folder;
  }
  ~WholeFile() override { fs::remove_all(folder_); }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }
  int Entries() const {
    int n = 0;
    for (fs::directory_iterator it(folder_), end; it != end; ++it) ++n;
    return n;
  }
  static mode_t Mode(const std::string& path) {
    struct stat info = {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }

  std::string folder_;
};

TEST_F(WholeFile, AFileKeepsItsModeAndANewOneHasThatOfTheUmask) {
  const mode_t before = umask(027);
  ASSERT_TRUE(WriteWholeFile(Path("new"), "a").ok());
  umask(before);
  EXPECT_EQ(Mode(Path("new")), mode_t{0640});
  for (const mode_t mode : {mode_t{0600}, mode_t{0664}, mode_t{0755}, mode_t{02770}}) {
    ASSERT_EQ(chmod(Path("new").c_str(), mode), 0);
    ASSERT_TRUE(WriteWholeFile(Path("new"), "b").ok());
    EXPECT_EQ(Mode(Path("new")), mode);
  }
  EXPECT_EQ(*ReadWholeFile(Path("new")), "b");
}

TEST_F(WholeFile, OwnerAndGroupStayWhereTheUserMayGiveFilesAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give files to others";
  constexpr uid_t kOwner = 12345, kGroup = 23456;
  ASSERT_TRUE(WriteWholeFile(Path("owned"), "a").ok());
  if (chown(Path("owned").c_str(), kOwner, kGroup) != 0) GTEST_SKIP() << "no such owners here";
  ASSERT_TRUE(WriteWholeFile(Path("owned"), "b").ok());
  struct stat info = {};
  ASSERT_EQ(stat(Path("owned").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kOwner);
  EXPECT_EQ(info.st_gid, kGroup);
}

TEST_F(WholeFile, LinksStayAndTheFileTheyLeadToIsReplacedOrMade) {
  fs::create_directory(Path("there"));
  ASSERT_TRUE(WriteWholeFile(Path("there/file"), "before").ok());
  fs::create_symlink("there/file", Path("one"));  // seen from the link's folder
  fs::create_symlink(Path("one"), Path("two"));
  ASSERT_TRUE(WriteWholeFile(Path("two"), "after").ok());
  EXPECT_EQ(*ReadWholeFile(Path("there/file")), "after");
  EXPECT_TRUE(fs::is_symlink(Path("one")) && fs::is_symlink(Path("two")));
  fs::create_symlink("there/missing", Path("dangling"));
  ASSERT_TRUE(WriteWholeFile(Path("dangling"), "made").ok());
  EXPECT_EQ(*ReadWholeFile(Path("there/missing")), "made");
  EXPECT_TRUE(fs::is_symlink(Path("dangling")));
}

TEST_F(WholeFile, WhatCannotBeWrittenSaysWhyAndLeavesNothing) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  fs::create_symlink("no/folder/file", Path("c"));
  fs::create_directory(Path("d"));
  for (const auto& [name, why] : std::vector<std::pair<std::string, std::string>>{
           {"a", "symbolic links"}, {"c", "No such file"}, {"d", "Is a directory"}}) {
    const absl::Status status = WriteWholeFile(Path(name), "x");
    EXPECT_EQ(DiagnosticCode(status), "E061");
    EXPECT_NE(status.message().find(why), absl::string_view::npos) << status;
  }
  EXPECT_EQ(Entries(), 4);
}

TEST_F(WholeFile, AFileThatMayNotBeWrittenIsNotReplaced) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write to every file";
  ASSERT_TRUE(WriteWholeFile(Path("kept"), "before").ok());
  ASSERT_EQ(chmod(Path("kept").c_str(), 0444), 0);
  EXPECT_EQ(DiagnosticCode(WriteWholeFile(Path("kept"), "after")), "E061");
  EXPECT_EQ(*ReadWholeFile(Path("kept")), "before");
}

TEST_F(WholeFile, AnErrorOfTheWriterLeavesTheOldFile) {
  ASSERT_TRUE(WriteWholeFile(Path("file"), "before").ok());
  const absl::Status status = ReplaceFile(Path("file"), [](int file) {
    EXPECT_TRUE(WriteAll(file, "half"));
    return absl::AbortedError("stop");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(*ReadWholeFile(Path("file")), "before");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(WholeFile, NamesAsLongAsFileSystemsAllowCanBeWritten) {
  const std::string longest(255, 'n');
  ASSERT_TRUE(WriteWholeFile(Path(longest), "a").ok());
  EXPECT_EQ(*ReadWholeFile(Path(longest)), "a");
}

TEST_F(WholeFile, ASignalThatEndsTheProcessLeavesTheOldFileAloneAndNoPart) {
  ASSERT_TRUE(WriteWholeFile(Path("file"), "before").ok());
  for (const int signal_number : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE}) {
    const pid_t child = fork();
    if (child == 0) {
      RemovePartFilesOnSignals();
      (void)ReplaceFile(Path("file"), [&](int file) {
        if (Entries() != 2 || !WriteAll(file, "half")) _exit(1);
        raise(signal_number);
        return absl::OkStatus();
      });
      _exit(2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal_number) << status;
    EXPECT_EQ(*ReadWholeFile(Path("file")), "before");
    EXPECT_EQ(Entries(), 1) << signal_number;
  }
}

TEST_F(WholeFile, ASignalThatIsIgnoredStaysIgnored) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGHUP, SIG_IGN);  // as under nohup
    RemovePartFilesOnSignals();
    const absl::Status status = ReplaceFile(Path("file"), [&](int file) {
      raise(SIGHUP);
      return WriteAll(file, "whole") ? absl::OkStatus() : absl::DataLossError("");
    });
    _exit(status.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(*ReadWholeFile(Path("file")), "whole");
}

TEST_F(WholeFile, AForkedChildThatEndsLeavesTheFilesOfItsParent) {
  const absl::Status status = ReplaceFile(Path("file"), [&](int file) {
    const pid_t child = fork();
    if (child == 0) {
      RemovePartFilesOnSignals();
      raise(SIGTERM);
    }
    int ended = 0;
    EXPECT_EQ(waitpid(child, &ended, 0), child);
    return WriteAll(file, "whole") ? absl::OkStatus() : absl::DataLossError("");
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadWholeFile(Path("file")), "whole");
}

TEST_F(WholeFile, ThreadsThatWriteOneFileLeaveOneOfTheirTexts) {
  constexpr int kThreads = 8, kTimes = 50;
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] {
      for (int i = 0; i < kTimes; ++i) {
        EXPECT_TRUE(
            WriteWholeFile(Path("file"), std::string(1000, static_cast<char>('a' + k))).ok());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const std::string text = *ReadWholeFile(Path("file"));
  EXPECT_EQ(text, std::string(1000, text[0]));
  EXPECT_EQ(Entries(), 1);
}

}  // namespace
}  // namespace shardcall
