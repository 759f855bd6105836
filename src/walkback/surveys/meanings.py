"""What the tables of a survey have, for the page about them."""

MEANINGS = r"""
units: The files that were examined.
units.path: A file on disk, as given or found. Bytes that are not text are escaped, as `\xff`, and so are characters
    that move the cursor, change text direction or are invisible, as `\x0a` and `\u202e`. Backslashes are doubled, so
    that different paths stay different.
units.bytes modified: Its size, and its modification time in nanoseconds since 1970.
places: Where each content was found.
places.content: The digest of its bytes, 32 digits.
places.path member: The file, and the member inside it if any: `usr/lib/x.so`, `usr/lib/libc.a(printf.o)`. Escaped in
    the same way, except for backslashes.
places.package package_version package_architecture package_format: The package that contains it, from the package's
    metadata; the format is `deb`, `rpm` or `wheel`.
files: One row per distinct content.
files.content: The digest of the content, as in `places`.
files.bytes: Its size.
files.outcome error: The outcome (see below), and why it cannot be read.
files.machine: `AMD64`, `AArch64`, `s390x`, or `EM_` and the number in the ELF header.
files.kind: `program`, `library`, `object`, `module` (of the kernel), `core` or `other`.
files.build_id: In hexadecimal; NULL if there is none.
files.producer producer_version producer_evidence producers language linker: [Who made it](#who-made-a-file).
files.source: What SFrame would be derived from: `.eh_frame`, or `.debug_frame` where there is nothing else;
    `.gopclntab` of a Go program, whose SFrame is derived from its table of functions and from `.eh_frame`;
    `.orc_unwind` of the Linux kernel and its modules; `code` where nothing else is read.
files.text_bytes eh_frame eh_frame_hdr debug_frame: Sizes of sections; `text_bytes` covers all that hold code.
files.functions rows code_bytes: Functions, rows and bytes of code in these tables.
files.from_cfi from_go from_orc from_code: `code_bytes` by what describes the code: call frame information, Go's table
    of functions, the Linux kernel's ORC table, and, with `--source auto` or `code`, the code itself. Code from which
    a table was made counts only where it has a rule. Ratios to `.eh_frame` are those of the files where all is from
    call frame information.
files.dead empty unreadable shadowed: Entries for code that is not in the file, entries of no code, entries that
    cannot be read, and entries whose code another entry describes.
files.fp_functions fp_bytes: Functions whose CFA is, at some address, based on the frame pointer or stored where it
    points, and the code where it is.
files.fp_saved: Functions that save the caller's frame pointer: on AArch64, the only sign of a function that keeps
    one.
files.personality_functions lsda_functions exception_bytes register_functions register_rows added_rows added_row_bytes
    register_bytes sets numbered_bytes: What version 3 would need in addition to replace `.eh_frame`, as `walkback
    size` shows.
versions: What each version would take.
versions.content: The digest of the content, as in `places`.
versions.version impossible: The version, and why it cannot be made for this file at all.
versions.proved: Whether the bytes were decoded again and match the source.
versions.bytes functions covered covered_bytes entries rows: Totals for the section; `covered` counts the functions
    that it describes, `entries` their index entries.
versions.header index padding attributes starts info words other: The breakdown of `bytes`.
versions.compact_index slim_header section_per_text section_per_text_slim section_per_function
    section_per_function_slim shared_rows palette stack_deltas: The size in alternative formats, as `walkback size`
    shows.
sframe: The SFrame already in files.
sframe.content: The digest of the content, as in `places`.
sframe.versions error: The versions of its sections, and why it cannot be read.
sframe.bytes functions rows header index padding attributes starts info words other: Its size, its contents,
    and its bytes by part.
sframe.findings severity: The number of `walkback check` findings, and the worst severity.
sframe.equal_bytes different_bytes only_frames_bytes only_sframe_bytes: Code for which SFrame and call frame
    information agree, for which they differ, and which only one of the two describes.
proofs: What [`walkback verify`](verbs/verify.md) finds in each table, with `--verify`.
proofs.content: The digest of the content, as in `places`.
proofs.source error: The section of the table; or why the file could not be verified.
proofs.functions functions_proved functions_wrong: Functions with code.
proofs.bytes: The code that the table describes.
proofs.not_reached proved wrong assumed unknown: Its bytes by verdict.
proofs.cfa_value register_value slot_value expression no_rule signal_frame bad_code too_complex no_code padding data
    assumption context_switch indirect_jump no_path doubtful_path overlap: The bytes of `unknown` and `not_reached` by
    reason.
functions: Functions to look at.
functions.content: The digest of the content, as in `places`.
functions.about: `uncovered`: `version` cannot express it. `finding`: from `walkback check`. `different`: the SFrame
    differs from the call frame information. `wrong`: the code contradicts the table; `code` is the pattern of the
    worst mistake.
functions.version code severity message: The details.
functions.section address size name offset: The location: the section is NULL in linked files; `offset` is a finding's
    offset in its section.
functions.count: 1; more where a file has too many of one kind to list.
troubles.path member what message: What could not be examined, and truncated archives.
"""
"""A table, or columns of it, and what is in them; text that goes on is indented."""
