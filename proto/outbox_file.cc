#include "proto/outbox_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <sys/stat.h>
#include <unistd.h>

namespace jizi {

std::string OutboxBytes(const std::vector<const v1::ReportRequest*>& requests) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  for (const v1::ReportRequest* request : requests) {
    google::protobuf::util::SerializeDelimitedToCodedStream(*request, &coded);
  }
  coded.Trim();
  return bytes;
}

StatusOr<OutboxEnd> ForEachReport(const std::string& path,
                                  const std::function<Status(v1::ReportRequest)>& each) {
  // Not blocking: a pipe of that name must not hold its reader.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return OutboxEnd{};
  google::protobuf::io::FileInputStream file(fd);
  file.SetCloseOnDelete(true);
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return OutboxEnd{};
  OutboxEnd end;
  v1::ReportRequest request;
  while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&request, &file, nullptr)) {
    end.whole_bytes = file.ByteCount();
    TRY(each(std::move(request)));
    request.Clear();
  }
  end.torn = lseek(fd, 0, SEEK_END) != end.whole_bytes;
  return end;
}

}  // namespace jizi
