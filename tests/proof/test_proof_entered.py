"""Code that is entered in other ways than the ABI says gets no rules, however much it looks like functions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codetables import table_of
from peers import peer
from walkback.elf import ElfFile
from walkback.proof.prove import Prover
from walkback.table.rule import PartKind, Reason, Rule

pytestmark = pytest.mark.kernel

FUNCTION = ".p2align 4\n.globl {0}\n.type {0}, @function\n{0}: {1}\n.size {0}, .-{0}\n"


def functions(**bodies: str) -> str:
    """Functions in assembly, by their names; `;` divides lines."""
    return "".join(FUNCTION.format(name, body.replace(";", "\n")) for name, body in bodies.items())


def built(folder: Path, text: str, assembler: str = "as", *options: str) -> ElfFile:
    """An object with these lines in `.text`."""
    path = folder / "some.o"
    subprocess.run([assembler, *options, "-o", path, "-"], input=f".text\n{text}".encode(), check=True)
    return ElfFile(path)


def described(elf: ElfFile) -> dict[str, str]:
    """For each function by its symbol the rule at its beginning, or the reason why there is none."""
    table, symbols = table_of(elf), Prover(elf).symbols
    found = {}
    for section, place in zip(*symbols.functions(), strict=True):
        name, there = symbols.name_at(int(place), int(section)), table.find(int(place), section=int(section))
        assert name is not None
        assert there is not None
        rule = there.rule
        assert rule is not None
        found[name] = Reason(rule.cfa.offset).name if is_missing(rule) else rule.text(table.machine)
    return found


def is_missing(rule: Rule) -> bool:
    return rule.cfa.kind == PartKind.INEXPRESSIBLE


ENTERED = "CFA = rsp+8, RA = *(CFA-8), FP unchanged"
PART = "push %rbx; push %r12; call eight; add $16, %rsp; call abort"


def test_what_is_pushed_for_a_call_is_not_saved(tmp_path: Path) -> None:
    """A part of GCC's direct-threaded interpreter, and a function that saves a register to give it another value."""
    found = described(built(tmp_path, functions(odd=PART, known="push %rbx; mov %rdi, %rbx; call abort")))
    assert found == {"odd": "NOT_ENTERED", "known": ENTERED}


def test_what_is_kept_in_the_frame_of_the_caller_is_not_saved(tmp_path: Path) -> None:
    """A part of a function, which has its own frame there."""
    bodies = {
        "odd": "mov %rbx, 16(%rsp); mov %rdi, %rbx; call abort",
        "part": "mov %rbx, 16(%rsp); mov %rdi, %rbx; call eight; mov 16(%rsp), %rbx; jmp elsewhere",
        "known": "push %rbx; mov %rdi, %rbx; call eight; pop %rbx; jmp elsewhere",
    }
    found = described(built(tmp_path, functions(**bodies)))
    assert found == {"odd": "NOT_ENTERED", "part": "NOT_ENTERED", "known": ENTERED}


@pytest.mark.parametrize("name", ["run.cold", "run.isra.0.cold", "run.part.0", "run.cold.3"])
def test_the_symbol_of_a_part_shows_nothing(name: str, tmp_path: Path) -> None:
    elf = built(tmp_path, functions(**{name: "push %rbx; mov %rdi, %rbx; call abort"}))
    assert described(elf) == {name: "NOT_ENTERED"}


def test_what_other_code_jumps_to_in_unknown_ways_is_shown_by_no_symbol(tmp_path: Path) -> None:
    """Nothing leads to the code behind the jump, so nobody knows what is on the stack there."""
    text = functions(
        run="sub $40, %rsp; jmp *%rdi; 1: mov %edx, %ecx; jmp other; .skip 30, 0x90",
        other="push %rbx;\
        mov %rdi, %rbx; call abort",
    )
    assert described(built(tmp_path, text))["other"] == "NOT_ENTERED"


NEXT = "movzbl (%rbx), %eax; inc %rbx; lea table(%rip), %rcx; jmp *(%rcx,%rax,8)"
HANDLERS = functions(
    op_call=f"push %rbx; mov 8(%rsp), %rdi; call puts; pop %rbx; {NEXT}",
    op_inc=f"inc %r12; {NEXT}",
    op_two="push %rbx; push %r12; call puts; mov %rax, %r12; pop %r12; pop %rbx; jmp op_inc",
)


def test_handlers_of_an_interpreter_are_entered_by_jumps(tmp_path: Path) -> None:
    """The last puts back what it saves, and goes on in one that does not, as no function does."""
    assert set(described(built(tmp_path, HANDLERS)).values()) == {"NOT_ENTERED"}


def test_handlers_that_save_registers_are_no_functions_where_most_are_such(tmp_path: Path) -> None:
    saves = "push %rbx; mov %rax, %rbx; call puts; add %rbx, %rax; pop %rbx; jmp *table(,%rax,8)"
    handlers = {f"op_{number}": saves for number in range(5)}
    found = described(built(tmp_path, functions(**handlers, run="push %rbx; mov %rdi, %rbx; call puts; pop %rbx; ret")))
    assert found == dict.fromkeys(handlers, "NOT_ENTERED") | {"run": ENTERED}


def test_a_function_that_jumps_on_may_be_jumped_to_and_returns(tmp_path: Path) -> None:
    bodies = {
        "calls": "push %rbx; mov %rdi, %rbx; call by_table; mov (%rbx), %rax; pop %rbx; jmp *%rax",
        "by_table": "mov table(,%rdi,8), %rax; jmp *%rax",
        "thunk": "add $8, %rdi; jmp back",
        "back": "ret",
    }
    assert described(built(tmp_path, functions(**bodies))) == dict.fromkeys(bodies, ENTERED)


@pytest.mark.parametrize(
    "body", ["push %rbp; jmp *%rbx", "push %rbp; mov %rsp, %rbp; mov %r12, %rdi; call *%r13; ud2", "jmp *(%rax)"]
)
def test_what_goes_through_a_register_that_nobody_set_is_entered_by_a_switch_of_stacks(
    body: str, tmp_path: Path
) -> None:
    """As coroutines begin."""
    elf = built(tmp_path, functions(begins="lea starts(%rip), %rax; mov %rax, (%rdi); call starts; ret", starts=body))
    assert described(elf)["starts"] == "NOT_ENTERED"


def test_an_address_in_a_register_is_followed_with_the_frame(tmp_path: Path) -> None:
    text = functions(
        leads="push $1; push $2; lea common(%rip), %rax; jmp *%rax", common="push %rbx; mov 16(%rsp), %rbx; call abort"
    )
    (tmp_path / "one.s").write_text(f".globl _start\n_start: hlt\n{text}abort: hlt\n")
    subprocess.run(["gcc", "-nostdlib", "-no-pie", "-o", "one", "one.s"], cwd=tmp_path, check=True)
    assert described(ElfFile(tmp_path / "one"))["common"] == "NOT_ENTERED"


def test_a_function_that_goes_on_with_another_frame_is_left_out(tmp_path: Path) -> None:
    """As what unwinds for an exception does: it wrote over what it had saved before."""
    body = "push %rbp; mov %rsp, %rbp; push %rbx; mov %rdi, %rbx; call install; lea 8(%rbp,%rax), %rcx; mov -8(%rbp),\
        %rbx; mov (%rbp), %rbp; mov %rcx, %rsp; pop %rcx; jmp *%rcx"
    assert described(built(tmp_path, functions(raises=body))) == {"raises": "ASTRAY"}


INTERRUPTED = "push %rbp; mov %rsp, %rbp; push %rax; sub $24, %rsp; .skip 52, 0x90; call *%rcx; nop; add $24, %rsp;"


@pytest.mark.parametrize("stripped", [False, True])
def test_handlers_of_interrupts_are_no_functions(stripped: bool, tmp_path: Path) -> None:
    """What is behind the call looks like the beginning of a function, as it is behind padding, where these begin."""
    text = functions(
        handler=f"{INTERRUPTED} pop %rax; pop %rbp; iretq", after="lea handler(%rip), %rax; mov %rax, (%rdi); ret"
    )
    text += "\n.globl _start\n_start: hlt\n"
    (tmp_path / "one.s").write_text(text)
    strip = ("-s",) if stripped else ()
    subprocess.run(["gcc", "-nostdlib", "-static", *strip, "-o", "one", "one.s"], cwd=tmp_path, check=True)
    elf = ElfFile(tmp_path / "one")
    found = table_of(elf).find(int(elf.sections["addr"][elf.sections_named(".text")[0]]))
    assert found is not None
    assert found.rule is not None
    assert is_missing(found.rule)


@pytest.mark.parametrize(
    "asks",
    [
        "lea 55(%rsi), %eax",
        "mov number(%rip), %eax",
        "xor %eax, %eax\nor $56, %al",
        "mov $28, %eax\nadd %eax, %eax",
        "jmp 2f\n1: syscall\nret\n2: mov $28, %eax\nadd %eax, %eax\njmp 1b",
        "",
    ],
)
def test_a_thread_may_begin_where_nobody_knows_what_the_kernel_is_asked(asks: str, tmp_path: Path) -> None:
    assert described(built(tmp_path, functions(asks=f"{asks}\nsyscall\nret"))) == {"asks": "FORKS"}


def test_threads_of_i386_are_seen(tmp_path: Path) -> None:
    asks = "mov ${}, %eax; int $0x80; ret"
    found = described(built(tmp_path, functions(thread=asks.format(120), number=asks.format(20))))
    assert found == {"thread": "FORKS", "number": ENTERED}


@pytest.mark.parametrize("asks", ["mov $39, %eax", "mov $202, %edx\nmov %edx, %eax", "1: mov $202, %eax\njne 1b"])
def test_the_kernel_may_be_asked_for_something_else(asks: str, tmp_path: Path) -> None:
    assert described(built(tmp_path, functions(asks=f"{asks}\nsyscall\nret"))) == {"asks": ENTERED}


@pytest.mark.parametrize(
    "body",
    [
        "call .+5; mov (%rsp), %rax; add $8, %rsp; ret",
        "call 1f; 1: push %rbx; mov 8(%rsp), %rbx; pop %rbx; pop %rax; ret",
    ],
)
def test_a_call_of_what_is_behind_it_finds_out_where_it_is(body: str, tmp_path: Path) -> None:
    elf = built(tmp_path, functions(f=body))
    found = table_of(elf).find(5, section=1)
    assert found is not None
    assert found.rule is not None
    assert (found.start, found.rule.cfa.offset) == (0, 16)


def test_a_function_may_be_behind_the_call_of_it(tmp_path: Path) -> None:
    text = functions(calls=".skip 11, 0x90; call ends", ends="push %rbx; mov %rdi, %rbx; call g; pop %rbx; ret")
    assert described(built(tmp_path, text))["ends"] == ENTERED


@pytest.mark.peers
def test_what_returns_by_another_register_is_called_in_another_way(tmp_path: Path) -> None:
    text = functions(
        help="stmg %r6, %r7, 48(%r15); lgr %r6, %r2; lmg %r6, %r7, 48(%r15); br %r1",
        calls="stmg %r14, %r15, 112(%r15); aghi %r15, -160; brasl %r1, help; lmg %r14, %r15, 272(%r15); br %r14",
    )
    found = described(built(tmp_path, text, str(peer("s390x-as-2.44"))))
    assert found["help"] == "NOT_ENTERED"


@pytest.mark.peers
@pytest.mark.parametrize("key", ["a", "b"])
def test_a_return_that_proves_its_address_is_one(key: str, tmp_path: Path) -> None:
    body = f"paci{key}sp; stp x29, x30, [sp, -16]!; mov x29, sp; bl g; ldp x29, x30, [sp], 16; reta{key}"
    text = functions(f=body, other=body.replace(f"reta{key}", "retaa" if key == "b" else "retab")).replace("@", "%")
    found = described(built(tmp_path, text, str(peer("aarch64-as-2.44")), "-march=armv8.3-a"))
    assert found == {"f": "CFA = sp, RA unchanged, FP unchanged", "other": "ASTRAY"}


@pytest.mark.peers
def test_the_return_address_may_be_in_another_register(tmp_path: Path) -> None:
    text = functions(f="mov x9, x30; bl g; ret x9", other="mov x30, x1; ret x2").replace("@", "%")
    found = described(built(tmp_path, text, str(peer("aarch64-as-2.44"))))
    assert found["other"] == "ASTRAY"


LEAVES = {
    "sysretq": "sysretq",
    "sysexit": ".byte 0x0f, 0x35",
    "uiret": ".byte 0xf3, 0x0f, 0x01, 0xec",
    "eretu": ".byte 0xf3, 0x0f, 0x01, 0xca",
    "erets": ".byte 0xf2, 0x0f, 0x01, 0xca",
    "rsm": "rsm",
    "lretq": "lretq",
    "popped": "add $8, %rsp; jmp *%rax",
}


@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES)
def test_what_leaves_as_handlers_do_is_no_function(leave: str, tmp_path: Path) -> None:
    """They are entered with something else at the top of the stack."""
    found = described(built(tmp_path, functions(f=f"push %rbx; mov %rdi, %rbx; call ext; pop %rbx; {leave}")))
    assert found == {"f": "ASTRAY"}


@pytest.mark.peers
@pytest.mark.parametrize("leave", ["lpswe 0(%r2)", "lpsw 0(%r2)"])
def test_what_loads_a_status_word_is_no_function(leave: str, tmp_path: Path) -> None:
    text = functions(f=f"stmg %r11, %r15, 88(%r15); aghi %r15, -160; lmg %r11, %r15, 248(%r15); {leave}")
    assert described(built(tmp_path, text, str(peer("s390x-as-2.44")))) == {"f": "ASTRAY"}


@pytest.mark.peers
def test_a_call_overwrites_the_return_address_that_is_still_in_its_register(tmp_path: Path) -> None:
    text = functions(f="mov x1, x30; bl out; mov x30, x1; ret", out="add x0, x0, 1; ret").replace("@", "%")
    table = table_of(built(tmp_path, text, str(peer("aarch64-as-2.44"))))
    found = [table.find(place, section=1) for place in (0, 4, 8, 12)]
    rules = [one.rule.text(table.machine) if one and one.rule and not is_missing(one.rule) else "" for one in found]
    kept = "CFA = sp, RA unchanged, FP unchanged"
    assert rules == [kept, "", kept.replace("unchanged", "= x1", 1), kept]


def test_code_to_which_data_points_is_not_reached_behind_a_call(tmp_path: Path) -> None:
    """The call there does not return, which its own code does not say: it goes where a pointer does."""
    text = "f: sub $24, %rsp; test %rdi, %rdi; je 1f; add $24, %rsp; ret; 1: call *die(%rip); g: push %rax; 2: call f;"
    lines = f".globl f; .type f, @function; {text} jmp 2b; .data; die: .quad 0; .quad g".replace(";", "\n")
    (tmp_path / "one.s").write_text(lines + "\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-s", "-o", "one.so", "one.s"], cwd=tmp_path, check=True)
    elf = ElfFile(tmp_path / "one.so")
    table = table_of(elf)
    [start] = [one for one in table.range_start.tolist() if table.find(one).rule.text("AMD64") == ENTERED]
    behind = table.find(start + 0x18)
    assert behind is None or behind.rule is None or is_missing(behind.rule)


@pytest.mark.peers
def test_what_is_called_with_another_link_register_is_no_function(tmp_path: Path) -> None:
    """As the function of a profiler on s390x, which the beginnings of others call."""
    text = functions(
        __fentry__="aghi %r15, -224; stmg %r14, %r5, 160(%r15); lg %r2, 160(%r15); lgr %r3, %r0; brasl %r14, work;"
        "lmg %r14, %r5, 160(%r15); aghi %r15, 224; lgr %r1, %r0; br %r1",
        f="brasl %r0, __fentry__; stmg %r14, %r15, 112(%r15); lay %r15, -160(%r15); brasl %r14, ext;"
        "lmg %r14, %r15, 272(%r15); br %r14",
        work="br %r14",
    )
    found = described(built(tmp_path, text.replace("@", "%"), str(peer("s390x-as-2.44"))))
    assert found["__fentry__"] == "NOT_ENTERED"
    assert found["work"] != "NOT_ENTERED"


HANDLER = "push %rbx; mov %rdi, %rbx; call leaf; mov %rbx, %rdi; pop %rbx; add $8, %rdi; jmp *(%rdi)"


@pytest.mark.parametrize(
    ("leads", "rule"), [("jmp *(%rdi)", "NOT_ENTERED"), ("call *(%rdi); add $40, %rsp; ret", ENTERED)]
)
def test_handlers_that_are_jumped_to_with_a_frame_have_no_rules(leads: str, rule: str, tmp_path: Path) -> None:
    """They put registers back and jump on as functions do; only how the first of them is reached is different."""
    text = functions(run=f"sub $40, %rsp; {leads}", op=HANDLER, leaf="mov $1, %eax; ret")
    assert described(built(tmp_path, text + ".data\n.quad op\n"))["op"] == rule


def test_what_an_instruction_executes_begins_no_function_behind_a_call(tmp_path: Path) -> None:
    """GCC for s390x puts the patterns of `exrl` behind functions, and so behind calls that do not come back."""
    text = (
        ".globl f; .type f,@function; f: stmg %r14,%r15,112(%r15); aghi %r15,-160; exrl %r2,p; brasl %r14,abort;"
        "p: xc 0(1,%r3),0(%r3); stmg %r6,%r15,48(%r15); aghi %r15,-160; lghi %r6,1; lmg %r6,%r15,208(%r15); br %r14"
    )
    table = table_of(built(tmp_path, text.replace(";", "\n") + "\n", str(peer("s390x-as-2.44"))))
    assert [begin for begin in table.range_start.tolist() if begin] == [28]
