#pragma once
// outbox_file.h - the format of the file JIZI_OUTBOX, which a program writes and its worker may
// have to read: jizi.v1.ReportRequest messages in protobuf's delimited format (each after its
// length as a varint), in the order of their sequences, each with its lease. A torn tail (the
// program was killed while it wrote) ends the file for a reader. What a reader sends
// (docs/contracts.md, 22): of an attempt that it holds, not what stands below the next sequence
// that Attach answered. The entry at that sequence goes as it is: it may have been under way when
// the program died. Where the first one left stands above it (the registration of a checkpoint was
// in flight) it and all behind it were never sent, and are numbered from there. Fails: a file that
// is not there, or no ordinary file, reads as empty. Threads: none of its own. Cost: one message in
// memory at a time.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "jizi/v1/tune_service.pb.h"

namespace jizi {

// One message after the other, as the file holds them.
std::string OutboxBytes(const std::vector<const v1::ReportRequest*>& requests);

struct OutboxEnd {
  int64_t whole_bytes = 0;  // Up to the torn tail.
  bool torn = false;
};

// Every whole report, in the file's order. An error of `each` ends the reading and is returned.
StatusOr<OutboxEnd> ForEachReport(const std::string& path,
                                  const std::function<Status(v1::ReportRequest)>& each);

}  // namespace jizi
