/* Work whose result is known: threads add, allocate, signal and wait; whoever disturbs one of them changes the sum.
   One line on standard input ends it. Prints how often each thread saw something wrong, and how often it went round. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int ended;
static atomic_ulong rounds[4], wrong[5];
static _Thread_local volatile unsigned long signals;

/* Threads that never wait for anything would have to wait for each other on a small machine. */
static void rest(void) {
    struct timespec nap = {0, 100000};
    nanosleep(&nap, 0);
}

static void on_signal(int number) { signals += number == SIGUSR1; }

__attribute__((noinline)) static unsigned long mixed(unsigned long seed, int depth) {
    unsigned long left = depth ? mixed(seed * 6364136223846793005UL + 1, depth - 1) : seed;
    double real = (double)(left & 0xffff) / 3;
    return (left ^ left >> 29) * 0xbf58476d1ce4e5b9UL + (unsigned long)(real * 1000);
}

/* Registers of all kinds hold what must not change. */
static void *adding(void *unused) {
    unsigned long right = mixed(42, 60);
    for (; !ended; rounds[0]++) {
        if (mixed(42, 60) != right) wrong[0]++;
        if (rounds[0] % 512 == 0) rest();
    }
    return unused;
}

/* Every signal arrives, and once. */
static void *signalled(void *unused) {
    for (; !ended; rounds[1]++) {
        unsigned long before = signals;
        for (int i = 0; i < 10; i++) pthread_kill(pthread_self(), SIGUSR1);
        if (signals != before + 10) wrong[1]++;
        if (rounds[1] % 16 == 0) rest();
    }
    return unused;
}

/* What is written is read, whole and in its order. */
static void *piping(void *unused) {
    int ends[2];
    if (pipe(ends)) abort();
    for (; !ended; rounds[2]++) {
        unsigned long out[512], in[512];
        for (int i = 0; i < 512; i++) out[i] = rounds[2] * 7 + (unsigned long)i;
        if (write(ends[1], out, sizeof out) != sizeof out) wrong[2]++;
        if (read(ends[0], in, sizeof in) != sizeof in || memcmp(in, out, sizeof in)) wrong[2]++;
        if (rounds[2] % 64 == 0) rest();
    }
    return unused;
}

/* A wait that a stop interrupts is taken up again, and is no shorter than it should be. */
static void *waiting(void *unused) {
    for (; !ended; rounds[3]++) {
        struct timespec nap = {0, 3000000}, begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        if (clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, 0)) wrong[3]++;
        clock_gettime(CLOCK_MONOTONIC, &end);
        if ((end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec < nap.tv_nsec) wrong[3]++;
        if (poll(0, 0, 2)) wrong[3]++;
    }
    return unused;
}

int main(void) {
    void *(*works[])(void *) = {adding, signalled, piping, waiting};
    pthread_t threads[4];
    char line[16];
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, 0);
    for (int i = 0; i < 4; i++)
        if (pthread_create(threads + i, 0, works[i], 0)) return 1;
    puts("ready");
    fflush(stdout);
    if (read(0, line, sizeof line) < 0) wrong[4]++; /* Not even EINTR. */
    ended = 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 5; i++) printf("%lu ", wrong[i]);
    for (int i = 0; i < 4; i++) printf("%lu ", rounds[i]);
    puts("");
}
