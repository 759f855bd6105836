/* What the C library's own headers give to all files of the reader.  */
#include <stddef.h>
#include <string.h>
#define libc_hidden_proto(name)
#define libc_hidden_def(name)
