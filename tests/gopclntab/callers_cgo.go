// Threads that go from Go to C and back, say what runtime.Callers says of them, and stay there: `callers_cgo SEED
// THREADS`, as `callers`.
package main

/*
#cgo CFLAGS: -pthread -g0
#cgo LDFLAGS: -pthread
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void calledBack(uintptr_t what);

static void waits(void)
{
  for (;;)
    poll(0, 0, -1);
}

// Calls itself a few times, with frames of different sizes, and then Go, or waits.
__attribute__((noinline)) static int down(int depth, uintptr_t what)
{
  volatile char room[40];
  char *more = __builtin_alloca(depth * 16 + 16);
  memset((char *)room, depth, sizeof room);
  memset(more, depth, depth * 16);
  if (depth)
    return down(depth - 1, what) + room[depth] + more[0];
  if (what)
    calledBack(what);
  else
    waits();
  return room[3];
}

static int compares(const void *one, const void *other)
{
  calledBack(**(uintptr_t *const *)one);
  return one == other;
}

// Lets a function of the C library call Go.
static void sorts(uintptr_t what)
{
  uintptr_t *all[] = {&what, &what};
  qsort(all, 2, sizeof *all, compares);
}

static void *begins(void *what)
{
  down(3, *(uintptr_t *)what);
  return 0;
}

// Calls Go in a thread that Go did not make.
static void starts(uintptr_t what)
{
  pthread_t thread;
  uintptr_t *kept = malloc(sizeof what);
  *kept = what;
  pthread_create(&thread, 0, begins, kept);
}

static void handles(int number)
{
  (void)number;
  waits();
}

static void installs(int number)
{
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handles;
  action.sa_flags = SA_ONSTACK;
  sigaction(number, &action, 0);
}

// Go's handler calls this one if C faults, because it was there first.
__attribute__((constructor)) static void installs_first(void) { installs(SIGSEGV); }

__attribute__((noinline)) static int faults(int depth)
{
  volatile char room[50];
  memset((char *)room, depth, sizeof room);
  return depth ? faults(depth - 1) + room[1] : *(volatile int *)8;
}
*/
import "C"

import (
	"fmt"
	"io"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

var (
	output sync.Mutex
	told   sync.WaitGroup
	pipe   [2]int
	sink   int
	known  sync.Map
	last   uint64
)

// tell prints what is called above its caller.
func tell(name string) {
	pcs := make([]uintptr, 1<<16)
	pcs = pcs[:runtime.Callers(2, pcs)]
	var line strings.Builder
	fmt.Fprintf(&line, "%d\t%s", syscall.Gettid(), name)
	for frames := runtime.CallersFrames(pcs); ; {
		one, more := frames.Next()
		real := 0
		if one.Func != nil {
			real = 1
		}
		fmt.Fprintf(&line, "\t%d %d %d %s %s", one.PC, real, one.Line, one.Function, one.File)
		if !more {
			break
		}
	}
	output.Lock()
	fmt.Println(line.String())
	output.Unlock()
}

// A thread stays in Go, in C, in a handler of C that interrupts Go, or in one that Go's own handler calls.

//go:noinline
func holdInGo(name string) {
	tell(name)
	told.Done()
	for room := make([]byte, 1); ; {
		syscall.Read(pipe[0], room)
	}
}

//go:noinline
func holdInC(name string, depth int) {
	tell(name)
	told.Done()
	C.down(C.int(depth), 0)
}

//go:noinline
func holdInterrupted(name string) {
	tell(name)
	told.Done()
	syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGUSR2))
}

//go:noinline
func holdInHandler(name string, depth int) {
	tell(name)
	told.Done()
	C.faults(C.int(depth))
}

// what is a number for C that stands for a function.
func what(then func()) C.uintptr_t {
	number := atomic.AddUint64(&last, 1)
	known.Store(number, then)
	return C.uintptr_t(number)
}

//export calledBack
func calledBack(number C.uintptr_t) {
	then, _ := known.Load(uint64(number))
	then.(func())()
}

// large moves the stack.
//
//go:noinline
func large(depth int, then func()) int {
	var room [512]int
	room[depth%512] = depth
	if depth == 0 {
		then()
		return 1
	}
	return large(depth-1, then) + room[(depth+1)%512]
}

//go:noinline
func panics(then func()) {
	defer func() { recover() }()
	defer then()
	panic("nothing")
}

// combined goes to C and back some times, with frames of Go between.
func combined(chance *rand.Rand, then func()) {
	if chance.Intn(3) == 0 {
		then()
		return
	}
	next := func() { combined(chance, then) }
	switch chance.Intn(5) {
	case 0:
		C.sorts(what(next))
	case 1:
		large(chance.Intn(40), func() { C.down(C.int(chance.Intn(9)), what(next)) })
	case 2:
		C.down(C.int(chance.Intn(9)), what(func() { large(chance.Intn(40), next) }))
	case 3:
		panics(func() { C.down(2, what(next)) })
	default:
		C.down(C.int(chance.Intn(9)), what(next))
	}
	sink++
}

func main() {
	seed, _ := strconv.Atoi(os.Args[1])
	threads, _ := strconv.Atoi(os.Args[2])
	debug.SetMaxThreads(2*threads + 1000)
	// Whom a handler of C holds keeps a processor, which a collection would wait for.
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(threads + 4)
	syscall.Pipe(pipe[:])
	C.installs(C.int(syscall.SIGUSR2)) // which takes it from Go
	told.Add(threads)
	for i := 0; i < threads; i++ {
		i := i
		chance := rand.New(rand.NewSource(int64(seed*threads + i)))
		then := func() {
			runtime.LockOSThread()
			combined(chance, func() {
				switch i % 5 {
				case 0:
					holdInGo("go")
				case 1, 2:
					holdInC("c", chance.Intn(9))
				case 3:
					holdInterrupted("interrupted")
				default:
					holdInHandler("handler", chance.Intn(5))
				}
			})
		}
		if i%4 == 3 {
			C.starts(what(then))
		} else {
			go then()
		}
	}
	told.Wait()
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
