"""Programs with debugging information, of several languages and in all forms."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from gopclntab.gotools import build_command
from peers import peer

if TYPE_CHECKING:
    from collections.abc import Iterator

C = """\
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#define INLINE static inline __attribute__((always_inline))
struct cell { int key; struct cell *next; };
INLINE int hash(const char *text) { int h = 7; while (*text) h = h * 31 + *text++; return h & 63; }
INLINE struct cell *put(struct cell **at, int key) {
    struct cell *one = malloc(sizeof *one);
    one->key = key; one->next = *at; *at = one;
    return one;
}
__attribute__((noinline)) int count(struct cell *one) { int n = 0; for (; one; one = one->next) n++; return n; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
    static struct cell *table[64];
    int keys[64], i;
    for (i = 0; i < argc; i++) put(&table[hash(argv[i])], i);
    for (i = 0; i < 64; i++) keys[i] = count(table[i]);
    qsort(keys, 64, sizeof *keys, compare);
    if (argc > 9) { fprintf(stderr, "too many\\n"); abort(); }
    return printf("%d\\n", keys[63]);
}
"""
CXX = """\
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace outer { namespace {
struct Cell { int value; int get() const { return value * 3; } };
inline int square(int x) { return x * x + 1; }
int total(std::vector<int> &all) { int sum = 0; for (auto x : all) sum += square(x); return sum; }
}
template <class T> T twice(T x) {
    auto made = [&](T y) { std::string text(y, 'a'); return T(text.size()) + x; };
    return made(x) + square(x);
}
}
int main(int argc, char **) {
    std::vector<int> all;
    std::map<std::string, int> names;
    for (int i = 0; i < argc * 100; i++) { all.push_back(outer::square(i) ^ argc); names[std::to_string(i)] = i; }
    std::sort(all.begin(), all.end());
    outer::Cell cell{argc};
    return outer::total(all) + outer::twice(argc) + cell.get() + int(names.size());
}
"""
RUST = """\
fn square(x: &i32) -> i32 { x * x }
fn main() {
    let all: Vec<i32> = (0..100).collect();
    let sum: i32 = all.iter().map(square).filter(|x| x % 3 == 0).sum();
    let text: String = all.iter().map(|x| x.to_string()).collect();
    println!("{} {}", sum, text);
}
"""
FORTRAN_SOURCE = """\
module shapes
  implicit none
contains
  pure real(8) function square(x)
    real(8), intent(in) :: x
    square = x * x
  end function
  subroutine solve(a, b, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: a(n, n), b(n)
    integer :: k
    do k = 1, n
       call eliminate(k)
    end do
    b = b + square(a(1, 1))
  contains
    subroutine eliminate(k)
      integer, intent(in) :: k
      integer :: j
      do j = k + 1, n
         a(j, k:n) = a(j, k:n) - a(j, k) / a(k, k) * a(k, k:n)
         b(j) = b(j) - square(b(k))
      end do
    end subroutine
  end subroutine
end module
program main
  use shapes
  implicit none
  real(8) :: a(40, 40), b(40)
  call random_number(a)
  call random_number(b)
  call solve(a, b, 40)
  print *, maxval(b), sum(pack(b, b > 0)), square(b(2))
end program
"""
FORMS = [
    *(("-gdwarf-3",), ("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-4", "-gsplit-dwarf"), ("-gdwarf-5", "-gsplit-dwarf")),
    *(("-g", "-flto"), ("-g", "-fdebug-types-section"), ("-g", "-ffunction-sections", "-Wl,--gc-sections")),
]


def built(folder: Path, compiler: str, *options: str, source: str = C, name: str = "a.c") -> Path:
    (folder / name).write_text(source)
    subprocess.run([compiler, "-O2", *options, name, "-o", "prog"], cwd=folder, check=True, capture_output=True)
    return folder / "prog"


def clang(folder: Path, *options: str) -> Path:
    """C by Clang, linked by GCC."""
    (folder / "a.c").write_text(C)
    headers = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, check=True, text=True)
    options = tuple(one for one in options if not one.startswith("-Wl"))
    command = [peer("clang-19"), "-O2", *options, "-isystem", headers.stdout.strip(), "-c", "a.c", "-o", "a.o"]
    subprocess.run(command, cwd=folder, check=True)
    subprocess.run(["gcc", "a.o", "-o", "prog"], cwd=folder, check=True)
    return folder / "prog"


def rust(folder: Path) -> Path:
    """Rust, with as much of its library as has debugging information."""
    (folder / "a.rs").write_text(RUST)
    command = [peer("rustc"), "-O", "-g", "a.rs", "-o", "prog"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "prog"


def programs(folder: Path) -> Iterator[tuple[str, Path]]:
    """All of them with what they are, made in a folder: each form of C and C++, Rust, and programs of Go."""
    for number, form in enumerate(FORMS):
        own = folder / str(number)
        for name in ("gcc", "gxx", "clang"):
            (own / name).mkdir(parents=True, exist_ok=True)
        yield f"C, gcc {' '.join(form)}", built(own / "gcc", "gcc", *form)
        yield f"C++, g++ {' '.join(form)}", built(own / "gxx", "g++", *form, source=CXX, name="a.cc")
        if "-flto" not in form:
            yield f"C, clang {' '.join(form)}", clang(own / "clang", *form)
    yield "Rust", rust(folder)
    for version in ("1.19", "new"):
        yield f"Go {version}", build_command("addr2line", folder / f"go-{version}", version, "amd64")
