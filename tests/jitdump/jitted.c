/* Runs code that it puts into memory, replaces and moves, and dumps it for perf: jitted FOLDER [wait].

   The folder has the code, FIRST.code and SECOND.code, with what belongs behind it, FIRST.frames and SECOND.frames. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int dump, waits;
static unsigned long made;
static uint64_t numbers[2];

static uint64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

__attribute__((noinline)) void spin(void) {
    uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + 200000000;
    while (now(CLOCK_PROCESS_CPUTIME_ID) < end) {}
}

__attribute__((noinline)) void stay(void) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}

__attribute__((noinline)) void run(char *code, void (*what)(void)) {
    ((void (*)(void (*)(void)))code)(what);
    __asm__ volatile("");
}

static size_t read_all(const char *folder, const char *name, const char *kind, char *room, size_t most) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, kind);
    int file = open(path, O_RDONLY);
    ssize_t size = read(file, room, most);
    if (size < 0) abort();
    close(file);
    return size;
}

struct prefix { uint32_t id, size; uint64_t time; };

static void put(uint32_t id, const void *fields, size_t size, const void *a, size_t a_size, const void *b, size_t b_size) {
    struct prefix prefix = {id, sizeof prefix + size + a_size + b_size, now(CLOCK_MONOTONIC)};
    if (write(dump, &prefix, sizeof prefix) < 0 || write(dump, fields, size) < 0 || write(dump, a, a_size) < 0 ||
        write(dump, b, b_size) < 0)
        abort();
}

static void make(const char *folder, const char *name, char *at, int line) {
    static char code[4096], frames[4096];
    size_t size = read_all(folder, name, "code", code, sizeof code);
    size_t frames_size = read_all(folder, name, "frames", frames, sizeof frames);
    uint64_t header = frames_size - *(uint64_t *)frames; /* behind the size of .eh_frame */
    frames_size -= 8;
    header -= 8;
    uint64_t unwinding[3] = {frames_size, header, 0};
    put(4, unwinding, sizeof unwinding, frames + 8, frames_size, 0, 0);
    struct { uint64_t code, count, at; int32_t line, column; } lines = {(uint64_t)at, 2, (uint64_t)at, line, 0};
    struct { uint64_t at; int32_t line, column; char name[2]; } __attribute__((packed)) next =
        {(uint64_t)at + 1, line + 1, 0, "\xff"};
    char file[64] = "made.source";
    memcpy(file + strlen(file) + 1, &next, sizeof next);
    put(2, &lines, 32, file, strlen("made.source") + 1 + sizeof next, 0, 0);
    struct { uint32_t pid, tid; uint64_t vma, at, size, index; } load =
        {getpid(), getpid(), (uint64_t)at, (uint64_t)at, size, ++made};
    memcpy(at, code, size);
    put(0, &load, sizeof load, name, strlen(name) + 1, code, size);
    numbers[0] = size;
    numbers[1] = made;
}

static void move(char *from, char *to) {
    struct { uint32_t pid, tid; uint64_t vma, from, to, size, index; } fields =
        {getpid(), getpid(), (uint64_t)to, (uint64_t)from, (uint64_t)to, numbers[0], numbers[1]};
    memcpy(to, from, numbers[0]);
    put(1, &fields, sizeof fields, 0, 0, 0, 0);
}

int main(int argc, char **argv) {
    char path[4096];
    struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } header =
        {0x4A695444, 1, sizeof header, 62, 0, getpid(), now(CLOCK_MONOTONIC), 0};
    waits = argc > 2;
    snprintf(path, sizeof path, "%s/jit-%d.dump", argv[1], getpid());
    dump = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
    if (dump < 0 || write(dump, &header, sizeof header) < 0) abort();
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
    char *at = mmap(0, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    make(argv[1], "first", at, 10);
    if (!waits) run(at, spin);
    make(argv[1], "second", at, 20);
    if (!waits) run(at, spin);
    move(at, at + 4096);
    make(argv[1], "first", at, 30);
    if (!waits) run(at, spin);
    run(at + 4096, waits ? stay : spin);
}
