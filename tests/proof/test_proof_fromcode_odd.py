"""Tables from code of files that are odd or hostile: no crash, no endless work, and no wrong rule."""

from __future__ import annotations

import struct
import subprocess
import time
from pathlib import Path

import pytest

import walkback
from codetables import table_of
from elfbuilder import ElfBuilder
from peers import peer
from walkback.elf import ElfFile
from walkback.elf.machines import machine_of
from walkback.sections.reading import read_tables
from walkback.symbols import SymbolIndex
from walkback.table.rule import PartKind, Reason
from walkback.walking.moduletable import module_table

FUNCTION = bytes.fromhex("554889e54883ec20b800000000c9c390")
"""push, a frame, leave, ret"""


def assembled(folder: Path, text: str) -> ElfFile:
    path = folder / "odd.o"
    subprocess.run(["as", "-o", path, "-"], input=text.encode(), check=True)
    return ElfFile(path)


def walked(content: bytes) -> None:
    """What a walk reads of the file."""
    elf = ElfFile(content)
    module_table(elf, machine_of(elf))


def test_sections_more_than_half_of_all_addresses_apart() -> None:
    most = 0x4000
    far = 2**64 - 0x20
    text = bytes.fromhex("488d842400010000") * ((most - 16) // 8)
    text += b"\xe9" + struct.pack("<i", most + 1 - (len(text) + 5))
    text += b"\x90" * (most - len(text)) + b"\x50\x50\x58\x58\xc3" + b"\xcc" * 11
    builder = ElfBuilder("little", 62, 3)
    near = builder.section(".text", text, flags=6, addr=0)
    other = builder.section(".text2", b"\x55\x5d\xc3" + b"\xcc" * 13, flags=6, addr=far)
    symbols = builder.symtab()
    builder.symbol(symbols, "a", 0, section=near, size=most)
    builder.symbol(symbols, "l", most, section=near, size=4)
    builder.symbol(symbols, "h", far, section=other, size=3)
    builder.segment(1, ".text", flags=5, vaddr=0)
    content = bytes(builder.build())
    walked(content)
    assert len(table_of(ElfFile(content)))


@pytest.mark.parametrize(("size", "offset"), [(0, 2**64 - 8), (4, 2**64 - 8), (16, 2**64 - 8), (16, 0x5004)])
def test_a_relocation_beside_an_array_of_functions(size: int, offset: int) -> None:
    builder = ElfBuilder("little", 62, 3, entry=0x10)
    builder.section(".text", FUNCTION * 40, flags=6, addr=0x1000)
    builder.section(".init_array", bytes(size), kind=14, flags=3, addr=0)
    builder.section(".rela.dyn", struct.pack("<QQq", offset, 8, 0x1000), kind=4, flags=2, entsize=24)
    builder.segment(1, ".text", flags=5, vaddr=0x1000)
    walked(bytes(builder.build()))


def test_a_linkage_table_at_the_end_of_all_addresses() -> None:
    builder = ElfBuilder("little", 62, 3)
    builder.section(".text", FUNCTION * 40, flags=6, addr=0x1000)
    builder.section(".plt", bytes(16), flags=6, addr=2**64 - 16)
    builder.segment(1, ".text", flags=5, vaddr=0x1000)
    walked(bytes(builder.build()))


@pytest.mark.whole
def test_long_chains_of_parts_and_of_jumps_take_no_longer_than_they_are(tmp_path: Path) -> None:
    count = 20_000
    symbols = "".join(f".type f{i}, @function\nf{i}: .byte 0xeb, 0\n.size f{i}, 2\n" for i in range(count))
    elf = assembled(tmp_path, f".text\npush %rbp\n{symbols}ret\n")
    start = time.process_time()
    table_of(elf)
    assert time.process_time() - start < 60


def test_a_library_has_no_entry(tmp_path: Path) -> None:
    (tmp_path / "lib.c").write_text("int one(int x) { return x + 1; }\n")
    path = tmp_path / "lib.so"
    flags = ("-shared", "-fPIC", "-Wl,-z,noseparate-code")
    subprocess.run(["gcc", *flags, "-o", path, "lib.c"], cwd=tmp_path, check=True)
    content = bytearray(path.read_bytes())
    content[40:48], content[58:64] = bytes(8), bytes(6)  # no section headers
    table = table_of(ElfFile(bytes(content)))
    assert not (table.rules["ra"]["kind"][table.row_rule] == PartKind.UNDEFINED).any()


def test_code_of_other_sections_of_an_object_fills_no_foreign_place(tmp_path: Path) -> None:
    functions = "".join(
        f".globl b{i}\n.type b{i}, @function\nb{i}: push %rbx\n.skip 60, 0x90\npop %rbx\nret\n.size b{i}, .-b{i}\n"
        for i in range(100)
    )
    described = '.section .text.a,"ax"\na: .cfi_startproc\n.skip 3000, 0x90\nret\n.cfi_endproc\n'
    elf = assembled(tmp_path, f'{described}.section .text.b,"ax"\n{functions}')
    found = read_tables(elf, fills=True)
    assert [source.name for source in found.sources] == [".eh_frame", "code"]
    assert (found.functions, found.shadowed) == (101, 0)


def test_what_cannot_be_read_of_the_code_leaves_call_frame_information_as_it_is() -> None:
    content = bytearray(Path("/usr/bin/env").read_bytes())
    elf = ElfFile(bytes(content))
    headers = struct.unpack_from("<Q", content, 40)[0]
    struct.pack_into("<Q", content, headers + 64 * elf.sections_named(".rodata")[0] + 32, 10**9)
    broken = ElfFile(bytes(content))
    assert len(read_tables(broken, fills=True).table) == len(read_tables(broken).table)


@pytest.mark.parametrize(
    "asks",
    [
        "mov $56, %eax",
        "xor %eax, %eax\nmov $56, %al",
        "push $56\npop %rax",
        "mov $56, %ecx\nmov %ecx, %eax",
        "test %edi, %edi\nmov $56, %eax\njz 1f\nmov $39, %eax\n1:",
    ],
)
def test_threads_are_seen_however_the_kernel_is_asked(asks: str, tmp_path: Path) -> None:
    text = f".globl f\n.type f, @function\nf:\n{asks}\nsyscall\nret\n.size f, .-f\n"
    table = table_of(assembled(tmp_path, text))
    [rule] = table.rules[table.row_rule[table.range_first_row]]["cfa"]
    assert (rule["kind"], rule["offset"]) == (PartKind.INEXPRESSIBLE, Reason.FORKS)


@pytest.mark.peers
@pytest.mark.parametrize("key", ["a", "b"])
def test_both_keys_of_signed_addresses_are_known(key: str, tmp_path: Path) -> None:
    source = tmp_path / "signed.s"
    source.write_text(
        f".globl f\n.type f, %function\nf: paci{key}sp\nstp x29, x30, [sp, -16]!\nmov x29, sp\nbl f\n"
        f"ldp x29, x30, [sp], 16\nauti{key}sp\nret\n.size f, .-f\n"
    )
    signed = tmp_path / "signed.o"
    subprocess.run([peer("aarch64-as-2.44"), "-march=armv8.3-a", "-o", signed, source], check=True)
    made = walkback.derive(signed, tables="code")
    assert (made.covered, made.functions) == (1, 1)
    assert made.read.table.range_pauth_key.tolist() == [0 if key == "a" else 1]


def test_a_label_that_code_names_in_a_function_begins_no_other(tmp_path: Path) -> None:
    """As Linux names places for its messages; there, GCC may save a register only now."""
    elf = assembled(
        tmp_path,
        ".globl f\n.type f, @function\nf: sub $24, %rsp\ntest %edi, %edi\njne 1f\nadd $24, %rsp\nret\n"
        "1: mov %rbx, 8(%rsp)\nlea 1b(%rip), %rsi\ncall g\nmov 8(%rsp), %rbx\nadd $24, %rsp\nret\n.size f, .-f\n",
    )
    found = table_of(elf).find(13, section=elf.sections_named(".text")[0])
    assert found is not None
    assert (found.start, found.rule.cfa.offset) == (0, 32)


@pytest.mark.peers
def test_a_return_address_is_where_the_frame_pointer_is_saved(tmp_path: Path) -> None:
    """And in no other place that it was stored in, where something else may be soon."""
    source = tmp_path / "twice.s"
    source.write_text(
        ".globl f\n.type f, %function\nf: sub sp, sp, 64\nstp x29, x30, [sp, 32]\nadd x29, sp, 32\nstp x2, x30, [sp]\n"
        "bl g\ncbz x0, 1f\nstr x1, [sp, 8]\nbl g\n1: ldp x29, x30, [sp, 32]\nmov x0, x1\nadd sp, sp, 64\nret\n"
        ".size f, .-f\n"
    )
    twice = tmp_path / "twice.o"
    subprocess.run([peer("aarch64-as-2.44"), "-o", twice, source], check=True)
    table = walkback.derive(twice, tables="code").read.table
    found = [table.find(place, section=1) for place in (0x14, 0x24, 0x28)]
    assert [one.rule.ra.offset for one in found if one is not None] == [-24] * 3


def linked(folder: Path, text: str, *options: str) -> Path:
    """A file without symbols, of one source in assembly."""
    path = folder / "linked"
    (folder / "linked.s").write_text(text)
    subprocess.run(["gcc", "-nostdlib", "-s", *options, "-o", path, folder / "linked.s"], check=True)
    return path


OUTERMOST_AND_OTHERS = """
.globl {first}
{first}: lea table(%rip), %rbx
call *(%rbx)
mov %eax, %edi
mov $60, %eax
syscall
push %rbx
mov %rdi, %rbx
call *8(%rbx)
pop %rbx
ret
.data
table: .quad 0, 0
"""


def test_a_function_behind_the_end_of_a_program_is_not_outermost(tmp_path: Path) -> None:
    """Nothing divides them: the system call before it does not come back."""
    path = linked(tmp_path, OUTERMOST_AND_OTHERS.format(first="_start"), "-static")
    elf = ElfFile(path)
    table = table_of(elf)
    begins = table.find(elf.entry)
    assert begins is not None
    assert begins.rule.ra.kind == PartKind.UNDEFINED
    code = elf.section_data(elf.sections_named(".text")[0])
    behind = elf.entry + bytes(code).index(b"\x0f\x05") + 2
    found = table.find(behind)
    assert found is None or found.rule.cfa.kind == PartKind.INEXPRESSIBLE


def test_a_library_does_not_begin_where_old_linkers_say(tmp_path: Path) -> None:
    text = ".globl work\n.type work, @function\nwork: push %rbx\nmov %edi, %ebx\ncall *%rsi\npop %rbx\nret\n"
    elf = ElfFile(linked(tmp_path, text, "-shared", "-Wl,-e,work"))
    assert elf.entry
    found = table_of(elf).find(elf.entry + 1)
    assert found is not None
    assert (found.rule.cfa.kind, found.rule.cfa.offset) == (PartKind.REGISTER, 16)


@pytest.mark.parametrize(
    "end",
    [
        *("pop %rdx\npush %rbx\npush %rbp\njmp *%rdx", "ret $8", "pop %rdx\npush %rbx\npush %rdx\nret"),
        *("pop %rdx\nsub %rdi, %rsp\njmp *%rdx", "pop %rdx\nmov %rdi, %rsp\njmp *%rdx"),
        "test %edi, %edi\nje 1f\nret\n1: pop %rdx\nsub %rdi, %rsp\njmp *%rdx",
    ],
)
def test_callers_of_what_moves_the_stack_have_no_rules(end: str, tmp_path: Path) -> None:
    elf = assembled(
        tmp_path,
        ".globl f\n.type f, @function\nf: sub $40, %rsp\ncall moves\nadd $40, %rsp\nret\n.size f, .-f\n"
        f".type moves, @function\nmoves: {end}\n.size moves, .-moves\n",
    )
    assert {int(one) for one in table_of(elf).rules["cfa"]["kind"]} == {PartKind.INEXPRESSIBLE}


@pytest.mark.parametrize("end", ["pop %rbx\nret", "1: jmp 1b"], ids=["a function", "what may be one"])
def test_a_part_that_code_in_front_may_fall_into_has_no_rules_of_that(end: str, tmp_path: Path) -> None:
    """What is called there does not come back, and only the way from the other function is sure."""
    text = (
        ".globl a\n.type a, @function\na: sub $24, %rsp\ntest %edi, %edi\nje 2f\nadd $24, %rsp\nret\n"
        "2: call n@plt\nc: call h@plt\njmp back\n.p2align 4\np: push %rbx\nmov %rdi, %rbx\ntest %edi, %edi\n"
        f"jne c\nback: call h@plt\n{end}\n"
    )
    elf = ElfFile(linked(tmp_path, text, "-shared"))
    [code] = elf.sections_named(".text")
    found = table_of(elf).find(int(elf.sections["addr"][code]) + 18)
    assert found is None or found.rule.cfa.kind == PartKind.INEXPRESSIBLE


def has_rules(elf: ElfFile, name: str) -> bool:
    [(_, address)] = SymbolIndex(elf).lookup(name)
    found = table_of(elf).find(address)
    return found is not None and found.rule.cfa.kind != PartKind.INEXPRESSIBLE


@pytest.mark.parametrize(("moves", "is_right"), [("sub %rax,%rsp", False), ("nop", True)])
def test_callers_of_what_moves_the_stack_have_no_rules_though_another_may_take_its_place(
    moves: str, is_right: bool, tmp_path: Path
) -> None:
    text = (
        ".globl user,mover\n.type mover,@function\n"
        f"mover: pop %r11\n{moves}\njmp *%r11\n.size mover,.-mover\n.p2align 4\n"
        ".type user,@function\nuser: push %rbx\nmov %rsp,%rbx\nmov $4096,%eax\ncall mover@plt\ncall ext@plt\n"
        "mov %rbx,%rsp\npop %rbx\nret\n.size user,.-user\n"
    )
    assert has_rules(ElfFile(linked(tmp_path, text, "-shared")), "user") == is_right


HANDLERS = """
struct frame; void work(unsigned long);
__attribute__((interrupt)) void first(struct frame *f, unsigned long e) { for (;;) work(e); }
__attribute__((interrupt)) void second(struct frame *f, unsigned long e) { work(e); }
__attribute__((noinline)) void plain(unsigned long e) { for (;;) work(e); }
void *table[] = {first, second, plain};
"""


def test_handlers_that_never_return_are_no_functions(tmp_path: Path) -> None:
    """They have an error code where functions have the return address, and save what functions may overwrite."""
    source = tmp_path / "handlers.c"
    source.write_text(HANDLERS)
    options = ("-O2", "-fPIC", "-mgeneral-regs-only", "-fno-asynchronous-unwind-tables", "-shared", "-nostdlib")
    subprocess.run(["gcc", *options, source, "-o", tmp_path / "handlers.so"], check=True)
    elf = ElfFile(tmp_path / "handlers.so")
    assert [has_rules(elf, name) for name in ("first", "second", "plain")] == [False, False, True]
