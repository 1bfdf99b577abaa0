"""Reads the verdicts of test runners that write JUnit's XML (pytest, Maven's surefire)."""
import collections
import xml.etree.ElementTree


def verdicts(files):
    """Name of each test to passed, skipped, or failed with the failure's first line below."""
    results = collections.defaultdict(list)
    for file in files:
        for case in xml.etree.ElementTree.parse(file).iter("testcase"):
            results[f"{case.get('classname')}.{case.get('name')}"].append(verdict(case))
    return {name: "\n".join(found) for name, found in results.items()}


def verdict(case):
    for child in case:
        if child.tag == "skipped":
            return "skipped"
        if child.tag in ("failure", "error"):
            return "failed"
    return "passed"


def reasons(files):
    """Name of each failed test to what was said, for whoever looks into it."""
    found = {}
    for file in files:
        for case in xml.etree.ElementTree.parse(file).iter("testcase"):
            for child in case:
                if child.tag in ("failure", "error"):
                    found[f"{case.get('classname')}.{case.get('name')}"] = (child.text or child.get("message") or "")
    return found
