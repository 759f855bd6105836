/* Runs single instructions of s390x, each with given registers, and writes what the registers are then.

   Reads records of 8 bytes for the instruction (its length, the condition code, 6 bytes) and 32 registers; writes
   the number of the signal that it raised, 0 for none, and 32 registers. Registers that are addresses may point to 1 GB
   or, as the sum of two, to 2 GB. */

typedef unsigned long word;
typedef unsigned char byte;

static long call6(long number, long a, long b, long c, long d, long e, long f) {
    register long r1 asm("1") = number, r2 asm("2") = a, r3 asm("3") = b, r4 asm("4") = c;
    register long r5 asm("5") = d, r6 asm("6") = e, r7 asm("7") = f;
    asm volatile("svc 0" : "+d"(r2) : "d"(r1), "d"(r3), "d"(r4), "d"(r5), "d"(r6), "d"(r7) : "memory");
    return r2;
}

#define READ 3
#define WRITE 4
#define SIGACTION 174
#define MMAP 90
#define SIGALTSTACK 186
#define EXIT 1

struct record { byte length, condition, code[6]; word registers[32]; };
struct answer { word signal, registers[32]; };

/* Code that is run, and on another page, which is not code, registers: those before, those after, the caller's. */
enum { BEFORE = 8192, AFTER = BEFORE + 256, CALLER = AFTER + 256 };
static byte *page;
static volatile word raised;
static byte signal_stack[65536] __attribute__((aligned(16)));

static long map(word where, word size, long protection) {
    word arguments[6] = {where, size, protection, 0x32, -1ul, 0}; /* private, anonymous, fixed */
    return call6(MMAP, (long)arguments, 0, 0, 0, 0, 0);
}

static byte *put(byte *at, word bytes, int count) {
    while (count--) *at++ = bytes >> 8 * count;
    return at;
}

/* A load or store relative to itself: opcode C4 with the register and 8 (load) or 11 (store). */
static byte *relative(byte *at, int store, int reg, int offset) {
    return put(at, 0xC40000000000ul | (word)reg << 36 | (store ? 11ul : 8ul) << 32 |
        (((page + offset - at) / 2) & 0xFFFFFFFFul), 6);
}

static byte *after;

static void handler(int number, void *info, byte *context) {
    raised = number;
    *(word *)(context + 48) = (word)after; /* the address in the PSW */
}

static byte *floats(byte *at, int store, int offset) {
    int i;
    at = put(at, 0xC01000000000ul | (((page + offset - at) / 2) & 0xFFFFFFFFul), 6); /* larl %r1 */
    for (i = 0; i < 16; i++) at = put(at, (store ? 0x60001000ul : 0x68001000ul) | i << 20 | 8 * (16 + i), 4);
    return at;
}

static void build(struct record *record) {
    byte *at = page;
    int i;
    for (i = 6; i < 16; i++) at = relative(at, 1, i, CALLER + 8 * i);
    at = put(at, 0xA5120000ul | (word)record->condition << 12, 4); /* iilh %r1 */
    at = put(at, 0x0410, 2); /* spm %r1 */
    at = floats(at, 0, BEFORE);
    for (i = 0; i < 16; i++) at = relative(at, 0, i, BEFORE + 8 * i);
    for (i = 0; i < record->length; i++) *at++ = record->code[i];
    after = at;
    for (i = 0; i < 16; i++) at = relative(at, 1, i, AFTER + 8 * i);
    at = floats(at, 1, AFTER);
    for (i = 6; i < 16; i++) at = relative(at, 0, i, CALLER + 8 * i);
    put(at, 0x07FE, 2);
}

static int whole(long call, byte *buffer, long size) {
    long done = 0, part;
    while (done < size) {
        part = call6(call, call == READ ? 0 : 1, (long)buffer + done, size - done, 0, 0, 0);
        if (part <= 0) return 0;
        done += part;
    }
    return 1;
}

static void fill(word where, word size) {
    word i, value = 0x9E3779B97F4A7C15ul;
    for (i = 0; i < size / 8; i++) {
        value = value * 6364136223846793005ul + 1442695040888963407ul;
        ((word *)where)[i] = value;
    }
}

void _start(void) {
    static const int signals[] = {4, 5, 7, 8, 11};
    struct record record;
    struct answer answer;
    word stack[3] = {(word)signal_stack, 0, sizeof signal_stack};
    word action[4] = {(word)handler, 0x48000004, 0, 0}; /* its own stack, not blocked, with what is known */
    int i;
    page = (byte *)map(0x20000000, 65536, 7);
    map(0x3FF00000, 0x200000, 3);
    map(0x7FF00000, 0x200000, 3);
    call6(SIGALTSTACK, (long)stack, 0, 0, 0, 0, 0);
    for (i = 0; i < 5; i++) call6(SIGACTION, signals[i], (long)action, 0, 8, 0, 0);
    fill(0x3FF00000, 0x200000);
    fill(0x7FF00000, 0x200000);
    while (whole(READ, (byte *)&record, sizeof record)) {
        for (i = 0; i < 32; i++) ((word *)(page + BEFORE))[i] = record.registers[i];
        build(&record);
        raised = 0;
        ((void (*)(void))page)();
        answer.signal = raised;
        for (i = 0; i < 32; i++) answer.registers[i] = ((word *)(page + AFTER))[i];
        if (!whole(WRITE, (byte *)&answer, sizeof answer)) break;
    }
    call6(EXIT, 0, 0, 0, 0, 0, 0);
}
