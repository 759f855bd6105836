// Threads that say what runtime.Callers says of `busy`, and go on there with what a runtime does: `callers_busy SEED
// THREADS`, as `callers`. They allocate, move their stacks, look at the clock, panic, and are sent signals. With a
// negative SEED they do nothing.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	output  sync.Mutex
	told    sync.WaitGroup
	threads []int
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
	threads = append(threads, syscall.Gettid())
	output.Unlock()
	told.Done()
}

//go:noinline
func large(depth int) int {
	var room [512]int
	room[depth%512] = depth
	if depth == 0 {
		return 1
	}
	return large(depth-1) + room[(depth+1)%512]
}

//go:noinline
func faults(pointer *[1 << 10]int) (found int) {
	defer func() { recover() }()
	return pointer[7]
}

//go:noinline
func busy(name string, chance *rand.Rand) {
	tell(name)
	for name == "spin" {
	}
	kept := make([][]byte, 8)
	numbers := map[int]int{}
	for i := 0; ; i++ {
		if i%20 == 0 {
			kept[i/20%len(kept)] = make([]byte, chance.Intn(100000))
		}
		numbers[chance.Intn(1000)] = int(time.Now().UnixNano())
		faults(nil)
		if i%500 == 0 {
			done := make(chan int)
			go func() { done <- large(chance.Intn(100)) }()
			<-done
		}
		for j := 0; j < 20000; j++ {
			numbers[0] += j
		}
	}
}

//go:noinline
func down(depth int, name string, chance *rand.Rand) {
	if depth == 0 {
		busy(name, chance)
		return
	}
	down(depth-1, name, chance)
	runtime.KeepAlive(name)
}

func main() {
	seed, _ := strconv.Atoi(os.Args[1])
	name := "busy"
	if seed < 0 {
		name = "spin"
	}
	count, _ := strconv.Atoi(os.Args[2])
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	told.Add(count)
	for i := 0; i < count; i++ {
		go func(i int) {
			runtime.LockOSThread()
			chance := rand.New(rand.NewSource(int64(seed*count + i)))
			down(chance.Intn(50), name, chance)
		}(i)
	}
	told.Wait()
	fmt.Println("ready")
	go func() {
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for name == "spin" {
		time.Sleep(time.Second)
	}
	for {
		for _, thread := range threads {
			syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(thread), uintptr(syscall.SIGUSR1))
		}
		<-signals
	}
}
