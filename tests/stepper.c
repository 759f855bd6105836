/* Steps through a program one instruction at a time, keeps a stack of its calls beside it, and holds rules against it.

   stepper MACHINE MODULES FROM MOST COMMAND...

   MODULES has a line for each file whose rules are known: where it begins by its own addresses, the file of its rules
   (`struct header` says how that goes on), and its path. FROM is `start`, or `entry` to leave out the dynamic
   linker before the program's entry, or `goroutines` for a program of Go, whose stacks are many; MOST are the instructions to step through. The rules at each
   instruction are compared with what the call left: where the stack pointer was, and what the registers had.

   Prints the number of steps, of those in known files, and of those in a frame that is known; then a line for each
   instruction that was seen where rules are not: the module, the address, how often; and one for each where they are,
   with the verdict on them and how often they were contradicted, and which register was the first. */

#define _GNU_SOURCE
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum {
    CFA_TARGET = 255, CFA_BASE = -2, UNCHANGED = -3, /* as in walkback/proof/values.py */
    SIGNATURE_BITS = 48, /* AArch64: a signature of a return address is above */
    DEPTH = 1 << 16, KINDS = 1 << 20, MODULES = 64, WINDOW = 512,
    LOOKS = 4, /* how often an instruction's claims on registers that are asked for are judged */
    SIGNAL_FRAME = 256, /* the kernel's is larger */
    SIGNAL_STACK = 1 << 16, /* and the stack of a handler smaller */
    STACKS = 64, FAR = 1 << 16, /* Go's own, and how far one is from another */
};

struct header { uint64_t instructions, sets, claims; }; /* and so many, with one more number behind the sets */
struct instruction { uint64_t address; uint32_t set, verdict; };
struct claim { int64_t target, base, depth, is_signed, offset[3]; }; /* as in walkback/proof/sets.py */

struct found { uint32_t seen, wrong; int32_t what; };

struct module {
    char path[4096];
    uint64_t first, bias, low, high; /* the first address in the file, what is added to it, where rules are */
    struct header header;
    struct instruction *instructions;
    uint32_t *sets, *number_at, *without; /* by address: the number of an instruction, from 1; how often seen without */
    struct claim *claims;
    struct found *found;
};

struct frame {
    uint64_t sp, saved[REGISTERS]; /* as they were at the call */
    uint64_t handler;              /* or, if not 0, that of a signal's handler, about where its stack begins */
};

static const struct machine *machine;
static struct module modules[MODULES];
static int module_count, depth, maps_changed = 1;
static struct frame *frames; /* of the stack that is in use */
static int with_goroutines, stack_count = 1;
static struct stack {
    uint64_t goroutine, low, high, used;
    int depth;
    struct frame *frames;
} stacks[STACKS], *in_use = stacks;
static uint64_t inside, judged;

static int read_memory(uint64_t address, void *to, size_t size) {
    struct iovec here = {to, size}, there = {(void *)address, size};
    ssize_t got = process_vm_readv(stop.pid, &here, 1, &there, 1, 0);
    return got < 0 ? 0 : got;
}

/* A word of the stack; what is near the CFA is read once a step. */
static uint8_t window[WINDOW];
static uint64_t window_start;
static int window_size;

static uint64_t word(uint64_t address) {
    uint64_t value = 0;
    if (address - window_start + 8 <= window_size && address >= window_start) memcpy(&value, window + (address - window_start), 8);
    else read_memory(address, &value, 8);
    return machine->big ? __builtin_bswap64(value) : value;
}

static void look_around(uint64_t cfa) {
    window_start = cfa - WINDOW + 64;
    window_size = read_memory(window_start, window, WINDOW);
}

static struct { uint64_t address; uint8_t known, kind, length; } kinds[KINDS];

static enum kind kind_at(uint64_t address, int *length) {
    size_t at = (address * 0x9E3779B97F4A7C15ull) >> 44;
    if (!kinds[at].known || kinds[at].address != address) {
        uint8_t code[16] = {0};
        read_memory(address, code, sizeof code);
        kinds[at].known = 1;
        kinds[at].address = address;
        kinds[at].kind = machine->kind(code, length);
        kinds[at].length = *length;
    }
    *length = kinds[at].length;
    return kinds[at].kind;
}

/* Modules */

static void *part(FILE *file, size_t count, size_t size) {
    void *all = malloc(count * size + 1);
    if (!all || fread(all, size, count, file) != count) exit(2);
    return all;
}

static void take_rules(struct module *module, const char *name) {
    FILE *file = fopen(name, "rb");
    if (!file || fread(&module->header, sizeof module->header, 1, file) != 1) exit(2);
    size_t count = module->header.instructions;
    module->instructions = part(file, count, sizeof *module->instructions);
    module->sets = part(file, module->header.sets + 1, sizeof *module->sets);
    module->claims = part(file, module->header.claims, sizeof *module->claims);
    module->found = calloc(count + 1, sizeof *module->found);
    fclose(file);
    if (!count) return;
    module->low = module->instructions[0].address;
    module->high = module->instructions[count - 1].address + 1;
    module->number_at = calloc(module->high - module->low, sizeof *module->number_at);
    module->without = calloc(module->high - module->low, sizeof *module->without);
    for (size_t i = 0; i < count; i++) module->number_at[module->instructions[i].address - module->low] = i + 1;
}

static void take_modules(const char *name) {
    char line[8192], rules[4096];
    FILE *file = fopen(name, "r");
    if (!file) exit(2);
    while (module_count < MODULES && fgets(line, sizeof line, file)) {
        struct module *module = &modules[module_count++];
        unsigned long long first;
        if (sscanf(line, "%llx %4095s %4095[^\n]", &first, rules, module->path) != 3) exit(2);
        module->first = first;
        module->bias = -1;
        take_rules(module, rules);
    }
    fclose(file);
}

/* Finds where modules begin; an emulator has its program at the program's own addresses. */
static void locate(void) {
    char name[64], line[8192], path[4096];
    unsigned long long start, offset;
    snprintf(name, sizeof name, "/proc/%d/maps", stop.pid);
    FILE *maps = fopen(name, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %4095[^\n]", &start, &offset, path) != 3 || offset) continue;
        for (int i = 0; i < module_count; i++)
            if (modules[i].bias == -1 && !strcmp(modules[i].path, path)) modules[i].bias = start - modules[i].first;
    }
    if (maps) fclose(maps);
    maps_changed = 0;
}

static struct module *module_at(uint64_t pc) {
    static struct module *last = modules;
    for (;;) {
        if (last->bias != -1 && pc - last->bias >= last->low && pc - last->bias < last->high) return last;
        for (int i = 0; i < module_count; i++) {
            struct module *module = &modules[i];
            if (module->bias != -1 && pc - module->bias >= module->low && pc - module->bias < module->high) return last = module;
        }
        if (!maps_changed) return NULL;
        locate();
    }
}

/* Claims */

static uint64_t value_of(const struct claim *claim, uint64_t cfa) {
    int64_t base = claim->base == UNCHANGED ? claim->target : claim->base;
    uint64_t value = base == CFA_BASE ? cfa : base >= machine->asked_from ? machine->ask(base) : stop.now[base];
    if (claim->base == UNCHANGED) return value;
    value += claim->offset[0];
    for (int i = 0; i < claim->depth; i++) value = word(value) + claim->offset[i + 1];
    return value;
}

static int holds(const struct claim *claim, const struct frame *frame) {
    uint64_t cfa = frame->sp + machine->entry_sp_to_cfa, value = value_of(claim, cfa);
    if (claim->target == CFA_TARGET) return value == cfa;
    uint64_t difference = value ^ frame->saved[claim->target];
    return claim->is_signed ? !(difference << (64 - SIGNATURE_BITS)) : !difference;
}

static void judge(void) {
    struct module *module = module_at(stop.pc);
    if (!module) return;
    inside++;
    uint64_t at = stop.pc - module->bias - module->low;
    uint32_t number = module->number_at[at];
    if (!number) {
        module->without[at]++;
        return;
    }
    if (!depth || frames[depth - 1].handler) return;
    judged++;
    const struct frame *frame = &frames[depth - 1];
    struct found *found = &module->found[number - 1];
    uint32_t set = module->instructions[number - 1].set;
    found->seen++;
    look_around(frame->sp + machine->entry_sp_to_cfa);
    for (uint32_t i = module->sets[set]; i < module->sets[set + 1]; i++) {
        const struct claim *claim = &module->claims[i];
        int64_t base = claim->base == UNCHANGED ? claim->target : claim->base;
        if (base < CFA_BASE || (base >= machine->asked_from && found->seen > LOOKS)) continue;
        if (holds(claim, frame)) continue;
        if (!found->wrong) found->what = claim->target;
        found->wrong++;
        break;
    }
    window_size = 0;
}

/* Calls */

static struct frame *push(void) {
    if (depth == DEPTH) exit(4);
    struct frame *frame = &frames[depth++];
    frame->handler = 0;
    return frame;
}

static void enter_call(void) {
    struct frame *frame = push();
    frame->sp = stop.now[machine->sp];
    memcpy(frame->saved, stop.now, sizeof stop.now);
    if (machine->pushes) frame->saved[machine->ra] = word(frame->sp);
    for (int i = machine->first_kept; i <= machine->last_kept; i++) frame->saved[i] = machine->ask(i);
}

/* The emulators have executed the first instruction of the handler already, so its own frame is not known. */
static void enter_handler(uint64_t pc, uint64_t sp) {
    struct frame *frame = push();
    frame->handler = stop.now[machine->sp];
    frame->sp = sp;
    frame->saved[machine->ra] = pc;
}

/* Drops the handlers whose stack was left, with all that they called. Go's may let the code that it interrupted seem to
   call another function. */
static int leave_handlers(void) {
    int before = depth;
    uint64_t sp = stop.now[machine->sp];
    for (int i = depth; i--;)
        if (frames[i].handler && frames[i].handler + SIGNAL_FRAME - sp > SIGNAL_STACK) depth = i;
    if (depth == before) return 0;
    if (machine->pushes && sp == frames[depth].sp - 8 && word(sp) == frames[depth].saved[machine->ra]) enter_call();
    return 1;
}

/* After a jump: drops the calls that it left. Where calls push nothing the stack pointer is at a return what it was at
   the call. */
static void leave_calls(void) {
    uint64_t sp = stop.now[machine->sp];
    int left = leave_handlers();
    while (depth && !frames[depth - 1].handler && sp > frames[depth - 1].sp) depth--, left = 1;
    if (machine->pushes || !depth || frames[depth - 1].handler || sp != frames[depth - 1].sp) return;
    if (left || stop.pc == frames[depth - 1].saved[machine->ra] || stop.pc == stop.now[machine->ra]) depth--;
}

/* The stack that the program is on: that of what Go has at work, as that says; some functions change the stack first and
   then what is at work, so else the last one that was used at such addresses. A stack that was moved is another one. */
static struct stack *stack_now(void) {
    uint64_t sp = stop.now[machine->sp], goroutine = stop.now[machine->goroutine];
    uint64_t low = word(goroutine), high = word(goroutine + 8);
    struct stack *found = NULL;
    if (sp <= low || sp > high) {
        for (struct stack *one = stacks; one < stacks + stack_count; one++)
            if (sp > one->low && sp <= one->high && (!found || one->used > found->used)) found = one;
        if (found) return found;
        goroutine = low = high = 0;
    }
    for (found = stacks; found < stacks + stack_count; found++)
        if (found->goroutine == goroutine && found->low == low && found->high == high) return found;
    if (stack_count == STACKS) exit(4);
    stack_count++;
    *found = (struct stack){goroutine, low, high, 0, 0, calloc(DEPTH, sizeof *frames)};
    return found;
}

/* Go on with the calls of the stack that the program is on now. */
static void change_stack(void) {
    static uint64_t changes;
    struct stack *now = stack_now();
    if (now == in_use) return;
    in_use->depth = depth;
    in_use = now;
    now->used = ++changes;
    frames = now->frames;
    depth = now->goroutine ? now->depth : 0;
    while (depth && !frames[depth - 1].handler && stop.now[machine->sp] > frames[depth - 1].sp) depth--;
}

/* Executes one instruction and follows what it did to the calls; 0 at the end of the program. */
static int step(void) {
    int length, signal = 0;
    enum kind kind = kind_at(stop.pc, &length);
    uint64_t pc = stop.pc, sp = stop.now[machine->sp];
    for (;;) {
        if (!machine->step(signal)) return 0;
        if (!stop.signal) break;
        signal = stop.signal;
    }
    if (signal && sp - stop.now[machine->sp] > SIGNAL_FRAME) {
        enter_handler(pc, sp);
        return 1;
    }
    if (kind == TRAP) {
        maps_changed = 1;
        if (!leave_handlers() && !machine->stops_behind_trap) kind = kind_at(pc + length, &length);
    }
    if (with_goroutines && sp - stop.now[machine->sp] + FAR > 2 * FAR) change_stack();
    if (kind == CALL) enter_call();
    else if (kind == LEAVE) leave_calls();
    return 1;
}

/* The program's entry, from what the kernel put behind arguments and environment. */
static uint64_t entry(void) {
    enum { AT_NULL = 0, AT_ENTRY = 9 };
    uint64_t at = stop.now[machine->sp] + 8 * (word(stop.now[machine->sp]) + 2);
    while (word(at)) at += 8;
    for (at += 8; word(at) != AT_NULL; at += 16)
        if (word(at) == AT_ENTRY) return word(at + 8);
    return 0;
}

static void report(uint64_t steps) {
    printf("%llu %llu %llu\n", (unsigned long long)steps, (unsigned long long)inside, (unsigned long long)judged);
    for (int i = 0; i < module_count; i++) {
        const struct module *module = &modules[i];
        for (uint64_t at = 0; at < module->high - module->low; at++)
            if (module->without[at]) printf("%d %llx %u\n", i, (unsigned long long)(module->low + at), module->without[at]);
        for (uint64_t at = 0; at < module->header.instructions; at++) {
            const struct found *found = &module->found[at];
            const struct instruction *its = &module->instructions[at];
            if (found->seen) printf("%d %llx %u %u %u %d\n", i, (unsigned long long)its->address, found->seen, its->verdict, found->wrong, found->what);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    for (int i = 0; i < 3; i++)
        if (!strcmp(argv[1], MACHINES[i].name)) machine = &MACHINES[i];
    if (!machine) return 2;
    take_modules(argv[2]);
    frames = stacks[0].frames = calloc(DEPTH, sizeof *frames);
    with_goroutines = !strcmp(argv[3], "goroutines");
    uint64_t most = strtoull(argv[4], 0, 10), steps = 0;
    if (!machine->begin(argv + 5)) return 3;
    if (strcmp(argv[3], "start") && !machine->run_to(entry())) return 3;
    do judge();
    while (++steps < most && step());
    report(steps);
    kill(stop.pid, SIGKILL);
    waitpid(stop.pid, NULL, 0);
    return 0;
}
