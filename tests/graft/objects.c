#include <stdio.h>
#include <stdlib.h>

__attribute__ ((section (".text.cold"))) int
seldom (int n)
{
  return printf ("%d\n", n) + 1;
}

static int
often (int n)
{
  return n > 100 ? seldom (n) : n * 3;
}

int
main (int argc, char **argv)
{
  int sum = 0;
  for (int i = 0; i < 102; i++)
    sum += often (i * argc);
  return sum == 0;
}
