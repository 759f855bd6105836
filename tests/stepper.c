/* Steps through a program one instruction at a time, keeps a stack of its calls beside it, and holds rules against it.

   stepper RULES MOST PROGRAM ARGUMENT...

   RULES has a `struct rule` for each instruction of the program, by address. At each instruction the CFA of the rule is
   compared with what the call left, and the places of saved registers with what these had at the call.

   Prints the line "stepper:", then the number of steps, of instructions of the program among them, of distinct ones, and a line for each address
   at which a rule was wrong: the address, what was wrong (0 for the CFA, else 1 and more for the registers), how often. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAVED = 6, NEVER = 0, SAME = 1, AT_CFA = 2, DEPTH = 1 << 16, CALLS = 1 << 20, LOOKS = 64 };

struct rule {
    uint64_t address;
    int64_t base, offset; /* of the CFA; a base below 0 claims nothing */
    int64_t kind[SAVED], place[SAVED]; /* of rbx, rbp, r12 to r15 */
};

struct found {
    uint64_t seen, wrong[SAVED + 1];
};

struct frame {
    uint64_t cfa, saved[SAVED];
};

static struct rule *rules;
static struct found *found;
static size_t count;
static struct frame frames[DEPTH];
static int depth;
static struct { uint64_t address; uint8_t known, call; } calls[CALLS];

static uint64_t word(pid_t pid, uint64_t address) {
    uint64_t value = 0;
    struct iovec here = {&value, 8}, there = {(void *)address, 8};
    process_vm_readv(pid, &here, 1, &there, 1, 0);
    return value;
}

/* Whether the instruction at an address is a call. */
static int is_call(pid_t pid, uint64_t address) {
    size_t at = (address * 0x9E3779B97F4A7C15ull) >> 44;
    if (calls[at].known && calls[at].address == address) return calls[at].call;
    uint8_t code[8] = {0};
    struct iovec here = {code, 8}, there = {(void *)address, 8};
    process_vm_readv(pid, &here, 1, &there, 1, 0);
    int i = 0;
    while (i < 5 && (code[i] == 0x3E || code[i] == 0xF2 || code[i] == 0x66 || code[i] == 0x2E || (code[i] & 0xF0) == 0x40)) i++;
    calls[at].known = 1;
    calls[at].address = address;
    calls[at].call = code[i] == 0xE8 || (code[i] == 0xFF && (code[i + 1] >> 3 & 7) == 2);
    return calls[at].call;
}

static void registers_of(const struct user_regs_struct *regs, uint64_t out[16]) {
    const uint64_t all[16] = {regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi, regs->rbp, regs->rsp,
                              regs->r8, regs->r9, regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15};
    memcpy(out, all, sizeof all);
}

static const int KEPT[SAVED] = {3, 6, 12, 13, 14, 15};

static void judge(pid_t pid, uint64_t address, const uint64_t *now) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rules[middle].address < address) low = middle + 1;
        else high = middle;
    }
    if (low == count || rules[low].address != address || !depth) return;
    const struct rule *rule = &rules[low];
    const struct frame *top = &frames[depth - 1];
    struct found *its = &found[low];
    its->seen++;
    if (rule->base >= 0 && now[rule->base] + rule->offset != top->cfa) its->wrong[0]++;
    if (its->seen > LOOKS) return;
    for (int i = 0; i < SAVED; i++) {
        if (rule->kind[i] == SAME && now[KEPT[i]] != top->saved[i]) its->wrong[i + 1]++;
        if (rule->kind[i] == AT_CFA && word(pid, top->cfa + rule->place[i]) != top->saved[i]) its->wrong[i + 1]++;
    }
}

static uint64_t base_of(pid_t pid, const char *program) {
    char name[64], line[8192], real[4096];
    unsigned long long start;
    if (!realpath(program, real)) return 0;
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *maps = fopen(name, "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, real) && sscanf(line, "%llx", &start) == 1) {
            fclose(maps);
            return start;
        }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    FILE *file = fopen(argv[1], "rb");
    uint64_t most = strtoull(argv[2], 0, 10), steps = 0, inside = 0, bias;
    if (!file) return 2;
    fseek(file, 0, SEEK_END);
    count = ftell(file) / sizeof *rules;
    rewind(file);
    rules = malloc((count + 1) * sizeof *rules);
    found = calloc(count + 1, sizeof *found);
    if (fread(rules, sizeof *rules, count, file) != count) return 2;
    pid_t pid = fork();
    if (!pid) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(argv[3], argv + 3);
        _exit(127);
    }
    int status;
    waitpid(pid, &status, 0);
    if (!WIFSTOPPED(status)) return 3;
    bias = base_of(pid, argv[3]);
    if (count && rules[0].address >= bias) bias = 0; /* it is not position independent */
    struct user_regs_struct regs;
    uint64_t now[16];
    int call = 0;
    while (steps < most && WIFSTOPPED(status)) {
        if (ptrace(PTRACE_GETREGS, pid, 0, &regs)) break;
        registers_of(&regs, now);
        while (depth && regs.rsp >= frames[depth - 1].cfa) depth--;
        if (call && depth < DEPTH) {
            frames[depth].cfa = regs.rsp + 8;
            for (int i = 0; i < SAVED; i++) frames[depth].saved[i] = now[KEPT[i]];
            depth++;
        }
        judge(pid, regs.rip - bias, now);
        call = is_call(pid, regs.rip);
        steps++;
        int signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (signal) break; /* what a signal does to the stack is not followed */
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) || waitpid(pid, &status, 0) < 0) break;
    }
    uint64_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        distinct += found[i].seen != 0;
        inside += found[i].seen;
    }
    printf("stepper:\n%llu %llu %llu\n", (unsigned long long)steps, (unsigned long long)inside, (unsigned long long)distinct);
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j <= SAVED; j++)
            if (found[i].wrong[j])
                printf("%llx %d %llu\n", (unsigned long long)rules[i].address, j, (unsigned long long)found[i].wrong[j]);
    ptrace(PTRACE_KILL, pid, 0, 0);
    return 0;
}
