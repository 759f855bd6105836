/* What makes frames unusual in C: room of unknown size, jumps out of calls, signals and their stack, functions chosen at
   run time, many registers, tables of jumps, calls in place of returns. */

#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

static jmp_buf back;
static sigjmp_buf out;
static volatile int handled;

static int order(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

APART static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

APART static int grows(int n) {
    char room[n];
    memset(room, n, n);
    return room[n / 2] + (n > 3 ? grows(n - 3) : 0);
}

APART static int asks(int n) {
    char *room = alloca(n * 16 + 40), large[20000];
    memset(room, n, n);
    memset(large, n, sizeof large);
    return room[n / 2] + large[n] + fib(n % 6);
}

APART static int aligned(int n) {
    _Alignas(64) char room[200];
    memset(room, n, sizeof room);
    return room[n % 200] + fib(n % 4);
}

APART static double many(const double *from, long n) {
    double a = from[0], b = from[1], c = from[2], d = from[3], e = from[4], f = from[5], g = from[6], h = from[7];
    long i = n * 3, j = n * 5, k = n * 7, l = n * 11, m = n * 13, o = n * 17;
    for (long r = 0; r < n; r++) {
        a += b * fib(r % 5), c -= d * e, f += g / (h + 3), i += j ^ k, l -= m & o;
        b = c + i, d = f + l, e = g + j, h = a + k, m += r, o ^= i;
    }
    return a + b + c + d + e + f + g + h + i + j + k + l + m + o;
}

APART static int adds(int count, ...) {
    va_list rest;
    double sum = 0;
    va_start(rest, count);
    while (count--) sum += va_arg(rest, double);
    va_end(rest);
    return sum;
}

APART static int goes_on(int n) { return n ? fib(n % 4) : puts("done"); }
APART static int last(int n) { return n > 100 ? n : goes_on(n); }

APART static int chooses(int n) {
    switch (n % 9) {
    case 0: return fib(3);
    case 1: return grows(20) + n;
    case 2: puts("two"); return n;
    case 3: return chooses(n + 1) * 2;
    case 4: return aligned(n);
    case 5: return last(n % 5);
    case 6: return asks(n);
    case 7: return adds(3, 1.5, 2.5, (double)n);
    default: return -n;
    }
}

APART static void leaves(int n) {
    char room[n + 1];
    memset(room, n, n);
    if (n > 40) longjmp(back, room[n / 2]);
    leaves(n + 7);
}

static void handler(int number) {
    handled += fib(number % 7);
    if (handled % 3 == 2) siglongjmp(out, 1);
}

static int quick(int n) { return n * 3; }
static int slow(int n) { return n + fib(4); }
static int (*choose(void))(int) { return getenv("SLOW") ? slow : quick; }
int chosen(int) __attribute__((ifunc("choose_early")));
static int (*choose_early(void))(int) { return quick; }

int main(void) {
    static char signal_stack[1 << 16];
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction action = {.sa_handler = handler}, elsewhere = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    double from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int numbers[100];
    volatile int sum = 0;
    for (int i = 0; i < 100; i++) numbers[i] = (i * 7919) % 211;
    qsort(numbers, 100, sizeof *numbers, order);
    for (int i = 0; i < 100; i++) sum += chooses(numbers[i]);
    for (volatile int i = 0; i < 5; i++)
        if (!setjmp(back)) leaves(i);
    sigaltstack(&stack, 0);
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGUSR2, &elsewhere, 0);
    for (volatile int i = 0; i < 6; i++)
        if (!sigsetjmp(out, 1)) raise(i % 2 ? SIGUSR1 : SIGUSR2);
    sum += many(from, 50) > 0 ? chosen(sum) : choose()(sum);
    char *text = malloc(100);
    snprintf(text, 100, "%d %s %f %d", sum, "and", 1.5, handled);
    puts(text);
    return 0;
}
