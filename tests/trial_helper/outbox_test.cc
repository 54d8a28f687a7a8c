#include "trial-helper/outbox.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace jizi::helper {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() {
    char name[] = "/tmp/jizi-outbox-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/outbox";
  }
  ~OutboxTest() override { std::filesystem::remove_all(folder_); }

  static v1::ReportRequest Request(int64_t sequence) {
    v1::ReportRequest request;
    request.mutable_lease()->set_study("study");
    request.mutable_lease()->set_trial(1);
    request.set_sequence(sequence);
    v1::Measurement& measurement = *request.add_measurements();
    measurement.set_step(sequence * 10);
    (*measurement.mutable_metrics())["val"] = 0.5;
    return request;
  }
  void Fill(int count) {
    Outbox outbox(path_);
    for (int64_t i = 1; i <= count; ++i) {
      const v1::ReportRequest request = Request(i);
      ASSERT_TRUE(outbox.Append({&request}));
    }
  }

  std::string folder_;
  std::string path_;
};

TEST_F(OutboxTest, KeepsReportsInOrder) {
  Fill(3);
  const OutboxContent content = ReadOutbox(path_);
  EXPECT_FALSE(content.torn);
  ASSERT_EQ(content.requests.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(content.requests[static_cast<size_t>(i)].SerializeAsString(),
              Request(i + 1).SerializeAsString());
  }
  EXPECT_EQ(content.whole_bytes, static_cast<int64_t>(std::filesystem::file_size(path_)));
}

TEST_F(OutboxTest, ATornTailIsLeftOutWhereverItWasCut) {
  Fill(3);
  const auto whole = std::filesystem::file_size(path_);
  Fill(0);
  std::ifstream file(path_, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t each = whole / 3;
  for (size_t cut = 0; cut < whole; ++cut) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(cut));
    const OutboxContent content = ReadOutbox(path_);
    EXPECT_EQ(content.requests.size(), cut / each) << cut;
    EXPECT_EQ(content.torn, cut % each != 0) << cut;
    EXPECT_EQ(content.whole_bytes, static_cast<int64_t>(cut / each * each)) << cut;
  }
}

TEST_F(OutboxTest, WhatIsAppendedAfterATornTailCanBeRead) {
  Fill(2);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
  Outbox outbox(path_);
  ASSERT_EQ(outbox.found().size(), 1u);
  const v1::ReportRequest request = Request(9);
  ASSERT_TRUE(outbox.Append({&request}));
  const OutboxContent content = ReadOutbox(path_);
  EXPECT_FALSE(content.torn);
  ASSERT_EQ(content.requests.size(), 2u);
  EXPECT_EQ(content.requests[1].sequence(), 9);
}

TEST_F(OutboxTest, GarbageIsATornTail) {
  std::ofstream(path_) << std::string(4096, '\xff');
  EXPECT_TRUE(ReadOutbox(path_).requests.empty());
  EXPECT_TRUE(ReadOutbox(path_).torn);
}

TEST_F(OutboxTest, ClearAndReplace) {
  Fill(3);
  Outbox outbox(path_);
  const v1::ReportRequest request = Request(7);
  ASSERT_TRUE(outbox.Replace({&request}));
  ASSERT_EQ(ReadOutbox(path_).requests.size(), 1u);
  ASSERT_TRUE(outbox.Append({&request}));
  EXPECT_EQ(ReadOutbox(path_).requests.size(), 2u);
  outbox.Clear();
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
}

TEST_F(OutboxTest, WithoutAPathNothingIsKeptAndNothingFails) {
  Outbox outbox("");
  const v1::ReportRequest request = Request(1);
  EXPECT_TRUE(outbox.Append({&request}));
  outbox.Clear();
}

TEST_F(OutboxTest, AFileThatCannotBeWrittenIsAnErrorWithItsReason) {
  Outbox outbox(folder_ + "/none/outbox");
  const v1::ReportRequest request = Request(1);
  EXPECT_FALSE(outbox.Append({&request}));
  EXPECT_NE(outbox.error(), "");
}

TEST_F(OutboxTest, AFullDiskLeavesWhatWasThere) {
  // A device that is always full, where links would be followed they could reach it: refused too.
  std::filesystem::create_symlink("/dev/full", folder_ + "/link");
  Outbox outbox(folder_ + "/link");
  const v1::ReportRequest request = Request(1);
  EXPECT_FALSE(outbox.Append({&request}));
}

}  // namespace
}  // namespace jizi::helper
