#pragma once
// show.h - studies and trials as text for people, and messages as JSON for programs.
// Threads: pure functions.   Cost: linear in what is shown.

#include <chrono>
#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"
#include "jizi/v1/types.pb.h"

namespace jizi::tuner {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

std::string StateName(v1::TrialState state);  // "running"
std::string StateName(v1::StudyState state);

bool IsEnded(v1::TrialState state);
int64_t EndedTrials(const v1::TrialCounts& counts);
int64_t AllTrials(const v1::TrialCounts& counts);

WallTime WallNow();
WallTime TimeOf(const google::protobuf::Timestamp& time);
std::string ShowTime(
    const google::protobuf::Timestamp& time);  // "2026-11-30 20:31:07", UTC; empty if not set.

// A value as a program's flag would carry it: text without quotes, True, 0.1.
std::string ShowValue(const v1::Value& value);

std::string TrialsHave(int64_t count);  // "1 trial has", "2 trials have"

// How long a trial ran: the sum of its attempts, a live one until `now`. What lay between them
// (nothing ran then) does not count, nor does an attempt that was lost: nobody saw its end.
std::chrono::duration<double> TimeRun(const v1::Trial& trial, WallTime now);

// Why a trial or an attempt ended, on one short line: the reason, and the last line of stderr,
// which says more than the first.
std::string ReasonLine(const std::string& why);

// "lr=0.01 batch_size=128": in the space's order, constants left out (they say nothing about this
// trial).
std::vector<std::string> ParamItems(const v1::StudySpec& spec, const v1::Trial& trial);
std::string ShowParams(const v1::StudySpec& spec, const v1::Trial& trial);

// "val_accuracy 0.913": the objective of an ended trial, else the metric's last value; empty if
// there is none.
std::string ObjectiveNumber(const v1::StudySpec& spec, const v1::Trial& trial);
std::string ShowObjective(const v1::StudySpec& spec, const v1::Trial& trial);

std::string StudiesTable(const std::vector<v1::Study>& studies, size_t width);
std::string TrialsTable(const v1::StudySpec& spec, const std::vector<v1::Trial>& trials,
                        WallTime now, size_t width);

// The last kLastRows of its measurements and of its checkpoints, and how many there are before.
constexpr int kLastRows = 10;
std::string TrialInFull(const v1::StudySpec& spec, const v1::Trial& trial, WallTime now,
                        size_t width);
std::string BestTrial(const v1::Study& study, const v1::Trial& trial);

// One row a trial: id, state, objective, parameters, the last value of each metric, times, and why
// it ended.
std::string TrialsCsv(const v1::StudySpec& spec, const std::vector<v1::Trial>& trials);

// One line, the proto's field names in its order, a map's keys sorted, defaults written out. 64-bit
// integers are text, as in protobuf's JSON.
std::string Json(const google::protobuf::Message& message);

}  // namespace jizi::tuner
