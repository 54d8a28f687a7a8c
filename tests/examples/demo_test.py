#!/usr/bin/env python3
"""make demo at a tiny size: the example by hand, its sweep through `jizi run`, Ctrl-C and --resume, kill -9 and --resume.

usage: demo_test.py BUILD_DIR SOURCE_DIR
"""
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid

BUILD, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
MARK = uuid.uuid4().hex
ENVIRONMENT = dict(os.environ, JIZI_TEST_MARK=MARK)
TRIALS = 6


def tiny_sweep(folder):
    """The example's own sweep file, with its program from this build, and less of everything."""
    text = (SOURCE / "examples/fashion_mnist/sweep.yaml").read_text()
    text = re.sub(r"program: \S+", f"program: {BUILD}/fashion_mnist", text)
    text = re.sub(r"run_cap: \d+", f"run_cap: {TRIALS}", text)
    text = text.replace("  epochs:\n    value: 3", "  train_examples:\n    value: 600\n  epochs:\n    value: 2")
    assert "train_examples" in text, "the sweep file has changed its shape"
    path = folder / "tiny.yaml"
    path.write_text(text)
    return path


def run(folder, sweep, *more):
    return subprocess.Popen([str(BUILD / "jizi"), "run", str(sweep), "--db", str(folder / "tiny.db"), *more], env=ENVIRONMENT, cwd=folder,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def ended(folder):
    try:
        with sqlite3.connect(f"file:{folder}/tiny.db?mode=ro", uri=True) as connection:
            return dict(connection.execute("select state, count(*) from trials group by state"))
    except sqlite3.OperationalError:
        return {}


def wait_for_some_trial(folder, count):
    end = time.monotonic() + 90
    while sum(ended(folder).get(s, 0) for s in ("Completed", "Infeasible")) < count:
        assert time.monotonic() < end, f"no trial has ended: {ended(folder)}"
        time.sleep(0.05)


def nothing_left():
    end = time.monotonic() + 30
    while True:
        left = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and MARK.encode() in (entry / "environ").read_bytes():
                    if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                        left.append((entry / "cmdline").read_bytes())
            except OSError:
                continue
        if not left:
            return
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.05)


def through_to_the_end(folder, sweep):
    last = run(folder, sweep, "--resume")
    output, _ = last.communicate(timeout=240)
    assert last.returncode == 0, f"run --resume ended with {last.returncode}:\n{output}"
    states = ended(folder)
    assert sum(states.values()) == TRIALS and set(states) <= {"Completed", "Infeasible"}, f"{states}\n{output}"
    nothing_left()
    return output


def by_hand():
    done = subprocess.run([str(BUILD / "fashion_mnist"), "--epochs=1", "--train_examples=4000", "--batch_size=64"], capture_output=True,
                          text=True, timeout=120, check=True)
    accuracy = float(re.search(r"validation accuracy ([\d.]+)", done.stdout).group(1))
    assert accuracy > 0.3, f"it does not learn: {done.stdout}"  # Ten classes: 0.1 is chance.


def interrupted(folder, how):
    sweep = tiny_sweep(folder)
    first = run(folder, sweep)
    wait_for_some_trial(folder, 1)
    first.send_signal(how)
    first.communicate(timeout=90)
    nothing_left()
    return through_to_the_end(folder, sweep)


def main():
    by_hand()
    for how in (signal.SIGINT, signal.SIGKILL):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="jizi-demo-"))
        output = interrupted(folder, how)
        assert "val_accuracy" in output and "tiny.db" in output, f"the best trial or the file is not shown:\n{output}"
        shutil.rmtree(folder)
        print(f"{how.name}: {TRIALS} trials ended, no process left")


main()
