#include "tests/bench/big_study.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "proto/client.h"
#include "tests/bench/machine.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/server.h"
#include "tuner-service/store/store.h"

namespace jizi::bench {
namespace {

using namespace tuner;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDeadline{60'000};
constexpr size_t kGroup = 2000;  // Records in one transaction.

double SecondsSince(steady_clock::time_point from) {
  return std::chrono::duration<double>(steady_clock::now() - from).count();
}

StatusOr<std::unique_ptr<Store>> Open(const std::string& file) {
  SqliteOptions options;
  options.path = file;
  return OpenSqliteStore(options);
}

// Fills a study through the core itself, so that the log is the one that calls would have made.
class Builder {
 public:
  Builder(Store& store, StudyId id, const StudySpec& spec) : store_(store), id_(id), spec_(spec) {}

  Status Build(int trials, int reports) {
    scheduler_ = TRY(MakeScheduler(spec_));
    now_ =
        std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
    group_.push_back(TRY(CreateStudy(id_, spec_, "build", now_)));
    Apply(state_, group_.back());
    for (int i = 0; i < trials; ++i) TRY(OneTrial(i + 1, reports));
    return Write();
  }

 private:
  Status Write() {
    TRY(store_.Append(std::exchange(group_, {})));
    return store_.AfterAnswers();
  }

  StatusOr<Outcome> Run(const Command& command) {
    now_ += std::chrono::microseconds(100);
    Outcome outcome =
        TRY(Execute(state_, command, {now_, steady_clock::now(), *scheduler_, memo_}));
    if (!outcome.events.empty()) {
      group_.push_back({id_, state_.log_position, state_.last_event, std::move(outcome.events)});
      outcome.events.clear();
      if (group_.size() >= kGroup) TRY(Write());
    }
    return outcome;
  }

  Status OneTrial(int64_t sequence, int reports) {
    SuggestCommand suggest;
    suggest.worker = "w";
    suggest.call.sequence = sequence;
    suggest.tokens.push_back(Token{static_cast<uint8_t>(sequence), 1});
    Outcome outcome = TRY(Run(suggest));
    if (outcome.need) {
      auto decision =
          scheduler_->Suggest(state_.study, outcome.need->count,
                              Rng::ForSuggest(spec_.seed, outcome.need->decision), suggest_memo_);
      TRY(Run(AnswerCommand{outcome.need->decision, outcome.need->log_position, outcome.need->count,
                            std::move(decision)}));
      outcome = TRY(Run(suggest));
    }
    const Assigned assigned =
        std::get<std::vector<Assigned>>(std::get<SuggestReply>(outcome.reply.value())).front();
    const LeaseRef lease{assigned.trial->id, assigned.attempt, assigned.token};
    for (int step = 1; step <= reports; ++step) {
      ReportCommand report;
      report.lease = lease;
      report.call.sequence = step;
      report.measurements.push_back(
          {step, now_, {{"val_accuracy", 0.5 + 1e-4 * step}, {"loss", 1.0 / step}}, {}});
      TRY(Run(report));
    }
    CompleteCommand complete;
    complete.lease = lease;
    complete.call.sequence = reports + 1;
    return Run(complete).status();
  }

  Store& store_;
  const StudyId id_;
  const StudySpec spec_;
  std::unique_ptr<Scheduler> scheduler_;
  StudyData state_;
  Memo memo_;
  Memo suggest_memo_;
  Timestamp now_;
  std::vector<LogRecord> group_;
};

StatusOr<double> PageMs(Client& client, const std::string& study, const std::string& sort) {
  v1::ListTrialsRequest request;
  request.set_study(study);
  request.set_page_size(100);
  request.set_sort_metric(sort);
  double slowest = 0;
  for (int i = 0; i < 10; ++i) {
    const auto from = steady_clock::now();
    const auto page = TRY(client.Call(&v1::TuneService::Stub::ListTrials, request, kDeadline));
    slowest = std::max(slowest, 1e3 * SecondsSince(from));
    if (page.trials_size() == 0) return absl::InternalError("an empty page");
    if (sort.empty()) request.set_page_token(page.next_page_token());
  }
  return slowest;
}

StatusOr<double> SuggestP50Us(Client& client, const std::string& study, int times) {
  std::vector<double> us;
  for (int i = 0; i < times; ++i) {
    v1::SuggestRequest request;
    request.set_study(study);
    request.set_worker("timed" + std::to_string(i));
    request.set_sequence(1);
    request.set_count(1);
    const auto from = steady_clock::now();
    const auto reply = TRY(client.Call(&v1::TuneService::Stub::Suggest, request, kDeadline));
    us.push_back(1e6 * SecondsSince(from));
    if (reply.trials().assignments_size() != 1) return absl::InternalError("no trial");
  }
  std::nth_element(us.begin(), us.begin() + static_cast<ptrdiff_t>(us.size() / 2), us.end());
  return us[us.size() / 2];
}

}  // namespace

StudySpec LoadSpec(const std::string& name) {
  StudySpec spec;
  spec.name = name;
  spec.space.parameters = {
      {"lr", NumericDomain{Uniform{1e-4, 1.0, Scale::kLog}}, {}},
      {"momentum", NumericDomain{Uniform{0.0, 0.99}}, {}},
      {"batch_size", NumericDomain{Uniform{32, 4096, Scale::kLog}, 1, true}, {}},
      {"optimizer", CategoricalDomain{{std::string("sgd"), std::string("lars")}, {}}, {}}};
  spec.metrics = {{"val_accuracy", Goal::kMaximize, std::nullopt}};
  spec.method = "random";
  spec.seed = 1;
  return spec;
}

StatusOr<BigStudyFigures> MeasureBigStudy(const std::string& file, const BigStudyPlan& plan) {
  BigStudyFigures figures;
  auto from = steady_clock::now();
  {
    const std::unique_ptr<Store> store = TRY(Open(file));
    TRY(Builder(*store, 1, LoadSpec("big")).Build(plan.trials, plan.reports));
    TRY(Builder(*store, 2, LoadSpec("small")).Build(plan.small_trials, plan.reports));
    TRY(store->Idle());
  }
  figures.build_s = SecondsSince(from);
  const double all = plan.trials + plan.small_trials;
  figures.bytes_per_trial = static_cast<double>(DatabaseBytes(file)) / all;

  malloc_trim(0);
  const int64_t before = ResidentBytes();
  from = steady_clock::now();
  std::unique_ptr<Store> again = TRY(Open(file));
  const std::unique_ptr<Engine> engine = TRY(Engine::Start(std::move(again), {}));
  figures.restart_s = SecondsSince(from);
  malloc_trim(0);
  figures.memory_per_trial = static_cast<double>(ResidentBytes() - before) / all;

  ServerOptions options;
  options.listen = "127.0.0.1:0";
  const std::unique_ptr<Server> server = TRY(Server::Start(*engine, options));
  const std::unique_ptr<Client> client = TRY(Client::Connect({server->address(), "", ""}));
  figures.page_ms = TRY(PageMs(*client, "big", ""));
  figures.sorted_page_ms = TRY(PageMs(*client, "big", "objective"));
  figures.small_suggest_p50_us = TRY(SuggestP50Us(*client, "small", plan.suggestions));
  figures.suggest_p50_us = TRY(SuggestP50Us(*client, "big", plan.suggestions));
  server->Shutdown(std::chrono::milliseconds(1000));
  engine->Shutdown(std::chrono::milliseconds(1000));
  return figures;
}

}  // namespace jizi::bench
