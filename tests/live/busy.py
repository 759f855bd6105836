"""A Python program whose threads are busy in the interpreter and in its libraries."""

import json
import re
import sqlite3
import threading
import zlib


def depth(n: int) -> int:
    return depth(n - 1) + 1 if n else 0


def recursion() -> None:
    while True:
        depth(300)


def matching() -> None:
    pattern = re.compile(r"(\w+\s*)*(\d+)x")
    while True:
        pattern.match("some words and 123456")


def sorting() -> None:
    while True:
        sorted((str(n * 7919 % 1000) for n in range(1000)), key=lambda text: text[::-1])


def packing() -> None:
    data = bytes(range(256)) * 1000
    while True:
        json.loads(json.dumps({"data": list(zlib.compress(data)), "size": len(data)}))


def asking() -> None:
    base = sqlite3.connect(":memory:")
    base.create_function("twice", 1, lambda n: n * 2)
    while True:
        base.execute("with recursive n(i) as (select 1 union select i + 1 from n where i < 300) select twice(i) from n")


for work in (recursion, matching, sorting, packing, asking):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
