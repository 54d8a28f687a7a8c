#include "proto/outbox_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace jizi {
namespace {

class OutboxFileTest : public ::testing::Test {
 protected:
  OutboxFileTest() {
    char name[] = "/tmp/jizi-outbox-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/outbox";
  }
  ~OutboxFileTest() override { std::filesystem::remove_all(folder_); }

  static v1::ReportRequest Request(int64_t sequence) {
    v1::ReportRequest request;
    request.mutable_lease()->set_study("study");
    request.set_sequence(sequence);
    request.add_measurements()->set_step(sequence * 10);
    return request;
  }
  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  std::vector<int64_t> Sequences(OutboxEnd* end = nullptr) {
    std::vector<int64_t> sequences;
    const auto read = ForEachReport(path_, [&](const v1::ReportRequest& request) {
      sequences.push_back(request.sequence());
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok());
    if (end != nullptr) *end = *read;
    return sequences;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(OutboxFileTest, EveryWholeReportIsReadInOrderAndATornTailEndsTheFile) {
  const v1::ReportRequest requests[] = {Request(1), Request(2), Request(3)};
  const std::string bytes = OutboxBytes({&requests[0], &requests[1], &requests[2]});
  const size_t each = bytes.size() / 3;
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Write(bytes.substr(0, cut));
    OutboxEnd end;
    EXPECT_EQ(Sequences(&end).size(), cut / each) << cut;
    EXPECT_EQ(end.torn, cut % each != 0) << cut;
    EXPECT_EQ(end.whole_bytes, static_cast<int64_t>(cut / each * each)) << cut;
  }
  EXPECT_EQ(Sequences(), (std::vector<int64_t>{1, 2, 3}));
}

TEST_F(OutboxFileTest, AnErrorOfTheReaderEndsTheReading) {
  const v1::ReportRequest requests[] = {Request(1), Request(2)};
  Write(OutboxBytes({&requests[0], &requests[1]}));
  int seen = 0;
  const auto read = ForEachReport(path_, [&](const v1::ReportRequest&) {
    ++seen;
    return Status(StatusCode::kUnavailable, "the service is away");
  });
  EXPECT_EQ(read.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(seen, 1);
}

TEST_F(OutboxFileTest, WhatIsNoOrdinaryFileReadsAsEmptyAndHoldsNobody) {
  EXPECT_TRUE(Sequences().empty());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(Sequences().empty());
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/etc/passwd", path_);
  EXPECT_TRUE(Sequences().empty());
}

}  // namespace
}  // namespace jizi
