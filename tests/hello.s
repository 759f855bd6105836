# A small program for the documents: of its four functions SFrame has no words for the last.
	.text
	.globl	_start
	.type	_start, @function
_start:	.cfi_startproc
	.cfi_undefined rip
	call	main
	mov	$60, %eax
	mov	$0, %edi
	syscall
	.cfi_endproc
	.size	_start, .-_start
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset rbx, -16
	call	compute
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, .-main
	.type	compute, @function
compute:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	sub	$64, %rsp
	leave
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size	compute, .-compute
	.type	leap, @function
leap:	.cfi_startproc
	mov	(%rdi), %r8
	.cfi_def_cfa rdi, 0
	.cfi_register rsp, r8
	mov	%r8, %rsp
	jmp	*8(%rdi)
	.cfi_endproc
	.size	leap, .-leap
	.section .note.GNU-stack,"",@progbits
