#!/usr/bin/env python3
"""`jizi serve` and `jizi worker`, as processes (docs/contracts.md, 16, 18, 24).   usage: serve_test.py BUILD_DIR"""
from harness import *


def served(place, *more, listen="127.0.0.1:0"):
    server = place.start("serve", "--db", "team.db", "--listen", listen, *more)
    line = until(lambda: [l for l in server.log.read_text().splitlines() if l.startswith("serving ")], "the server is up")[0]
    return server, line.split(" on ")[1]


def two_workers_share_a_study(place):
    server, address = served(place)
    token = str(place.folder / "team.db.token")
    check(os.stat(token).st_mode & 0o077 == 0, "the token can be read by others")
    sweep = place.sweep(trials=6, workers=1)
    workers = [place.start("worker", "--server", address, "--token-file", token, sweep) for _ in range(2)]
    for worker in workers:
        place.ended_with(worker, 0)
    check(place.states(place.folder / "team.db") == {"completed": 6}, place.states(place.folder / "team.db"))
    check("value" in place.jizi("best", "sweep", "--server", address, "--token-file", token).stdout, "best")
    check("value" in place.jizi("best", "sweep", "--db", "team.db").stdout, "best of the owned file")
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)
    place.nothing_left()


def contract_24_tcp_wants_the_token(place):
    server, address = served(place)
    refused = place.jizi("studies", "--server", address, code=4)
    check("token" in refused.stderr, refused.stderr)
    place.jizi("studies", "--server", address, "--token-file", str(place.folder / "team.db.token"))
    server.send_signal(signal.SIGINT)
    place.ended_with(server, 0)


def contract_24_other_hosts_want_tls_or_insecure(place):
    refused = place.jizi("serve", "--db", "team.db", "--listen", "0.0.0.0:0", code=2)
    check("--tls-cert" in refused.stderr and "--insecure" in refused.stderr, refused.stderr)


def the_line_for_workers_is_one_that_works(place):
    host = os.uname().nodename
    subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 365 -keyout k.pem -out c.pem".split()
        + ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host},DNS:localhost"],
        cwd=place.folder, check=True, capture_output=True,
    )
    server, address = served(place, "--tls-cert", "c.pem", "--tls-key", "k.pem", listen="0.0.0.0:0")
    port = address.rsplit(":", 1)[1]
    line = until(lambda: [l for l in server.log.read_text().splitlines() if l.startswith("workers: ")], "the line")[0]
    check(line.endswith(f"team.db.token JIZI_CA_FILE=c.pem jizi worker --server {host}:{port} SWEEP.yaml"), line)
    place.jizi("studies", "--server", f"localhost:{port}", "--token-file", "team.db.token", "--ca-file", "c.pem")
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def a_port_in_use_is_said(place):
    server, address = served(place)
    other = place.jizi("serve", "--db", "other.db", "--listen", address, code=4)
    check(address.rsplit(":", 1)[1] in other.stderr, other.stderr)
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def contract_18_training_goes_on_while_the_server_is_away(place):
    server, address = served(place)
    token = str(place.folder / "team.db.token")
    worker = place.start("worker", "--server", address, "--token-file", token, place.sweep(trials=4, workers=2, wait="go"))
    until(lambda: place.states(place.folder / "team.db").get("running") == 2, "two trials run")
    server.kill()
    server.wait()
    check(worker.poll() is None and len(place.processes()) > 1, "the worker and its trials go on")
    server, address = served(place, listen=address)
    (place.folder / "go").touch()
    place.ended_with(worker, 0)
    check(place.states(place.folder / "team.db") == {"completed": 4}, place.states(place.folder / "team.db"))
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)
    place.nothing_left()


def run_on_a_server_over_a_unix_socket(place):
    server, address = served(place, listen=f"unix:{place.folder}/s/socket")
    place.jizi("run", place.sweep(trials=3), "--server", address)
    check(place.states(place.folder / "team.db") == {"completed": 3}, place.states(place.folder / "team.db"))
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def every_command_through_a_server(place):
    server, address = served(place, listen=f"unix:{place.folder}/s/socket")
    at = ("--server", address)
    place.jizi("run", place.sweep(trials=2), *at)
    check("sweep" in place.jizi("studies", *at).stdout and "completed" in place.jizi("trials", "sweep", *at).stdout, "lists")
    check("value" in place.jizi("show", "sweep", "1", *at).stdout and "value" in place.jizi("best", "sweep", *at).stdout, "reads")
    check(len(json.loads(place.jizi("export", "sweep", "--format", "json", *at).stdout)) == 2, "export")
    place.jizi("watch", "sweep", *at)
    check("is queued" in place.jizi("enqueue", "sweep", "x=0.5", *at).stdout, "enqueue")
    check("paused" in place.jizi("pause", "sweep", *at).stdout, "pause")
    check("active" in place.jizi("resume", "sweep", *at).stdout, "resume")
    check("no trial has failed" in place.jizi("retry", "sweep", *at).stdout, "retry")
    check("stopped" in place.jizi("stop", "sweep", *at).stdout, "stop")
    place.jizi("delete", "sweep", *at)
    place.jizi("best", "sweep", *at, code=4)
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def a_worker_joins_a_study_as_it_is(place):
    server, address = served(place, listen=f"unix:{place.folder}/s/socket")
    at = ("--server", address)
    first = place.start("worker", *at, place.sweep(trials=4, workers=1, wait="go"))
    until(lambda: place.states(place.folder / "team.db").get("running") == 1, "a trial runs")
    place.jizi("pause", "sweep", *at)
    second = place.start("worker", *at, place.sweep(trials=99, workers=1, wait="go"))
    until(lambda: list(place.folder.glob(f"sweep.trials/*/worker-{second.pid}.supervisor")), "it has begun")
    second.send_signal(signal.SIGTERM)  # Seen once it has joined.
    place.ended_with(second, 143)
    study = json.loads(place.jizi("studies", "--json", *at).stdout)
    check(study["state"] == "STUDY_STATE_PAUSED" and int(study["spec"]["budget"]["run_cap"]) == 4, study)
    other = open(place.sweep(trials=4)).read().replace("max: 1.0", "max: 2.0")
    (place.folder / "sweep.yaml").write_text(other)
    refused = place.jizi("worker", *at, "sweep.yaml", code=4)
    check("parameters" in refused.stderr, refused.stderr)
    (place.folder / "go").touch()
    place.jizi("resume", "sweep", *at)
    place.ended_with(first, 0)
    check(place.states(place.folder / "team.db") == {"completed": 4}, place.states(place.folder / "team.db"))
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def a_relative_token_file_reaches_programs(place):
    server, address = served(place)
    sweep = place.sweep(trials=2)
    (place.folder / "train.sh").write_text("#!/bin/sh\ncat \"$JIZI_TOKEN_FILE\" >/dev/null || exit 3\necho 'jizi step=1 value=1'\n")
    worker = place.start("worker", "--server", address, sweep, environment={"JIZI_TOKEN_FILE": "team.db.token"})
    place.ended_with(worker, 0)
    check(place.states(place.folder / "team.db") == {"completed": 2}, place.states(place.folder / "team.db"))
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)


def the_log_has_a_line_for_each_call(place):
    server, address = served(place, "--log", "team.log", listen=f"unix:{place.folder}/s/socket")
    place.jizi("studies", "--server", address)
    server.send_signal(signal.SIGTERM)
    place.ended_with(server, 0)
    check("call=ListStudies" in (place.folder / "team.log").read_text(), (place.folder / "team.log").read_text())


def a_name_that_begins_like_loopback_is_another_host(place):
    refused = place.jizi("serve", "--db", "team.db", "--listen", "127.evil.example:0", code=2)
    check("--insecure" in refused.stderr, refused.stderr)


run_all([every_command_through_a_server, a_worker_joins_a_study_as_it_is, a_relative_token_file_reaches_programs,
         the_log_has_a_line_for_each_call, a_name_that_begins_like_loopback_is_another_host, two_workers_share_a_study, contract_24_tcp_wants_the_token, contract_24_other_hosts_want_tls_or_insecure, the_line_for_workers_is_one_that_works, a_port_in_use_is_said,
         contract_18_training_goes_on_while_the_server_is_away, run_on_a_server_over_a_unix_socket])
