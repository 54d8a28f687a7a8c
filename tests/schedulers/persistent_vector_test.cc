#include "schedulers/model/persistent_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

TEST(Cow, AWriterGetsItsOwnCopyAndOtherHandlesKeepTheirs) {
  Cow<std::string> a(std::string("old"));
  Cow<std::string> b = a;
  EXPECT_TRUE(a.SharesWith(b));
  b.Mutable() = "new";
  EXPECT_FALSE(a.SharesWith(b));
  EXPECT_EQ(*a, "old");
  EXPECT_EQ(*b, "new");
}

TEST(Cow, ASoleOwnerWritesInPlace) {
  Cow<std::string> a(std::string("x"));
  const std::string* before = &*a;
  a.Mutable() += "y";
  EXPECT_EQ(&*a, before);
  {
    const Cow<std::string> gone(a);
  }
  a.Mutable() += "z";
  EXPECT_EQ(&*a, before);
}

TEST(Cow, EqualByValueAndEmptyOnlyEqualsEmpty) {
  EXPECT_EQ(Cow<int>(3), Cow<int>(3));
  EXPECT_FALSE(Cow<int>(3) == Cow<int>(4));
  EXPECT_FALSE(Cow<int>(0) == Cow<int>());
  EXPECT_EQ(Cow<int>(), Cow<int>());
  Cow<int> empty;
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty.Mutable(), 0);
  EXPECT_TRUE(empty);
}

TEST(Cow, AssigningToItselfKeepsTheValue) {
  Cow<std::string> a(std::string("x"));
  const Cow<std::string>& same = a;
  a = same;
  EXPECT_EQ(*a, "x");
}

// Against std::vector, with snapshots taken all along that must not change.
TEST(PersistentVector, AgreesWithAVectorAndItsCopiesNeverChange) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 1});
    PersistentVector<uint64_t> tree;
    std::vector<uint64_t> plain;
    std::vector<std::pair<PersistentVector<uint64_t>, std::vector<uint64_t>>> snapshots;
    for (int step = 0; step < 3000; ++step) {
      const uint64_t action = rng.Below(1000);
      if (action < 800 || plain.empty()) {
        tree.push_back(rng.Next());
        plain.push_back(tree.back());
      } else if (action < 995) {
        const size_t at = rng.Below(plain.size());
        plain[at] = tree.Mutable(at) = rng.Next();
      } else if (action < 997) {
        const size_t size = rng.Below(plain.size() + 2);
        tree.Truncate(size);
        plain.resize(std::min(size, plain.size()));
      } else {
        snapshots.emplace_back(tree, plain);
      }
    }
    snapshots.emplace_back(tree, plain);
    for (const auto& [copy, expected] : snapshots) {
      EXPECT_EQ(std::vector<uint64_t>(copy.begin(), copy.end()), expected);
      EXPECT_EQ(copy.size(), expected.size());
    }
  }
}

TEST(PersistentVector, HoldsMoreThanThreeLevels) {
  PersistentVector<int> vector;
  const int count = 32 * 32 * 32 + 5;
  for (int i = 0; i < count; ++i) vector.push_back(i);
  for (int i = 0; i < count; ++i) ASSERT_EQ(vector[static_cast<size_t>(i)], i);
  PersistentVector<int> copy = vector;
  copy.Mutable(7) = -1;
  EXPECT_EQ(vector[7], 7);
  EXPECT_EQ(copy[7], -1);
  EXPECT_FALSE(copy == vector);
  copy.Mutable(7) = 7;
  EXPECT_EQ(copy, vector);
}

TEST(PersistentVector, WritingAfterACopyCopiesOnePathOfChunks) {
  struct Counted {
    int* copies;
    explicit Counted(int* counter) : copies(counter) {}
    Counted(const Counted& other) : copies(other.copies) { ++*copies; }
    Counted& operator=(const Counted&) = default;
  };
  int copies = 0;
  PersistentVector<Counted> vector;
  for (int i = 0; i < 5000; ++i) vector.push_back(Counted(&copies));
  const PersistentVector<Counted> snapshot = vector;
  copies = 0;
  vector.Mutable(1234);
  EXPECT_EQ(copies, static_cast<int>(PersistentVector<Counted>::kFanout));
  vector.Mutable(1235);  // The same chunk, now its own.
  EXPECT_EQ(copies, static_cast<int>(PersistentVector<Counted>::kFanout));
}

TEST(PersistentVector, WhatWasMovedFromIsEmptyAndUsable) {
  PersistentVector<int> from;
  for (int i = 0; i < 100; ++i) from.push_back(i);
  PersistentVector<int> to = std::move(from);
  EXPECT_EQ(to.size(), 100u);
  EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): the claim under test.
  EXPECT_EQ(from.begin(), from.end());
  from.push_back(5);
  EXPECT_EQ(from.back(), 5);
  to = std::move(from);
  EXPECT_EQ(to.size(), 1u);
}

// Run under TSAN: readers of snapshots beside a writer that goes on.
TEST(PersistentVector, SnapshotsAreReadOnOtherThreadsWhileTheWriterGoesOn) {
  PersistentVector<Cow<std::string>> vector;
  std::vector<std::thread> readers;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) vector.push_back(Cow<std::string>(std::to_string(round)));
    readers.emplace_back([snapshot = vector, round]() mutable {
      size_t bytes = 0;
      for (const Cow<std::string>& text : snapshot) bytes += text->size();
      EXPECT_GE(bytes, snapshot.size());
      snapshot.Mutable(0).Mutable() = "mine";
      snapshot.push_back(Cow<std::string>(std::string("more")));
      EXPECT_EQ(snapshot.size(), static_cast<size_t>(50 * (round + 1) + 1));
    });
    for (size_t i = 0; i < vector.size(); i += 7) vector.Mutable(i).Mutable() += "!";
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_NE(*vector[0], "mine");
}

}  // namespace
}  // namespace jizi::tuner
