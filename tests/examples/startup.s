        .text
        .globl  add_three
        .type   add_three, @function
add_three:
        .cfi_startproc
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        movl    %edi, %ebx
        call    add_one
        addl    $2, %eax
        popq    %rbx
        ret
        .cfi_endproc
        .size   add_three, . - add_three

        .globl  add_one
        .type   add_one, @function
add_one:
        .cfi_startproc
        leal    1(%rdi), %eax
        ret
        .cfi_endproc
        .size   add_one, . - add_one

        .globl  spin
        .type   spin, @function
spin:
        jmp     spin
        .size   spin, . - spin

        .section .note.GNU-stack, "", @progbits
