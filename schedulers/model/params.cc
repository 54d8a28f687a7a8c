#include "schedulers/model/params.h"

#include <charconv>

namespace jizi::tuner {
namespace {

void AppendString(std::string& out, const std::string& text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F) {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 0xF];
        } else {
          out += c;
        }
      }
    }
  }
  out += '"';
}

void AppendDouble(std::string& out, double value) {
  if (value == 0) value = 0;  // -0.0 equals 0.0, so it has the same text.
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  const std::string text(buffer, end);
  out += text;
  if (text.find_first_not_of("-0123456789") == std::string::npos) out += ".0";
}

struct Append {
  std::string& out;
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(int64_t value) const { out += std::to_string(value); }
  void operator()(double value) const { AppendDouble(out, value); }
  void operator()(const std::string& value) const { AppendString(out, value); }
  void operator()(const JsonText& value) const { out += value.text; }
};

}  // namespace

std::string ToJsonText(const ParamValue& value) {
  std::string out;
  std::visit(Append{out}, value);
  return out;
}

std::string ToJsonText(const Params& params) {
  std::string out = "{";
  for (const auto& [name, value] : params) {
    if (out.size() > 1) out += ',';
    AppendString(out, name);
    out += ':';
    std::visit(Append{out}, value);
  }
  out += '}';
  return out;
}

}  // namespace jizi::tuner
