/* Threads that are each busy with other work, for ever: what a debugger finds hard to walk is all here.
   Compiled for the host's C library, as a static program, and for musl. */
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef LIBRARY
#include <dlfcn.h>
#endif

volatile unsigned long sink;

struct node { struct node *left, *right; unsigned long value; };

static struct node *grown(unsigned long seed, int depth) {
    struct node *node = malloc(sizeof *node);
    if (!node) abort();
    node->value = seed;
    node->left = depth ? grown(seed * 7 + 1, depth - 1) : 0;
    node->right = depth > 3 ? grown(seed * 5 + 3, depth - 3) : 0;
    return node;
}

static unsigned long summed(const struct node *node) {
    return node ? summed(node->left) + node->value + summed(node->right) : 0;
}

static void felled(struct node *node) {
    if (!node) return;
    felled(node->left);
    felled(node->right);
    free(node);
}

static void *recursion(void *unused) {
    for (;;) {
        struct node *tree = grown(1, 40 + sink % 8);
        sink += summed(tree);
        felled(tree);
    }
    return unused;
}

__attribute__((noinline)) static unsigned long deep(unsigned n) {
    volatile unsigned long here = n;
    return n ? deep(n - 1) + here : here;
}

static void *depths(void *unused) {
    for (unsigned n = 1;; n = n * 5 % 997) sink += deep(n);
    return unused;
}

static int compared(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void *sorting(void *unused) {
    static int numbers[2000];
    for (unsigned seed = 1;;) {
        for (int i = 0; i < 2000; i++) numbers[i] = (int)(seed = seed * 1103515245 + 12345);
        qsort(numbers, 2000, sizeof *numbers, compared);
    }
    return unused;
}

static void *allocating(void *unused) {
    void *kept[64] = {0};
    for (unsigned seed = 1;; seed = seed * 1664525 + 1013904223) {
        unsigned i = seed >> 26;
        free(kept[i]);
        kept[i] = malloc((seed >> 12 & 0xffff) + 16);
        if (kept[i]) memset(kept[i], (int)i, 16);
    }
    return unused;
}

static int pipes[2];

static void *printing(void *unused) {
    FILE *out = fdopen(pipes[1], "w");
    for (double i = 1;; i *= 1.01) {
        fprintf(out, "%g %s %d %40.20Lf\n", i, "some words", (int)sink, (long double)i);
        if (i > 1e80) i = 1;
    }
    return unused;
}

static void *draining(void *unused) {
    char text[512];
    while (read(pipes[0], text, sizeof text) > 0) sink++;
    return unused;
}

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    sink += deep(20) + (unsigned long)number;
}

static void *signalled(void *unused) {
    stack_t other = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&other, 0);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, 0);
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR2, &action, 0);
    for (int i = 0;; i++) {
        pthread_kill(pthread_self(), i % 2 ? SIGUSR1 : SIGUSR2);
        sink += deep(7);
    }
    return unused;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int whose;

static void *waiting(void *self) {
    int me = (int)(long)self;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (whose != me) pthread_cond_wait(&turn, &lock);
        whose = !me;
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

static void *sleeping(void *unused) {
    sem_t never;
    sem_init(&never, 0, 0);
    sem_wait(&never);
    return unused;
}

__attribute__((noinline)) static unsigned long on_stack(unsigned size) {
    /* The stack pointer is not known to call frame information that counts from it. */
    volatile char *room = alloca(size);
    for (unsigned i = 0; i < size; i += 64) room[i] = (char)i;
    struct { char wide[64] __attribute__((aligned(64))); } aligned;
    memset(aligned.wide, (int)size, sizeof aligned.wide);
    return (unsigned long)room[size / 2] + (unsigned long)aligned.wide[size % 64] + deep(3);
}

static void *stacking(void *unused) {
    for (unsigned size = 100;; size = size * 3 % 9973 + 64) sink += on_stack(size);
    return unused;
}

static void *timing(void *unused) {
    struct timespec now;
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        sink += (unsigned long)now.tv_nsec + (unsigned long)syscall(SYS_getppid);
    }
    return unused;
}

static void *copying(void *unused) {
    static char from[100000], to[100000];
    for (unsigned size = 1;; size = size * 7 % 99991) {
        memcpy(to, from, size);
        memset(from, (int)size, size / 2);
        sink += strlen(strcpy(to, "a few words to be copied")) + (unsigned long)memcmp(from, to, size);
    }
    return unused;
}

#ifdef LIBRARY
static void *loading(void *unused) {
    for (unsigned n = 1;; n = n * 3 % 101) {
        void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
        unsigned long (*work)(unsigned) = library ? (unsigned long (*)(unsigned))dlsym(library, "loaded_work") : 0;
        if (!work) abort();
        sink += work(n);
        dlclose(library);
    }
    return unused;
}
#endif

static void *short_lived(void *unused) {
    sink += deep(50);
    return unused;
}

static void *coming(void *unused) {
    pthread_t thread;
    for (;;) {
        if (pthread_create(&thread, 0, short_lived, 0)) abort();
        pthread_join(thread, 0);
        usleep(1000);
    }
    return unused;
}

static const struct { void *(*run)(void *); void *self; } works[] = {
    {recursion, 0}, {depths, 0}, {sorting, 0}, {allocating, 0}, {printing, 0}, {draining, 0}, {signalled, 0},
    {waiting, 0}, {waiting, (void *)1}, {sleeping, 0}, {stacking, 0}, {timing, 0}, {copying, 0}, {coming, 0},
#ifdef LIBRARY
    {loading, 0},
#endif
};

int main(void) {
    if (pipe(pipes)) return 1;
    for (unsigned i = 0; i < sizeof works / sizeof *works; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, works[i].run, works[i].self)) return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
