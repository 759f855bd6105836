/* What the other sources leave undefined: linked to a shared library, so that programs call it through a PLT. */

int foo(int n)
{
    return n + 1;
}

int bar(int n)
{
    return foo(n) * foo(n + 1);
}

int baz(int n)
{
    return bar(n) - 1;
}

int source(int n)
{
    return baz(n) + 3;
}

void sink(void *p)
{
    *(int *)p = foo(*(int *)p);
}
