#pragma once
// spec_codec.h - a study's definition and the values in it, to and from the messages that the log
// stores. Fails: From... give DataLoss LOG_DAMAGED for a message that no version of ours wrote (an
// unset oneof, an unknown enum); To... never fail. Threads: pure functions.   Cost: O(size).

#include <map>
#include <string>

#include "base/status.h"
#include "jizi/store/v1/events.pb.h"
#include "schedulers/model/study.h"

namespace jizi::tuner {

namespace stored = ::jizi::store::v1;

// DataLoss LOG_DAMAGED: what is wrong with the bytes.
Status Damaged(const std::string& what);

// Enums are stored as their number plus one, so that an unset field is never a value.
template <typename Enum>
int ToStoredEnum(Enum value) {
  return static_cast<int>(value) + 1;
}
template <typename Enum>
StatusOr<Enum> FromStoredEnum(int number, Enum last) {
  if (number < 1 || number > static_cast<int>(last) + 1) {
    return Damaged("enum value " + std::to_string(number) + " is unknown");
  }
  return static_cast<Enum>(number - 1);
}

template <typename Field>
void ToStoredTexts(const std::map<std::string, std::string>& texts, Field* field) {
  for (const auto& [name, text] : texts) {
    stored::NamedText* entry = field->Add();
    entry->set_name(name);
    entry->set_text(text);
  }
}
template <typename Field>
std::map<std::string, std::string> FromStoredTexts(const Field& field) {
  std::map<std::string, std::string> texts;
  for (const stored::NamedText& entry : field) texts[entry.name()] = entry.text();
  return texts;
}

template <typename Field>
void ToStoredParams(const Params& params, Field* field);
template <typename Field>
StatusOr<Params> FromStoredParams(const Field& field);

void ToStored(const ParamValue& value, stored::Value* message);
StatusOr<ParamValue> FromStored(const stored::Value& message);

void ToStored(const Budget& budget, stored::Budget* message);
Budget FromStored(const stored::Budget& message);

void ToStored(const RetryPolicy& retries, stored::RetryPolicy* message);
RetryPolicy FromStored(const stored::RetryPolicy& message);

void ToStored(const StudySpec& spec, stored::StudySpec* message);
StatusOr<StudySpec> FromStored(const stored::StudySpec& message);

template <typename Field>
void ToStoredParams(const Params& params, Field* field) {
  for (const auto& [name, value] : params) {
    stored::NamedValue* entry = field->Add();
    entry->set_name(name);
    ToStored(value, entry->mutable_value());
  }
}
template <typename Field>
StatusOr<Params> FromStoredParams(const Field& field) {
  Params params;
  for (const stored::NamedValue& entry : field) {
    params.emplace(entry.name(), TRY(FromStored(entry.value())));
  }
  return params;
}

}  // namespace jizi::tuner
