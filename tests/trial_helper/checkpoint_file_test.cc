#include "trial-helper/checkpoint_file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace jizi::helper {
namespace {

namespace fs = std::filesystem;

class CheckpointFile : public ::testing::Test {
 protected:
  CheckpointFile() {
    char name[] = "/tmp/jizi-checkpoint-XXXXXX";
    root_ = mkdtemp(name);
    folder_ = root_ + "/000001";
    fs::create_directories(folder_);
  }
  ~CheckpointFile() override { fs::remove_all(root_); }

  static void Put(const std::string& path, const std::string& content) {
    std::ofstream(path) << content;
  }
  size_t Files() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ + "/checkpoints")) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }
  StatusOr<v1::Checkpoint> Write(int64_t step, const std::string& content) {
    return WriteCheckpoint(folder_, step, 1, [&](const std::string& path) { Put(path, content); });
  }

  std::string root_;
  std::string folder_;
};

TEST_F(CheckpointFile, DigestAndSizeAreThoseOfTheContent) {
  const auto checkpoint = Write(3, "abc");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  // FIPS 180-4's example.
  EXPECT_EQ(checkpoint->sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(checkpoint->bytes(), 3);
  EXPECT_EQ(checkpoint->step(), 3);
  EXPECT_TRUE(checkpoint->path().starts_with("checkpoints/"));
  EXPECT_TRUE(fs::exists(folder_ + "/" + checkpoint->path()));
  EXPECT_TRUE(VerifyCheckpoint(folder_, *checkpoint).ok());
}

TEST_F(CheckpointFile, TheSameStepAgainKeepsTheRegisteredFile) {
  const auto first = Write(3, "abc");
  const auto second = Write(3, "other");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->path(), second->path());
  EXPECT_TRUE(VerifyCheckpoint(folder_, *first).ok());
  EXPECT_TRUE(VerifyCheckpoint(folder_, *second).ok());
}

TEST_F(CheckpointFile, AWriterThatThrowsLeavesNoFile) {
  const auto result = WriteCheckpoint(folder_, 1, 1, [](const std::string& path) {
    Put(path, "half");
    throw std::runtime_error("no space left");
  });
  EXPECT_FALSE(result.ok());
  EXPECT_NE(std::string(result.status().message()).find("no space left"), std::string::npos);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(CheckpointFile, AnEmptyOrMissingFileIsNoCheckpoint) {
  EXPECT_FALSE(Write(1, "").ok());
  EXPECT_FALSE(WriteCheckpoint(folder_, 1, 1, [](const std::string&) {}).ok());
  EXPECT_FALSE(WriteCheckpoint(folder_, 1, 1, [](const std::string& path) {
                 mkdir(path.c_str(), 0700);
               }).ok());
  EXPECT_EQ(Files(), 0u);
}

TEST_F(CheckpointFile, Contract26PathsOutsideTheFolderAreRefused) {
  Put(root_ + "/secret", "secret");
  for (const std::string& path :
       {std::string("../secret"), root_ + "/secret", std::string("a/../../secret"), std::string(""),
        std::string("."), std::string("/")}) {
    const auto result = AdoptCheckpoint(folder_, 1, path);
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument) << path;
  }
}

TEST_F(CheckpointFile, Contract26LinksAreRefused) {
  Put(root_ + "/secret", "secret");
  fs::create_symlink(root_ + "/secret", folder_ + "/link");
  fs::create_directory_symlink(root_, folder_ + "/folder");
  EXPECT_EQ(AdoptCheckpoint(folder_, 1, "link").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(AdoptCheckpoint(folder_, 1, "folder/secret").status().code(),
            StatusCode::kInvalidArgument);
  // Nor does a writer reach through one.
  fs::create_directory_symlink(root_, folder_ + "/checkpoints");
  EXPECT_FALSE(Write(1, "abc").ok());
}

TEST_F(CheckpointFile, AFileOfTheProgramIsRegisteredByEitherPath) {
  fs::create_directories(folder_ + "/a/b");
  Put(folder_ + "/a/b/model.pt", "abc");
  for (const std::string& path : {std::string("a/b/model.pt"), folder_ + "/a/b/model.pt"}) {
    const auto checkpoint = AdoptCheckpoint(folder_, 2, path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->path(), "a/b/model.pt");
    EXPECT_EQ(checkpoint->bytes(), 3);
  }
}

TEST_F(CheckpointFile, ANameThatTheServiceCannotBeToldIsRefused) {
  Put(folder_ + "/caf\xE9", "abc");
  EXPECT_EQ(DetailOf(AdoptCheckpoint(folder_, 2, "caf\xE9").status()).code, "NO_UTF8");
}

TEST_F(CheckpointFile, AChangedFileIsNotTheCheckpoint) {
  const auto checkpoint = Write(3, "abc");
  ASSERT_TRUE(checkpoint.ok());
  Put(folder_ + "/" + checkpoint->path(), "abd");
  EXPECT_EQ(DetailOf(VerifyCheckpoint(folder_, *checkpoint).status()).code, "CHECKPOINT_CHANGED");
  fs::remove(folder_ + "/" + checkpoint->path());
  EXPECT_EQ(VerifyCheckpoint(folder_, *checkpoint).status().code(), StatusCode::kNotFound);
}

TEST_F(CheckpointFile, APipeDoesNotHoldTheTraining) {
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(AdoptCheckpoint(folder_, 1, "pipe").ok());
}

TEST_F(CheckpointFile, AFileSystemThatCountsNoBlocksIsNotFull) {
  const std::string disk = folder_ + "/checkpoints";
  fs::create_directories(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=0") != 0) {
    GTEST_SKIP() << "a disk without a limit cannot be mounted here";
  }
  const auto saved = Write(1, "abc");
  EXPECT_TRUE(saved.ok()) << saved.status();
  umount(disk.c_str());
}

TEST_F(CheckpointFile, AFullDiskKeepsTheOlderOne) {
  const std::string disk = folder_ + "/checkpoints";
  fs::create_directories(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=65536") != 0) {
    GTEST_SKIP() << "a small disk cannot be mounted here";
  }
  const auto older = Write(1, "abc");
  // A stream that swallows ENOSPC: the file is cut off, and nobody says so.
  const auto newer = Write(2, std::string(1 << 20, 'x'));
  EXPECT_TRUE(older.ok());
  EXPECT_EQ(newer.status().code(), StatusCode::kResourceExhausted) << newer.status();
  if (older.ok()) {
    EXPECT_TRUE(VerifyCheckpoint(folder_, *older).ok());
  }
  EXPECT_EQ(Files(), 1u);
  umount(disk.c_str());
}

}  // namespace
}  // namespace jizi::helper
