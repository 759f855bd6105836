"""A survey with made-up numbers, of any number of files, as the reports of surveys read it.

The numbers go with each other as real ones do (parts add up, what is covered is not more than there is), and are the
same for the same seed.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from walkback.surveys import layout
from walkback.surveys.columns import packed
from walkback.surveys.folder import made
from walkback.surveys.parts import Writer

MACHINES = {"AMD64": 50, "AArch64": 40, "s390x": 10}
MAKERS = {
    ("GCC", "12.2.0", "C"): 55,
    ("GCC", "12.2.0", "C++"): 25,
    ("Clang", "16.0.6", "C++"): 6,
    ("rustc", "1.63.0", "Rust"): 5,
    ("Go", "1.19.8", "Go"): 4,
    ("GNU as", None, "Assembly"): 2,
    ("OCaml", "4.13.1", "OCaml"): 1,
    ("unknown", None, "unknown"): 2,
}
KINDS = {"library": 45, "program": 40, "object": 10, "module": 5}
REASONS = {
    1: [
        ("SIGNAL", "a signal frame, which only version 3 can mark", 3),
        ("CFA_BASE", "a CFA based on another register", 9),
    ],
    2: [("CFA_BASE", "a CFA based on a register other than SP and FP", 9), ("EXPRESSION", "an expression", 3)],
    3: [
        ("EXPRESSION", "an expression that is no rule of the table", 5),
        ("STACK_POINTER", "the caller's SP is not the CFA", 2),
        ("NO_CFA", "nothing says how the CFA is found", 1),
    ],
}
TYPES = {
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
    "UTINYINT[]": pa.list_(pa.uint8()),
    "UBIGINT": pa.uint64(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "BOOLEAN": pa.bool_(),
}
HOSTILE = "</script><script>fail()</script>&<b>\u202e\u2028'\"`\x1b[31m"


def _chosen(rng: random.Random, weights: dict[Any, int]) -> Any:
    return rng.choices(list(weights), list(weights.values()))[0]


class Made:
    """Rows by table."""

    def __init__(self, files: int, seed: int = 1) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in layout.TABLES}
        self._units: set[str] = set()
        rng = random.Random(seed)
        for number in range(files):
            self._add_file(rng, number)
        if files:
            self._add_without_functions(f"{rng.getrandbits(128):032x}")
            self.add("troubles", path="pool/odd.deb", member="data.tar.xz", what="damaged", message="it is cut off")
            self.add("troubles", path="pool/fifo", what="not a file", message="this is a pipe")
            self._add_other(f"{rng.getrandbits(128):032x}", HOSTILE, outcome="error", error=f"wrong {HOSTILE}")
            for outcome in ("debug", "machine", "32-bit", "core"):
                self._add_other(f"{rng.getrandbits(128):032x}", f"usr/lib/{outcome}.so", outcome=outcome)
            without = {"producer": "Go", "language": "Go", "text_bytes": 1 << 24}
            self._add_other(f"{rng.getrandbits(128):032x}", "usr/lib/without.so", outcome="without", **without)

    def add(self, table: str, **values: Any) -> None:
        row = tuple(values.pop(name, None) for name in layout.COLUMNS[table])
        assert not values, values
        self.rows[table].append(row)

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A database with the tables."""
        connection = duckdb.connect()
        for table, kinds in layout.COLUMNS.items():
            columns = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
            connection.execute(f"CREATE TABLE {table} ({columns})")
            if rows := self.rows[table]:
                schema = pa.schema([(name, TYPES[kind]) for name, kind in kinds.items()])
                data = pa.table(dict(zip(kinds, map(list, zip(*rows, strict=True)), strict=True)), schema=schema)
                connection.register("data", data)
                connection.execute(f"INSERT INTO {table} SELECT * FROM data")
                connection.unregister("data")
        return connection

    def write(self, path: Path, *, finished: bool = True) -> Path:
        """A survey on disk; one that is not finished if that is wanted."""
        with Writer(made(str(path), {})) as writer:
            writer.add([packed(self.rows)])
            if finished:
                writer.finish([row[0] for table in ("units", "troubles") for row in self.rows[table]])
            else:
                writer.write()
        return path

    def _add_without_functions(self, content: str) -> None:
        """A file whose .eh_frame has nothing but its end."""
        about = {"outcome": "measured", "machine": "AMD64", "kind": "library", "producer": "GCC", "language": "C"}
        sizes = dict.fromkeys((name for name, kind in layout.COLUMNS["files"].items() if kind == "UBIGINT"), 0)
        self._add_other(
            content, "usr/lib/data.so", **sizes | about | {"source": ".eh_frame", "eh_frame": 4, "bytes": 4321}
        )
        numbers = [name for name, kind in layout.COLUMNS["versions"].items() if kind == "UBIGINT"]
        for version, missing in ((1, layout.WHAT_IFS), (2, ("stack_deltas",)), (3, ("compact_index",))):
            sizes = {name: 28 if name in {"bytes", "header", *layout.WHAT_IFS} else 0 for name in numbers}
            its = sizes | dict.fromkeys(missing)
            self.add("versions", content=content, version=version, proved=True, **its)

    def _add_other(self, content: str, path: str, **values: Any) -> None:
        self.add("units", path=path, bytes=4321, modified=1)
        self.add("places", content=content, path=path)
        unknown = {"bytes": 4321, "producer": "unknown", "language": "unknown", "producers": [], "machine": "AMD64"}
        self.add("files", content=content, **(unknown | values))

    def _add_file(self, rng: random.Random, number: int) -> None:
        content = f"{rng.getrandbits(128):032x}"
        machine, kind = _chosen(rng, MACHINES), _chosen(rng, KINDS)
        producer, version, language = _chosen(rng, MAKERS)
        functions = int(rng.lognormvariate(4.5, 1.7)) + 1
        package = f"package{number // 7}"
        deb = f"pool/main/{package[-1]}/{package}_1.0-{number % 3}_{machine.lower()}.deb"
        member = f"usr/{'bin' if kind == 'program' else 'lib/x86_64-linux-gnu'}/{language.lower()}-{kind}-{number}"
        if number == 3:
            member = HOSTILE
        for path in [deb, f"pool/again/{number}.deb"] if number % 29 == 0 else [deb]:
            if path not in self._units:
                self._units.add(path)
                self.add("units", path=path, bytes=functions * 400, modified=number)
            self.add(
                "places", content=content, path=path, member=member, package=package, package_version="1.0",
                package_architecture=machine.lower(), package_format="deb",
            )  # fmt: skip
        size = int(functions * rng.uniform(80, 220))
        rows = int(functions * rng.uniform(2.5, 5))
        frames = int(functions * rng.uniform(44, 70)) + 80
        has = language != "Go" or number % 2
        fp = rng.choice([0.01, 0.03, 0.05, 0.95, 0.99]) if machine != "s390x" else 0.01
        self.add(
            "files", content=content, bytes=size + frames + 4000, outcome="measured", machine=machine, kind=kind,
            build_id=f"{rng.getrandbits(160):040x}", producer=producer, producer_version=version,
            producer_evidence="nothing" if producer == "unknown" else ".comment", producers=[f"{producer} {version}"],
            language=language, linker=None, source=".eh_frame" if has else ".debug_frame", text_bytes=size,
            eh_frame=frames if has else 0, eh_frame_hdr=8 * functions + 12 if has else 0,
            debug_frame=0 if has else frames, functions=functions, rows=rows, code_bytes=size - 17,
            from_cfi=size - 17 if has else 0, from_go=0 if has else size - 17, from_orc=0, from_code=0, dead=0, empty=0,
            unreadable=0, shadowed=0, fp_functions=int(functions * fp), fp_bytes=int(size * fp),
            fp_saved=min(functions, int(functions * (fp + 0.1))), personality_functions=functions // 9,
            lsda_functions=functions // 11, exception_bytes=functions // 2, register_functions=functions // 2,
            register_rows=rows // 3, added_rows=rows // 9, added_row_bytes=rows // 2, register_bytes=rows,
            sets=9, numbered_bytes=rows // 2,
        )  # fmt: skip
        for one in (1, 2, 3):
            self._add_version(rng, content, machine, one, functions, rows, size - 17)
        if number % 2:
            self._add_proof(content, functions, size - 17)
        if number % 13 == 5:
            self._add_sframe(rng, content, functions, rows, size)

    def _add_version(
        self, rng: random.Random, content: str, machine: str, version: int, functions: int, rows: int, code: int
    ) -> None:
        if version == 1 and machine == "s390x":
            self.add("versions", content=content, version=1, impossible="version 1 does not know s390x")
            return
        lost = sum(rng.random() < 0.004 / version for _ in range(min(functions, 3000)))
        covered = functions - lost
        parts = {
            "header": 28,
            "index": covered * {1: 17, 2: 18, 3: 16}[version],
            "padding": covered * 2 if version == 2 else 0,
            "attributes": covered * 5 if version == 3 else 0,
            "starts": int(rows * 1.2),
            "info": rows,
            "words": int(rows * rng.uniform(1.1, 2.2)),
            "other": 0,
        }
        total = sum(parts.values())
        changes = {
            "slim_header": total - 16,
            "section_per_text": total + 200,
            "section_per_text_slim": total + 150,
            "section_per_function": total + 92 * functions,
            "section_per_function_slim": total + 76 * functions,
            "shared_rows": int(total * 0.71),
            "palette": int(total * 1.1),
        }
        if version == 1:
            changes = {}
        elif version == 2:
            changes["compact_index"] = total - 4 * covered
        else:
            changes["stack_deltas"] = int(total * 0.62)
        size = max(1, code // functions)
        self.add(
            "versions", content=content, version=version, proved=True, bytes=total, functions=functions,
            covered=covered, covered_bytes=code - size * lost, entries=covered, rows=rows, **parts, **changes,
        )  # fmt: skip
        for one in range(lost):
            code_name, message, _ = rng.choices(REASONS[version], [reason[2] for reason in REASONS[version]])[0]
            self.add(
                "functions", content=content, about="uncovered", version=version, code=code_name, message=message,
                address=0x1000 + 16 * one, size=size, name=f"function_{one}" if one != 1 else HOSTILE, count=1,
            )  # fmt: skip

    def _add_proof(self, content: str, functions: int, code: int) -> None:
        """What the code proves of half of the files."""
        rng = random.Random(content)
        wrong = min(functions, rng.choice([0, 0, 0, 1, 4]))
        verdicts = {"wrong": 3 * wrong, "assumed": 0, "unknown": code // 100, "not_reached": code // 50}
        reasons = dict.fromkeys(layout.REASONS, 0) | {"padding": code // 50, "expression": code // 100}
        self.add(
            "proofs", content=content, source=".eh_frame", functions=functions, functions_proved=functions - wrong,
            functions_wrong=wrong, bytes=code, proved=code - sum(verdicts.values()), **verdicts, **reasons,
        )  # fmt: skip
        if functions and rng.random() < 0.2:
            self.add(
                "proofs", content=content, source=".sframe", functions=functions - 1, functions_proved=functions - 1,
                functions_wrong=0, bytes=code, proved=code, wrong=0, assumed=0, unknown=0, not_reached=0,
                **dict.fromkeys(layout.REASONS, 0),
            )  # fmt: skip
        for one in range(wrong):
            self.add(
                "functions", content=content, about="wrong", code=rng.choice(["epilogue-hoisted", "wrong-slot"]),
                message="the table has the CFA at rsp+8, the code rsp+16", address=0x1000 + 16 * one, size=3,
                name=f"function_{one}", count=1,
            )  # fmt: skip

    def _add_sframe(self, rng: random.Random, content: str, functions: int, rows: int, size: int) -> None:
        different = 64 if rng.random() < 0.2 else 0
        findings = rng.choice([0, 0, 0, 2])
        self.add(
            "sframe", content=content, versions=[2], bytes=functions * 25, functions=functions, rows=rows, header=28,
            index=functions * 18, padding=functions * 2, attributes=0, starts=rows, info=rows, words=rows, other=0,
            findings=findings, severity="wrong" if findings else None, equal_bytes=size - different,
            different_bytes=different, only_frames_bytes=0, only_sframe_bytes=0,
        )  # fmt: skip
        for one in range(findings):
            self.add(
                "functions", content=content, about="finding", code="row-order", severity="wrong",
                message=f"row {one} does not rise", section=".sframe", name=None, count=1,
            )  # fmt: skip
        if different:
            self.add(
                "functions", content=content, about="different", code="different", message="CFA = rsp+8 | CFA = rsp+16",
                address=0x1000, size=different, name="main", count=1,
            )  # fmt: skip
