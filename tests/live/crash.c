/* Ends in the way that its argument names, with other threads at work; leaves a core file. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile unsigned long sink;
void (*volatile nowhere)(void);
static pthread_barrier_t all;

__attribute__((noinline)) static unsigned long endless(unsigned long n) {
    volatile unsigned long here[8] = {n};
    return endless(n + 1) + here[n % 8];
}

__attribute__((noinline)) static unsigned long deep(int n, void (*then)(void)) {
    volatile unsigned long here = (unsigned long)n;
    if (n) return deep(n - 1, then) + here;
    then();
    return here;
}

static void overflowed(void) { sink += endless(1); }
static void to_null(void) { nowhere(); sink++; }
static void to_data(void) { ((void (*)(void))(unsigned long)&sink)(); sink++; }
static void to_nowhere(void) { ((void (*)(void))0x123456789aUL)(); sink++; }
static void aborted(void) { abort(); }

static void damaged(void) {
    char *memory = malloc(24);
    if (!memory) abort();
    memset(memory - 8, 0x41, 16);
    free(memory);
    free(memory);
}

static void faulty(int number) { *(volatile int *)(unsigned long)number = 1; }

static void handled(int number) { deep(number % 3, aborted); }

/* On another stack, with the faulting function below the handler. */
static void in_handler(void) {
    static char room[1 << 16];
    stack_t other = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&other, 0);
    struct sigaction action = {.sa_handler = handled, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    faulty(16);
}

/* The handler of a stack's overflow runs on the other stack. */
static void in_overflow(void) {
    static char room[1 << 16];
    stack_t other = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&other, 0);
    struct sigaction action = {.sa_handler = handled, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    overflowed();
}

static void nested(int number) { if (number == SIGUSR1) raise(SIGUSR2); else abort(); }

static void in_handlers(void) {
    signal(SIGUSR1, nested);
    signal(SIGUSR2, nested);
    raise(SIGUSR1);
}

static int compared(const void *a, const void *b) {
    if (*(const int *)a == 77) abort();
    return *(const int *)a - *(const int *)b;
}

static void called_back(void) {
    int numbers[200];
    for (int i = 0; i < 200; i++) numbers[i] = i * 31 % 199;
    qsort(numbers, 200, sizeof *numbers, compared);
}

static void sleeping(void) {
    pthread_barrier_wait(&all);
    for (;;) pause();
}

static void working(void) {
    pthread_barrier_wait(&all);
    for (;;) sink++;
}

static void *run(void *what) {
    deep(9, (void (*)(void))what);
    return 0;
}

static const struct { const char *name; void (*die)(void); } ways[] = {
    {"overflow", overflowed}, {"null", to_null}, {"data", to_data}, {"nowhere", to_nowhere}, {"abort", aborted},
    {"malloc", damaged}, {"handler", in_handler}, {"handlers", in_handlers}, {"overflow-handler", in_overflow},
    {"callback", called_back},
};

int main(int count, char **words) {
    void (*others[])(void) = {sleeping, working, sleeping};
    pthread_barrier_init(&all, 0, 4);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, run, (void *)others[i])) return 1;
    }
    pthread_barrier_wait(&all);
    usleep(10000);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        if (count > 1 && !strcmp(words[1], ways[i].name)) deep(5, ways[i].die);
    return 2;
}
