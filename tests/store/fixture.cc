// store_fixture FILE: writes the database that a release commits to tests/store/data, a file for
// each version of the schema.
#include <cstdio>

#include "tests/store/history.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: store_fixture FILE\n");
    return 2;
  }
  const auto store = jizi::tuner::testing::OpenOrFail(argv[1]);
  const auto history = jizi::tuner::testing::RichHistory(1, "fixture");
  return store->Append(history).ok() ? 0 : 1;
}
