#!/usr/bin/env python3
"""A worker that is a shell script, and ask-tell, as processes (docs/contracts.md, 9, 12, 16).   usage: script_test.py BUILD_DIR"""
import threading

from harness import *

# Serves a study to its end; what it knows of a trial it has from `eval` alone.
LOOP = """
while :; do
  line=$("$JIZI" suggest sweep --wait 0 $WHERE) || exit $?
  eval "$line"
  step=1
  while [ $step -le 3 ] && "$JIZI" report sweep $JIZI_TRIAL --step $step value=$step $WHERE >/dev/null; do step=$((step + 1)); done
  case "$*" in
    "--mode=it's; \$(false) --x=0."*) "$JIZI" complete sweep $JIZI_TRIAL value=9 $WHERE || exit 90 ;;
    *) "$JIZI" complete sweep $JIZI_TRIAL --failed "no x in: $*" $WHERE || exit 91 ;;
  esac
done
"""


def sweep_of(place, trials=3, more=""):
    path = place.folder / "sweep.yaml"
    path.write_text(f"method: random\nrun_cap: {trials}\nmetric: {{name: value, goal: maximize}}\n"
                    f"parameters:\n  x: {{min: 0.1, max: 0.9}}\n  mode: {{value: \"it's; $(false)\"}}\n{more}")
    return str(path)


def loop(place, where):
    environment = dict(place.environment, JIZI=JIZI, WHERE=where)
    return subprocess.run(["sh", "-c", LOOP], cwd=place.folder, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def taken(place, *arguments, study="sweep"):
    return [json.loads(line) for line in place.jizi("suggest", study, "--json", *arguments).stdout.splitlines()]


def a_shell_loop_serves_a_study_of_a_file_to_its_end(place):
    place.jizi("create", sweep_of(place))
    done = loop(place, "--db sweep.db")
    check(done.returncode == 7 and "hands out no more trials: run_cap of 3 reached" in done.stderr, done)
    check(place.states() == {"completed": 3}, place.states())
    best = json.loads(place.jizi("show", "sweep", json.loads(place.jizi("best", "sweep", "--json").stdout)["id"], "--json").stdout)
    check(best["objective"] == 9 and len(best["measurements"]) == 4, best)
    check(best["measurements"][3]["step"] == "4", best)
    check(place.jizi("suggest", "sweep", code=7).stdout == "", "no more")
    place.nothing_left()


def a_shell_loop_at_a_server_beside_a_worker(place):
    sweep = sweep_of(place, trials=8)
    text = open(sweep).read()
    open(sweep, "w").write(text.replace("method:", "program: train.sh\nmethod:"))
    server = place.start("serve", "--db", "sweep.db", "--listen", "127.0.0.1:0")
    line = until(lambda: "serving " in server.log.read_text() and server.log.read_text(), "the server is up")
    address = line.split(" on ")[1].split()[0]
    where = ("--server", address, "--token-file", "sweep.db.token")
    place.jizi("create", sweep, *where)
    held = taken(place, *where)[0]  # So that the loop finds the worker's trials, and this one, still running.
    worker = place.start("worker", sweep, *where)
    done = loop(place, " ".join(where))
    check(done.returncode in (7, 8), done)
    place.jizi("complete", "sweep", str(held["trial"]), "value=1", "--lease-token", held["lease"], *where)
    place.ended_with(worker, 0)
    check(place.states() == {"completed": 8}, place.states())
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def contract_9_a_lease_goes_in_by_flag_or_variable(place):
    place.jizi("create", sweep_of(place))
    first, second = taken(place, "-n", "2", "--lease", "2h")
    check(first["lease_s"] == 7200 and first["attempt"] == 1 and 0.1 <= first["params"]["x"] <= 0.9, first)
    check(first["params"]["mode"] == "it's; $(false)", first)
    number = str(first["trial"])
    check("no lease is given" in place.jizi("report", "sweep", number, "value=1", code=2).stderr, "no lease")
    check("32 hex digits" in place.jizi("report", "sweep", number, "value=1", "--lease-token", "abc", code=2).stderr, "a bad one")
    other = place.jizi("report", "sweep", number, "value=1", "--lease-token", second["lease"], code=4)
    check("not (or no longer) held under this lease" in other.stderr, other.stderr)
    place.environment["JIZI_LEASE"] = first["lease"]
    check(place.jizi("report", "sweep", number, "value=1").stdout == "continue\n", "by the variable")
    check("already measured" in place.jizi("report", "sweep", number, "--step", "1", "value=2", code=2).stderr, "twice")
    check(json.loads(place.jizi("report", "sweep", number, "value=nan", "--json").stdout) == {"directive": "continue"}, "json")
    done = place.jizi("complete", "sweep", number, "value=2")
    check(done.stdout == f"trial {number} is completed, objective 2\n", done.stdout)
    place.jizi("complete", "sweep", number, "value=2")  # Again: it is completed, and nothing else.
    check("has ended" in place.jizi("report", "sweep", number, "value=3", code=4).stderr, "ended")
    place.jizi("release", "sweep", str(second["trial"]), "--lease-token", second["lease"])
    check(place.states() == {"completed": 1, "queued": 1}, place.states())
    again = taken(place)[0]
    check(again["trial"] == second["trial"] and again["attempt"] == 2 and again["lease"] != second["lease"], again)


def ends_have_their_reasons(place):
    place.jizi("create", sweep_of(place))
    failed, infeasible, silent = taken(place, "-n", "3")
    lease = lambda trial: ("sweep", str(trial["trial"]), "--lease-token", trial["lease"])
    both = place.jizi("complete", *lease(failed), "--failed", "a", "--infeasible", "b", code=2)
    check("--failed" in both.stderr, both.stderr)
    check("is failed: out of memory" in place.jizi("complete", *lease(failed), "--failed", "out of memory").stdout, "failed")
    check("is infeasible: it is NaN" in place.jizi("complete", *lease(infeasible), "--infeasible", "it is NaN").stdout, "infeasible")
    check("never reported the metric 'value'" in place.jizi("complete", *lease(silent)).stdout, "no value")
    for bad in ("value", "=1", "value=x", "value=", "value=1e999"):
        check("val_accuracy=0.91" in place.jizi("complete", *lease(silent), bad, code=2).stderr, bad)
    check("given twice" in place.jizi("complete", *lease(silent), "value=1", "value=2", code=2).stderr, "twice")


def a_report_says_to_stop_by_its_exit_code(place):
    place.jizi("create", sweep_of(place))
    trial = taken(place)[0]
    place.environment["JIZI_LEASE"] = trial["lease"]
    place.jizi("report", "sweep", str(trial["trial"]), "value=1")
    place.jizi("stop", "sweep")
    told = place.jizi("report", "sweep", str(trial["trial"]), "value=2", code=7)
    check(told.stdout.startswith("stop"), told.stdout)
    check("is stopped" in place.jizi("complete", "sweep", str(trial["trial"])).stdout, "stopped")


def nothing_now_is_not_the_end(place):
    place.jizi("create", sweep_of(place, trials=1))
    trial = taken(place)[0]
    check("may still come back" in place.jizi("suggest", "sweep", "--wait", "0", code=8).stderr, "none now")
    waiting = place.start("suggest", "sweep", "--json")
    until(lambda: "waiting: " in waiting.log.read_text(), "it waits")
    # While it waits the file is free for others.
    place.jizi("release", "sweep", str(trial["trial"]), "--lease-token", trial["lease"])
    place.ended_with(waiting, 0)
    check(json.loads(waiting.log.read_text().splitlines()[-1])["trial"] == trial["trial"], "the released one")


def reports_of_one_trial_at_once_take_turns(place):
    server = place.start("serve", "--db", "sweep.db", "--listen", f"unix:{place.folder}/s/socket")
    until(lambda: "serving " in server.log.read_text(), "the server is up")
    where = ("--server", f"unix:{place.folder}/s/socket")
    place.jizi("create", sweep_of(place), *where)
    trial = taken(place, *where)[0]
    faults = []

    def report(name):
        try:
            place.jizi("report", "sweep", str(trial["trial"]), "--step", "1", f"m{name}=1", "--lease-token", trial["lease"], *where)
        except Fault as fault:
            faults.append(fault)

    threads = [threading.Thread(target=report, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not faults, faults)
    shown = json.loads(place.jizi("show", "sweep", str(trial["trial"]), "--json", *where).stdout)
    check({name for m in shown["measurements"] for name in m["metrics"]} == {"m0", "m1", "m2", "m3"}, shown)
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def a_program_that_a_worker_started_needs_no_flags(place):
    program = place.folder / "train.sh"
    program.write_text(f'#!/bin/sh\n"{JIZI}" report "$JIZI_STUDY" "$JIZI_TRIAL" --step 1 value=5 >&2 || exit 1\n')
    place.jizi("run", place.sweep(trials=2))
    check(place.states() == {"completed": 2}, place.states())
    check(json.loads(place.jizi("best", "sweep", "--json").stdout)["objective"] == 5, "reported")


def create_makes_a_study_once(place):
    sweep = sweep_of(place, more="jizi: {defaults: {x: 0.5}}\n")
    check("study sweep is active in " in place.jizi("create", sweep).stdout, "created")
    check(os.stat(place.database).st_mode & 0o077 == 0, "the database can be read by others")
    check(taken(place)[0]["params"]["x"] == 0.5, "the default comes first")
    check("--resume" in place.jizi("create", sweep, code=4).stderr, "an existing study")
    place.jizi("create", sweep, "--resume")
    check(place.states() == {"running": 1}, place.states())
    check("UTF-8" not in place.jizi("create", "nothing.yaml", code=2).stderr, "missing")


def conversation(place, *arguments, lines, code=0):
    done = subprocess.run([JIZI, "ask-tell", *arguments], input="\n".join(lines) + "\n", capture_output=True, text=True, cwd=place.folder,
                          env=place.environment, timeout=DEADLINE_S, check=False)
    check(done.returncode == code, f"ended with {done.returncode}: {done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class Session:
    def __init__(self, place, *arguments):
        self.process = subprocess.Popen([JIZI, "ask-tell", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        cwd=place.folder, env=place.environment)

    def __call__(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        check(self.process.wait(timeout=DEADLINE_S) == 0, "it ends with 0")
        self.process.stdout.close()


def ask_tell_drives_a_grid_to_exhaustion(place):
    sweep = place.folder / "grid.yaml"
    sweep.write_text("method: grid\nmetric: {name: loss}\nparameters:\n  a: {values: [1, 2, 3]}\n  optimizer: {values: [sgd, adam]}\n"
                     "  momentum: {values: [0.5, 0.9]}\njizi: {when: {momentum: {optimizer: [sgd]}}}\n")
    session = Session(place, str(sweep))
    seen = []
    while True:
        answer = session({"ask": 2})
        if "finished" in answer:
            break
        for trial in answer["trials"]:
            seen.append(json.dumps(trial["params"], sort_keys=True))
            check(session({"report": {"id": trial["id"], "step": 1, "metrics": {"loss": 2}}}) == {"directive": "continue"}, "report")
            check(session({"tell": {"id": trial["id"], "metrics": {"loss": 1}}}) == {"ok": True}, "tell")
    session.close()
    check(len(seen) == len(set(seen)) == 9, seen)  # 3 x (sgd with 2 momenta, adam without)


def every_error_of_ask_tell_is_an_answer(place):
    sweep = sweep_of(place, trials=3)
    table = [
        ("not json", "BAD_JSON"), ("[1]", "BAD_REQUEST"), ("{}", "BAD_REQUEST"), ('{"ask": 1, "tell": 2}', "BAD_REQUEST"),
        ('{"aks": 1}', "BAD_REQUEST"), ('{"ask": 0}', "BAD_REQUEST"), ('{"ask": 1001}', "BAD_REQUEST"), ('{"ask": "1"}', "BAD_REQUEST"),
        ('{"ask": 1.5}', "BAD_REQUEST"), ('{"ask": 99999999999999999999}', "BAD_REQUEST"), ('{"ask": 18446744073709551615}', "BAD_REQUEST"),
        ('{"report": 3}', "BAD_REQUEST"), ('{"report": {"id": 1, "metrics": {"value": 1}}}', "BAD_REQUEST"),
        ('{"report": {"id": 1, "step": -1, "metrics": {"value": 1}}}', "BAD_REQUEST"),
        ('{"report": {"id": 1, "step": 1}}', "BAD_REQUEST"), ('{"report": {"id": 1, "step": 1, "metrics": [1]}}', "BAD_REQUEST"),
        ('{"report": {"id": 1, "step": 1, "metrics": {"value": "1"}}}', "BAD_REQUEST"),
        ('{"report": {"id": 1, "stop": 1, "metrics": {"value": 1}}}', "BAD_REQUEST"),
        ('{"report": {"id": 1, "step": 1, "metrics": {"": 1}}}', None),
        ('{"report": {"id": 7, "step": 1, "metrics": {"value": 1}}}', "TRIAL_NOT_HELD"),
        ('{"tell": {"id": 1}}', "METRIC_MISSING"), ('{"tell": {"id": 1, "metrics": {"valu": 1}}}', "METRIC_MISSING"),
        ('{"tell": {"id": 1, "failed": 3}}', "BAD_REQUEST"), ('{"tell": {"id": 1, "failed": "a", "infeasible": "b"}}', "BAD_REQUEST"),
        ('{"tell": {"metrics": {"value": 1}}}', "BAD_REQUEST"), ('{"tell": {"id": 9, "metrics": {"value": 1}}}', "TRIAL_NOT_HELD"),
    ]
    lines = ['{"ask": 1}'] + [line for line, _ in table]
    lines += ['{"report": {"id": 1, "step": 5, "metrics": {"value": 1}}}', '{"report": {"id": 1, "step": 5, "metrics": {"value": 1}}}', "",
              '{"tell": {"id": 1, "metrics": {"value": "NaN"}}}', '{"tell": {"id": 1, "metrics": {"value": 1}}}', '{"ask": 2}',
              '{"tell": {"id": 2, "failed": "out of memory"}}', '{"tell": {"id": 3, "infeasible": true}}', '{"ask": 1}']
    answers = conversation(place, sweep, lines=lines)
    check(len(answers) == len(lines) - 1, answers)  # Blank lines are passed over.
    check([t["id"] for t in answers[0]["trials"]] == [1], answers[0])
    for (line, code), answer in zip(table, answers[1:]):
        error = answer.get("error", {})
        check(set(error) == {"code", "message", "mend"} and error["message"] and error["mend"], (line, answer))
        check(code is None or error["code"] == code, (line, answer))
    reported, twice, nan, gone, two, failed, infeasible, finished = answers[1 + len(table):]
    check(reported == {"directive": "continue"} and twice["error"]["code"] == "BAD_MEASUREMENT", (reported, twice))
    check(nan == {"ok": True} and gone["error"]["code"] == "TRIAL_NOT_HELD", (nan, gone))
    check([t["id"] for t in two["trials"]] == [2, 3] and failed == infeasible == {"ok": True}, (two, failed, infeasible))
    check("run_cap of 3 reached" in finished["finished"], finished)


def ask_tell_keeps_its_study_in_a_file(place):
    sweep = sweep_of(place, trials=3)
    session = Session(place, sweep, "--db", "sweep.db", "--seed", "5")
    first = session({"ask": 2})["trials"]
    check(session({"tell": {"id": 1, "metrics": {"value": 3}}}) == {"ok": True}, "told")
    check(json.loads(place.jizi("best", "sweep", "--json").stdout)["id"] == "1", "others see it meanwhile")
    check("is owned by" in place.jizi("ask-tell", sweep, "--db", "sweep.db", code=4).stderr, "owned")
    session.process.kill()
    session.process.wait()
    again = Session(place, sweep, "--db", "sweep.db", "--seed", "5")
    rest = again({"ask": 2})["trials"]
    check(rest[0] == first[1] and [t["id"] for t in rest] == [2, 3], (first, rest))
    waits = again({"ask": 1})
    check(waits["trials"] == [] and "wait" in waits, waits)
    check(again({"tell": {"id": 2, "metrics": {"value": 4}}}) == {"ok": True}, "told")
    again.close()
    check(place.states() == {"completed": 2, "queued": 1}, place.states())
    other = subprocess.run([JIZI, "ask-tell", sweep, "--db", "sweep.db", "--seed", "6"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           cwd=place.folder, env=place.environment, timeout=DEADLINE_S, check=False)
    check(other.returncode != 0 and "seed" in other.stderr, other.stderr)


def a_thousand_asks_of_random_take_a_second(place):
    sweep = sweep_of(place, trials=100_000)
    # The best of some sessions: the machine may be busy with others' tests.
    best = None
    for _ in range(3):
        session = Session(place, sweep)
        session({"ask": 1})
        begin = time.monotonic()
        for _ in range(1000):
            session.process.stdin.write('{"ask": 1}\n')
        session.process.stdin.flush()
        answers = [json.loads(session.process.stdout.readline()) for _ in range(1000)]
        seconds = time.monotonic() - begin
        session.close()
        check(all(len(answer["trials"]) == 1 for answer in answers), "a trial each")
        best = min(best or seconds, seconds)
    print(f"  1,000 asks: {best:.3f} s")
    limit = float(os.environ.get("JIZI_ASK_LIMIT_S", "20"))
    check(best < limit, f"1,000 asks took {best:.3f} s")


run_all([a_shell_loop_serves_a_study_of_a_file_to_its_end, a_shell_loop_at_a_server_beside_a_worker,
         contract_9_a_lease_goes_in_by_flag_or_variable, ends_have_their_reasons, a_report_says_to_stop_by_its_exit_code,
         nothing_now_is_not_the_end, reports_of_one_trial_at_once_take_turns, a_program_that_a_worker_started_needs_no_flags,
         create_makes_a_study_once, ask_tell_drives_a_grid_to_exhaustion, every_error_of_ask_tell_is_an_answer,
         ask_tell_keeps_its_study_in_a_file, a_thousand_asks_of_random_take_a_second])
