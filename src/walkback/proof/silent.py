"""Functions that do not follow the ABI, by name: they do not come back, are entered otherwise, or keep nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from walkback.elf import ElfFile, layout
from walkback.proof.image import Image
from walkback.proof.relocate import UNDEFINED_STEP
from walkback.symbols.plt import PltNames

CATCHING = frozenset(
    {"_Unwind_Resume", "__cxa_begin_catch", "__cxa_end_catch", "__cxa_get_exception_ptr", "__cxa_call_unexpected"}
)
"""Functions that are called where exceptions go on, and nowhere else."""
_NAMES = [
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "pthread_exit",
    "thrd_exit",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "____longjmp_chk",
    "__stack_chk_fail",
    "__stack_chk_fail_local",
    "__fortify_fail",
    "__chk_fail",
    "__assert_fail",
    "__assert_perror_fail",
    "__assert",
    "__libc_fatal",
    "__libc_start_call_main",
    "_Unwind_Resume",
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_pure_virtual",
    "__cxa_deleted_virtual",
    "__cxa_call_unexpected",
    "__cxa_call_terminate",
    "__cxa_throw_bad_array_new_length",
    "__clang_call_terminate",
    "_Unwind_SjLj_Resume",
    "_ZSt9terminatev",
    "_ZSt10unexpectedv",
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
    "_gfortran_stop_string",
    "_gfortran_stop_numeric",
    "_gfortran_error_stop_string",
    "_gfortran_error_stop_numeric",
    "_gfortran_runtime_error",
    "_gfortran_runtime_error_at",
    "_gfortran_os_error",
    "_gfortran_os_error_at",
    "g_assertion_message",
    "g_assertion_message_expr",
    "g_assertion_message_cmpnum",
    "g_assertion_message_cmpstr",
    "g_assertion_message_error",
    "g_assertion_message_cmpint",
    "g_abort",
    "g_thread_exit",
    "Perl_croak",
    "Perl_croak_nocontext",
    "Perl_croak_no_modify",
    "Perl_croak_xs_usage",
    "Perl_croak_memory_wrap",
    "Perl_croak_popstack",
    "Perl_croak_sv",
    "Perl_die_unwind",
    "Perl_noperl_die",
    "Perl_my_exit",
    "Perl_my_failure_exit",
    "Perl_croak_kw_unless_class",
    "Py_FatalError",
    "_Py_FatalErrorFunc",
    "_Py_FatalRefcountErrorFunc",
    "Py_Exit",
    "PyThread_exit_thread",
    "rb_raise",
    "rb_exc_raise",
    "rb_fatal",
    "rb_bug",
    "rb_error_arity",
    "rb_jump_tag",
    "rb_throw",
    "rb_throw_obj",
    "rb_notimplement",
    "rb_sys_fail",
    "rb_memerror",
    "rb_unexpected_type",
    "rb_error_frozen_object",
    "rb_out_of_int",
    "rb_iter_break",
    "rb_name_error",
    "rb_loaderror",
    "lua_error",
    "luaL_error",
    "luaL_argerror",
    "luaL_typeerror",
    "png_error",
    "png_longjmp",
    "png_chunk_error",
    "xalloc_die",
    "__ubsan_handle_builtin_unreachable",
    "__ubsan_handle_missing_return",
    "__ubsan_handle_unreachable",
    "caml_raise",
    "caml_ml_array_bound_error",
    "caml_ml_array_align_error",
    "caml_raise_constant",
    "caml_raise_exn",
    "caml_reraise_exn",
    "caml_raise_exception",
    "caml_raise_out_of_memory",
    "caml_failwith",
    "caml_invalid_argument",
    "__morestack_fail",
    "runtime.throw",
    "rust_panic",
    "rust_begin_unwind",
    "__rust_foreign_exception",
    "__rust_drop_panic",
    "rust_oom",
    "__rust_alloc_error_handler",
    "__libc_longjmp",
    "__pthread_unwind",
    "__pthread_unwind_next",
    "_dl_signal_error",
    "_dl_fatal_printf",
]
UNRESERVED = frozenset({"err", "errx", "verr", "verrx"})
"""Functions of the C library that do not come back. A program may have its own of these names, which does."""
SILENT = frozenset(_NAMES) | UNRESERVED
GO_SILENT = (
    *("runtime.gopanic", "runtime.throw", "runtime.fatal", "runtime.fatalthrow", "runtime.fatalpanic"),
    *("runtime.goexit0", "runtime.goexit1", "runtime.exit", "runtime.abort", "runtime.dieFromSignal"),
    *(
        "runtime.panicIndex",
        "runtime.panicBounds",
        "runtime.panicdivide",
        "runtime.panicshift",
        "runtime.panicmem",
        "runtime.panicwrap",
    ),
    *("syscall.Exit", "os.Exit"),
)
"""Functions of Go, whose names are in its own table; the code of many others shows that they end in one of these."""
GO_AGAIN = ("runtime.morestack", "runtime.morestack_noctxt", "runtime.morestackc")
"""Functions of Go that go on with another stack. What they call there comes back behind their own calls."""
SELDOM = frozenset({"errfinish", "error", "error_at_line", "verror", "verror_at_line"})
"""Functions that mostly do not come back: an argument says, and compilers know it where it is a constant."""
_SILENT_PARTS = re.compile(
    r"_ZSt\d+__throw_\w+"
    r"|_ZNSt\d+__throw_\w+"
    r"|_ZN4llvm\d+(report_fatal_error|llvm_unreachable_internal|report_bad_alloc_error)\w*"
    r"|_ZN4core9panicking\w+|_ZN4core6option\d+(expect|unwrap)_failed\w+|_ZN4core6result\d+unwrap_failed\w+"
    r"|_ZN4core5slice5index\d+slice_\w+_fail\w*|_ZN4core3str\d+slice_error_fail\w*|_ZN5alloc7raw_vec\d+(capacity_overflow|handle_error)\w*"
    r"|_ZN5alloc5alloc18handle_alloc_error\w+|_ZN3std9panicking\w*(begin_panic|rust_panic)\w*|_ZN3std7process(4exit|5abort)\w+"
    r"|_RI?Nv(Nt)+Cs[0-9A-Za-z]+_(4core(9panicking|6option\d+(expect|unwrap)_failed|6result\d+unwrap_failed"
    r"|5slice5index\d+slice_\w+_fail|3str\d+slice_error_fail)|5alloc(7raw_vec\d+(capacity_overflow|handle_error)"
    r"|5alloc18handle_alloc_error)|3std(9panicking\d+(begin_panic|rust_panic)|7process(4exit|5abort)))\w*"
)
OWN_CONVENTION = re.compile(
    r"_dl_runtime_(resolve|profile)\w*|_dl_tlsdesc_\w+|__morestack\w*|_start|__restore_rt|_dl_start_user|_dl_fixup_\w+"
)
"""Functions that are entered with something else on the stack, or never called."""
KEEPING = frozenset({"__fentry__"})
"""Functions that keep all registers: a profiler's, which functions call before they have done anything."""
BEYOND = frozenset({"__morestack"})
"""Functions of GCC's split stacks, which go on behind the return behind their call: it is for what comes back."""
REWRITING = ("_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow", "_Unwind_ForcedUnwind")
"""Functions whose saved registers others write over, through a pointer: they go on in the frame that catches."""

KEEPS_NOTHING = re.compile(
    r"caml([A-Z].*|_c_call\w*|_(curry|apply|tuplify|send)\d+\w*"
    r"|_(call_gc|call_realloc_stack|alloc[123N]|perform|reperform|resume|runstack)"
    r"|_(raise_exn|raise_exception|ml_array_bound_error))"
    r"|OUTLINED_FUNCTION_\d+(\.\w+)*"
)
"""Functions of OCaml, whose calls keep no registers, and code of several functions that LLVM moved into one."""
MARKS_OF_CARELESS = (b"\0caml", b"\0OUTLINED_FUNCTION_")
"""They are in the names of a file that has such functions."""


def called_functions(elf: ElfFile, image: Image, stubs: PltNames) -> Iterator[tuple[int, str]]:
    """The addresses that are called for functions elsewhere, with their names: stubs, or undefined symbols."""
    if not elf.is_relocatable:
        starts, _, names = stubs.entries()
        yield from ((start, name[:-4]) for start, name in zip(starts, names, strict=True) if name)
        return
    for table in elf.sections_of_type(layout.SHT_SYMTAB):
        symbols, strings = elf.symbols(table), int(elf.sections["link"][table])
        undefined = np.flatnonzero(symbols["section"] == layout.SHN_UNDEF)  # of others the code decides
        called = elf.strings(strings, symbols["name_offset"][undefined].tolist())
        for number, name in zip(undefined.tolist(), called, strict=True):
            yield int(image.base[-1]) + UNDEFINED_STEP * number, name


def is_silent(name: str) -> bool:
    """Whether a function of this name does not come back."""
    return name in SILENT or _SILENT_PARTS.fullmatch(name) is not None
