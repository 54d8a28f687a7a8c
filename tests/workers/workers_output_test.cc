#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "tests/workers/temp_folder.h"
#include "tuner-service/workers/output_file.h"
#include "tuner-service/workers/output_marks.h"
#include "tuner-service/workers/printed_report.h"
#include "tuner-service/workers/trial_folder.h"

namespace jizi::tuner {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

size_t DiskOf(const TempFolder& folder) {
  size_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    bytes += entry.file_size();
  }
  return bytes;
}

TEST(OutputFileTest, KeepsAllBelowTheCap) {
  TempFolder folder;
  {
    OutputFile(folder / "out", 8192).Append("hello\n");
  }
  {
    OutputFile(folder / "out", 8192).Append("again\n");
  }  // The next attempt.
  EXPECT_EQ(ReadAll(folder / "out"), "hello\nagain\n");
}

TEST(OutputFileTest, KeepsHeadAndTailAndSaysWhatItDropped) {
  TempFolder folder;
  constexpr size_t kCap = 8192;
  {
    OutputFile file(folder / "out", kCap);
    for (int i = 0; i < 200'000; ++i) {
      file.Append("line " + std::to_string(i) + "\n");
      if (i % 20'000 == 0) {
        EXPECT_LE(DiskOf(folder), kCap);
      }
    }
  }
  const std::string text = ReadAll(folder / "out");
  EXPECT_LE(text.size(), kCap + 200);
  EXPECT_THAT(text, StartsWith("line 0\nline 1\n"));
  EXPECT_THAT(text, EndsWith("line 199998\nline 199999\n"));
  EXPECT_THAT(text, HasSubstr("bytes of output dropped here"));
  EXPECT_GE(text.size(), kCap / 2 + kCap / 4);  // At least half of the tail's share is there.
}

// "<text>" and "#<trial>", as the stream has them.
std::string Marked(const std::vector<std::string>& pieces) {
  OutputMarks marks;
  marks.Expect("0123abcd");
  std::string seen;
  const auto on_text = [&](std::string_view text) { seen += text; };
  for (const std::string& piece : pieces) {
    marks.Append(piece, on_text, [&](int64_t trial) { seen += "#" + std::to_string(trial); });
  }
  marks.Finish(on_text);
  return seen;
}

TEST(OutputMarksTest, AMarkIsFoundWhereverItStandsAndHoweverItIsCut) {
  const std::string stream = "loss 1\x1ejizi-trial 0123abcd 12\nnext\n\x1ejizi-trial 0123abcd 13\n";
  for (size_t first = 0; first <= stream.size(); ++first) {
    for (size_t second = first; second <= stream.size(); ++second) {
      EXPECT_EQ(Marked({stream.substr(0, first), stream.substr(first, second - first),
                        stream.substr(second)}),
                "loss 1#12next\n#13");
    }
  }
}

TEST(OutputMarksTest, WhatIsNoMarkStaysAsItIs) {
  for (const std::string text :
       {"\x1e", "\x1e\x1ejizi-trial 0123abcd", "\x1ejizi-trial 0123abcX 1\n",
        "\x1ejizi-trial 0123abcd \n", "\x1ejizi-trial 0123abcd 1x\n",
        "\x1ejizi-trial 0123abcd 1234567890123456789\n", "jizi-trial 0123abcd 1\n"}) {
    EXPECT_EQ(Marked({text}), text);
  }
  EXPECT_EQ(Marked({"\x1e\x1ejizi-trial 0123abcd 4\n"}), "\x1e#4");
}

TEST(OutputFileTest, WhatAKilledOwnerLeftIsJoined) {
  TempFolder folder;
  std::ofstream(folder / "out") << "head\n";
  std::ofstream(folder / "out.tail2") << "middle\n";
  std::ofstream(folder / "out.tail") << "tail\n";
  {
    OutputFile(folder / "out", 8192).Append("new\n");
  }
  EXPECT_EQ(ReadAll(folder / "out"), "head\nmiddle\ntail\nnew\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.tail"));
}

TEST(OutputFileTest, ManyAttemptsStayBounded) {
  TempFolder folder;
  for (int attempt = 0; attempt < 20; ++attempt) {
    OutputFile(folder / "out", 4096).Append(std::string(50'000, 'x'));
  }
  EXPECT_LE(DiskOf(folder), 2 * 4096 + 400U);
}

TEST(TailLinesTest, TwentyLinesAndFourKiB) {
  TailLines tail;
  for (int i = 0; i < 1000; ++i) tail.Append("line " + std::to_string(i) + "\n");
  EXPECT_THAT(tail.Text(), StartsWith("line 980\n"));
  EXPECT_THAT(tail.Text(), EndsWith("line 999"));
  tail.Append(std::string(1 << 20, 'x'));
  EXPECT_LE(tail.Text().size(), 4096U);
  tail.Append("\xff\xfe bad");
  EXPECT_THAT(tail.Text(), EndsWith(" bad"));
}

std::vector<std::string> Scan(const std::vector<std::string>& chunks) {
  std::vector<std::string> lines;
  LineScanner scanner;
  const auto sink = [&](std::string line) { lines.push_back(std::move(line)); };
  for (const std::string& chunk : chunks) scanner.Append(chunk, sink);
  scanner.Finish(sink);
  return lines;
}

TEST(Contract23, OnlyLinesThatStartWithJizi) {
  EXPECT_THAT(Scan({"epoch 1\njizi a=1\n jizi b=2\njizib=3\nji", "zi c=", "3\r\njizi d=4"}),
              ElementsAre("jizi a=1", "jizi c=3", "jizi d=4"));
  EXPECT_THAT(Scan({"jizi " + std::string(65536, 'x') + "\njizi ok=1\n"}),
              ElementsAre("jizi ok=1"));  // Longer than 64 KiB: passed over.
}

TEST(Contract23, PairsOrOneJsonObject) {
  const auto pairs =
      ParsePrintedReport("jizi step=3  val_accuracy=0.91 loss=nan x=-inf total_steps=10");
  EXPECT_EQ(pairs.left_out, 0) << pairs.wrong;
  EXPECT_EQ(pairs.step, 3);
  EXPECT_EQ(pairs.total_steps, 10);
  EXPECT_EQ(pairs.measurement.metrics().at("val_accuracy"), 0.91);
  EXPECT_TRUE(std::isnan(pairs.measurement.metrics().at("loss")));
  EXPECT_EQ(pairs.measurement.metrics().at("x"), -INFINITY);
  const auto object = ParsePrintedReport(
      R"(jizi {"step": 4, "a \"NaN": 1, "loss": NaN, "y": -Infinity, "z": "NaN"})");
  EXPECT_EQ(object.left_out, 0) << object.wrong;
  EXPECT_EQ(object.step, 4);
  EXPECT_EQ(object.measurement.metrics().at("a \"NaN"), 1);
  EXPECT_TRUE(std::isnan(object.measurement.metrics().at("loss")));
  EXPECT_TRUE(std::isnan(object.measurement.metrics().at("z")));
  EXPECT_EQ(object.measurement.metrics().at("y"), -INFINITY);
  EXPECT_FALSE(ParsePrintedReport("jizi loss=0.5").step.has_value());
}

TEST(Contract23, SaysWhatIsWrong) {
  for (const char* line :
       {"jizi ", "jizi loss", "jizi loss=abc", "jizi =3", "jizi step=3", "jizi step=-1 a=1",
        "jizi step=1.5 a=1", "jizi {", "jizi {\"a\": []}", "jizi {\"a\": 1", "jizi \xff=1",
        "jizi step=nan a=1", "jizi a\x01=1", "jizi {\"step\": \"x\", \"a\": 1}"}) {
    const auto report = ParsePrintedReport(line);
    EXPECT_EQ(DetailOf(report.wrong).code, "PRINTED_REPORT") << line;
    EXPECT_EQ(report.left_out, 1) << line;
    EXPECT_TRUE(report.measurement.metrics().empty()) << line;
  }
}

TEST(Contract23, OneBadValueCostsItselfAlone) {
  const std::string long_name(257, 'n');
  for (const std::string& line :
       {std::string("jizi step=5 acc=0.8 note=hello"), "jizi step=5 acc=0.8 " + long_name + "=1",
        std::string("jizi step=5 acc=0.8 a\0b=1", 26), std::string("jizi step=5 x\x7f=1 acc=0.8"),
        std::string("jizi step=5 acc=0.8 total_steps=1.5"), std::string("jizi oh step=5 acc=0.8"),
        std::string(R"(jizi {"step": 5, "acc": 0.8, "note": "hello"})"),
        std::string(R"(jizi {"step": 5, "acc": 0.8, "a\tb": 1})"),
        std::string(R"(jizi {"step": 5, "acc": 0.8, "a\u0000b": 1})")}) {
    const PrintedReport report = ParsePrintedReport(line);
    EXPECT_EQ(report.left_out, 1) << line;
    EXPECT_EQ(DetailOf(report.wrong).code, "PRINTED_REPORT") << line;
    EXPECT_EQ(report.measurement.step(), 5) << line;
    ASSERT_EQ(report.measurement.metrics().size(), 1) << line;
    EXPECT_EQ(report.measurement.metrics().at("acc"), 0.8) << line;
  }
  std::string many = "jizi step=1";
  for (int i = 0; i < 1010; ++i) many += " m" + std::to_string(i) + "=1";
  EXPECT_EQ(ParsePrintedReport(many).measurement.metrics().size(), 1000);
  EXPECT_EQ(ParsePrintedReport(many).left_out, 10);
  EXPECT_EQ(ParsePrintedReport("jizi " + std::string(256, 'n') + "=1").left_out, 0);
  const std::string message(ParsePrintedReport("jizi " + std::string(60'000, 'x')).wrong.message());
  EXPECT_LT(message.size(), 200U);
}

TEST(OutputFileTest, AFifoInItsPlaceHoldsNobodyUp) {
  TempFolder folder;
  for (const char* name : {"log", "log.tail"}) {
    ASSERT_EQ(mkfifo((folder / name).c_str(), 0600), 0);
  }
  OutputFile file(folder / "log", 8192);
  file.Append(std::string(10'000, 'x'));
}

TEST(Contract26, PathsStayBeneathTheirFolder) {
  TempFolder folder;
  const std::string trial = TrialFolder(folder.path(), 7);
  EXPECT_EQ(trial, folder / "000007");
  ASSERT_TRUE(MakeTrialFolder(folder.path(), 7).ok());
  std::ofstream(folder / "secret") << "s";
  std::ofstream(trial + "/checkpoints/a") << "s";
  ASSERT_EQ(symlink("../../secret", (trial + "/checkpoints/link").c_str()), 0);
  ASSERT_EQ(symlink("checkpoints", (trial + "/c").c_str()), 0);
  const auto path = CheckpointPath(folder.path(), 7, "checkpoints/a");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, trial + "/checkpoints/a");
  for (const std::string& bad :
       {std::string("../secret"), folder / "secret", std::string("checkpoints/link"),
        std::string("c/a"), std::string("checkpoints"), std::string(""), std::string("none"),
        std::string("checkpoints/../../secret")}) {
    const auto refused = CheckpointPath(folder.path(), 7, bad);
    EXPECT_EQ(DetailOf(refused.status()).code, "WARM_START_NOT_VISIBLE") << bad;
  }
  const auto why = [&](const std::string& bad) {
    return std::string(CheckpointPath(folder.path(), 7, bad).status().message());
  };
  EXPECT_NE(why("c/a").find("is a link"), std::string::npos) << why("c/a");
  EXPECT_NE(why("none").find("No such file"), std::string::npos) << why("none");
}

}  // namespace
}  // namespace jizi::tuner
