/* Functions whose frames have many shapes. No header is included, so that any compiler makes assembly of it. */
typedef unsigned long size;
extern int many(int, int, int, int, int, int, int, int, char *);
extern void callback(void (*)(int), int);
extern void *memset(void *, int, size);
extern char *strcpy(char *, const char *);
extern int puts(const char *), printf(const char *, ...);
extern void abort(void) __attribute__((noreturn)), exit(int) __attribute__((noreturn));
static int state[64];

__attribute__((noinline)) static int leaf(int a, int b) { return a * b + state[a & 63]; }

int saves(int a, int b, int c, int d) {
    int e = leaf(a, b), f = leaf(c, d), g = leaf(a, d);
    return many(e, f, g, a, b, c, d, leaf(b, c), 0) + e + f * g + a - b + c * d;
}

int shrinks(int *p, int n) {
    if (!p) return 0;
    int sum = 0;
    for (int i = 0; i < n; i++) sum += leaf(p[i], sum) + many(i, sum, n, 0, 0, 0, 0, 0, (char *)p);
    if (sum < 0) abort();
    return sum;
}

int buffer(const char *text) {
    char room[5000];
    strcpy(room, text);
    return many(1, 2, 3, 4, 5, 6, 7, 8, room);
}

int large(const char *text) {
    char room[300000];
    strcpy(room, text);
    return many(1, 2, 3, 4, 5, 6, 7, 8, room);
}

int grows(int n) {
    char room[n];
    memset(room, n, n);
    return many(1, 2, 3, 4, 5, 6, 7, 8, room) + leaf(n, room[n / 2]);
}

int allocates(int n) {
    int sum = 0;
    for (int i = 1; i < n; i++) {
        char *room = __builtin_alloca(i * 16);
        sum += many(i, 2, 3, 4, 5, 6, 7, 8, room);
    }
    return sum;
}

int aligns(int n) {
    __attribute__((aligned(64))) char room[256];
    memset(room, n, sizeof room);
    return many(1, 2, 3, 4, 5, 6, 7, 8, room) + room[n];
}

int aligns_and_grows(int n, int a, int b, int c, int d, int e, int f, int g, int h) {
    __attribute__((aligned(128))) char room[256];
    char other[n];
    memset(room, n, sizeof room);
    memset(other, n, n);
    return many(a, b, c, d, e, f, g, h, room) + many(h, g, f, e, d, c, b, a, other);
}

int chooses(int x, int y) {
    switch (x) {
    case 0: return leaf(y, 1);
    case 1: puts("one"); return leaf(y, 2) + y;
    case 2: return many(y, 0, 0, 0, 0, 0, 0, 0, 0);
    case 3: puts("three"); y = leaf(y, y); /* fall through */
    case 4: return y * leaf(y, 4);
    case 5: puts("five"); return many(x, y, x, y, x, y, x, y, 0);
    case 6: callback(0, leaf(x, y)); return y;
    }
    if (y > 1000) exit(leaf(x, y));
    return x * y;
}

double floats(double a, double b, int n) {
    double sum = 0, product = 1, last = a;
    for (int i = 0; i < n; i++) {
        sum += leaf(i, n) * a;
        product *= many(i, n, 0, 0, 0, 0, 0, 0, 0) + b;
        last = sum - product / last;
    }
    return sum * product + last - a * b;
}

int varies(const char *text, ...) {
    __builtin_va_list list;
    int sum = 0;
    __builtin_va_start(list, text);
    for (; *text; text++) sum += leaf(__builtin_va_arg(list, int), *text);
    __builtin_va_end(list);
    return sum + puts(text);
}

struct big { int numbers[40]; };

struct big returns_large(int n, struct big other) {
    struct big one = other;
    for (int i = 0; i < 40; i++) one.numbers[i] = leaf(n, other.numbers[39 - i]);
    return one;
}

int passes_large(int n) {
    struct big one = {{n}};
    one = returns_large(n, one);
    return returns_large(n + 1, one).numbers[n & 31];
}

int recurses(int n) { return n < 2 ? n : recurses(n - 1) + recurses(n - 2); }

int tail(int n, char *text) {
    if (n > 5) return many(n, 1, 2, 3, 4, 5, 6, 7, text);
    return n ? leaf(n, puts(text)) : puts(text);
}

void tail_indirect(void (**table)(int, int), int n) {
    int m = leaf(n, 3);
    puts("indirect");
    table[n](m, n);
}

int early_exits(int *p, int n, const char *text) {
    int i = puts(text);
    if (i == 1) return leaf(i, n);
    if (i == 2) return p[n];
    while (n--) {
        if (p[n] == i) return printf(text, n, i);
        if (p[n] == -i) goto out;
        i += many(i, n, 1, 1, 1, 1, 1, 1, 0);
    }
    return i;
out:
    puts("out");
    return n + i;
}

int nested(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        int local[12];
        memset(local, i, sizeof local);
        for (int j = 0; j < 12; j++) sum += leaf(local[j], i) ^ many(i, j, n, sum, 0, 0, 0, 0, (char *)local);
        if (sum > 10000) printf("%d", sum);
    }
    return sum;
}

int clobbers(int n) {
#if defined(__x86_64__)
    __asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
#elif defined(__aarch64__)
    __asm__ volatile("" : : : "x19", "x20", "x21", "x24", "x28", "d8", "d9", "d12");
#elif defined(__s390x__)
    __asm__ volatile("" : : : "r6", "r8", "r10", "f8", "f10", "f15");
#endif
    return leaf(n, n) + puts("clobbers");
}

void unlikely(int n) {
    if (__builtin_expect(n == 77, 0)) {
        printf("%d %d", n, leaf(n, 2));
        many(n, 1, 2, 3, 4, 5, 6, 7, 0);
        abort();
    }
    state[n & 63] = leaf(n, many(n, 0, 0, 0, 0, 0, 0, 0, 0));
}

static _Thread_local int own;
extern _Thread_local int others;
int thread_local_variables(int n) { own += n; others += leaf(own, n); return own + others; }

long atomics(long *p, long n) {
    long old = __atomic_fetch_add(p, n, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(p, &old, old * n, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) puts("again");
    return old + leaf(n, old);
}
