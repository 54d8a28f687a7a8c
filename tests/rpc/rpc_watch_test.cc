// docs/contracts.md, 14.

#include <future>
#include <set>

#include "tests/rpc/rpc_testing.h"
#include "tuner-service/rpc/limits.h"
#include "tuner-service/rpc/watch.h"

namespace jizi::tuner {
namespace {

using Stub = v1::TuneService::Stub;

// A study with as many trials, at a log position.
StudyChange ChangeOf(int trials, int64_t position, std::vector<TrialId> changed) {
  StudyChange change;
  auto spec = std::make_shared<StudySpec>();
  spec->name = "s";
  change.view.study.spec = spec;
  for (int i = 1; i <= trials; ++i) {
    Trial trial;
    trial.id = i;
    change.view.study.trials.push_back(Cow<Trial>(std::move(trial)));
  }
  change.view.log_position = position;
  change.changed = std::move(changed);
  return change;
}

TEST(Contract14, StartsWithASnapshotUnlessThePositionIsThePresentOne) {
  for (const int64_t after : {-1, 0, 4, 6}) {
    WatchBuffer buffer(after);
    EXPECT_FALSE(buffer.Next());
    buffer.Take(ChangeOf(3, 5, {}));
    const auto first = buffer.Next();
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->snapshot());
    EXPECT_EQ(first->trials_size(), 3);
    EXPECT_EQ(first->log_position(), 5);
    EXPECT_FALSE(first->more());
    EXPECT_FALSE(buffer.Next());
  }
  WatchBuffer buffer(5);
  buffer.Take(ChangeOf(3, 5, {}));
  const auto first = buffer.Next();
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->snapshot());
  EXPECT_EQ(first->trials_size(), 0);
}

TEST(Contract14, ChangesThatWaitAreMerged) {
  WatchBuffer buffer(-1);
  buffer.Take(ChangeOf(3, 5, {}));
  ASSERT_TRUE(buffer.Next());
  buffer.Take(ChangeOf(3, 6, {2}));
  buffer.Take(ChangeOf(4, 7, {2, 4}));
  const auto next = buffer.Next();
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->snapshot());
  EXPECT_EQ(next->log_position(), 7);
  ASSERT_EQ(next->trials_size(), 2);
  EXPECT_EQ(next->trials(0).id(), 2);
  EXPECT_EQ(next->trials(1).id(), 4);
  EXPECT_FALSE(buffer.Next());
}

TEST(Contract14, MoreThan256BufferedChangesBecomeASnapshot) {
  WatchBuffer buffer(-1);
  buffer.Take(ChangeOf(3, 5, {}));
  ASSERT_TRUE(buffer.Next());
  for (int i = 0; i < kMaxBufferedChanges; ++i) buffer.Take(ChangeOf(3, 6 + i, {1}));
  auto next = buffer.Next();
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->snapshot());
  for (int i = 0; i <= kMaxBufferedChanges; ++i) buffer.Take(ChangeOf(3, 1000 + i, {1}));
  next = buffer.Next();
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->snapshot());
  EXPECT_EQ(next->trials_size(), 3);
}

TEST(Contract14, ASnapshotComesInPiecesThatShareOneView) {
  WatchBuffer buffer(-1);
  buffer.Take(ChangeOf(1234, 5, {}));
  std::set<int64_t> seen;
  bool more = true;
  int pieces = 0;
  while (more) {
    const auto piece = buffer.Next();
    ASSERT_TRUE(piece);
    if (++pieces == 1) buffer.Take(ChangeOf(1235, 6, {1235}));
    EXPECT_TRUE(piece->snapshot());
    EXPECT_EQ(piece->log_position(), 5);
    for (const auto& trial : piece->trials()) EXPECT_TRUE(seen.insert(trial.id()).second);
    more = piece->more();
  }
  EXPECT_GT(pieces, 1);
  EXPECT_EQ(seen.size(), 1234U);
  const auto next = buffer.Next();
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->snapshot());
  ASSERT_EQ(next->trials_size(), 1);
  EXPECT_EQ(next->trials(0).id(), 1235);
}

TEST(Contract14, TheSpecComesFirstAndThenOnlyWithASnapshotOrWhenItIsAnother) {
  WatchBuffer buffer(5);
  StudyChange change = ChangeOf(3, 5, {});
  buffer.Take(change);
  EXPECT_EQ(buffer.Next()->study().spec().name(), "s");  // A continued stream says it, too.
  change.changed = {2};
  change.view.log_position = 6;
  buffer.Take(change);
  const auto next = buffer.Next();
  EXPECT_FALSE(next->study().has_spec());
  EXPECT_EQ(next->study().log_position(), 6);
  StudySpec other = *change.view.study.spec;
  other.budget.run_cap = 12;
  change.view.study.spec = std::make_shared<StudySpec>(other);
  buffer.Take(change);
  EXPECT_EQ(buffer.Next()->study().spec().budget().run_cap(), 12);
  for (int i = 0; i <= kMaxBufferedChanges; ++i) buffer.Take(change);
  const auto snapshot = buffer.Next();
  EXPECT_TRUE(snapshot->snapshot());
  EXPECT_TRUE(snapshot->study().has_spec());
}

TEST(Contract14, AChangeCarriesTheLastCheckpointsOfATrialAlone) {
  WatchBuffer buffer(5);
  StudyChange change = ChangeOf(0, 5, {1});
  Trial trial;
  trial.id = 1;
  for (int step = 1; step <= 10'000; ++step) {
    trial.checkpoints.push_back({step, "checkpoints/" + std::to_string(step), "", 1, 1});
  }
  change.view.study.trials.push_back(Cow<Trial>(std::move(trial)));
  buffer.Take(change);
  const auto sent = buffer.Next();
  ASSERT_EQ(sent->trials_size(), 1);
  EXPECT_LT(sent->ByteSizeLong(), 2000u);
  EXPECT_EQ(sent->trials(0).checkpoint_count(), 10'000);
  ASSERT_GT(sent->trials(0).checkpoints_size(), 0);
  EXPECT_EQ(sent->trials(0).checkpoints().rbegin()->step(), 10'000);
}

TEST(Contract14, ADeletedStudyEndsTheStreamWithNotFound) {
  WatchBuffer buffer(-1);
  buffer.Take(ChangeOf(3, 5, {}));
  StudyChange deleted = ChangeOf(3, 6, {});
  deleted.deleted = true;
  buffer.Take(deleted);
  EXPECT_FALSE(buffer.Next());
  ASSERT_TRUE(buffer.ended());
  EXPECT_EQ(buffer.ended()->code(), StatusCode::kNotFound);
}

TEST(Contract14, AStudyThatCannotBeReadEndsTheStreamWithItsReasonAndIsNotCalledDeleted) {
  WatchBuffer buffer(-1);
  buffer.Take(ChangeOf(3, 5, {}));
  StudyChange unreadable = ChangeOf(0, 6, {});
  unreadable.deleted = true;
  unreadable.why = Error(StatusCode::kDataLoss, "record 6 is damaged", {"LOG_DAMAGED", "s", "x"});
  buffer.Take(unreadable);
  ASSERT_TRUE(buffer.ended());
  EXPECT_EQ(buffer.ended()->code(), StatusCode::kDataLoss);
  EXPECT_EQ(DetailOf(*buffer.ended()).code, "LOG_DAMAGED");
}

// ---- over the wire ----

struct Watching {
  explicit Watching(Client& client, const std::string& study, int64_t after = -1) {
    client.Prepare(context, kDeadline);
    v1::WatchStudyRequest request;
    request.set_study(study);
    request.set_after_log_position(after);
    reader = client.stub().WatchStudy(&context, request);
  }
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchStudyResponse>> reader;
  v1::WatchStudyResponse last;
};

TEST(WatchStudy, SeesEveryDurableChangeThenTheDeletion) {
  for (const Transport transport : {Transport::kTcp, Transport::kUnix}) {
    TestService service(transport);
    Must(service.Call(&Stub::CreateStudy, NewStudy("watched")));
    Watching watching(service.client(), "watched");
    ASSERT_TRUE(watching.reader->Read(&watching.last));
    EXPECT_TRUE(watching.last.snapshot());
    EXPECT_EQ(watching.last.study().spec().name(), "watched");
    const auto held = Must(service.Call(&Stub::Suggest, NewSuggest("watched", "w", 1))).trials();
    ASSERT_EQ(held.assignments_size(), 1);
    bool running = false;
    while (!running && watching.reader->Read(&watching.last)) {
      for (const auto& trial : watching.last.trials())
        running = running || trial.state() == v1::TRIAL_STATE_RUNNING;
    }
    EXPECT_TRUE(running);
    v1::DeleteStudyRequest remove;
    remove.set_study("watched");
    Must(service.Call(&Stub::DeleteStudy, remove));
    while (watching.reader->Read(&watching.last)) {
    }
    const Status end = Client::Check(watching.context, watching.reader->Finish());
    EXPECT_EQ(end.code(), StatusCode::kNotFound);
  }
}

TEST(WatchStudy, AnUnknownStudyAndABadPositionAreRefused) {
  TestService service(Transport::kTcp);
  Watching unknown(service.client(), "nobody");
  EXPECT_FALSE(unknown.reader->Read(&unknown.last));
  EXPECT_EQ(unknown.reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  Must(service.Call(&Stub::CreateStudy, NewStudy("x")));
  Watching bad(service.client(), "x", -2);
  EXPECT_FALSE(bad.reader->Read(&bad.last));
  EXPECT_EQ(bad.reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(WatchStudy, ShutdownEndsStreamsBeforeTheDrain) {
  TestService service(Transport::kUnix);
  Must(service.Call(&Stub::CreateStudy, NewStudy("x")));
  Watching watching(service.client(), "x");
  ASSERT_TRUE(watching.reader->Read(&watching.last));
  const auto start = std::chrono::steady_clock::now();
  service.server().Shutdown(std::chrono::minutes(10));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(5));
  while (watching.reader->Read(&watching.last)) {
  }
  const Status end = Client::Check(watching.context, watching.reader->Finish());
  EXPECT_EQ(DetailOf(end).code, "SHUTTING_DOWN");
}

TEST(WatchStudy, AtMost256StreamsAndCancelledOnesMakePlace) {
  TestService service(Transport::kUnix);
  Must(service.Call(&Stub::CreateStudy, NewStudy("x")));
  std::vector<std::unique_ptr<Watching>> streams;
  for (int i = 0; i < kMaxStreams; ++i) {
    streams.push_back(std::make_unique<Watching>(service.client(), "x"));
    ASSERT_TRUE(streams.back()->reader->Read(&streams.back()->last)) << i;
  }
  Watching excess(service.client(), "x");
  EXPECT_FALSE(excess.reader->Read(&excess.last));
  const Status refused = Client::Check(excess.context, excess.reader->Finish());
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(refused).code, "TOO_MANY_STREAMS");

  streams.front()->context.TryCancel();
  streams.front()->reader->Finish();
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  bool taken = false;
  while (!taken && std::chrono::steady_clock::now() < deadline) {
    Watching again(service.client(), "x");
    taken = again.reader->Read(&again.last);
    again.context.TryCancel();
    again.reader->Finish();
  }
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace jizi::tuner
