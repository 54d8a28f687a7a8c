#include "tuner-service/cli/noted_store.h"

#include <utility>

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;

class NotedStore final : public Store {
 public:
  NotedStore(std::unique_ptr<Store> store, std::string database, StoreNote note)
      : store_(std::move(store)), database_(std::move(database)), note_(std::move(note)) {}

  StatusOr<std::vector<StudyName>> List() override { return store_->List(); }
  StatusOr<StudyId> LastId() override { return store_->LastId(); }
  StatusOr<StudyData> Load(StudyId study) override { return store_->Load(study); }
  bool MoreToDo() const override { return store_->MoreToDo(); }
  Status Idle() override { return store_->Idle(); }
  Status AfterAnswers() override { return store_->AfterAnswers(); }

  Status Append(std::span<const LogRecord> records) override {
    Status status = store_->Append(records);
    if (status.ok()) {
      if (!trouble_.empty()) Calm();
    } else if (status.code() == StatusCode::kUnavailable) {
      Trouble(status);
    }
    return status;
  }

 private:
  void Trouble(const Status& status) {
    failed_ = steady_clock::now();
    const std::string code = DetailOf(status).code;
    if (trouble_ == code) return;
    if (code == last_code_ && failed_ - said_ < kNotedAgain) return;
    trouble_ = last_code_ = code;
    said_ = failed_;
    if (code == "STORE_FULL") {
      note_("the disk is full: " + database_ +
            " cannot grow. Trials go on and their results wait; free some space");
    } else if (code == "STORE_BUSY") {
      note_("another program has locked " + database_ +
            ". Trials go on and their results wait; end that program");
    } else {
      note_("nothing can be stored for now: " + ForPeople(status));
    }
  }

  void Calm() {
    if (steady_clock::now() - failed_ < kNotedCalm) return;  // Small records may still fit.
    trouble_.clear();
    note_(database_ + " can be written again: it goes on");
  }

  const std::unique_ptr<Store> store_;
  const std::string database_;
  const StoreNote note_;
  std::string trouble_;    // The code of what was said and is not over.
  std::string last_code_;  // Of what was said last.
  steady_clock::time_point said_;
  steady_clock::time_point failed_;
};

}  // namespace

std::unique_ptr<Store> MakeNotedStore(std::unique_ptr<Store> store, std::string database,
                                      StoreNote note) {
  return std::make_unique<NotedStore>(std::move(store), std::move(database), std::move(note));
}

}  // namespace jizi::tuner
