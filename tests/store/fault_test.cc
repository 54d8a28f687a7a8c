// A disk that fails or loses power at its k-th write, for k = 1, 2, ... until none fires: what was
// acknowledged is there, and a group is there whole or not at all.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/core/machine.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/history.h"
#include "tuner-service/store/sqlite_store.h"

namespace jizi::tuner {
namespace {

using testing::CodeOf;
using testing::Fault;
using testing::FaultVfs;
using testing::PlainHistory;

// Two studies that take turns, in groups of different sizes; the ends of the groups.
struct Workload {
  std::vector<LogRecord> records;
  std::vector<size_t> ends;
};

Workload MakeWorkload() {
  Workload workload;
  const std::vector<LogRecord> a = PlainHistory(1, "a", 2, 3);
  const std::vector<LogRecord> b = PlainHistory(2, "b", 1, 2);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size()) workload.records.push_back(a[i]);
    if (i < b.size()) workload.records.push_back(b[i]);
  }
  for (size_t end = 0, size = 1; end < workload.records.size(); size = size % 7 + 2) {
    end = std::min(end + size, workload.records.size());
    workload.ends.push_back(end);
  }
  return workload;
}

class FaultTest : public ::testing::Test {
 protected:
  // A low limit, so that checkpoints are met as well.
  StatusOr<std::unique_ptr<Store>> Open() {
    SqliteOptions options;
    options.path = path_;
    options.vfs = vfs_.name();
    return OpenSqliteStore(options, WalLimits{30'000, int64_t{1} << 30});
  }

  void Fresh() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  }

  bool Holds(Store& store, size_t records) {
    const std::span<const LogRecord> prefix = std::span(workload_.records).first(records);
    std::map<StudyId, StudyData> expected;
    for (const LogRecord& record : prefix) Apply(expected[record.study], record);
    if (store.List().value().size() != expected.size()) return false;
    for (const auto& [study, state] : expected) {
      const StatusOr<StudyData> loaded = store.Load(study);
      if (!loaded.ok() || !SameDurableState(*loaded, state)) return false;
    }
    return true;
  }

  const Workload workload_ = MakeWorkload();
  testing::TemporaryFolder folder_;
  const std::string path_ = folder_.File("studies.db");
  FaultVfs vfs_;
};

TEST_F(FaultTest, APowerLossAtAnyWriteLosesNothingAcknowledgedAndTearsNoGroup) {
  bool fired = true;
  int64_t k = 0;
  while (fired) {
    ++k;
    SCOPED_TRACE(::testing::Message() << "power lost at write " << k);
    Fresh();
    vfs_.FailAt(k, Fault::kPowerLoss);
    size_t acknowledged = 0;
    size_t in_flight = 0;
    {
      StatusOr<std::unique_ptr<Store>> store = Open();
      for (size_t group = 0; store.ok() && group < workload_.ends.size(); ++group) {
        in_flight = workload_.ends[group];
        const auto records = std::span(workload_.records);
        if (!(*store)->Append(records.subspan(acknowledged, in_flight - acknowledged)).ok()) break;
        acknowledged = in_flight;
        (*store)->AfterAnswers().IgnoreError();
      }
    }
    fired = vfs_.fired();
    vfs_.Reboot(static_cast<uint64_t>(k));
    StatusOr<std::unique_ptr<Store>> reopened = Open();
    ASSERT_TRUE(reopened.ok()) << reopened.status();
    ASSERT_TRUE(Holds(**reopened, acknowledged) || Holds(**reopened, in_flight))
        << acknowledged << " records were acknowledged, " << in_flight << " were asked for";
  }
  EXPECT_GT(k, 40);  // Else the workload met nothing.
}

TEST_F(FaultTest, AnIoErrorIsDataLossAndStaysSo) {
  for (int64_t k = 1;; ++k) {
    SCOPED_TRACE(::testing::Message() << "I/O error at write " << k);
    Fresh();
    StatusOr<std::unique_ptr<Store>> store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    vfs_.FailAt(k, Fault::kIoError);
    size_t acknowledged = 0;
    size_t in_flight = 0;
    Status failed;
    const auto records = std::span(workload_.records);
    for (size_t group = 0; failed.ok() && group < workload_.ends.size(); ++group) {
      in_flight = workload_.ends[group];
      failed = (*store)->Append(records.subspan(acknowledged, in_flight - acknowledged));
      if (!failed.ok()) break;
      acknowledged = in_flight;
      failed = (*store)->AfterAnswers();
    }
    if (failed.ok()) failed = (*store)->Idle();
    const bool fired = vfs_.fired();
    EXPECT_EQ(fired, !failed.ok()) << "whoever meets an error says it";
    if (!failed.ok()) {
      EXPECT_EQ(failed.code(), StatusCode::kDataLoss) << failed;
      EXPECT_EQ((*store)->Append(records.first(1)).code(), StatusCode::kDataLoss);
    }
    vfs_.FailAt(0, Fault::kIoError);
    store->reset();
    StatusOr<std::unique_ptr<Store>> reopened = Open();
    ASSERT_TRUE(reopened.ok()) << reopened.status();
    ASSERT_TRUE(Holds(**reopened, acknowledged) || Holds(**reopened, in_flight));
    if (!fired) break;
  }
}

class RefusedWrites : public FaultTest, public ::testing::WithParamInterface<Fault> {};

INSTANTIATE_TEST_SUITE_P(, RefusedWrites, ::testing::Values(Fault::kFull, Fault::kReadOnly),
                         [](const auto& kind) {
                           return std::string(kind.param == Fault::kFull ? "Full" : "ReadOnly");
                         });

// A disk that is full, and a file that was made read-only, are no loss.
TEST_P(RefusedWrites, WriteNothingAndTheNextTryGoesThrough) {
  int refused = 0;
  for (int64_t k = 1;; ++k) {
    SCOPED_TRACE(::testing::Message() << "refused at write " << k);
    Fresh();
    StatusOr<std::unique_ptr<Store>> store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    vfs_.FailAt(k, GetParam());
    size_t acknowledged = 0;
    const auto records = std::span(workload_.records);
    for (const size_t end : workload_.ends) {
      const auto group = records.subspan(acknowledged, end - acknowledged);
      const Status status = (*store)->Append(group);
      if (!status.ok()) {
        ++refused;
        EXPECT_EQ(CodeOf(status), GetParam() == Fault::kFull ? "STORE_FULL" : "STORE_READ_ONLY")
            << status;
        EXPECT_EQ(status.code(), StatusCode::kUnavailable);
        ASSERT_TRUE(Holds(**store, acknowledged));
        ASSERT_TRUE((*store)->Append(group).ok());
      }
      acknowledged = end;
      ASSERT_TRUE((*store)->AfterAnswers().ok());
    }
    ASSERT_TRUE(Holds(**store, acknowledged));
    if (!vfs_.fired()) break;
  }
  EXPECT_GT(refused, 5);
}

}  // namespace
}  // namespace jizi::tuner
