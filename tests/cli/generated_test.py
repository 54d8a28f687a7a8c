#!/usr/bin/env python3
"""Completion scripts and the manual page, in the shells and the formatter that read them.   usage: generated_test.py BUILD_DIR"""
import re

from harness import *


def commands_of_help(place):
    text = place.jizi("--help").stdout.split("Subcommands:")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z-]+) ", text, re.M)


def completed(place, line):
    """What bash offers at the end of `line`."""
    words = line.split(" ")
    script = ('source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _jizi; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", JIZI, *words], capture_output=True, text=True, cwd=place.folder, timeout=DEADLINE_S, check=True)
    check(done.stderr == "", done.stderr)
    return done.stdout.split()


def bash_completes_commands_options_and_files(place):
    commands = commands_of_help(place)
    check(len(commands) > 20, commands)
    check(sorted(completed(place, "jizi ")) == sorted(commands), completed(place, "jizi "))
    check(completed(place, "jizi ask") == ["ask-tell"], "one command")
    check(set(completed(place, "jizi suggest --")) >= {"--lease", "--wait", "--db", "--help"}, completed(place, "jizi suggest --"))
    check(completed(place, "jizi run --wor") == ["--workers"], "one option")
    (place.folder / "mine.yaml").touch()
    check(completed(place, "jizi run mi") == ["mine.yaml"], "a file")
    check(completed(place, "jizi completion z") == ["zsh"], "a value")


def zsh_reads_its_script(place):
    text = place.jizi("completion", "zsh").stdout
    check(text.startswith("#compdef jizi\n"), text[:100])
    for command in commands_of_help(place):
        check(f"      '{command}:" in text and f"    {command})\n" in text, command)
    shell = subprocess.run(["sh", "-c", "command -v zsh"], capture_output=True, check=False)
    if shell.returncode == 0:
        subprocess.run(["zsh", "-n", "-c", text], check=True, timeout=DEADLINE_S)
    place.jizi("completion", "fish", code=2)


def the_manual_page_has_every_command_and_option(place):
    page = place.jizi("man").stdout
    check(page.startswith(".TH JIZI 1 "), page[:60])
    for command in commands_of_help(place):
        check(f".SS jizi {command}".replace("-", "\\-") in page, command)
        for option in set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", place.jizi(command, "--help").stdout, re.M)):
            check(option.replace("-", "\\-") in page, f"{command} {option}")
    shell = subprocess.run(["sh", "-c", "command -v groff"], capture_output=True, check=False)
    if shell.returncode == 0:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
        check(done.stderr == "" and "Examples" in done.stdout, done.stderr)


run_all([bash_completes_commands_options_and_files, zsh_reads_its_script, the_manual_page_has_every_command_and_option])
