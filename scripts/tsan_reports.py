#!/usr/bin/env python3
"""tsan_reports.py FOLDER: prints the reports of ThreadSanitizer that are ours, and fails if there are any.

Debian's libgrpc is not instrumented and its locks are not pthread's, so the templates of gRPC's headers, compiled into our
programs, look like races by the hundred. A suppression names any frame of a stack, and our handlers always have a frame of
gRPC below them: it would hide ours as well. So each report is judged by where its two accesses happen: in our own
files (what the standard library does for them included) or in gRPC's headers and generated code.
"""

import pathlib
import re
import sys

FRAME = re.compile(r'^\s+#\d+ (?P<function>.*) (?P<file>/\S+?|\S+?)(:\d+)* \(')
ACCESS = re.compile(r'^  (?:Previous )?(?:atomic )?(?:read|write) of size[^\n]*\n((?:    #.*\n)+)', re.M | re.I)
# Whoever has the object only through gRPC sees it built: gRPC hands it over between threads, out of sight.
HANDED_OVER = re.compile(r'(?<!~)\b(UnaryCall|WatchStream::WatchStream|WatchStudy|CallRaw)(\(|$)')


def place(stack):
  """The function and file that touched the memory: the innermost frame that is not the standard library's."""
  for line in stack.splitlines():
    frame = FRAME.match(line)
    if frame and not re.search(r'/usr/include/c\+\+/|libsanitizer|<null>', frame['file']):
      return frame['function'], frame['file']
  return '', ''


def is_ours(report):
  # The stack of the older access may be lost ("failed to restore the stack"): then the other one tells, for both are of one place in memory.
  accesses = [place(stack) for stack in ACCESS.findall(report)[:2]]
  if not accesses:
    return True  # No race between two accesses: a lock order, a leak, a signal handler.
  foreign = any('/usr/include/' in file or '.pb.' in file or not file for _, file in accesses)
  return not foreign and not any(HANDED_OVER.search(function) for function, _ in accesses)


def main():
  reports = []
  for path in sorted(pathlib.Path(sys.argv[1]).glob('*')):
    parts = path.read_text(errors='replace').split('=' * 18 + '\n')
    reports += [(path.name, part) for part in parts if 'WARNING: ThreadSanitizer' in part]
  ours = [(name, report) for name, report in reports if is_ours(report)]
  for name, report in ours[:20]:
    print(f'{name}\n{report}')
  print(f'tsan: {len(ours)} reports of our own code, {len(reports) - len(ours)} of gRPC\'s templates left out')
  sys.exit(1 if ours else 0)


if __name__ == '__main__':
  main()
