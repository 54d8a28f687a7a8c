"""The examples as people run them: programs that only print, and the same questions in SQL, Python and C++.

usage: examples_test.py BUILD_DIR
"""
from testing import *

def a_shell_script_that_prints(place):
    path = copied(place, "any_program", "shell.yaml", "  examples: {value: 300}\n")
    place.jizi("run", str(path), "--db", str(place.database), "--max-trials", "3")
    check(place.states() == {"completed": 3}, f"{place.states()}")
    counted = rows(place, "select count(*), count(distinct step), min(value) from measurements where metric = 'val_accuracy' and counts")
    check(counted[0][:2] == (9, 3) and counted[0][2] >= 0, f"{counted}")
    best = rows(place, "select max(objective) from trials")[0][0]
    check(best > 0.3, f"it does not learn: {best}")  # Ten classes: 0.1 is chance.
    by_hand = subprocess.run([str(EXAMPLES / "any_program/train.sh"), "--examples=100", "--epochs=1"], capture_output=True, text=True,
                             check=True, timeout=60)
    check(by_hand.stdout.count("jizi step=1 val_accuracy=") == 1, by_hand.stdout)


def the_same_answers_in_sql_python_and_cpp(place):
    path = copied(place, "any_program", "python.yaml", "  examples: {value: 240}\n")
    place.jizi("run", str(path), "--db", str(place.database), code=None)
    check(place.states() == {"completed": 12, "failed": 4}, f"{place.states()}")
    sql = subprocess.run(["sqlite3", str(place.database)], stdin=open(EXAMPLES / "query_results/questions.sql"), capture_output=True, text=True,
                         check=True, timeout=60)
    check(not sql.stderr, sql.stderr)
    (place.folder / "socket").mkdir(mode=0o700)
    address = f"unix:{place.folder}/socket/s"
    server = place.start("serve", "--db", str(place.database), "--listen", address)
    until(lambda: "serving " in server.log.read_text(), "the server is up")
    asked = [sys.executable, str(EXAMPLES / "query_results/questions.py"), address]
    python = subprocess.run([*asked, "python"], capture_output=True, text=True, check=True, timeout=60).stdout
    cpp = subprocess.run([str(pathlib.Path(JIZI).parent / "query_results"), address, "python"], capture_output=True, text=True, check=True,
                         timeout=60).stdout
    unknown = subprocess.run([*asked, "other"], capture_output=True, text=True, check=False, timeout=60)
    check(unknown.returncode == 1 and unknown.stderr.startswith("questions.py: "), unknown.stderr)

    def after(text, question):
        """The lines of a question's answer."""
        rest = text.split(f"{question}. ", 1)[1].splitlines()[1:]
        return [line for line in rest[: next((i for i, line in enumerate(rest) if line[1:3] == ". "), len(rest))] if line]

    number = rows(place, "select trial from trials where objective is not null order by -objective, trial limit 1")[0][0]
    check(all(after(text, 1)[0].replace("|", " ").split()[0] == str(number) for text in (sql.stdout, python, cpp)), f"{sql.stdout}\n{python}\n{cpp}")
    curves = [[tuple(map(float, line.replace("|", " ").split())) for line in after(text, 2)] for text in (sql.stdout, python, cpp)]
    check(len(curves[0]) == 4 and [step for step, _ in curves[0]] == [1, 2, 3, 4], f"{curves}")
    # sqlite3 prints 15 digits.
    check(all(abs(a - b) < 1e-12 for curve in curves[1:] for (_, a), (_, b) in zip(curve, curves[0])), f"{curves}")
    check(all(text.count("a variance of 0 divides by zero") >= 4 for text in (sql.stdout, python, cpp)), "failures")
    effects = [{tuple(line.replace("|", " ").split())[-1] for line in after(text, 4)} for text in (sql.stdout, python)]
    check(effects[0] == effects[1] and effects[0], f"{effects}")


needs_data()
run_all([a_shell_script_that_prints, the_same_answers_in_sql_python_and_cpp])
