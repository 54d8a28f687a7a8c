"""What the command-level tests share: a folder, sweeps of small programs, the real `jizi` as a process, and what is left of it."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import uuid

BUILD = pathlib.Path(sys.argv[1]).resolve()
JIZI = str(BUILD / "jizi")
DEADLINE_S = 120

# Three steps a trial, then a file "go" is waited for where the sweep says so.
PROGRAM = """#!/bin/sh
for word in "$@"; do
  case "$word" in
    --x=*) x="${word#--x=}" ;;
    --wait=*) wait="${word#--wait=}" ;;
  esac
done
for step in 1 2 3; do
  echo "jizi step=$step value=$x total_steps=3"
  [ -n "$wait" ] && while [ ! -e "$wait" ]; do sleep 0.05; done
  sleep "${PAUSE_S:-0.02}"
done
"""


class Fault(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Fault(what)


def until(condition, what, seconds=DEADLINE_S):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.05)


class Place:
    """A folder of its own, and a mark in the environment by which every process of the test is found again."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="jizi-cli-"))
        self.mark = uuid.uuid4().hex
        self.environment = dict(os.environ, JIZI_TEST_MARK=self.mark)
        self.database = self.folder / "sweep.db"
        (self.folder / "train.sh").write_text(PROGRAM)
        (self.folder / "train.sh").chmod(0o700)

    def sweep(self, trials=6, workers=2, wait="", name="sweep", more=""):
        path = self.folder / f"{name}.yaml"
        lines = ["program: train.sh", "method: random", f"run_cap: {trials}", "metric: {name: value, goal: maximize}", "parameters:",
                 "  x: {min: 0.0, max: 1.0}"]
        if wait:
            lines.append(f"  wait: {{value: {self.folder / wait}}}")
        lines.append(f"jizi: {{workers: {workers}, seed: 3, grace: 2{more}}}")
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    def start(self, *arguments, before=None, environment=()):
        log = open(self.folder / f"log-{uuid.uuid4().hex}", "wb")
        process = subprocess.Popen([JIZI, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                                   env=dict(self.environment, **dict(environment)), start_new_session=True, preexec_fn=before)
        process.log = pathlib.Path(log.name)
        return process

    def jizi(self, *arguments, code=0):
        done = subprocess.run([JIZI, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.folder,
                              env=self.environment, timeout=DEADLINE_S, check=False)
        if code is not None:
            check(done.returncode == code, f"jizi {' '.join(arguments)} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
        return done

    def ended_with(self, process, code):
        process.wait(timeout=DEADLINE_S)
        check(process.returncode == code, f"ended with {process.returncode}, not {code}:\n{process.log.read_text()}")

    def processes(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or self.mark.encode() not in (entry / "environ").read_bytes():
                    continue
                if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            except OSError:
                continue
        return found

    def nothing_left(self):
        until(lambda: not self.processes(), f"nothing is left running: {self.processes()}", 30)

    def states(self, database=None):
        try:
            with sqlite3.connect(f"file:{database or self.database}?mode=ro", uri=True) as connection:
                return dict(connection.execute("select lower(state), count(*) from trials group by state"))
        except sqlite3.Error:
            return {}

    def close(self):
        for pid, _ in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


def run_all(tests):
    failed = []
    for test in tests:
        place = Place()
        begin = time.monotonic()
        try:
            test(place)
            print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
        except Exception:  # Each test is told about, whatever went wrong.
            failed.append(test.__name__)
            print(f"{test.__name__}: FAILED\n{traceback.format_exc()}", flush=True)
            for log in sorted(place.folder.glob("log-*")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}", flush=True)
        finally:
            place.close()
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}")


__all__ = ["DEADLINE_S", "Fault", "JIZI", "Place", "check", "json", "os", "run_all", "signal", "sqlite3", "subprocess", "time", "until"]
