#include "tuner-service/rpc/checks.h"

#include <algorithm>
#include <cmath>

#include "tuner-service/rpc/limits.h"

namespace jizi::tuner {
namespace {

bool HasControl(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
  });
}

std::string Number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Status Refuse(const Field& field, const std::string& wrong, std::string mend) {
  return Error(StatusCode::kInvalidArgument, field.name + " " + wrong,
               {"BAD_FIELD", field.name, std::move(mend)});
}

Status CheckFinite(const Field& field, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  return Refuse(field, "is not finite", "give a finite number");
}

Status CheckRange(const Field& field, double value, double min, double max) {
  if (value >= min && value <= max) return absl::OkStatus();  // False for NaN.
  return Refuse(field, "is out of range",
                "give a number from " + Number(min) + " to " + Number(max));
}

Status CheckCount(const Field& field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return Refuse(field, "is " + std::to_string(value),
                "give a whole number from " + std::to_string(min) + " to " + std::to_string(max));
}

Status CheckSize(const Field& field, size_t bytes, size_t max) {
  if (bytes <= max) return absl::OkStatus();
  return Refuse(field, "has " + std::to_string(bytes) + " bytes",
                "at most " + std::to_string(max) + " bytes fit");
}

Status CheckName(const Field& field, const std::string& text) {
  if (text.empty()) return Refuse(field, "is empty", "give a name");
  TRY(CheckSize(field, text.size(), kMaxNameBytes));
  if (HasControl(text))
    return Refuse(field, "holds a control character", "use printable characters");
  return absl::OkStatus();
}

Status CheckStudyName(const Field& field, const std::string& text) {
  if (text.empty()) return Refuse(field, "is empty", "name the study");
  return CheckSize(field, text.size(), kMaxStudyNameBytes);
}

Status CheckNotBlank(const Field& field, const std::string& text) {
  if (text.empty() || text.find_first_not_of(" \t") != std::string::npos) return absl::OkStatus();
  return Refuse(field, "is blank", "use at least one printable character");
}

Status CheckRequestId(const Field& field, const std::string& text) {
  if (text.empty())
    return Refuse(field, "is empty",
                  "give a random text, and the same one when the call is repeated");
  return CheckSize(field, text.size(), kMaxRequestIdBytes);
}

std::string Tail(const std::string& text, size_t max) {
  if (text.size() <= max) return text;
  size_t start = text.size() - max;
  while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) ++start;
  return text.substr(start);
}

}  // namespace jizi::tuner
