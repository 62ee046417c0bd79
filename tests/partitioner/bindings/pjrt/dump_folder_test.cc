// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/dump_folder.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

namespace fs = std::filesystem;

// A folder in which folders are abandoned.
class Abandoned : public testing::Test {
 protected:
  Abandoned() {
    std::string path = (fs::temp_directory_path() / "dump_folder_test.XXXXXX").string();
    parent_ = mkdtemp(path.data());
  }
  ~Abandoned() override { fs::remove_all(parent_); }

  fs::path Make(const std::string& name) {
    const fs::path path = parent_ / name;
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path / "module.hlo.pb") << "x";
    return path;
  }
  static void MakeOld(const fs::path& path) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  void DeleteAbandoned() { DumpFolder::DeleteAbandoned(parent_.string()); }

  fs::path parent_;
};

TEST_F(Abandoned, OldFoldersOfNobodyAreDeleted) {
  const fs::path old = Make("shardcall.hlo.abc123");
  MakeOld(old);
  DeleteAbandoned();
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(Abandoned, YoungOnesStay) {
  const fs::path young = Make("shardcall.hlo.abc123");
  DeleteAbandoned();
  EXPECT_TRUE(fs::exists(young / "module.hlo.pb"));
}

TEST_F(Abandoned, WhatWeWouldNotHaveMadeSoStays) {
  const fs::path other = Make("shardcall.report"), target = Make("target");
  const fs::path open_to_all = Make("shardcall.hlo.abc124");
  fs::permissions(open_to_all, fs::perms::all);
  MakeOld(other);
  MakeOld(open_to_all);
  MakeOld(target);
  fs::create_directory_symlink(target, parent_ / "shardcall.hlo.abc123");
  DeleteAbandoned();
  EXPECT_TRUE(fs::exists(other / "module.hlo.pb"));
  EXPECT_TRUE(fs::exists(open_to_all / "module.hlo.pb"));
  EXPECT_TRUE(fs::exists(target / "module.hlo.pb"));
}

TEST_F(Abandoned, ThoseOfOtherUsersStay) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const fs::path other = Make("shardcall.hlo.abc123");
  ASSERT_EQ(chown(other.c_str(), 65534, 65534), 0);
  MakeOld(other);
  DeleteAbandoned();
  EXPECT_TRUE(fs::exists(other / "module.hlo.pb"));
}

TEST_F(Abandoned, OneIsHeldUntilItsProcessEndsHoweverThatEnds) {
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto folder = DumpFolder::Create();
    const std::string path = folder.ok() ? folder->path() : "";
    if (write(said[1], path.c_str(), path.size() + 1) < 0) _exit(1);
    for (;;) pause();
  }
  close(said[1]);
  std::string path;
  for (char c = 0; read(said[0], &c, 1) == 1 && c != 0;) path += c;
  close(said[0]);
  ASSERT_TRUE(fs::is_directory(path)) << path;
  MakeOld(path);
  const std::string parent = fs::path(path).parent_path().string();
  DumpFolder::DeleteAbandoned(parent);
  EXPECT_TRUE(fs::exists(path));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(path));
  DumpFolder::DeleteAbandoned(parent);
  EXPECT_FALSE(fs::exists(path));
}

TEST(DumpFolder, GoesWithItsOwnerAlone) {
  auto folder = DumpFolder::Create();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string path = folder->path();
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  {
    const DumpFolder moved = *std::move(folder);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
