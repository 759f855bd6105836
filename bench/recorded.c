/* Two threads that recurse to changing depths, for a recording with many frames. */
#include <pthread.h>

static volatile long sink;

__attribute__((noinline)) static long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += (i * i) ^ sum;
    sink += sum;
    return sum;
}

__attribute__((noinline)) static long descend(int depth, long n) {
    return depth ? descend(depth - 1, n) + 1 : work(n);
}

static void *run(void *rounds) {
    for (long i = 0; i < (long)rounds; i++)
        descend((int)(10 + i % 40), 2000000);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, run, (void *)3300);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
