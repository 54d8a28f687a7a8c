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
subprocess.run(
    ["cmake", "-S", project, "-B", f"{build}/build", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Debug"],
    check=True,
)
subprocess.run(["cmake", "--build", f"{build}/build", "--parallel", "2", "--target", "train"], check=True)
run = subprocess.run([f"{build}/build/train"], check=True, capture_output=True, text=True, timeout=60, cwd=build)
assert "by hand" in run.stderr, run.stderr
assert "val_accuracy" in run.stdout, run.stdout
