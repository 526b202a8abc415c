#!/usr/bin/env python3
"""Runs the sessions of docs/export.md in a folder that has tables/, for scripts/tables_proof.sh:
each query of DuckDB has rows, and pandas prints an answer to each question and counts the same.

    scripts/tables_sessions.py FOLDER
"""

import contextlib
import io
import os
import pathlib
import re
import sys

import duckdb

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/export.md"


def check(holds, *what):
    if not holds:
        sys.exit("wrong: " + " ".join(str(part) for part in what))


def answers(queries):
    """The rows of each query; what makes views has none."""
    connection = duckdb.connect()
    for query in queries:
        result = connection.execute(query)
        if query.startswith("CREATE VIEW"):
            continue
        columns = [column[0] for column in result.description]
        rows = [dict(zip(columns, row)) for row in result.fetchall()]
        print("\n".join(map(str, rows)), end="\n\n")
        check(rows, "no rows of", query)
        yield rows


def session(text):
    """The variables of a session in pandas, and what it printed."""
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(text, names)
    print(printed.getvalue())
    return names, printed.getvalue()


def main():
    blocks = re.findall(r"^```(sql|python)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    of = {kind: [text for one, text in blocks if one == kind] for kind in ("sql", "python")}
    check((len(of["sql"]), len(of["python"])) == (4, 1), PAGE, "has other sessions")
    os.chdir(sys.argv[1])
    worst, together, threads = answers(of["sql"])
    names, printed = session(of["python"][0])
    check({row["is_worst"] for row in worst} == {True, False}, worst)
    counts = sum(row["participants"] for row in worst), len(names["lost"])
    check(counts[0] == counts[1] > 0, "participants with packets:", counts)
    counts = sum(row["participants"] for row in together), len(names["participants"])
    check(counts[0] == counts[1] == 15, "participants:", counts)
    missing = [row["thread"] for row in threads if f"thread={row['thread']}" not in printed]
    check(not missing, "pandas says nothing of", missing)


main()
