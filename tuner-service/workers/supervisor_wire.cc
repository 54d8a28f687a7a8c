#include "tuner-service/workers/supervisor_wire.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace jizi::tuner {
namespace {

constexpr size_t kMaxBody = 64u << 20;  // argv and environment are bounded by the kernel far below.
constexpr size_t kMaxDescriptors = 4;

struct Header {
  uint32_t bytes = 0;
  uint32_t kind = 0;
};

void PutNumber(std::string& out, int64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PutText(std::string& out, const std::string& text) {
  PutNumber(out, static_cast<int64_t>(text.size()));
  out += text;
}

void PutList(std::string& out, const std::vector<std::string>& list) {
  PutNumber(out, static_cast<int64_t>(list.size()));
  for (const std::string& text : list) PutText(out, text);
}

class Reader {
 public:
  explicit Reader(const std::string& body) : body_(body) {}

  int64_t Number() {
    int64_t value = 0;
    if (body_.size() - at_ < sizeof value) {
      broken_ = true;
      return 0;
    }
    memcpy(&value, body_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string Text() {
    const int64_t size = Number();
    if (broken_ || size < 0 || static_cast<size_t>(size) > body_.size() - at_) {
      broken_ = true;
      return "";
    }
    std::string text = body_.substr(at_, static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return text;
  }
  std::vector<std::string> List() {
    std::vector<std::string> list;
    const int64_t count = Number();
    for (int64_t i = 0; i < count && !broken_; ++i) list.push_back(Text());
    return list;
  }
  bool broken() const { return broken_; }

 private:
  const std::string& body_;
  size_t at_ = 0;
  bool broken_ = false;
};

bool SendAll(int socket, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = send(socket, data, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveAll(int socket, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = recv(socket, data, bytes, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

bool SendWire(int socket, const WireMessage& message) {
  std::string body;
  PutNumber(body, message.id);
  PutNumber(body, message.value);
  PutNumber(body, message.signal);
  PutText(body, message.text);
  PutList(body, message.argv);
  PutList(body, message.environment);
  if (body.size() > kMaxBody || message.descriptors.size() > kMaxDescriptors) return false;

  Header header{static_cast<uint32_t>(body.size()), static_cast<uint32_t>(message.kind)};
  iovec part{&header, sizeof header};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)] = {};
  msghdr envelope{};
  envelope.msg_iov = &part;
  envelope.msg_iovlen = 1;
  if (!message.descriptors.empty()) {
    const size_t bytes = sizeof(int) * message.descriptors.size();
    envelope.msg_control = control;
    envelope.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* rights = CMSG_FIRSTHDR(&envelope);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(rights), message.descriptors.data(), bytes);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &envelope, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return false;
  const auto done = static_cast<size_t>(sent);
  return SendAll(socket, reinterpret_cast<const char*>(&header) + done, sizeof header - done) &&
         SendAll(socket, body.data(), body.size());
}

std::optional<WireMessage> ReceiveWire(int socket) {
  WireMessage message;
  Header header;
  iovec part{&header, sizeof header};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)] = {};
  msghdr envelope{};
  envelope.msg_iov = &part;
  envelope.msg_iovlen = 1;
  envelope.msg_control = control;
  envelope.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(socket, &envelope, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  for (cmsghdr* item = CMSG_FIRSTHDR(&envelope); item != nullptr;
       item = CMSG_NXTHDR(&envelope, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    message.descriptors.resize(count);
    memcpy(message.descriptors.data(), CMSG_DATA(item), count * sizeof(int));
  }
  const auto done = static_cast<size_t>(got);
  std::string body;
  bool whole = ReceiveAll(socket, reinterpret_cast<char*>(&header) + done, sizeof header - done) &&
               header.bytes <= kMaxBody;
  if (whole) {
    body.resize(header.bytes);
    whole = ReceiveAll(socket, body.data(), body.size());
  }
  Reader reader(body);
  message.kind = static_cast<WireKind>(header.kind);
  message.id = reader.Number();
  message.value = reader.Number();
  message.signal = reader.Number();
  message.text = reader.Text();
  message.argv = reader.List();
  message.environment = reader.List();
  if (whole && !reader.broken()) return message;
  for (const int descriptor : message.descriptors) close(descriptor);
  return std::nullopt;
}

}  // namespace jizi::tuner
