"""A program that uses public names alone; type checkers have to understand it without a word of help."""

import sys
from pathlib import Path

import walkback


def rows(path: Path) -> int:
    """The rows of the longest SFrame table of a file, and what its own text is."""
    tables = [section.table for section in walkback.ElfFile(path).sframe]
    rule = walkback.Rule.parse("CFA = rsp+8", walkback.sframe.SectionBuilder("AMD64").machine)
    if rule.cfa.kind is not walkback.table.PartKind.REGISTER:
        raise walkback.ArgumentError("this is the rule of a function's first instruction")
    return max(len(table.row_offset) for table in tables)


def findings(data: bytes) -> list[walkback.results.Finding]:
    """What is wrong with the bytes of a file."""
    return [finding for report in walkback.check(data, limit=1) for finding in report.findings]


def main() -> None:
    path = Path(sys.argv[1])
    added = walkback.add(path, "copy")
    print(added.derived.covered, rows(path), findings(path.read_bytes()), walkback.size(path).versions[3].parts.total)
    for pair in walkback.compare("copy"):
        print(pair.comparison.equal, pair.comparison.code_bytes(walkback.table.Verdict.EQUAL))
    profile = walkback.unwind("perf.data", max_stack=100)
    print(walkback.stacks.hottest(profile, 3)[0].name, profile.columns().rows)
    backtrace = walkback.cbf.decode(walkback.cbf.encode([(walkback.cbf.FrameCode.PC, 1)]))
    print(backtrace.frame_count, walkback.stack(1).labels(0), walkback.__version__)
    print(walkback.Survey("tables").sql("FROM files").rows, walkback.Store("stacks").select().top(1)[0].own)


if __name__ == "__main__":
    main()
