// Digests of request bodies, and random lease tokens.

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "tuner-service/rpc/calls.h"

namespace jizi::tuner {
namespace {

Digest Hash(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  Digest digest{};
  std::copy_n(hash, digest.size(), digest.begin());
  return digest;
}

template <typename Request>
Request WithoutSequence(const Request& request) {
  Request copy = request;
  copy.clear_sequence();
  return copy;
}

}  // namespace

Digest DigestOf(const v1::SuggestRequest& request) {
  return Hash(WithoutSequence(request));
}

Digest DigestOf(const v1::ReportRequest& request) {
  v1::ReportRequest copy = WithoutSequence(request);
  copy.clear_catching_up();
  return Hash(copy);
}

Digest DigestOf(const v1::RegisterCheckpointRequest& request) {
  return Hash(WithoutSequence(request));
}

Digest DigestOf(const v1::ReleaseRequest& request) {
  return Hash(WithoutSequence(request));
}

Digest DigestOf(const v1::CompleteRequest& request) {
  return Hash(WithoutSequence(request));
}

std::vector<Token> RandomTokens(size_t count) {
  std::vector<Token> tokens(count);
  auto* bytes = reinterpret_cast<unsigned char*>(tokens.data());
  size_t left = count * sizeof(Token);
  while (left > 0) {
    const ssize_t got = getrandom(bytes, left, 0);
    CHECK(got > 0 || errno == EINTR);  // Fails only on a kernel without the call.
    if (got <= 0) continue;
    bytes += got;
    left -= static_cast<size_t>(got);
  }
  return tokens;
}

}  // namespace jizi::tuner
