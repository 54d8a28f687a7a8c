#include "schedulers/brute_force/tried.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace jizi::tuner {
namespace {

uint64_t HashOfText(const std::string& text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = SplitMix64{hash ^ static_cast<unsigned char>(c)}.Next();
  return hash;
}

std::optional<int64_t> SobolPointOf(const Trial& trial) {
  const auto tag = trial.tags.find(kSobolTag);
  if (trial.decision == 0 || tag == trial.tags.end()) return std::nullopt;
  int64_t point = 0;
  const std::string& text = tag->second;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), point);
  const bool sane = read.ec == std::errc() && point >= 0 && point < kMaxExactInteger;
  return sane ? std::optional(point) : std::nullopt;
}

}  // namespace

Tried& Tried::Of(const Study& study, const Points* points, Memo& memo) {
  auto* tried = std::any_cast<Tried>(&memo.value);
  if (tried == nullptr || tried->trials_seen_ > study.trials.size()) {
    tried = &memo.value.emplace<Tried>();
  }
  for (; tried->trials_seen_ < study.trials.size(); ++tried->trials_seen_) {
    const Trial& trial = *study.trials[tried->trials_seen_];
    tried->Add(points, trial.params);
    if (trial.decision != 0) ++tried->proposed_;
    if (const auto point = SobolPointOf(trial)) {
      tried->next_sobol_ = std::max(tried->next_sobol_, *point + 1);
    }
  }
  return *tried;
}

bool Tried::Contains(const Points* points, const Params& params) const {
  if (points == nullptr) return hashes_.contains(HashOfText(ToJsonText(params)));
  const auto number = points->NumberOf(params);
  return number && numbers_.Contains(*number);
}

void Tried::Add(const Points* points, const Params& params) {
  if (points == nullptr) {
    hashes_.insert(HashOfText(ToJsonText(params)));
  } else if (const auto number = points->NumberOf(params)) {
    numbers_.Insert(*number);
  }
}

void Tried::Remove(const Points* points, const Params& params) {
  if (points == nullptr) {
    hashes_.erase(HashOfText(ToJsonText(params)));
  } else if (const auto number = points->NumberOf(params)) {
    numbers_.Erase(*number);
  }
}

}  // namespace jizi::tuner
