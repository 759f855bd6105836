"""What holds no longer: what calls write over, signatures of another kind, rules behind where others begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peers import peer
from proof.assembled import FRAME, HEAD, verified

if TYPE_CHECKING:
    from pathlib import Path

BELOW = (
    "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; xor %ebx,%ebx; add $8,%rsp; .cfi_def_cfa_offset 8; {call}"
    "mov -8(%rsp),%rbx; .cfi_restore 3; ret"
)
BELOW_A_FRAME = (
    "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; mov %rsp,%rbp; .cfi_def_cfa_register 6; push %rbx;"
    ".cfi_offset 3,-24; xor %ebx,%ebx; {moved} call *%rax; mov -8(%rbp),%rbx; .cfi_restore 3; leave;"
    ".cfi_restore 6; .cfi_def_cfa 7,8; ret"
)


@pytest.mark.parametrize(("call", "patterns"), [("", []), ("call g;", ["slot-overwritten"]), ("call *%rax;", None)])
def test_a_call_writes_below_the_stack_pointer(call: str, patterns: list[str] | None, tmp_path: Path) -> None:
    found = verified(BELOW.format(call=call), tmp_path)
    assert [one.pattern for one in found.worst()] == (["slot-overwritten"] if patterns is None else patterns)
    if call:
        assert (found.mismatches[0].address, found.mismatches[0].computed) == (7, "lost")


@pytest.mark.parametrize(("moved", "is_proved"), [("", True), ("lea 8(%rsp),%rsp;", False), ("and $-16,%rsp;", True)])
def test_a_call_leaves_what_is_above_the_stack_pointer(moved: str, is_proved: bool, tmp_path: Path) -> None:
    found = verified(BELOW_A_FRAME.format(moved=moved), tmp_path)
    assert (found.functions_proved, found.functions_wrong) == (is_proved, not is_proved)


NODE = (
    "sub $88,%rsp; .cfi_def_cfa_offset 96; mov %rbx,72(%rsp); .cfi_offset 3,-24; lea 16(%rsp),%rax;"
    "mov %rax,{one}(%rsp); mov %rax,{other}(%rsp); mov %rax,%rbx; mov %rax,%rdi; {call} mov {one}(%rsp),%rdx;"
    "mov %rcx,56(%rdx); mov 72(%rsp),%rbx; .cfi_restore 3; add $88,%rsp; .cfi_def_cfa_offset 8; ret"
)
"""The head of an empty `std::map`, which `g` links something to."""


@pytest.mark.parametrize(
    ("one", "other", "call", "wrong"),
    [
        (32, 40, "call g;", 0),
        (16, 24, "call g;", 0),
        (16, 24, "", 1),
        (8, 16, "call g;", 1),
        (40, 48, "call g;", 1),
        (24, 24, "call g;", 1),
        (16, 16, "call g;", 0),
    ],
    ids=["a tree", "a list", "nothing is linked", "in front of it", "behind it", "one link", "what is passed"],
)
def test_the_head_of_a_list_may_lead_elsewhere_after_a_call(
    one: int, other: int, call: str, wrong: int, tmp_path: Path
) -> None:
    found = verified(NODE.format(one=one, other=other, call=call), tmp_path)
    assert (found.functions_wrong, found.functions_proved) == (wrong, 1 - wrong)


PASSED = (
    "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $32,%rsp; .cfi_def_cfa_offset 48; lea 16(%rsp),%rax;"
    "mov %rax,(%rsp); lea {place}(%rsp),{register}; call g; mov (%rsp),%rbx; mov %rsi,16(%rbx); nop; add $32,%rsp;"
    ".cfi_def_cfa_offset 16; pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret"
)


@pytest.mark.parametrize(("place", "register", "wrong"), [(0, "%rdi", 0), (8, "%rdi", 1), (0, "%r11", 1)])
def test_what_is_called_may_write_through_the_pointers_that_it_is_passed(
    place: int, register: str, wrong: int, tmp_path: Path
) -> None:
    found = verified(PASSED.format(place=place, register=register), tmp_path)
    assert (found.functions_wrong, found.functions_proved) == (wrong, 1 - wrong)


PROBED = (
    "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; mov %rsp,%rbp; .cfi_def_cfa_register 6; {down}"
    "cmp %rbp,%rsp; jbe 1f; ud2; 1: .cfi_def_cfa 7,16; call g; .cfi_def_cfa 6,16; leave; .cfi_def_cfa 7,8; ret"
)


@pytest.mark.parametrize(("down", "is_proved"), [("", True), ("sub %rdi,%rsp;", False)])
def test_a_stack_pointer_below_a_place_need_not_be_there(down: str, is_proved: bool, tmp_path: Path) -> None:
    """Only a loop that goes down in constant steps ends where it is to."""
    found = verified(PROBED.format(down=down), tmp_path)
    assert (found.functions_proved, "cfa-value" in found.reasons) == (is_proved, not is_proved)


PAGES = (
    "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; mov %rsp,%rbp; .cfi_def_cfa_register 6;"
    "lea -{size}(%rsp),%r11; "
    "1: sub $4096,%rsp; orq $0,(%rsp); cmp %r11,%rsp; {jump} 1b; .cfi_def_cfa 7,{size}+16; nop; call g; leave;"
    ".cfi_def_cfa 7,8; ret"
)


@pytest.mark.parametrize(
    ("size", "jump", "is_proved"),
    [(8192, "jne", True), (8192, "ja", True), (5000, "jne", True), (5000, "ja", False), (12287, "ja", False)],
)
def test_a_loop_over_pages_ends_where_its_steps_lead(size: int, jump: str, is_proved: bool, tmp_path: Path) -> None:
    """With `jne` it ends nowhere else."""
    found = verified(PAGES.format(size=size, jump=jump), tmp_path)
    assert (found.functions_proved, found.wrong > 0) == (is_proved, not is_proved)


@pytest.mark.parametrize("away", [0x1000, 0x1011, 0x2011])
def test_places_that_two_instructions_align_are_two(away: int, tmp_path: Path) -> None:
    text = (
        f"{FRAME} and $-64,%rsp; mov %rbx,(%rsp); .cfi_escape 0x10,3,2,0x77,0; xor %ebx,%ebx; 1: sub $256,%rsp;"
        f".cfi_remember_state; .cfi_escape 0x10,3,3,0x77,0x80,2; .fill {away}-8-7,1,0x90; and $-64,%rsp;"
        ".cfi_escape 0x10,3,2,0x77,0; nop; ud2"
    )
    [wrong] = verified(text, tmp_path).mismatches
    assert (wrong.what, wrong.claimed, wrong.computed, wrong.bytes) == ("rbx", "*(rsp)", "lost", 3)


@pytest.mark.parametrize(("width", "depth"), [("66", 10), ("66 48", 16)])
def test_a_prefix_for_64_bits_overrides_that_for_16(width: str, depth: int, tmp_path: Path) -> None:
    code = "; ".join(f".byte 0x{byte}" for byte in f"{width} 50".split())
    found = verified(
        f"{code}; .cfi_def_cfa_offset {depth}; nop; lea {depth - 8}(%rsp),%rsp; .cfi_def_cfa_offset 8; ret", tmp_path
    )
    assert (found.functions_proved, found.mismatches) == (1, [])


@pytest.mark.peers
@pytest.mark.parametrize(("frame", "is_proved"), [(0, False), (160, True)])
def test_a_call_of_s390x_may_save_registers_above_the_stack_pointer(
    frame: int, is_proved: bool, tmp_path: Path
) -> None:
    down = f"aghi %r15,-{frame}; .cfi_def_cfa_offset {160 + frame};" if frame else ""
    text = (
        "stmg %r6,%r15,48(%r15); .cfi_offset 6,-112; .cfi_offset 14,-48; .cfi_offset 15,-40; lghi %r6,0;"
        f"{down} brasl %r14,g; lmg %r6,%r15,{48 + frame}(%r15); .cfi_restore 6; .cfi_restore 14; .cfi_restore 15;"
        ".cfi_def_cfa_offset 160; br %r14"
    )
    found = verified(text, tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.functions_proved, found.proved == found.reached) == (is_proved, is_proved)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("machine", "name", "text"),
    [
        ("aarch64", "x30", "mov x0,x1; ret"),
        ("aarch64", "x30", "hint #25; .inst 0xd65f0bff"),  # paciasp, retaa
        ("aarch64", "x30", "mov x5,x30; ret x5"),
        ("s390x", "%r14", "lgr %r2,%r3; br %r14"),
    ],
)
def test_a_row_without_a_caller_is_wrong_on_each_machine(machine: str, name: str, text: str, tmp_path: Path) -> None:
    found = verified(f".cfi_undefined {name}; {text}", tmp_path, assembler=peer(f"{machine}-as-2.44"))
    assert [(one.address, one.what, one.pattern) for one in found.mismatches] == [(4, "ra", "no-caller")]


LATE = {
    "aarch64": (
        "stp x29,x30,[sp,#-16]!; .cfi_def_cfa_offset 16; .cfi_offset 29,-16; {} .cfi_offset 30,-8;"
        "ldp x29,x30,[sp],#16; .cfi_restore 29; .cfi_restore 30; .cfi_def_cfa_offset 0; ret"
    ),
    "s390x": (
        "stmg %r14,%r15,112(%r15); .cfi_offset 15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320; {} .cfi_offset 14,-48;"
        "lmg %r14,%r15,272(%r15); .cfi_restore 14; .cfi_restore 15; .cfi_def_cfa_offset 160; br %r14"
    ),
}


@pytest.mark.peers
@pytest.mark.parametrize(
    ("machine", "call", "address"),
    [
        ("aarch64", "bl g;", 4),
        ("aarch64", "blr x1;", 4),
        ("s390x", "brasl %r14,g;", 10),
        ("s390x", "basr %r14,%r1;", 10),
    ],
)
def test_a_call_overwrites_the_return_address_in_its_register(
    machine: str, call: str, address: int, tmp_path: Path
) -> None:
    found = verified(LATE[machine].format(call), tmp_path, assembler=peer(f"{machine}-as-2.44"))
    [one] = found.mismatches
    assert (one.address, one.what, one.claimed, one.computed) == (address, "ra", "unchanged", "overwritten by the call")
    assert one.pattern == "call-overwrites"
    right = LATE[machine].format("").replace("ldp", f"{call} ldp").replace("lmg", f"{call} lmg")
    assert verified(right, tmp_path, assembler=peer(f"{machine}-as-2.44")).functions_proved == 1


@pytest.mark.peers
@pytest.mark.parametrize("way", ["ltgr %r2,%r2; ber %r14", "cgib %r2,0,8,0(%r14)", "ltgr %r2,%r2; jne 1f; br %r14; 1:"])
@pytest.mark.parametrize(("offset", "wrong"), [(320, 0), (328, 1)])
def test_a_return_under_a_condition_is_one(way: str, offset: int, wrong: int, tmp_path: Path) -> None:
    before = f".text; check: .cfi_startproc; {way}; brasl %r14,abort; .cfi_endproc\n".replace(";", "\n") + HEAD
    text = (
        "stmg %r14,%r15,112(%r15); .cfi_offset 14,-48; .cfi_offset 15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320;"
        f"brasl %r14,check; .cfi_def_cfa_offset {offset}; brasl %r14,g; .cfi_def_cfa_offset 320;"
        "lmg %r14,%r15,272(%r15); .cfi_restore 14; .cfi_restore 15; .cfi_def_cfa_offset 160; br %r14"
    )
    found = verified(text, tmp_path, before, assembler=peer("s390x-as-2.44"))
    mine = [one for one in found.mismatches if one.function == "f"]
    assert (len(mine), found.assumed) == (wrong, 0)


SIGNED = (
    "{sign}; .cfi_negate_ra_state; stp x29,x30,[sp,#-16]!; .cfi_def_cfa_offset 16; .cfi_offset 29,-16;"
    ".cfi_offset 30,-8; bl g; ldp x29,x30,[sp],#16; .cfi_restore 29; .cfi_restore 30; .cfi_def_cfa_offset 0; {check};"
    ".cfi_negate_ra_state; ret"
)
BY_B = HEAD + ".cfi_b_key_frame\n"


@pytest.mark.peers
@pytest.mark.parametrize(
    ("sign", "check", "head", "computed"),
    [
        ("hint #25", "hint #29", HEAD, None),
        ("hint #27", "hint #31", BY_B, None),
        (".inst 0xDAC103FE", "hint #29", HEAD, None),  # pacia x30, sp
        ("hint #27", "hint #31", HEAD, "signed by key B"),
        ("hint #25", "hint #29", BY_B, "signed"),
        ("hint #24", "hint #28", HEAD, "signed with another modifier than the CFA"),
    ],
)
def test_a_signature_is_by_the_key_and_the_modifier_that_unwinders_take(
    sign: str, check: str, head: str, computed: str | None, tmp_path: Path
) -> None:
    found = verified(SIGNED.format(sign=sign, check=check), tmp_path, before=head, assembler=peer("aarch64-as-2.44"))
    assert [one.pattern for one in found.worst()] == ([] if computed is None else ["wrong-signature"])
    assert {one.computed.partition(" ")[2] for one in found.mismatches} == (set() if computed is None else {computed})


@pytest.mark.peers
def test_a_signature_is_taken_off_by_the_key_that_made_it(tmp_path: Path) -> None:
    found = verified(SIGNED.format(sign="hint #25", check="hint #31"), tmp_path, assembler=peer("aarch64-as-2.44"))
    assert [(one.what, one.address) for one in found.mismatches] == [("ra", 20)]


NESTED = """
.cfi_endproc
.size f,.-f
.section .eh_frame,"a",@progbits
0: .long 2f-1f
1: .long 0
.byte 1
.string "zR"
.byte 1,0x78,16,1,0x1b,12,7,8,0x90,1
.balign 8
2: .long 4f-3f
3: .long 3b-0b
.long inner-.
.long 1
.byte 0
.balign 8
4:
"""
"""A second FDE, for one byte of the function."""


def test_no_rule_is_found_of_a_function_behind_where_another_begins(tmp_path: Path) -> None:
    found = verified("nop; inner: ret; nop; nop", tmp_path, behind=NESTED)
    assert (found.functions, found.proved, found.reasons.get("overlap")) == (2, 2, 3)


@pytest.mark.parametrize(
    ("store", "is_proved"),
    [
        ("mov %rsi,8(%rcx)", False),
        ("movups %xmm0,(%rcx)", False),
        ("mov %rsi,16(%rcx)", True),
        ("mov %rsi,(%rcx,%rdx,8)", True),
    ],
    ids=["over it", "over more", "beside it", "somewhere"],
)
def test_what_is_saved_is_lost_by_a_store_through_a_register_that_leads_there(
    store: str, is_proved: bool, tmp_path: Path
) -> None:
    text = (
        "sub $40,%rsp; .cfi_def_cfa_offset 48; mov %rbx,8(%rsp); .cfi_offset 3,-40; xor %ebx,%ebx; mov %rsp,%rcx;"
        f"{store}; nop; mov 8(%rsp),%rbx; .cfi_restore 3; add $40,%rsp; .cfi_def_cfa_offset 8; ret"
    )
    found = verified(text, tmp_path)
    assert (found.functions_proved, found.functions_wrong) == (is_proved, not is_proved)


@pytest.mark.peers
@pytest.mark.parametrize(("end", "proved"), [("ret", 3), ("nop", 2)])
def test_a_function_without_an_end_goes_on_in_the_next(end: str, proved: int, tmp_path: Path) -> None:
    """What calls the first of them loses what the next changes."""
    text = "mov x9,x30; .cfi_register x30,x9; bl leaf; mov x30,x9; .cfi_restore x30; ret"
    others = [
        f"{name}: .cfi_startproc; {body}; .cfi_endproc" for name, body in (("leaf", end), ("more", "mov x9,0; ret"))
    ]
    behind = "\n.cfi_endproc\n.size f,.-f\n" + "\n".join(others).replace(";", "\n") + "\n"
    found = verified(text, tmp_path, behind=behind, assembler=str(peer("aarch64-as-2.44")))
    assert found.functions_proved == proved


@pytest.mark.parametrize(("binding", "wrong"), [(".weak", 1), (".globl", 0)])
def test_a_weak_function_of_an_object_may_be_another(binding: str, wrong: int, tmp_path: Path) -> None:
    """The one there does not return, as a handler that is to be replaced."""
    text = "sub $8,%rsp; .cfi_def_cfa_offset 16; call hook; .cfi_def_cfa_offset 32; mov %eax,%ecx; add $8,%rsp;"
    hook = f"{binding} hook; .type hook,@function; hook: .cfi_startproc; 1: jmp 1b; .cfi_endproc;"
    behind = "\n.cfi_endproc\n.size f,.-f\n" + hook.replace(";", "\n")
    found = verified(f"{text} .cfi_def_cfa_offset 8; ret", tmp_path, behind=behind)
    assert found.functions_wrong == wrong
