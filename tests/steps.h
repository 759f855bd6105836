/* A program that is run one instruction at a time: what the stepper asks of each machine. */

#include <stdint.h>
#include <sys/types.h>

/* Registers have their DWARF numbers; AArch64's vectors follow from 32, and only their lower halves count. */
enum { REGISTERS = 48 };

/* What an instruction may do to the calls: TRAP goes to the kernel, LEAVE jumps to where a register or memory says. */
enum kind { PLAIN, CALL, LEAVE, TRAP };

struct machine {
    const char *name;
    int sp, ra, entry_sp_to_cfa;
    int pushes;                     /* whether a call puts the return address on the stack */
    int big;                        /* whether the most significant byte comes first */
    int asked_from;                 /* the first register that `ask` has to read, each with some work */
    int first_kept, last_kept;      /* those of them that calls keep */
    int goroutine;                  /* the register in which Go has what is at work */
    int stops_behind_trap;          /* a stub stops an instruction later, and at the second one of a signal's handler */
    int (*begin)(char **command);   /* stops before the first instruction; 0 if that cannot be done here */
    int (*step)(int signal);        /* delivers a signal, if not 0, and goes on; 0 when the program has ended */
    int (*run_to)(uint64_t address); /* all at once */
    uint64_t (*ask)(int number);
    enum kind (*kind)(const uint8_t *code, int *length); /* the length is of a TRAP */
};

extern const struct machine MACHINES[3];

/* Where the program stands. If a signal arrived, nothing was executed since the last stop. */
extern struct stop {
    pid_t pid; /* the process that has its memory */
    uint64_t pc, now[REGISTERS];
    int signal;
} stop;
