package main

import "fmt"

type pair struct{ a, b uint64 }

func (p *pair) step() { p.a, p.b = p.b, p.a*6364136223846793005+1 }

func spin(p *pair) {
	for p.a != 1 {
		p.step()
	}
}

//go:noinline
func outer(p *pair) { spin(p) }

func main() {
	p := &pair{2, 3}
	fmt.Println("ready")
	outer(p)
}
