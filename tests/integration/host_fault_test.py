#!/usr/bin/env python3
"""Faults of the machine under the real program: no trial fails for them, nothing is charged, and --resume goes on.

usage: host_fault_test.py BUILD_DIR
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from harness import *  # noqa: E402, F403

TRIALS = 5


def program(place, text):
    """What the program does once before it trains; $HERE is the folder of all trials."""
    train = place.folder / "train.sh"
    train.write_text("#!/bin/sh\nHERE=$(dirname \"$PWD\")\n" + text + "\necho jizi step=1 value=0.5\n")
    train.chmod(0o700)


def attempts_that(place, how, database=None):
    with sqlite3.connect(f"file:{database or place.database}?mode=ro", uri=True) as connection:
        return connection.execute("select trial, why from attempts where lower(end) = ?", (how,)).fetchall()


def goes_on(place, sweep, *target):
    place.jizi("run", sweep, *target, "--resume")
    check(place.states() == {"completed": TRIALS}, f"states are {place.states()}")
    check(not attempts_that(place, "failed"), f"failed: {attempts_that(place, 'failed')}")
    place.nothing_left()


def a_folder_that_cannot_be_made_ends_the_run_and_charges_nothing(place):
    program(place, "[ $JIZI_TRIAL = 2 ] && [ ! -e $HERE/once ] && touch $HERE/once $HERE/000004")
    sweep = place.sweep(trials=TRIALS, workers=1)
    done = place.jizi("run", sweep, code=3)
    check("cannot make the trial's folder" in done.stderr and "--resume" in done.stderr, done.stderr)
    states = place.states()
    check(states.get("completed") == 3 and not states.get("failed"), f"states are {states}")
    blocker = next(place.folder.rglob("000004"))
    blocker.unlink()
    goes_on(place, sweep)


def a_full_disk_fails_no_trial(place):
    small = place.folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(small)], capture_output=True, check=False)
    if mounted.returncode != 0:
        print("  (no mount here: a full disk is not tried)")
        return
    try:
        place.database = small / "sweep.db"
        program(place, "[ $JIZI_TRIAL = 2 ] && [ ! -e $HERE/once ] && touch $HERE/once && "
                       "dd if=/dev/zero of=$HERE/fill bs=64k 2> /dev/null")
        sweep = place.sweep(trials=TRIALS, workers=1)
        run = place.start("run", sweep, "--db", str(place.database))
        fill = until(lambda: next(small.rglob("fill"), None), "the disk is full")
        # It ends by itself, or waits for the database until somebody frees space: then it goes on.
        try:
            run.wait(timeout=8)
            check(run.returncode in (3, 5), f"ended with {run.returncode}:\n{run.log.read_text()}")
        except subprocess.TimeoutExpired:
            pass
        fill.unlink()
        run.wait(timeout=DEADLINE_S)
        check(not place.states().get("failed"), f"states are {place.states()}")
        goes_on(place, sweep, "--db", str(place.database))
    finally:
        for pid, _ in place.processes():
            os.kill(pid, signal.SIGKILL)
        place.nothing_left()
        subprocess.run(["umount", "-l", str(small)], check=True)


def a_killed_supervisor_ends_the_run_and_charges_nothing(place):
    program(place, "[ $JIZI_TRIAL = 2 ] && [ ! -e $HERE/once ] && touch $HERE/once && kill -9 $PPID && sleep 100")
    sweep = place.sweep(trials=TRIALS, workers=2, more=", retries: 1")
    done = place.jizi("run", sweep, code=3)
    check("supervisor" in done.stderr and "--resume" in done.stderr, done.stderr)
    check(not place.states().get("failed"), f"states are {place.states()}")
    check(not attempts_that(place, "failed"), f"failed: {attempts_that(place, 'failed')}")
    goes_on(place, sweep)


def a_stopped_supervisor_is_continued_and_the_limit_holds(place):
    program(place, "[ $JIZI_TRIAL = 1 ] && kill -STOP $PPID && sleep 100")
    sweep = place.sweep(trials=2, workers=1, more=", time_limit: 2s")
    done = place.jizi("run", sweep)
    check("time limit" in done.stdout, done.stdout)
    check(place.states() == {"failed": 1, "completed": 1}, f"states are {place.states()}")
    place.nothing_left()


def what_cannot_start_leaves_no_study_behind(place):
    gpus = place.sweep(more=", resources: {gpus: 2, gpu_ids: [0]}", workers=1)
    for command in ("check", "run"):
        done = place.jizi(command, gpus, code=2)
        check("need 2 ids" in done.stderr, done.stderr)
    sweep = place.sweep(trials=1, workers=1, more=", resources: {gpus: 2, gpu_ids: [0, 1]}")
    place.jizi("run", sweep)  # Not "there is a study of that name".
    unset = place.folder / "unset.yaml"
    unset.write_text(pathlib.Path(sweep).read_text() + 'command: ["${program}", "${envvar:JIZI_NOT_SET}", "${args}"]\n')
    for command, code in (("check", 0), ("run", 2)):  # It may be set where the sweep is to run: a warning.
        done = place.jizi(command, str(unset), code=code)
        check("${envvar:JIZI_NOT_SET}, which is not set" in done.stderr, done.stderr)
    check(not (place.folder / "unset.db").exists(), "a database was made")


run_all([
    a_folder_that_cannot_be_made_ends_the_run_and_charges_nothing,
    a_full_disk_fails_no_trial,
    a_killed_supervisor_ends_the_run_and_charges_nothing,
    a_stopped_supervisor_is_continued_and_the_limit_holds,
    what_cannot_start_leaves_no_study_behind,
])
