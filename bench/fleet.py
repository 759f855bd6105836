"""What an hour of many hosts costs a store: the appends, the compaction of all of them, and what stays.

    python bench/fleet.py [--rate HZ] [--appends N] [--programs N] HOSTS...

Each host runs the same programs, each with its own share of the stacks of a recording, and appends N times in the hour.
A line per number of hosts; compaction is the whole command.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from measure import WALKBACK, process
from months import HOUR, chosen, recorded
from walkback.store.builder import SampleOrigin
from walkback.store.store import Store

_START = 490_000 * HOUR


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures what an hour of many hosts costs a store.")
    parser.add_argument("--rate", type=int, default=19, help="Samples per second and host.")
    parser.add_argument("--appends", type=int, default=1, help="Appends of each host.")
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("hosts", type=int, nargs="+")
    asked = parser.parse_args()
    stacks = recorded()
    rng = np.random.default_rng(1)
    each = asked.rate * 3600 // asked.appends
    for hosts in asked.hosts:
        with tempfile.TemporaryDirectory() as temporary:
            store = Store(Path(temporary) / "store", create=True)
            used = 0.0
            for host in range(hosts):
                for number in range(asked.appends):
                    program, which = chosen(rng, each, asked.programs, len(stacks.stack))
                    times = np.linspace(0, HOUR // asked.appends - 1, each).astype(np.int64)
                    begin = time.process_time()
                    with store.append(host=f"host{host}", names=False) as new:
                        nodes, _ = new.builder.take_over(stacks.referred)
                        origins = (SampleOrigin(f"host{host}", f"program{one}") for one in range(asked.programs))
                        sources = new.builder.sources(origins)
                        numbers = nodes[stacks.stack[which]], np.ones(each, np.int64), sources[program]
                        since = _START + number * (HOUR // asked.appends)
                        new.builder.add(times, *numbers, stacks.end[which], since=since)
                    used += time.process_time() - begin
            appends, samples = hosts * asked.appends, hosts * asked.appends * each
            before = store.overview().bytes
            seconds, memory = process((WALKBACK, "store", store.path, "compact"))
            after = store.overview().bytes
            print(
                f"{hosts} hosts, {samples:,} samples: append {used / appends:.2f} s, {before / appends / 1e3:.0f} kB;"
            )
            print(f"    compact {seconds:.1f} s, {memory:.0f} MB; {before / samples:.2f} bytes a sample", end="")
            print(f" before, {after / samples:.2f} after", flush=True)


if __name__ == "__main__":
    main()
