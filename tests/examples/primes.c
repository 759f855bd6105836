/* Two programs in one: with -DSLOW, is_prime takes longer. */
#include <stdio.h>

static int is_prime(unsigned n)
{
#ifdef SLOW
    for (unsigned i = 2; i < n && i < 2000; i++)
#else
    for (unsigned i = 2; i * i <= n; i++)
#endif
        if (n % i == 0)
            return 0;
    return 1;
}

__attribute__((noinline)) unsigned count_primes(unsigned limit)
{
    unsigned found = 0;
    for (unsigned n = 2; n < limit; n++)
        found += is_prime(n);
    return found;
}

__attribute__((noinline)) unsigned sum_digits(unsigned limit)
{
    unsigned sum = 0;
    for (unsigned n = 0; n < limit; n++)
        for (unsigned rest = n; rest; rest /= 10)
            sum += rest % 10;
    return sum;
}

int main(void)
{
    printf("%u primes\n", count_primes(1000000));
    printf("%u digits\n", sum_digits(20000000));
}
