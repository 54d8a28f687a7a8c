#include "tuner-service/rpc/pages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "schedulers/model/text.h"
#include "tuner-service/rpc/checks.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/limits.h"

namespace jizi::tuner {
namespace {

// Where an element stands in the order.
struct Place {
  bool last = false;  // Without a value.
  double value = 0;   // Negated where the order falls.
  int64_t id = 0;
};
bool operator<(const Place& a, const Place& b) {
  if (a.last != b.last) return b.last;
  if (!a.last && a.value != b.value) return a.value < b.value;
  return a.id < b.id;
}

uint64_t Mix(uint64_t hash, const std::string& text) {  // FNV-1a, with an end mark.
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return (hash ^ 0xFFU) * 0x100000001b3U;
}

uint64_t QueryOf(const v1::ListTrialsRequest& request) {
  uint64_t hash =
      Mix(Mix(Mix(0xcbf29ce484222325U, request.study()), request.worker()), request.sort_metric());
  std::string rest(1, request.descending() ? 'd' : 'a');
  for (const int state : request.states()) rest += static_cast<char>('0' + (state & 0xF));
  return Mix(hash, rest);
}

constexpr size_t kTokenParts =
    4;  // Query, last, value's bits, id; hexadecimal with dashes between.

std::string TokenOf(uint64_t query, const Place& place) {
  std::string token;
  for (const uint64_t part : {query, uint64_t{place.last}, std::bit_cast<uint64_t>(place.value),
                              static_cast<uint64_t>(place.id)}) {
    char buffer[16];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), part, 16).ptr;
    if (!token.empty()) token += '-';
    token.append(buffer, end);
  }
  return token;
}

StatusOr<std::optional<Place>> PlaceOf(const std::string& token, uint64_t query) {
  if (token.empty()) return std::optional<Place>();
  const auto refuse = [] {
    return Refuse(
        {"page_token"}, "belongs to another list",
        "send next_page_token of the page before, with the same query; or none, to start anew");
  };
  std::array<uint64_t, kTokenParts> parts{};
  const char* at = token.data();
  const char* const end = token.data() + token.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '-')) return refuse();
    const auto parsed = std::from_chars(at, end, parts[i], 16);
    if (parsed.ec != std::errc()) return refuse();
    at = parsed.ptr;
  }
  const auto place =
      Place{parts[1] != 0, std::bit_cast<double>(parts[2]), static_cast<int64_t>(parts[3])};
  if (at != end || parts[0] != query || parts[1] > 1 || std::isnan(place.value)) return refuse();
  return std::optional<Place>(place);
}

StatusOr<size_t> PageSize(int32_t asked) {
  TRY(CheckCount({"page_size"}, asked, 0, kMaxPageSize));
  return static_cast<size_t>(asked == 0 ? kDefaultPageSize : asked);
}

// What the list is made of.
struct Filter {
  uint32_t states = 0;                         // A bit for each; 0: all.
  const std::vector<TrialId>* held = nullptr;  // Of a worker; null: every trial of the study.

  bool Takes(const Trial& trial) const {
    return states == 0 || (states >> static_cast<int>(trial.state) & 1U) != 0;
  }
  // Places 1, 2, ... in the order of ids.
  int64_t Size(const Study& study) const {
    return static_cast<int64_t>(held == nullptr ? study.trials.size() : held->size());
  }
  TrialId At(int64_t place) const {
    return held == nullptr ? place : (*held)[static_cast<size_t>(place - 1)];
  }
  // The last place whose id is at most this one, 0 if none is.
  int64_t UpTo(TrialId id, const Study& study) const {
    if (held == nullptr) return std::clamp<int64_t>(id, 0, Size(study));
    return std::upper_bound(held->begin(), held->end(), id) - held->begin();
  }
};

StatusOr<Filter> FilterOf(const v1::ListTrialsRequest& request, const std::vector<TrialId>& held) {
  Filter filter{0, request.worker().empty() ? nullptr : &held};
  TRY(CheckCount({"states"}, request.states_size(), 0, kMaxListed));
  for (int i = 0; i < request.states_size(); ++i) {
    const TrialState state = TRY(FromWire(request.states(i), Field{"states"} / i));
    filter.states |= 1U << static_cast<int>(state);
  }
  return filter;
}

std::optional<double> LastValue(const Trial& trial, const std::string& metric) {
  for (size_t i = trial.measurements.size(); i > 0; --i) {
    const double* value = Find(trial.measurements[i - 1], metric);
    if (value != nullptr) return *value;
  }
  return std::nullopt;
}

// A name that no trial has reported and the study does not know would give a list that only looks
// sorted.
Status CheckSortMetric(const Study& study, const std::string& metric) {
  constexpr size_t kMostTold = 20;
  if (metric.empty() || metric == "objective") return absl::OkStatus();
  std::set<std::string> known;
  for (const MetricSpec& spec : study.spec->metrics) known.insert(spec.name);
  if (known.contains(metric)) return absl::OkStatus();
  for (const Cow<Trial>& trial : study.trials) {
    if (LastValue(*trial, metric)) return absl::OkStatus();
    if (trial->measurements.empty() || known.size() >= kMostTold) continue;
    for (const auto& [name, value] : trial->measurements.back().metrics) known.insert(name);
  }
  std::string told = "objective";
  for (const std::string& name : known) told += ", " + name;
  const auto nearest = Nearest(metric, {known.begin(), known.end()});
  return Error(StatusCode::kInvalidArgument, "no trial of the study has a metric " + Quoted(metric),
               {"UNKNOWN_METRIC", metric,
                (nearest ? "did you mean " + Quoted(*nearest) + "? " : std::string()) +
                    "known here: " + told});
}

Place PlaceInOrder(const Trial& trial, const v1::ListTrialsRequest& request) {
  const std::optional<double> value = request.sort_metric() == "objective"
                                          ? trial.objective
                                          : LastValue(trial, request.sort_metric());
  const bool failed = trial.state == TrialState::kFailed || trial.state == TrialState::kInfeasible;
  if (failed || !value || std::isnan(*value)) return {true, 0, trial.id};
  return {false, request.descending() ? -*value : *value, trial.id};
}

// The first `count` ids of the order after `after`, and whether there are more.
struct Picked {
  std::vector<Place> places;
  bool more = false;
};

Picked PickById(const Study& study, const v1::ListTrialsRequest& request, const Filter& filter,
                const std::optional<Place>& after, size_t count) {
  Picked picked;
  const int64_t size = filter.Size(study);
  const bool falling = request.descending();
  // The id comes out of a token, that is, from anyone.
  const TrialId seen = after ? std::clamp<int64_t>(after->id, 0, kMaxTrialsPerStudy + 1) : 0;
  int64_t place = 1;
  if (falling) {
    place = after ? filter.UpTo(seen - 1, study) : size;
  } else if (after) {
    place = filter.UpTo(seen, study) + 1;
  }
  for (; place >= 1 && place <= size; place += falling ? -1 : 1) {
    const TrialId id = filter.At(place);
    if (!filter.Takes(*study.Find(id))) continue;
    if (picked.places.size() == count) {
      picked.more = true;
      break;
    }
    picked.places.push_back({false, 0, id});
  }
  return picked;
}

Picked PickSorted(const Study& study, const v1::ListTrialsRequest& request, const Filter& filter,
                  const std::optional<Place>& after, size_t count) {
  Picked picked;
  const auto consider = [&](const Trial& trial) {
    if (!filter.Takes(trial)) return;
    const Place place = PlaceInOrder(trial, request);
    if (!after || *after < place) picked.places.push_back(place);
  };
  if (filter.held != nullptr) {
    for (const TrialId id : *filter.held) consider(*study.Find(id));
  } else {
    for (const Cow<Trial>& trial : study.trials) consider(*trial);
  }
  const auto middle =
      picked.places.begin() + static_cast<ptrdiff_t>(std::min(count, picked.places.size()));
  std::partial_sort(picked.places.begin(), middle, picked.places.end());
  picked.more = middle != picked.places.end();
  picked.places.erase(middle, picked.places.end());
  return picked;
}

}  // namespace

StatusOr<v1::ListTrialsResponse> ListTrials(const StudyView& view,
                                            const v1::ListTrialsRequest& request,
                                            const std::vector<TrialId>& held) {
  const size_t count = TRY(PageSize(request.page_size()));
  const Filter filter = TRY(FilterOf(request, held));
  const uint64_t query = QueryOf(request);
  const std::optional<Place> after = TRY(PlaceOf(request.page_token(), query));
  if (!after) TRY(CheckSortMetric(view.study, request.sort_metric()));
  const auto pick = request.sort_metric().empty() ? PickById : PickSorted;
  const Picked picked = pick(view.study, request, filter, after, count);

  v1::ListTrialsResponse response;
  size_t bytes = 0;
  for (size_t i = 0; i < picked.places.size(); ++i) {
    v1::Trial trial = ToWire(*view.study.Find(picked.places[i].id));
    bytes += trial.ByteSizeLong();
    if (i > 0 && bytes > kMaxPageBytes) {
      response.set_next_page_token(TokenOf(query, picked.places[i - 1]));
      return response;
    }
    *response.add_trials() = std::move(trial);
  }
  if (picked.more) response.set_next_page_token(TokenOf(query, picked.places.back()));
  return response;
}

StatusOr<v1::ListStudiesResponse> ListStudies(const std::vector<StudyView>& studies,
                                              const v1::ListStudiesRequest& request) {
  const size_t count = TRY(PageSize(request.page_size()));
  const uint64_t query = Mix(0, "studies");
  const std::optional<Place> after = TRY(PlaceOf(request.page_token(), query));
  std::vector<const StudyView*> sorted;
  for (const StudyView& study : studies) {
    if (!after || study.id > after->id) sorted.push_back(&study);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->id < b->id; });

  v1::ListStudiesResponse response;
  size_t bytes = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    v1::Study study = ToWire(*sorted[i]);
    bytes += study.ByteSizeLong();
    if (i == count || (i > 0 && bytes > kMaxPageBytes)) {
      response.set_next_page_token(TokenOf(query, {false, 0, sorted[i - 1]->id}));
      break;
    }
    *response.add_studies() = std::move(study);
  }
  return response;
}

// In the order of registration, as in lists.
static void AddCheckpoints(const Trial& trial, size_t skip, v1::Trial* to) {
  const size_t end = trial.checkpoints.size() - std::min(skip, trial.checkpoints.size());
  size_t first = end;
  size_t bytes = 0;
  while (first > 0) {
    const Checkpoint& before = trial.checkpoints[first - 1];
    bytes += before.path.size() + before.sha256.size() + 48;  // Tags, lengths and numbers.
    if (bytes > kCheckpointPageBytes && first < end) break;
    --first;
  }
  to->clear_checkpoints();
  for (; first < end; ++first) *to->add_checkpoints() = ToWire(trial.checkpoints[first]);
}

StatusOr<v1::GetTrialResponse> GetTrial(const StudyView& view, const v1::GetTrialRequest& request) {
  TRY(CheckCount({"max_measurements"}, request.max_measurements(), 0, kMaxMeasurementsPerPage));
  TRY(CheckCount({"skip_measurements"}, request.skip_measurements(), 0, INT64_MAX));
  TRY(CheckCount({"skip_checkpoints"}, request.skip_checkpoints(), 0, INT64_MAX));
  const Trial* trial = view.study.Find(request.trial());
  if (trial == nullptr) {
    const std::string id = std::to_string(request.trial());
    return Error(StatusCode::kNotFound, "the study has no trial " + id,
                 {"TRIAL_NOT_FOUND", id,
                  "trials are numbered from 1 to " + std::to_string(view.study.trials.size())});
  }
  v1::GetTrialResponse response;
  *response.mutable_trial() = ToWire(*trial);
  AddCheckpoints(*trial, static_cast<size_t>(request.skip_checkpoints()), response.mutable_trial());
  const size_t size = trial->measurements.size();
  const size_t asked = static_cast<size_t>(
      request.max_measurements() == 0 ? kDefaultMeasurementsPerPage : request.max_measurements());
  const size_t first = std::min(static_cast<size_t>(request.skip_measurements()), size);
  size_t bytes = response.ByteSizeLong();
  for (size_t i = first; i < size && i - first < asked; ++i) {
    v1::Measurement measurement = ToWire(trial->measurements[i]);
    bytes += measurement.ByteSizeLong() + 8;  // Tag and length.
    if (i > first && bytes > kMaxPageBytes) break;
    *response.mutable_trial()->add_measurements() = std::move(measurement);
  }
  return response;
}

}  // namespace jizi::tuner
