#!/bin/sh
# walkback at work on a section that this machine makes itself. `make demo` runs it with walkback on the PATH.
set -eu

# The interpreter that walkback is installed for stands beside it.
python=$(dirname "$(command -v walkback)")/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

say() { printf '\n# %s\n' "$*"; }

# Print a command as a person would type it, and run it; findings are no failure here.
try() {
    printf '$ %s\n' "$*"
    status=0
    "$@" || status=$?
    [ "$status" -le 1 ] || exit "$status"
}

cat > sum.c <<'C'
#include <stdio.h>

__attribute__((noinline)) int square(int x) { return x * x; }

__attribute__((noinline)) int sum(int n) {
    int total = 0;
    for (int i = 1; i <= n; i++)
        total += square(i);
    return total;
}

int main(void) {
    printf("%d\n", sum(10));
    return 0;
}
C

builder() {
    cat > make.py <<'P'
from pathlib import Path

import walkback

builder = walkback.SectionBuilder("AMD64")
frame = [(1, "CFA = rsp+16, FP = *(CFA-16)"), (4, "CFA = rbp+16, FP = *(CFA-16)"), (31, "CFA = rsp+8, FP = *(CFA-16)")]
for number in range(3):
    builder.function(0x1000 + 32 * number, 32, ["CFA = rsp+8", *frame])
Path("sum.sframe").write_bytes(builder.encode(address=0x4000))
P
    printf '$ cat make.py\n'
    cat make.py
    printf '$ python make.py\n'
    "$python" make.py
}

say "A section: the system's assembler writes one if it can."
cc=${CC:-gcc}
if "$cc" -O1 -fno-omit-frame-pointer -Wa,--gsframe -o sum sum.c 2> cc.log && walkback show sum > /dev/null 2>&1; then
    printf '$ %s -O1 -fno-omit-frame-pointer -Wa,--gsframe -o sum sum.c\n' "$cc"
    file=sum target=sum function=sum
    set --
else
    echo "It cannot here, so walkback makes one itself."
    builder
    file=sum.sframe target=0x1024 function=0x1020
    set -- --address 0x4000
fi

say "What is in it?"
try walkback show "$file" --function "$function" "$@"

say "Is it right?"
try walkback check "$file" "$@"

say "Would Linux load it?"
try walkback check --for linux --limit 3 "$file" "$@"

say "Which rule holds here?"
try walkback find "$file" "$target" "$@"

say "The same for programs, one object a line."
try walkback find --json "$file" "$target" "$@"

say "And as readelf prints it."
try walkback show --format gnu "$file" --function "$function" "$@"
