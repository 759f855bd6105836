/* A library that comes and goes. Its calls are bound when they are made first. */
#include <stdlib.h>
#include <string.h>

static int backwards(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }

unsigned long loaded_work(unsigned n) {
    int numbers[200];
    for (unsigned i = 0; i < 200; i++) numbers[i] = (int)(i * n % 211);
    qsort(numbers, 200, sizeof *numbers, backwards);
    char *copy = strdup("words");
    unsigned long size = strlen(copy) + (unsigned long)numbers[n % 200];
    free(copy);
    return size;
}
