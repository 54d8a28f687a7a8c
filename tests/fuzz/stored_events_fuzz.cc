// Stored events from any bytes: decoding gives an event or an error, what decodes encodes to the
// same meaning, and nothing that is let through CheckFits can abort Apply. The first byte says how
// many measurement rows there are and the second how they look; the rest is a record.

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "tuner-service/core/core.h"
#include "tuner-service/store/record.h"

namespace jizi::tuner {
namespace {

EncodedRecord FromBytes(const uint8_t* data, size_t size) {
  EncodedRecord record;
  record.study = 1;
  record.position = 1;
  if (size < 2) return record;
  for (int i = 0; i < data[0] % 8; ++i) {
    record.rows.push_back({data[1] % 4, data[1] % 3, 0, i, "metric", data[1] / 2.0, i});
  }
  record.payload.assign(reinterpret_cast<const char*>(data) + 2, size - 2);
  return record;
}

// A study with a trial that is running and one that waits.
StudyData SomeState() {
  StudyData state;
  Apply(state, {1,
                1,
                {},
                {StudyCreated{}, TrialCreated{1, 1, {}, ""}, TrialCreated{2, 1, {}, ""},
                 TrialAssigned{1, 1, "worker", {}, Seconds(60), {}}}});
  return state;
}

void TryToApply(StudyData state, LogRecord record) {
  record.position = state.log_position + 1;
  if (CheckFits(state, record).ok()) Apply(state, record);
}

}  // namespace
}  // namespace jizi::tuner

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace jizi::tuner;
  EncodedRecord encoded = FromBytes(data, size);
  encoded.checksum = ChecksumOf(encoded);
  RecordDecoder decoder;
  const auto decoded = decoder.Decode(encoded);
  if (!decoded.ok()) return 0;
  // Fields of a newer version are lost; what is left must be stable.
  const EncodedRecord again = Encode(*decoded);
  const auto twice = decoder.Decode(again);
  CHECK(twice.ok());
  CHECK(Encode(*twice).checksum == again.checksum);
  TryToApply(StudyData(), *decoded);
  TryToApply(SomeState(), *decoded);
  return 0;
}
