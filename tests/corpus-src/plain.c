/* Functions of many frame shapes, without any header. */

extern int source(int);
extern void sink(void *);

/* A leaf that touches no stack. */
int leaf(int a, int b)
{
    return a * 3 + b;
}

/* Calls in a loop: registers saved around them. */
int loop(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += source(i) ^ leaf(i, sum);
    return sum;
}

/* A frame of unknown size needs a frame pointer at any level of optimisation. */
int dynamic(int n)
{
    char room[n + 1];
    char *more = __builtin_alloca(n * 2);
    sink(room);
    sink(more);
    return room[0] + more[n];
}

/* Offsets beyond one byte, and beyond two. */
int big_frame(int n)
{
    int table[3000];
    sink(table);
    return table[n];
}

int huge_frame(int n)
{
    char table[300000];
    sink(table);
    return table[n];
}

/* More alignment than the stack has: DRAP on x86-64. */
int aligned(int n)
{
    _Alignas(64) char line[128];
    char tail[n];
    sink(line);
    sink(tail);
    return line[n] + tail[0];
}

int choose(int n)
{
    switch (n) {
    case 0: return source(1);
    case 1: return source(n + 7) + 1;
    case 2: return source(n * 5) - 2;
    case 3: sink(&n); return n;
    case 4: return loop(n) + source(2);
    case 5: return leaf(n, source(3));
    case 6: return dynamic(n);
    default: return -1;
    }
}

/* An early way out before the frame is made (shrink wrapping), and a cold part that is moved away. */
int early(int *p)
{
    if (!p)
        return 0;
    if (__builtin_expect(*p < 0, 0)) {
        sink(p);
        __builtin_trap();
    }
    return source(*p) + source(p[1]) * source(p[2]);
}

int sum_of(int count, ...)
{
    __builtin_va_list list;
    int sum = 0;
    __builtin_va_start(list, count);
    while (count-- > 0)
        sum += source(__builtin_va_arg(list, int));
    __builtin_va_end(list);
    return sum;
}

__attribute__((noreturn)) void never_back(int n)
{
    for (;;)
        sink(&n);
}

/* More than nine arguments go over the stack; a call at the end may become a jump. */
int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
    return source(a + b + c + d + e + f + g + h + i + j);
}

int passes_many(int n)
{
    return many_arguments(n, 1, 2, 3, 4, 5, 6, 7, 8, n) + many_arguments(9, 8, 7, 6, 5, 4, 3, 2, n, 0);
}

/* Many values alive at once, in more than 256 bytes of code. */
int many_locals(int n)
{
    int a = source(n), b = source(a), c = source(b), d = source(c), e = source(d), f = source(e);
    int g = source(f), h = source(g), i = source(h), j = source(i), k = source(j), l = source(k);
    int m = source(a + g), o = source(b + h), p = source(c + i), q = source(d + j), r = source(e + k);
    sink(&n);
    if (a > b)
        return source(l - m) + many_arguments(a, b, c, d, e, f, g, h, i, j);
    sink(&p);
    return a + b * c + d * e - f + g * h - i + j * k + l * m + o + p * q - r;
}
