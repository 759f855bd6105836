/* One function of more than 64 KiB of code, so that its row starts need four bytes, between two small ones. */

extern int source(int);

#define TIMES_8(step) step step step step step step step step
#define TIMES_4096(step) TIMES_8(TIMES_8(TIMES_8(TIMES_8(step))))

int before(int n)
{
    return source(n) + 1;
}

int large(int n, int *out)
{
    if (n < 0)
        return source(n);
    TIMES_4096(n = source(n + 3) ^ 0x5a5a; out[n & 7] += n;)
    if (n == 12345)
        return source(n) - 1;
    TIMES_8(out[n & 3] = source(out[n & 5]);)
    return n;
}

int after(int n)
{
    return source(n) - 1;
}
