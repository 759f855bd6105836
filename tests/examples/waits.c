#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void write_log(void)
{
    pthread_mutex_lock(&lock);
    usleep(50000);
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused)
{
    for (int i = 0; i < 10; i++)
        write_log();
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}
