"""Makes the pictures of the documents anew; `make pictures` runs it.

They are what a browser shows of pages that walkback makes here: a flame graph of perl as the distribution built it,
without frame pointers, the same in a store that is served, and the first screen of a survey of this system's programs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser  # noqa: E402 - of the tests, which show pages in the same way

BIN = ROOT / ".peers" / "bin"
WALKBACK = Path(sys.executable).with_name("walkback")
PERL = r"""
my %found;
for my $i (1 .. 600_000) {
    my $text = sprintf("%08x", $i * 7919);
    $found{substr($text, 0, 4)} .= $text if $text =~ /a[b-f]+/;
}
my @sorted = sort { $found{$a} cmp $found{$b} } keys %found;
use JSON::PP;
print length(encode_json([map { {number => $_} } 1 .. 40_000])), "\n";
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        page = browser.page(flame_graph(Path(folder)), width=1100, height=520)
        page.screenshot(ROOT / "docs" / "pictures" / "flamegraph.png")
        serve(Path(folder), browser)
        page = browser.page(survey(Path(folder)), width=1100, height=520)
        page.screenshot(ROOT / "docs" / "pictures" / "survey.png")


def flame_graph(folder: Path) -> Path:
    perf = shutil.which("perf") or BIN / "perf"
    record = (perf, "record", "-q", "-e", "cpu-clock", "-F", "1999", "-m", "16M", "--call-graph", "dwarf,16384")
    subprocess.run([*record, "-o", "perf.data", "--", "perl", "-e", PERL], cwd=folder, check=True)
    subprocess.run([WALKBACK, "unwind", "perf.data", "--format", "html", "-o", "perl.html"], cwd=folder, check=True)
    return folder / "perl.html"


def serve(folder: Path, browser: Browser) -> None:
    """The recording of `flame_graph` in a store, with a range chosen."""
    subprocess.run([WALKBACK, "store", "stacks", "append", "perf.data"], cwd=folder, check=True)
    command = [WALKBACK, "store", "stacks", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        page = browser.page(server.stdout.readline().strip(), width=1240, height=586)
        page.wait_for("document.body.ariaBusy === 'false'")
        page.drag("#timeline", 0.2, 0.6)
        page.wait_for("document.body.ariaBusy === 'false'")
        page.screenshot(ROOT / "docs" / "pictures" / "serve.png")
        server.terminate()


def survey(folder: Path) -> Path:
    subprocess.run([WALKBACK, "survey", "/usr/bin", "-o", "survey"], cwd=folder, check=True)
    subprocess.run([WALKBACK, "report", "survey", "-o", "survey.html"], cwd=folder, check=True)
    return folder / "survey.html"


if __name__ == "__main__":
    main()
