#include "tuner-service/cli/socket_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace jizi::tuner {
namespace {

namespace fs = std::filesystem;

class SocketFolders : public ::testing::Test {
 protected:
  SocketFolders() {
    char path[] = "/tmp/jizi-sockets-XXXXXX";
    root_ = mkdtemp(path);
  }
  ~SocketFolders() override {
    for (const int fd : open_) close(fd);
    fs::remove_all(root_);
  }

  // As an owner that was killed an hour ago left it.
  std::string LeftOver(const std::string& name) {
    const std::string folder = root_ + "/" + name;
    EXPECT_EQ(mkdir(folder.c_str(), 0700), 0);
    close(Bound(folder + "/socket"));
    Age(folder);
    return folder;
  }
  int Bound(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  static void Age(const std::string& folder) {
    fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }

  std::string root_;
  std::vector<int> open_;
};

TEST_F(SocketFolders, ThoseOfDeadOwnersAreRemoved) {
  const std::string a = LeftOver("jizi-aaaaaa");
  const std::string b = LeftOver("jizi-bbbbbb");
  EXPECT_EQ(RemoveLeftOverSocketFolders(root_), 2);
  EXPECT_FALSE(fs::exists(a) || fs::exists(b));
}

TEST_F(SocketFolders, WhatMayBeSomebodysIsLeft) {
  const std::string listening = root_ + "/jizi-listen";
  mkdir(listening.c_str(), 0700);
  open_.push_back(Bound(listening + "/socket"));
  ASSERT_EQ(listen(open_.back(), 1), 0);
  Age(listening);
  const std::string locked = LeftOver("jizi-locked");  // Its owner is about to listen, or stopped.
  open_.push_back(open(locked.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(open_.back(), LOCK_EX), 0);
  const std::string young = LeftOver("jizi-young1");
  fs::last_write_time(young, fs::file_time_type::clock::now());
  const std::string full = LeftOver("jizi-others");
  std::ofstream(full + "/notes") << "mine";
  Age(full);
  const std::string open_to_all = LeftOver("jizi-public");
  chmod(open_to_all.c_str(), 0755);
  const std::string another_name = LeftOver("jizi-another");
  EXPECT_EQ(RemoveLeftOverSocketFolders(root_), 0);
  for (const auto& folder : {listening, locked, young, full, open_to_all, another_name})
    EXPECT_TRUE(fs::exists(folder + "/socket")) << folder;
}

TEST_F(SocketFolders, AFolderGoesWithItsOwner) {
  auto made = SocketFolder::Make();
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string folder = fs::path((*made)->address().substr(5)).parent_path();
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  made->reset();
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace jizi::tuner
