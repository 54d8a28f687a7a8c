"""Builds the project that the README shows, outside this tree, and runs its program by hand."""

import pathlib
import re
import subprocess
import sys

source, build, compiler = sys.argv[1:]
readme = pathlib.Path(source, "trial-helper/README.md").read_text()
blocks = dict(re.findall(r"```(cmake|cpp)\n(.*?)```", readme, re.DOTALL))
example = pathlib.Path(source, "examples/instrument")
# The page and the example that it points to are the same text.
assert blocks["cpp"] in (example / "minimal.cc").read_text(), "README.md and minimal.cc differ"

project = pathlib.Path(build, "project")
project.mkdir(parents=True, exist_ok=True)
(project / "train.cc").write_text((example / "minimal.cc").read_text())
(project / "CMakeLists.txt").write_text(blocks["cmake"].replace("/path/to/jizi", source))


def configure(folder, *options):
    subprocess.run(
        ["cmake", "-S", project, "-B", f"{build}/{folder}", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", *options],
        check=True,
    )


def make(folder, *targets):
    made = subprocess.run(
        ["cmake", "--build", f"{build}/{folder}", "--parallel", "2", "--target", *targets],
        stdout=subprocess.PIPE,
        text=True,
    )
    print(made.stdout, flush=True)
    made.check_returncode()
    return made.stdout


# Each level of optimisation finds warnings of its own, and none of them may end a person's build. Two files that build much text
# stand for all; no build type is what the README's own command gives.
few = ["jizi/proto/CMakeFiles/jizi_client.dir/client.cc.o", "jizi/trial-helper/CMakeFiles/JiziTrialHelper.dir/params.cc.o"]
for folder, options in {
    "none": [],
    "release": ["-DCMAKE_BUILD_TYPE=Release"],
    "with_debug_info": ["-DCMAKE_BUILD_TYPE=RelWithDebInfo"],
}.items():
    configure(folder, *options)
    commands = pathlib.Path(build, folder, "build.ninja").read_text()
    assert "-Werror" not in commands, f"{folder}: -Werror in a project that is not ours"
    said = make(folder, *few)
    assert "warning:" not in said, said

configure("build", "-DCMAKE_BUILD_TYPE=Debug")
make("build", "train")
run = subprocess.run([f"{build}/build/train"], check=True, capture_output=True, text=True, timeout=60, cwd=build)
assert "by hand" in run.stderr, run.stderr
assert "val_accuracy" in run.stdout, run.stdout
