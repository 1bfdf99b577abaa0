"""What a suite's file defines, and how two of its runs are compared.

A suite's file has:
    MODES       the modes that it is run in, of "relay" and "local"
    DATABASE    the database that freshet mirrors in mode local
    SETTINGS    optional: server settings beyond the usual
    prepare(ground)           gets and builds what is needed; raises `sources.Unreachable`
    set_up(cluster)           directly, before freshet starts
    port(prepared)            optional: where the tests look for a server, if they cannot be told
    run(prepared, leg)        runs the tests against 127.0.0.1:leg.port: name of a test to what was seen (text)
    normalise(name, text)     optional: without what differs between any two runs
    EXPLAINED                 optional: mode to {name, or pattern of names: cause}
    summary(results)          optional: a few words on the results, for the report
"""
import collections
import difflib
import fnmatch
import re
from dataclasses import dataclass, field


@dataclass
class Leg:
    """One run of a suite."""

    mode: str
    cluster: object
    freshet: object
    port: int
    folder: object
    results: dict = field(default_factory=dict)
    routes: dict = field(default_factory=dict)
    seconds: float = 0.0


@dataclass
class Difference:
    name: str
    lines: list
    cause: str


# Of a difference, at most so many lines are shown.
LINES_MAX = 40


def compare(suite, mode, direct, through):
    """Every name whose text differs, with the suite's explanation if it has one."""
    normalise = getattr(suite, "normalise", lambda name, text: text)
    explained = getattr(suite, "EXPLAINED", {}).get(mode, {})
    differences = []
    names = direct.keys() | through.keys()
    for name in sorted(names):
        of_direct, of_through = (normalise(name, results.get(name, "missing")) for results in (direct, through))
        if mode == "local":
            # freshet's own objects upstream are seen in psql's descriptions of tables.
            of_direct, of_through = without_traces(of_direct), without_traces(of_through)
        if of_direct == of_through or (mode == "local" and rows_sorted(of_direct) == rows_sorted(of_through)):
            continue
        lines = difflib.unified_diff(of_direct.splitlines(), of_through.splitlines(), "direct", mode, lineterm="", n=3)
        cause = next((cause for pattern, cause in explained.items() if fnmatch.fnmatch(name, pattern)), "")
        differences.append(Difference(name, list(lines)[:LINES_MAX], cause))
    return differences


def without_traces(text):
    """Without the publication that freshet makes and the replica identity that it was told to set."""
    text = re.sub(r'Publications:\n( +"freshet_\w+"\n)+(?! +")', "", text)
    text = re.sub(r'^ +"freshet_\w+"\n', "", text, flags=re.M)
    return re.sub(r"^Replica Identity: FULL\n", "", text, flags=re.M)


def rows_sorted(text):
    """psql's output with the rows of each result in a fixed order: PostgreSQL is free where nothing orders them."""
    lines, block, inside = [], [], False
    for line in text.splitlines():
        if re.fullmatch(r"-[-+]*", line):
            lines.append(line)
            inside, block = True, []
        elif inside and re.fullmatch(r"\(\d+ rows?\)", line):
            lines += sorted(block) + [line]
            inside = False
        elif inside:
            block.append(line)
        else:
            lines.append(line)
    return lines + block


def counted(results):
    """How many results of each kind, for suites whose results are single words."""
    counts = collections.Counter(text.split("\n", 1)[0] for text in results.values())
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
