// Threads that say what runtime.Callers says of them, and stay there: `callers SEED THREADS`.
//
// A line for each: the thread, the case, and the frames from `hold` outwards, which are divided by tabs. A frame is its
// program counter, 0 if the call was inlined, the line, the function and the file. Then comes `ready`. The program ends
// with its input.
package main

import (
	"fmt"
	"io"
	"math/rand"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	_ "unsafe"
)

var (
	output sync.Mutex
	told   sync.WaitGroup
	pipe   [2]int
	sink   int
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
	told.Done()
}

// hold stays where it is until the program ends.
//
//go:noinline
func hold(name string) {
	tell(name)
	for room := make([]byte, 1); ; {
		syscall.Read(pipe[0], room)
	}
}

//go:linkname systemstack runtime.systemstack
func systemstack(func())

// waits blocks as code of the stack of a thread has to.
//
//go:nosplit
func waits() {
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// holdOnSystemStack stays on the stack of its thread.
//
//go:noinline
func holdOnSystemStack(name string) {
	tell(name)
	systemstack(waits)
}

type shape interface{ visit(depth int, then func()) }

type square struct{ side [3]int }

//go:noinline
func (s square) visit(depth int, then func()) {
	if depth == 0 {
		then()
	} else {
		var next shape = &tagged{square: s, tag: depth}
		next.visit(depth-1, then)
	}
	sink += s.side[0]
}

type tagged struct {
	square
	tag int
}

type nested[T any] struct {
	value T
	inner *nested[T]
}

//go:noinline
func (n *nested[T]) walk(each func(T)) {
	if n.inner != nil {
		n.inner.walk(each)
	}
	each(n.value)
}

//go:noinline
func apply[K comparable, V any](key K, values map[K]V, then func(V)) {
	for one, value := range values {
		if one == key {
			then(value)
		}
	}
}

// large needs a lot of stack, so that this is moved on the way.
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

func small(depth int, then func()) {
	if depth == 0 {
		then()
		return
	}
	small(depth-1, then)
	sink++
}

func inner(then func())  { middle(then) }
func middle(then func()) { outer(then) }
func outer(then func())  { then() }

//go:noinline
func many(a, b, c, d, e, f, g, h, i, j, k, l float64, then func()) float64 {
	then()
	return a + b + c + d + e + f + g + h + i + j + k + l
}

//go:noinline
func faults(pointer *[1 << 10]int) int { return pointer[7] }

//go:noinline
func index(values []int, place int) int { return values[place] }

// recovered calls in a deferred function of one that panics.
//
//go:noinline
func recovered(why string, then func()) {
	defer func() {
		if recover() == nil {
			panic("nothing to recover from")
		}
	}()
	defer then()
	switch why {
	case "memory":
		sink += faults(nil)
	case "index":
		sink += index(nil, sink)
	case "number":
		sink /= sink - sink
	default:
		panic(why)
	}
}

//go:noinline
func afterwards(then func()) {
	for i := 0; i < 1; i++ {
		defer then()
	}
	func() {
		defer func() { recover() }()
		large(3, func() { panic("left behind") })
	}()
}

type byHold struct {
	sort.Interface
	then func()
}

func (b byHold) Less(i, j int) bool {
	b.then()
	return false
}

var cases = map[string]func(chance *rand.Rand, then func()){
	"inlined":  func(_ *rand.Rand, then func()) { inner(then) },
	"deep":     func(chance *rand.Rand, then func()) { small(chance.Intn(700), then) },
	"grown":    func(chance *rand.Rand, then func()) { large(chance.Intn(60), then) },
	"methods":  func(chance *rand.Rand, then func()) { square{}.visit(chance.Intn(9), then) },
	"bound":    func(_ *rand.Rand, then func()) { visit := shape(&tagged{}).visit; visit(1, then) },
	"memory":   func(_ *rand.Rand, then func()) { recovered("memory", then) },
	"index":    func(_ *rand.Rand, then func()) { recovered("index", then) },
	"number":   func(_ *rand.Rand, then func()) { recovered("number", then) },
	"panic":    func(_ *rand.Rand, then func()) { recovered("panic", then) },
	"deferred": func(_ *rand.Rand, then func()) { afterwards(then) },
	"floats":   func(_ *rand.Rand, then func()) { sink += int(many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, then)) },
	"reflected": func(chance *rand.Rand, then func()) {
		call := reflect.ValueOf(small)
		call.Call([]reflect.Value{reflect.ValueOf(chance.Intn(9)), reflect.ValueOf(then)})
	},
	"made": func(_ *rand.Rand, then func()) {
		kind := reflect.TypeOf(index)
		made := reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value {
			then()
			return []reflect.Value{reflect.ValueOf(1)}
		})
		sink += made.Interface().(func([]int, int) int)(nil, 1)
	},
	"generic": func(chance *rand.Rand, then func()) {
		list := &nested[string]{value: "end"}
		for i := chance.Intn(20); i >= 0; i-- {
			list = &nested[string]{strconv.Itoa(i), list}
		}
		list.walk(func(value string) {
			apply(value, map[string]func(){"end": then, "other": nil}, func(found func()) { found() })
		})
	},
	"sorted": func(_ *rand.Rand, then func()) { sort.Sort(byHold{sort.IntSlice{2, 1}, then}) },
	"once":   func(_ *rand.Rand, then func()) { new(sync.Once).Do(then) },
}

// combined calls some of the cases in each other.
func combined(names []string, chance *rand.Rand, then func()) {
	if len(names) == 0 {
		then()
		return
	}
	cases[names[0]](chance, func() { combined(names[1:], chance, then) })
}

func main() {
	seed, _ := strconv.Atoi(os.Args[1])
	threads, _ := strconv.Atoi(os.Args[2])
	debug.SetMaxThreads(threads + 1000)
	// Who holds on the stack of its thread keeps a processor, which a collection would wait for.
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(threads + 4)
	syscall.Pipe(pipe[:])
	var names []string
	for name := range cases {
		names = append(names, name)
	}
	sort.Strings(names)
	told.Add(threads)
	for i := 0; i < threads; i++ {
		go func(i int) {
			runtime.LockOSThread()
			chance := rand.New(rand.NewSource(int64(seed*threads + i)))
			chosen := []string{names[i%len(names)]}
			for chance.Intn(2) > 0 {
				chosen = append(chosen, names[chance.Intn(len(names))])
			}
			name := strings.Join(chosen, "+")
			combined(chosen, chance, func() {
				if i%5 == 4 {
					holdOnSystemStack(name)
				}
				hold(name)
			})
		}(i)
	}
	told.Wait()
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
