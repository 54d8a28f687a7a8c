#!/usr/bin/env python3
"""Outputs, disks and files that fail under the real program (docs/contracts.md, 3).   usage: faults_test.py BUILD_DIR
What needs a mount runs in a mount namespace of its own (unshare -rm); where there is none it is skipped, and said."""
import os
import resource
import subprocess
import sys

INSIDE = "JIZI_TEST_NAMESPACE"
if INSIDE not in os.environ:
    can = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False).returncode == 0
    os.environ[INSIDE] = "yes" if can else "no"
    if can:
        os.execvp("unshare", ["unshare", "-rm", sys.executable, *sys.argv])

from harness import *

MOUNTS = os.environ[INSIDE] == "yes"


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def fill(folder):
    with open(folder / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 1024)
        except OSError:
            pass


def with_output(place, output, *arguments, before=None):
    with open(output, "wb") as out:
        return subprocess.run([JIZI, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, cwd=place.folder,
                              env=place.environment, timeout=DEADLINE_S, preexec_fn=before, check=False)


def an_output_that_cannot_be_written_is_said_and_a_run_goes_on(place):
    sweep = place.sweep(trials=2)
    run = with_output(place, "/dev/full", "run", sweep)
    check(run.returncode == 0 and place.states() == {"completed": 2}, run.stderr)
    for command in (["studies", "--db", "sweep.db"], ["trials", "sweep"], ["trials", "sweep", "--json"], ["show", "sweep", "1"], ["best", "sweep"],
                    ["watch", "sweep"], ["watch", "sweep", "--json"], ["export", "sweep"], ["export", "sweep", "--format", "json"],
                    ["check", sweep], ["check", sweep, "--json"], ["enqueue", "sweep", "x=0.5"]):
        done = with_output(place, "/dev/full", *command)
        check(done.returncode == 6 and "cannot write the output: No space left on device" in done.stderr, (command, done))
    check(place.states() == {"completed": 2, "queued": 1}, "what was told was done")


def a_reader_that_has_enough_is_no_error(place):
    place.jizi("run", place.sweep(trials=2))
    for ignored in (signal.SIG_DFL, signal.SIG_IGN):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([JIZI, "export", "sweep"], stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE, text=True,
                              cwd=place.folder, env=place.environment, timeout=DEADLINE_S, restore_signals=False,
                              preexec_fn=lambda how=ignored: signal.signal(signal.SIGPIPE, how), check=False)
        os.close(write)
        check(done.stderr == "" and done.returncode in (0, -signal.SIGPIPE), done)


def what_is_no_database_is_left_alone(place):
    sweep = place.sweep(trials=1)
    text = place.folder / "text.db"
    text.write_text("this is no database\n" * 100)
    with sqlite3.connect(place.folder / "theirs.db") as theirs:
        theirs.execute("create table theirs (a)")
    theirs.close()
    place.jizi("run", sweep, "--db", "newer.db")
    for extra in place.folder.glob("newer.*"):
        if extra.name != "newer.db":
            subprocess.run(["rm", "-rf", str(extra)], check=True)
    with sqlite3.connect(place.folder / "newer.db") as newer:
        newer.execute("pragma journal_mode = delete")
        newer.execute("pragma user_version = 999999")
    newer.close()
    before = sorted(entry.name for entry in place.folder.iterdir())
    for name, code in (("text.db", 2), ("theirs.db", 2), ("newer.db", 4), ("no/such/x.db", 4)):
        for command in (["run", sweep], ["serve", "--listen", "127.0.0.1:0"], ["best", "sweep"], ["pause", "sweep"]):
            place.jizi(*command, "--db", name, code=code)
    after = sorted(entry.name for entry in place.folder.iterdir())
    check(before == after, (before, after))


def a_file_that_may_not_be_written_is_refused_and_read(place):
    sweep = place.sweep(trials=1)
    place.jizi("run", sweep)
    for path in (place.database, place.folder):  # A read-only file, then a read-only folder: an archive.
        mount("--bind", str(path), str(path))
        mount("-o", "remount,bind,ro", str(path))
        for command in (["run", sweep, "--resume"], ["serve", "--listen", "127.0.0.1:0"], ["enqueue", "sweep", "x=0.5"], ["pause", "sweep"]):
            refused = place.jizi(*command, "--db", str(place.database), code=4)
            check("sweep.db cannot be written" in refused.stderr and "make the file and its folder writable" in refused.stderr, refused.stderr)
        for command in (["best", "sweep"], ["trials", "sweep"], ["show", "sweep", "1"], ["export", "sweep"], ["studies"], ["watch", "sweep"]):
            check("sweep" in place.jizi(*command, "--db", str(place.database)).stdout + "sweep", "queries work")
        check("best trial  1" in place.jizi("best", "sweep", "--db", str(place.database)).stdout, "best")
        subprocess.run(["umount", "-l", str(path)], check=True)
    subprocess.run(["rm", "-f", f"{place.database}-shm"], check=True)
    (place.folder / "sweep.db-wal").write_bytes(b"what a crash left")
    mount("--bind", str(place.folder), str(place.folder))
    mount("-o", "remount,bind,ro", str(place.folder))
    torn = place.jizi("best", "sweep", "--db", str(place.database), code=4)
    check("copy both files" in torn.stderr, torn.stderr)
    subprocess.run(["umount", "-l", str(place.folder)], check=True)


def a_full_disk_is_said_once_and_the_run_goes_on(place):
    small = place.folder / "small"
    small.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small))
    # Reports without a pause, so that the log of the database grows all the time.
    (place.folder / "train.sh").write_text(f"#!/bin/sh\nwhile [ ! -e {place.folder}/go ]; do sleep 0.05; done\ni=0\n" +
                                           "while [ $i -lt 300 ]; do i=$((i+1)); echo \"jizi step=$i value=$i\"; sleep 0.02; done\n")
    run = place.start("run", place.sweep(trials=1, workers=1), "--db", "small/x.db")
    until(lambda: place.states(small / "x.db").get("running") == 1, "a trial runs")
    fill(small)
    (place.folder / "go").touch()
    until(lambda: "the disk is full" in run.log.read_text(), "it is said")
    (small / "filler").unlink()
    place.ended_with(run, 0)
    text = run.log.read_text()
    check(text.count("the disk is full") == 1 and "free some space" in text and text.count("can be written again") == 1, text)
    check("level=" not in text and "code=" not in text, text)
    check(place.states(small / "x.db") == {"completed": 1}, text)
    subprocess.run(["umount", "-l", str(small)], check=True)


def a_full_disk_does_not_fill_the_log_of_serve(place):
    small = place.folder / "small"
    small.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small))
    listen = f"unix:{place.folder}/s/socket"
    server = place.start("serve", "--db", "small/x.db", "--listen", listen)
    until(lambda: "serving " in server.log.read_text(), "the server is up")
    place.jizi("run", place.sweep(trials=1), "--server", listen)
    fill(small)
    until(lambda: place.jizi("enqueue", "sweep", "x=0.5", "--server", listen, code=None).returncode == 5, "it is full")
    for _ in range(60):
        place.jizi("enqueue", "sweep", "x=0.5", "--server", listen, code=5)
    text = server.log.read_text()
    check(text.count("the disk is full") == 1, text)
    check(text.count("level=warning") < 60, text)
    (small / "filler").unlink()

    def again():
        place.jizi("enqueue", "sweep", "x=0.5", "--server", listen)
        return "can be written again" in server.log.read_text()

    until(again, "that it goes on is said")
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)
    subprocess.run(["umount", "-l", str(small)], check=True)


def a_locked_database_is_said_and_the_run_goes_on(place):
    run = place.start("run", place.sweep(trials=1, workers=1, wait="go"))
    until(lambda: place.states().get("running") == 1, "a trial runs")
    other = sqlite3.connect(place.database, isolation_level=None)
    other.execute("begin immediate")
    (place.folder / "go").touch()
    until(lambda: "another program has locked" in run.log.read_text(), "it is said")
    other.execute("rollback")
    other.close()
    place.ended_with(run, 0)
    text = run.log.read_text()
    check(text.count("another program has locked") == 1 and "level=" not in text, text)
    check(place.states() == {"completed": 1}, text)


def an_argument_that_is_no_utf8_is_refused_by_name(place):
    for arguments in ([b"trials", b"caf\xe9"], [b"enqueue", b"sweep", b"x=\xff"], [b"trials", b"sweep", b"--db", b"caf\xe9.db"]):
        done = subprocess.run([os.fsencode(str(JIZI)), *arguments], stdin=subprocess.DEVNULL, capture_output=True, cwd=place.folder,
                              env=place.environment, timeout=DEADLINE_S, check=False)
        text = done.stderr.decode()
        check(done.returncode == 2 and f"argument {len(arguments)} " in text and "is no UTF-8" in text and done.stdout == b"", (arguments, done))


def a_lost_store_ends_run_and_serve_with_its_own_code(place):
    # A write past the limit is an error that is not "full": what SQLite calls an I/O error.
    def ignoring():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    listen = f"unix:{place.folder}/s/socket"
    server = place.start("serve", "--db", "team.db", "--listen", listen, before=ignoring)
    until(lambda: "serving " in server.log.read_text(), "the server is up")
    place.jizi("run", place.sweep(trials=1, name="team"), "--server", listen)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    place.jizi("enqueue", "team", "x=0.5", "--server", listen, code=None)
    place.ended_with(server, 5)

    run = place.start("run", place.sweep(trials=4, workers=1, wait="go"), before=ignoring)
    until(lambda: place.states().get("running") == 1, "a trial runs")
    resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    (place.folder / "go").touch()
    place.ended_with(run, 5)
    text = run.log.read_text()
    check("the database is lost" in text, text)


ALWAYS = [a_lost_store_ends_run_and_serve_with_its_own_code, an_argument_that_is_no_utf8_is_refused_by_name, an_output_that_cannot_be_written_is_said_and_a_run_goes_on, a_reader_that_has_enough_is_no_error, what_is_no_database_is_left_alone,
          a_locked_database_is_said_and_the_run_goes_on]
MOUNTED = [a_file_that_may_not_be_written_is_refused_and_read, a_full_disk_is_said_once_and_the_run_goes_on,
           a_full_disk_does_not_fill_the_log_of_serve]
if not MOUNTS:
    print(f"SKIPPED, for nothing can be mounted here: {', '.join(test.__name__ for test in MOUNTED)}", flush=True)
run_all(ALWAYS + (MOUNTED if MOUNTS else []))
