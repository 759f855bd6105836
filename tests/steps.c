/* The machines that are stepped through: AMD64 by ptrace, the others by the debugging stub of their emulator. */

#define _GNU_SOURCE
#include "steps.h"

#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

struct stop stop;

/* In a new process: runs the command with nothing to read or to print to. */
static void run(char **command) {
    int nothing = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(nothing, i);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    personality(ADDR_NO_RANDOMIZE);
    execv(command[0], command);
    _exit(127);
}

/* AMD64 */

static int traced(int status) {
    struct user_regs_struct regs;
    if (!WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, stop.pid, 0, &regs)) return 0;
    const uint64_t all[] = {regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp, regs.r8,
                            regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15, regs.rip};
    memcpy(stop.now, all, sizeof all);
    stop.pc = regs.rip;
    stop.signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    return 1;
}

static int trace(char **command) {
    int status;
    stop.pid = fork();
    if (!stop.pid) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        run(command);
    }
    return waitpid(stop.pid, &status, 0) == stop.pid && traced(status);
}

static int step_traced(int signal) {
    int status;
    return !ptrace(PTRACE_SINGLESTEP, stop.pid, 0, signal) && waitpid(stop.pid, &status, 0) == stop.pid && traced(status);
}

static int run_to_traced(uint64_t address) {
    int status;
    struct user_regs_struct regs;
    long code = ptrace(PTRACE_PEEKTEXT, stop.pid, address, 0);
    ptrace(PTRACE_POKETEXT, stop.pid, address, (code & ~0xFFL) | 0xCC);
    if (ptrace(PTRACE_CONT, stop.pid, 0, 0) || waitpid(stop.pid, &status, 0) != stop.pid || !WIFSTOPPED(status)) return 0;
    ptrace(PTRACE_POKETEXT, stop.pid, address, code);
    ptrace(PTRACE_GETREGS, stop.pid, 0, &regs);
    regs.rip = address;
    return !ptrace(PTRACE_SETREGS, stop.pid, 0, &regs) && traced(status);
}

static uint64_t known(int number) { return stop.now[number]; }

/* pause; lfence; and a jump to the `pause`: a call over it only pushes, so that the `ret` behind it is held up here. */
static const char HOLD[] = "\xF3\x90\x0F\xAE\xE8\xEB\xF9";
enum { TO_TARGET = 32, CALL_SIZE = 5 };

static int only_pushes(const uint8_t *code) {
    return code[0] == 0xE8 && code[1] < TO_TARGET && !memcmp(code + 2, "\0\0\0", 3) && !memcmp(code + CALL_SIZE, HOLD, strlen(HOLD));
}

static enum kind amd64_kind(const uint8_t *code, int *length) {
    int i = 0;
    if (only_pushes(code)) return PLAIN;
    while (i < 8 && (strchr("\x2E\x3E\x66\x67\xF2\xF3", code[i]) && code[i] || (code[i] & 0xF0) == 0x40)) i++;
    int operation = code[i + 1] >> 3 & 7; /* of opcode FF */
    if (code[i] == 0xE8 || (code[i] == 0xFF && operation == 2)) return CALL;
    if (code[i] == 0xC2 || code[i] == 0xC3 || (code[i] == 0xFF && operation == 4)) return LEAVE;
    *length = 2;
    return code[i] == 0x0F && code[i + 1] == 0x05 ? TRAP : PLAIN;
}

/* AArch64 and s390x: the remote protocol of gdb, over a socket whose name follows `-g` in the emulator's command */

enum { PACKET = 1 << 14 };
static int stub;
static char answer[PACKET];

/* Sends a packet, which also acknowledges the last answer, and waits for its answer; 0 if the program has ended. */
static int request(const char *text) {
    static char received[PACKET];
    char packet[128];
    uint8_t sum = 0;
    for (const char *at = text; *at; at++) sum += *at;
    int size = snprintf(packet, sizeof packet, "+$%s#%02x", text, sum), got = 0;
    if (write(stub, packet, size) != size) return 0;
    for (;;) {
        int part = read(stub, received + got, PACKET - 1 - got);
        if (part <= 0) return 0;
        received[got += part] = 0;
        char *begin = strchr(received, '$'), *end = begin ? strchr(begin, '#') : NULL;
        if (!end || end + 3 > received + got) continue;
        *end = 0;
        strcpy(answer, begin + 1);
        return 1;
    }
}

/* The number at some bytes of the answer; AArch64 has its lowest byte first. */
static uint64_t number_at(int offset, int big) {
    unsigned long long value = 0;
    char digits[17] = {0};
    if (strlen(answer) < 2 * offset + 16) return 0;
    memcpy(digits, answer + 2 * offset, 16);
    sscanf(digits, "%llx", &value);
    return big ? value : __builtin_bswap64(value);
}

static int connected(char **command) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    while (*command && strcmp(*command, "-g")) command++;
    if (!*command) return 0;
    strncpy(address.sun_path, command[1], sizeof address.sun_path - 1);
    stub = socket(AF_UNIX, SOCK_STREAM, 0);
    for (int tries = 0; tries < 1000; tries++) {
        if (!connect(stub, (struct sockaddr *)&address, sizeof address)) return 1;
        usleep(20000);
    }
    return 0;
}

static int emulate(char **command) {
    stop.pid = fork();
    if (!stop.pid) run(command);
    return connected(command) && request("?");
}

static int step_emulated(int signal) {
    char text[32] = "s";
    if (signal) snprintf(text, sizeof text, "vCont;S%02x", signal);
    if (!request(text) || answer[0] != 'T' || sscanf(answer + 1, "%2x", &stop.signal) != 1) return 0;
    if (stop.signal == SIGTRAP) stop.signal = 0;
    return 1;
}

static int run_to_emulated(uint64_t address) {
    char text[64];
    for (const char *packet = "Z0,%llx,2\0c\0z0,%llx,2\0"; *packet; packet += strlen(packet) + 1) {
        snprintf(text, sizeof text, packet, (unsigned long long)address);
        if (!request(text)) return 0;
    }
    return 1;
}

static int aarch64_registers(void) {
    if (!request("g")) return 0;
    for (int i = 0; i < 32; i++) stop.now[i] = number_at(8 * i, 0);
    stop.pc = number_at(8 * 32, 0);
    return 1;
}

static int s390x_registers(void) {
    if (!request("g")) return 0;
    stop.pc = number_at(8, 1);
    for (int i = 0; i < 16; i++) stop.now[i] = number_at(16 + 8 * i, 1);
    return 1;
}

static int aarch64_begin(char **command) { return emulate(command) && aarch64_registers(); }
static int aarch64_run_to(uint64_t address) { return run_to_emulated(address) && aarch64_registers(); }
static int aarch64_step(int signal) { return step_emulated(signal) && aarch64_registers(); }
static int s390x_begin(char **command) { return emulate(command) && s390x_registers(); }
static int s390x_run_to(uint64_t address) { return run_to_emulated(address) && s390x_registers(); }
static int s390x_step(int signal) { return step_emulated(signal) && s390x_registers(); }

/* The stub's numbers of vector and floating point registers. */
static uint64_t aarch64_ask(int number) {
    char text[8];
    snprintf(text, sizeof text, "p%x", 34 + number - 32);
    return request(text) ? number_at(0, 0) : 0;
}

static uint64_t s390x_ask(int number) {
    static const int FLOATS[] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
    char text[8];
    snprintf(text, sizeof text, "p%x", 35 + FLOATS[number - 16]);
    return request(text) ? number_at(0, 1) : 0;
}

static enum kind aarch64_kind(const uint8_t *code, int *length) {
    uint32_t word = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;
    *length = 4;
    if (word >> 26 == 0x25 || (word & 0xFE600000) == 0xD6200000) return CALL; /* bl; blr, blraa */
    if ((word & 0xFE000000) == 0xD6000000) return LEAVE;                      /* br, ret, retaa */
    return (word & 0xFFE0001F) == 0xD4000001 ? TRAP : PLAIN;
}

static enum kind s390x_kind(const uint8_t *code, int *length) {
    int first = code[1] >> 4, second = code[1] & 15;
    *length = 2;
    if (code[0] == 0x0A) return TRAP;
    if (code[0] == 0x07 || code[0] == 0x47 || (code[0] == 0xE3 && code[5] == 0x47)) return LEAVE; /* bcr, bc, bic */
    if (first != 14) return PLAIN; /* a call that is no function's */
    if (code[0] == 0x0D) return second ? CALL : PLAIN;                             /* basr */
    return (code[0] == 0xA7 || code[0] == 0xC0) && second == 5 ? CALL : PLAIN; /* bras, brasl */
}

const struct machine MACHINES[3] = {
    {"AMD64", 7, 16, 8, 1, 0, REGISTERS, 0, -1, 14, 1, trace, step_traced, run_to_traced, known, amd64_kind},
    {"AArch64", 31, 30, 0, 0, 0, 32, 40, 47, 28, 0, aarch64_begin, aarch64_step, aarch64_run_to, aarch64_ask, aarch64_kind},
    {"s390x", 15, 14, 160, 0, 1, 16, 24, 31, 13, 0, s390x_begin, s390x_step, s390x_run_to, s390x_ask, s390x_kind},
};
