#!/usr/bin/env python3
"""`jizi run` and the commands on its file, as processes (docs/contracts.md, 15, 16, 17, 25).   usage: run_test.py BUILD_DIR"""
import pathlib

from harness import *


def a_sweep_runs_to_its_end(place):
    sweep = place.sweep()
    done = place.jizi("run", sweep)
    check("best trial" in done.stdout and "sweep.db" in done.stdout, done.stdout)
    check(place.states() == {"completed": 6}, place.states())
    place.nothing_left()
    check(os.stat(place.database).st_mode & 0o077 == 0, "the database can be read by others")
    best = json.loads(place.jizi("best", "sweep", "--json").stdout)
    rows = [json.loads(line) for line in place.jizi("trials", "sweep", "--sort", "value", "--json").stdout.splitlines()]
    check(len(rows) == 6 and rows[0]["id"] == best["id"], rows)
    values = [row["objective"] for row in rows]
    check(values == sorted(values, reverse=True), values)
    top = place.jizi("trials", "sweep", "--sort", "value", "--top", "2", "--state", "completed", "--json").stdout.splitlines()
    check(len(top) == 2, top)
    check("parameters" in place.jizi("show", "sweep", best["id"]).stdout, "show")
    check(place.jizi("studies", "--db", "sweep.db").stdout.splitlines()[1].split()[:3] == ["sweep", "finished", "6"], "studies")
    csv = place.jizi("export", "sweep", "--format", "csv").stdout
    check(len(csv.splitlines()) == 7 and csv.startswith("trial,state,objective"), csv)
    exported = json.loads(place.jizi("export", "sweep", "--format", "json").stdout)
    check(all(len(trial["measurements"]) == 3 for trial in exported), "measurements are exported")
    place.jizi("watch", "sweep")


def contract_15_an_existing_study_wants_resume(place):
    sweep = place.sweep(trials=2)
    place.jizi("run", sweep)
    again = place.jizi("run", sweep, code=4)
    check("--resume" in again.stderr, again.stderr)
    more = place.jizi("run", sweep, "--resume", "--max-trials", "4")
    check(place.states() == {"completed": 4}, more.stdout)
    other = place.jizi("run", sweep, "--resume", "--seed", "9", code=None)
    check(other.returncode != 0 and "seed" in other.stderr, other.stderr)


def ctrl_c_stops_gently_and_resume_ends_with_exactly_n(place):
    sweep = place.sweep(trials=5, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 2, "two trials run")
    run.send_signal(signal.SIGINT)
    place.ended_with(run, 130)
    place.nothing_left()
    check(set(place.states()) == {"queued"}, place.states())
    check("--resume" in run.log.read_text(), run.log.read_text())
    (place.folder / "go").touch()
    place.jizi("run", sweep, "--resume")
    check(place.states() == {"completed": 5}, place.states())
    place.nothing_left()


def ctrl_c_twice_kills(place):
    (place.folder / "train.sh").write_text("#!/bin/sh\ntrap '' TERM\necho 'jizi step=1 value=1'\nwhile :; do sleep 0.1; done\n")
    sweep = place.sweep(more=", time_limit: 1h").replace("grace: 2", "grace: 1h")
    text = open(sweep).read().replace("grace: 2", "grace: 1h")
    open(sweep, "w").write(text)
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 2, "two trials run")
    run.send_signal(signal.SIGINT)
    until(lambda: "stopping" in run.log.read_text(), "the first Ctrl-C is said")
    run.send_signal(signal.SIGINT)
    place.ended_with(run, 130)
    place.nothing_left()


def kill_9_then_resume_ends_with_exactly_n(place):
    sweep = place.sweep(trials=5, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 2, "two trials run")
    run.kill()
    run.wait()
    place.nothing_left()
    (place.folder / "go").touch()
    done = place.jizi("run", sweep, "--resume")
    check(place.states() == {"completed": 5}, done.stdout)
    place.nothing_left()


def contract_16_commands_on_the_file_of_a_running_run(place):
    sweep = place.sweep(trials=4, workers=1, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 1, "a trial runs")
    check("paused" in place.jizi("pause", "sweep", "--db", "sweep.db").stdout, "pause")
    check("paused" in place.jizi("studies", "--db", "sweep.db").stdout, "studies")
    (place.folder / "go").touch()
    until(lambda: place.states().get("completed") == 1, "the running trial goes on")
    for command in (["run", sweep], ["serve", "--db", "sweep.db", "--listen", "127.0.0.1:0"]):
        refused = place.jizi(*command, code=4)
        check("--server unix:" in refused.stderr and str(run.pid) in refused.stderr, refused.stderr)
    check("completed" in place.jizi("trials", "sweep").stdout and "value" in place.jizi("show", "sweep", "1").stdout, "reads")
    check("value" in place.jizi("best", "sweep").stdout and "param.x" in place.jizi("export", "sweep").stdout, "more reads")
    check("no trial has failed" in place.jizi("retry", "sweep").stdout, "retry")
    queued = place.jizi("enqueue", "sweep", "x=0.5", "--db", "sweep.db")
    check("is queued" in queued.stdout, queued.stdout)
    check(place.jizi("enqueue", "sweep", "x=7", code=2).stderr.count("x") > 0, "outside the space")
    check(run.poll() is None, "a paused run goes on waiting")
    place.jizi("resume", "sweep", "--db", "sweep.db")
    place.ended_with(run, 0)
    check(sum(place.states().values()) >= 4 and set(place.states()) == {"completed"}, place.states())


def contract_16_a_silent_owner_is_named_and_reads_fall_back(place):
    sweep = place.sweep(trials=4, workers=1, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 1, "a trial runs")
    os.kill(run.pid, signal.SIGSTOP)
    try:
        refused = place.jizi("pause", "sweep", code=3)
        check(str(run.pid) in refused.stderr, refused.stderr)
        read = place.jizi("trials", "sweep")
        check("running" in read.stdout and str(run.pid) in read.stderr, read.stdout + read.stderr)
    finally:
        os.kill(run.pid, signal.SIGCONT)
    (place.folder / "go").touch()
    place.ended_with(run, 0)


def retry_queues_failed_trials_again(place):
    (place.folder / "train.sh").write_text("#!/bin/sh\necho 'jizi step=1 value=1'\n[ -e \"$0.ok\" ] || { echo boom >&2; exit 3; }\n")
    sweep = place.sweep(trials=2)
    failed = place.jizi("run", sweep, code=None)
    check(place.states() == {"failed": 2}, failed.stdout)
    shown = place.jizi("show", "sweep", "1").stdout
    check("boom" in shown, "the last lines of stderr are kept")
    folder = pathlib.Path(shown.split("its files are in ")[1].strip())
    check((folder / "stderr.log").read_text() == "boom\n", f"no stderr.log in {folder}")
    (place.folder / "train.sh.ok").touch()
    check("queued again: trial 1, 2" in place.jizi("retry", "sweep").stdout, "retry")
    place.jizi("run", sweep, "--resume")
    check(place.states() == {"completed": 2}, place.states())


def stop_and_delete(place):
    sweep = place.sweep(trials=4, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 2, "two trials run")
    place.jizi("stop", "sweep")
    (place.folder / "go").touch()
    run.wait(timeout=DEADLINE_S)
    place.nothing_left()
    place.jizi("delete", "sweep")
    check("no studies" in place.jizi("studies", "--db", "sweep.db").stdout, "deleted")
    place.jizi("best", "sweep", code=4)


def timeout_stops_gently(place):
    sweep = place.sweep(trials=4, wait="never")
    place.jizi("run", sweep, "--timeout", "2s", code=None)
    check(set(place.states()) <= {"queued"}, place.states())  # None at all, if none had started yet.
    place.nothing_left()


def contract_25_values_arrive_as_they_are(place):
    value = "a; $(touch hacked) `id` 'q' \"d\" -rf\nnew line"
    (place.folder / "train.sh").write_text("#!/bin/sh\nfor w in \"$@\"; do printf '%s\\0' \"$w\"; done > \"" + str(place.folder) +
                                           "/seen\"\necho 'jizi step=1 value=1'\n")
    path = place.folder / "sweep.yaml"
    path.write_text("program: train.sh\nmethod: grid\nmetric: {name: value}\nparameters:\n  x: {value: " + json.dumps(value) +
                    "}\n  y: {value: -1}\n")
    place.jizi("run", str(path))
    seen = (place.folder / "seen").read_bytes().decode().split("\0")[:-1]
    check(seen == ["--x=" + value, "--y=-1"], seen)
    check(not list(place.folder.rglob("hacked")), "a shell saw it")


def json_has_stdout_to_itself(place):
    done = place.jizi("run", place.sweep(trials=2), "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check(lines[-1]["state"] == "TRIAL_STATE_COMPLETED", lines[-1])


def defaults_are_tried_first(place):
    place.jizi("run", place.sweep(trials=3, more=", defaults: {x: 0.125}"))
    first = json.loads(place.jizi("show", "sweep", "1", "--json").stdout)
    check(first["params"]["x"] == {"float_value": 0.125}, first["params"])
    more = place.jizi("run", place.sweep(trials=4, more=", defaults: {x: 0.25}"), "--resume")
    check("the new ones are not" in more.stdout and place.states() == {"completed": 4}, more.stdout + more.stderr)


def bad_input(place):
    bad = place.folder / "bad.yaml"
    bad.write_text("program: train.sh\nmethod: random\nparameters: {x: {min: 2, max: 1}}\n")
    for command in ("check", "run"):
        done = place.jizi(command, str(bad), code=2)
        check(f"{bad}:3: x: min 2 is above max 1; swap them" in done.stderr, done.stderr)
    sweep = place.sweep()
    check("for example" in place.jizi("check", sweep).stdout, "check")
    later = place.folder / "later.yaml"
    later.write_text(open(sweep).read().replace("random", "pbt"))
    check("note" in place.jizi("check", str(later)).stderr, "check warns")
    check("random" in place.jizi("run", str(later), code=4).stderr, "run refuses and names what there is")
    missing = place.folder / "missing.yaml"
    missing.write_text(open(sweep).read().replace("train.sh", "no_such_program"))
    for command, code, kind in (("check", 0, "warning: "), ("run", 2, "")):
        done = place.jizi(command, str(missing), code=code)
        check(done.stderr.startswith(f"{missing}:1: {kind}") and "no_such_program" in done.stderr, done.stderr)
    none = place.folder / "none.yaml"
    none.write_text("method: random\nparameters: {x: {min: 0.0, max: 1.0}}\nrun_cap: 3\n")
    check("warning: there is neither `program` nor `command`" in place.jizi("check", str(none)).stderr, "check warns")
    check("neither `program` nor `command`" in place.jizi("run", str(none), code=2).stderr, "run refuses")
    check("did you mean `trials`" in place.jizi("trails", code=2).stderr, "a misspelt command")
    place.jizi("run", code=2)
    place.jizi("best", "nothing", code=2)
    place.jizi("best", "nothing", "--db", "nothing.db", code=4)
    place.jizi("best", "nothing", "--server", "127.0.0.1:1", code=3)
    check(place.jizi("--version").stdout.startswith("jizi "), "version")
    check("Exit codes" in place.jizi("--help").stdout, "help")


def bad_databases(place):
    sweep = place.sweep(trials=1)
    text = place.folder / "text.db"
    text.write_text("this is no database, whatever its name says\n" * 100)
    place.jizi("run", sweep, "--db", str(text), code=2)
    place.jizi("run", sweep, "--db", str(place.folder), code=None)
    check(place.jizi("run", sweep, "--db", str(place.folder / "no" / "folder" / "x.db"), code=None).returncode in (2, 4), "no folder")
    place.jizi("run", sweep)
    with sqlite3.connect(place.database) as connection:
        connection.execute("pragma user_version = 999999")
    connection.close()
    newer = place.jizi("run", sweep, "--resume", code=4)
    check("newer" in newer.stderr, newer.stderr)


def two_studies_of_one_database_have_files_of_their_own(place):
    (place.folder / "train.sh").write_text("#!/bin/sh\n[ -e mine ] && exit 7\ntouch mine\necho 'jizi step=1 value=1'\n")
    for name in ("a", "b"):
        place.jizi("run", place.sweep(trials=2, name=name), "--db", "all.db")
    check(place.states(place.folder / "all.db") == {"completed": 4}, place.states(place.folder / "all.db"))
    check(len(list(place.folder.glob("all.trials/[ab]-*/00000[12]/mine"))) == 4, list(place.folder.glob("all.trials/*/*")))


def an_ignored_hangup_does_not_stop_a_run(place):
    run = place.start("run", place.sweep(trials=2, wait="go"), before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    until(lambda: place.states().get("running") == 2, "two trials run")
    run.send_signal(signal.SIGHUP)
    (place.folder / "go").touch()
    place.ended_with(run, 0)
    check(place.states() == {"completed": 2}, place.states())


def the_socket_folder_of_a_killed_run_is_removed(place):
    runtime = place.folder / "runtime"
    runtime.mkdir(mode=0o700)
    place.environment["XDG_RUNTIME_DIR"] = str(runtime)
    sweep = place.sweep(trials=3, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 2, "two trials run")
    run.kill()
    run.wait()
    check(len(list(runtime.iterdir())) == 1, "it was left over")
    (place.folder / "go").touch()
    place.jizi("run", sweep, "--resume")
    check(not list(runtime.iterdir()), list(runtime.iterdir()))


def the_command_to_go_on_goes_on(place):
    sweep = place.sweep(trials=9, wait="go")
    run = place.start("run", sweep, "--seed", "9", "--max-trials", "3", "--workers", "1")
    until(lambda: place.states().get("running") == 1, "a trial runs")
    run.send_signal(signal.SIGINT)
    place.ended_with(run, 130)
    line = [l for l in run.log.read_text().splitlines() if l.startswith("to go on: ")][0].split(": ", 1)[1]
    check("--seed 9" in line and "--max-trials 3" in line and "--workers 1" in line, line)
    (place.folder / "go").touch()
    place.jizi(*line.split()[1:])
    check(place.states() == {"completed": 3}, place.states())


def programs_get_the_umask_that_the_run_had(place):
    (place.folder / "train.sh").write_text("#!/bin/sh\numask > mask\necho 'jizi step=1 value=1'\n")
    run = place.start("run", place.sweep(trials=1), before=lambda: os.umask(0o027))
    place.ended_with(run, 0)
    mask = next(place.folder.glob("sweep.trials/*/000001/mask"))
    check(int(mask.read_text(), 8) == 0o027, mask.read_text())
    check(mask.parent.stat().st_mode & 0o077 == 0, "a trial's folder is its owner's")


def contract_16_commands_on_an_unowned_file_take_turns(place):
    sweep = place.sweep(trials=1)
    place.jizi("run", sweep)
    commands = [place.start("enqueue", "sweep", f"x=0.{i}") for i in range(1, 9)]
    for command in commands:
        place.ended_with(command, 0)
    check(place.states() == {"completed": 1, "queued": 8}, place.states())


def serve_takes_over_from_a_killed_run(place):
    sweep = place.sweep(trials=3, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 2, "two trials run")
    run.kill()
    run.wait()
    server = place.start("serve", "--db", "sweep.db", "--listen", f"unix:{place.folder}/s/socket")
    until(lambda: "serving " in server.log.read_text(), "the server is up")
    check(set(place.states()) == {"queued"}, place.states())  # At once, not after their leases.
    check([pid for pid, _ in place.processes()] == [server.pid], place.processes())
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def watch_does_not_own_a_file(place):
    sweep = place.sweep(trials=3, wait="go")
    run = place.start("run", sweep)
    until(lambda: place.states().get("running") == 2, "two trials run")
    run.kill()
    run.wait()
    place.jizi("watch", "sweep")  # Ends, although two trials are said to run.


def a_closed_stdout_harms_no_file(place):
    run = place.start("run", place.sweep(trials=1), before=lambda: os.close(1))
    place.ended_with(run, 0)
    check(place.states() == {"completed": 1}, place.states())
    check(not (place.folder / "sweep.db.lock").read_bytes(), (place.folder / "sweep.db.lock").read_bytes())


def databases_that_cannot_be_written(place):
    place.jizi("run", place.sweep(trials=1))
    with sqlite3.connect(place.database) as other:
        other.execute("begin immediate")
        locked = place.jizi("enqueue", "sweep", "x=0.5", code=5)
        check("jizi: " in locked.stderr and "sweep.db" in locked.stderr, locked.stderr)
        other.rollback()
    other.close()
    place.jizi("enqueue", "sweep", "x=0.5")
    damaged = bytearray(place.database.read_bytes())
    damaged[4096:] = os.urandom(len(damaged) - 4096)
    place.database.write_bytes(damaged)
    broken = place.jizi("studies", "--db", "sweep.db", code=5)
    check("sweep.db" in broken.stderr, broken.stderr)


def names_that_nobody_should_use(place):
    for name in ("a\nb", "n" * 10_000):
        sweep = place.sweep(trials=1)
        text = open(sweep).read()
        bad = place.folder / "named.yaml"
        bad.write_text(f"name: {json.dumps(name)}\n" + text)
        done = place.jizi("run", str(bad), code=2)
        check(done.stderr.startswith(f"{bad}:1: ") and len(done.stderr) < 1000, done.stderr)
    place.jizi("run", place.sweep(trials=1))
    for name in ("a\nb", "n" * 10_000, "../sweep", "-x"):
        done = place.jizi("best", "--db", "sweep.db", "--", name, code=None)
        check(done.returncode in (2, 4) and len(done.stderr.splitlines()) == 1 and len(done.stderr) < 3000, done.stderr)


def a_name_other_than_the_files_is_found_by_the_closing_lines(place):
    sweep = place.sweep(trials=2, name="file")
    open(sweep, "a").write("name: another\n")
    place.jizi("run", place.sweep(trials=1))  # A second database: without --db nobody could know.
    done = place.jizi("run", sweep)
    line = [l for l in done.stdout.splitlines() if l.startswith("to look at it: ")][0].split(": ", 1)[1]
    check("another" in line and "file.db" in line, line)
    check("completed" in place.jizi(*line.split()[1:]).stdout, line)
    (place.folder / "train.sh").write_text("#!/bin/sh\necho first >&2\necho 'ValueError: boom' >&2\nexit 3\n")
    failed = place.jizi("run", place.sweep(trials=2, name="bad"), code=1)
    check("exit code 3: ValueError: boom" in failed.stdout and "every trial failed; trial 2: exit code 3: ValueError: boom" in failed.stdout,
          failed.stdout)
    line = [l for l in failed.stdout.splitlines() if l.startswith("all that it said: ")][0].split(": ", 1)[1]
    check("first" in place.jizi(*line.split()[1:]).stdout, line)


def numbers_and_names_that_are_wrong_are_said_plainly(place):
    sweep = place.sweep(trials=1)
    place.jizi("run", sweep)
    for command in (["trials", "sweep", "--top", "0"], ["run", sweep, "--max-trials", "-1"], ["retry", "sweep", "x"], ["show", "sweep", "0"]):
        refused = place.jizi(*command, code=2)
        check("must be a whole number of at least 1" in refused.stderr and len(refused.stderr) < 200, refused.stderr)
    check("must be a whole number from 1 to 1000" in place.jizi("run", sweep, "--workers", "0", code=2).stderr, "workers")
    sort = place.jizi("trials", "sweep", "--sort", "valeu", code=2)
    check("known here: objective, value" in sort.stderr and sort.stdout == "", sort)
    folder = place.folder / "folder.yaml"
    folder.write_text("method: random\nprogram: .\nparameters: {x: {min: 0.0, max: 1.0}}\n")
    check(f"{folder}:2: warning: the program '.' is a folder" in place.jizi("check", str(folder)).stderr, "a folder")


def what_others_named_cannot_move_the_cursor(place):
    (place.folder / "train.sh").write_text("#!/bin/sh\necho 'jizi step=1 value=1'\n")
    path = place.folder / "sweep.yaml"
    path.write_text('program: train.sh\nmethod: grid\nmetric: {name: value}\nparameters:\n  s: {values: ["a\\e[2J\\nb", "c"]}\n')
    outputs = [place.jizi("run", str(path)), place.jizi("enqueue", "sweep", "s=c"), place.jizi("check", str(path)), place.jizi("trials", "sweep"),
               place.jizi("show", "sweep", "1"), place.jizi("best", "sweep")]
    outputs.append(place.jizi("trials", "sweep", "--sort", "\x1b[2J", code=2))
    for done in outputs:
        check("\x1b" not in done.stdout + done.stderr, done)
    check("a?[2J?b" in outputs[0].stdout, outputs[0].stdout)


def a_deleted_study_is_said_once(place):
    run = place.start("run", place.sweep(trials=9, workers=2, wait="go"))
    until(lambda: place.states().get("running") == 2, "two trials run")
    place.jizi("delete", "sweep", "--db", "sweep.db")
    (place.folder / "go").touch()
    run.wait(timeout=DEADLINE_S)
    check(run.returncode == 4 and run.log.read_text().count("there is no study named") == 1, run.log.read_text())
    place.nothing_left()


def every_command_has_an_example(place):
    for command in ("run worker serve check studies trials show best watch export enqueue retry pause resume stop delete").split():
        text = place.jizi(command, "--help").stdout
        check("Example" in text and f"jizi {command}" in text, text)


run_all([two_studies_of_one_database_have_files_of_their_own, an_ignored_hangup_does_not_stop_a_run,
         the_socket_folder_of_a_killed_run_is_removed, the_command_to_go_on_goes_on, programs_get_the_umask_that_the_run_had,
         contract_16_commands_on_an_unowned_file_take_turns, serve_takes_over_from_a_killed_run, watch_does_not_own_a_file,
         a_closed_stdout_harms_no_file, databases_that_cannot_be_written, names_that_nobody_should_use, every_command_has_an_example,
         a_name_other_than_the_files_is_found_by_the_closing_lines, numbers_and_names_that_are_wrong_are_said_plainly,
         what_others_named_cannot_move_the_cursor, a_deleted_study_is_said_once,
         a_sweep_runs_to_its_end, contract_15_an_existing_study_wants_resume, ctrl_c_stops_gently_and_resume_ends_with_exactly_n,
         ctrl_c_twice_kills, kill_9_then_resume_ends_with_exactly_n, contract_16_commands_on_the_file_of_a_running_run,
         contract_16_a_silent_owner_is_named_and_reads_fall_back, retry_queues_failed_trials_again, stop_and_delete, timeout_stops_gently,
         contract_25_values_arrive_as_they_are, json_has_stdout_to_itself, defaults_are_tried_first, bad_input, bad_databases])
