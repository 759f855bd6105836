/* A library that is loaded by dlopen, and calls back.  */
__attribute__ ((noinline)) static int
inner (void (*back) (void), int depth)
{
  if (depth)
    return inner (back, depth - 1) + 1;
  back ();
  return 1;
}

void
call_back (void (*back) (void))
{
  inner (back, 3);
  __asm__ volatile ("");
}
