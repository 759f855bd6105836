/* A program without a C library, for any machine and byte order: ends by a fault in a leaf function, with HANDLER in one
   that a signal handler calls. */
#ifdef __aarch64__
__asm__(".globl _start\n.type _start, %function\n_start:\n.cfi_startproc\n.cfi_undefined x30\nmov x29, #0\n"
        "bl begin\n.cfi_endproc\n.size _start, .-_start");
#define NUMBER 134
static long called(long number, long a, const void *b, void *c, long d) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x3 __asm__("x3") = d;
    register const void *x1 __asm__("x1") = b;
    register void *x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#else
__asm__(".globl _start\n.type _start, @function\n_start:\n.cfi_startproc\n.cfi_undefined r14\naghi %r15, -160\n"
        "xc 0(8,%r15), 0(%r15)\nbrasl %r14, begin\n.cfi_endproc\n.size _start, .-_start");
#define NUMBER 174
static long called(long number, long a, const void *b, void *c, long d) {
    register long r1 __asm__("r1") = number, r2 __asm__("r2") = a, r5 __asm__("r5") = d;
    register const void *r3 __asm__("r3") = b;
    register void *r4 __asm__("r4") = c;
    __asm__ volatile("svc 0" : "+d"(r2) : "d"(r1), "d"(r3), "d"(r4), "d"(r5) : "memory");
    return r2;
}
#endif

struct action { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; };
volatile unsigned long sink;

__attribute__((noinline)) int leaf(volatile int *where) { return *where = 1; }

__attribute__((noinline)) int middle(int n) {
    if (n) return middle(n - 1) + 1;
    sink += (unsigned long)leaf((volatile int *)8) + 1;
    return (int)sink;
}

__attribute__((noinline)) void handler(int number) { sink += (unsigned long)middle(number % 4) + 1; }

__attribute__((noinline)) void begin(void) {
#ifdef HANDLER
    struct action action = {handler, 0, 0, 0};
    called(NUMBER, 11, &action, 0, 8);
#else
    (void)called, (void)handler;
#endif
    sink += (unsigned long)middle(6) + 1;
    for (;;) sink++;
}
