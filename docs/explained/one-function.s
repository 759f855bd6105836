# long total(long item) { return weigh(item) + item; }
# As GCC 12.2 compiles it at -O2 with -fno-omit-frame-pointer, and then without it.
	.text
	.globl	total
	.type	total, @function
total:	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	pushq	%rbx
	.cfi_offset rbx, -24
	movq	%rdi, %rbx
	subq	$8, %rsp
	call	weigh@PLT
	addq	%rbx, %rax
	movq	-8(%rbp), %rbx
	leave
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size	total, .-total
	.globl	total_omitted
	.type	total_omitted, @function
total_omitted:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset rbx, -16
	movq	%rdi, %rbx
	call	weigh@PLT
	addq	%rbx, %rax
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	total_omitted, .-total_omitted
	.section .note.GNU-stack,"",@progbits
