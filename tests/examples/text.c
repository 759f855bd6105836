/* A library of a wheel. */
#include <string.h>

__attribute__((noinline)) int length(const char *text) { return strlen(text) + 1; }
int twice(const char *text) { return length(text) * 2; }
