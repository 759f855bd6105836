#!/bin/sh
# A program of this machine gets SFrame: derived, proved, put in, used, taken out. `make demo` runs it with walkback on
# the PATH. It works on copies, and stops at the first thing that fails.
set -eu

# The interpreter that walkback is installed for stands beside it.
python=$(dirname "$(command -v walkback)")/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

say() { printf '\n# %s\n' "$*"; }

# Print a command as a person would type it, and run it.
try() {
    printf '$ %s\n' "$*"
    "$@" 2>&1
}

# The first of these that is more than a starter of a library.
for candidate in /usr/bin/python3 /usr/local/bin/python3 /bin/bash /bin/sh; do
    original=$(readlink -f "$candidate") || continue
    [ -z "$(find "$original" -size +500k)" ] || break
done
name=${candidate##*/}
case $name in
python3) work='import json, hashlib; print(json.dumps({"digest": hashlib.sha256(b"walkback").hexdigest()[:16]}))' ;;
*) work='n=1; for i in 1 2 3 4 5; do n=$((n * i)); done; echo "5! = $n"' ;;
esac

say "A program of this machine, as it is: nothing can walk its stack by SFrame."
try cp "$original" "$name"
try walkback check "$name" && exit 1

say "What it carries for exceptions and debuggers says enough. What SFrame of each version takes, and what it covers:"
for version in 1 2 3; do
    try walkback derive --version $version --limit 3 "$name" -o table.sframe
done

say "The C library has some functions whose frames no SFrame can describe. They are named, never guessed:"
libc=$("$python" -c '
import re
print(re.search(r"/\S*/(libc\.so\.6|ld-musl\S*)$", open("/proc/self/maps").read(), re.M)[0])')
try cp "$libc" .
try walkback derive "${libc##*/}" -o table.sframe

say "Put into a copy of the program. Nothing is written unless it is proved equal at every address."
try walkback add "$name" -o "$name.sframe"
try ls -l "$name" "$name.sframe"

say "Proved again, from the finished file; and is it in order?"
try walkback compare "$name.sframe"
try walkback check "$name.sframe"

say "Which rule holds in the middle of the program? Before, nobody knew:"
place=$("$python" -c '
import sys, walkback
section = walkback.ElfFile(sys.argv[1]).sframe[0].section
most = section.functions.num_fres.argmax()
print(hex(int(section.code_address[most]) + int(section.functions.size[most]) // 2))' "$name.sframe")
try walkback find "$name" "$place" && exit 1
say "Now:"
try walkback find "$name.sframe" "$place"

say "It still does its work, and has its table at hand when it runs:"
mv "$name" before
mv "$name.sframe" "$name"
printf "$ ./%s -c '%s'\n" "$name" "$work"
"./$name" -c "$work"
[ "$("./$name" -c "$work")" = "$(./before -c "$work")" ]

say "And with it what the program is doing can be seen, though it was built without frame pointers:"
case $name in
python3) forever='sum(iter(lambda: sum(range(1000)), -1))' ;;
*) forever='while :; do :; done' ;;
esac
"./$name" -c "$forever" &
busy=$!
sleep 0.5
try walkback stack "$busy" > seen || echo "(this machine does not let one process look at another)" >> seen
sed "s|$(pwd -P)/||" seen
kill "$busy"

say "Any program can look for its own table in memory, as an unwinder does:"
cat > find_table.c <<'C'
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>

static int visit(struct dl_phdr_info *object, size_t size, void *data) {
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == 0x6474e554) { /* PT_GNU_SFRAME */
            const uint8_t *table = (const uint8_t *) object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            const uint32_t *count = (const uint32_t *) (table + 8);
            printf("a table of version %d with %u functions\n", table[2], *count);
            return 1;
        }
    return 0;
}

int main(void) {
    if (!dl_iterate_phdr(visit, NULL))
        puts("no table");
}
C
try cat find_table.c
try gcc -O2 find_table.c -o find_table
try ./find_table
try walkback add find_table
try ./find_table | tee found
grep -q 'functions$' found

say "And without it the program is again what it was, byte for byte."
try walkback drop "$name"
try cmp "$name" before
echo "the same"
