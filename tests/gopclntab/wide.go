// A program of many kinds of code: generics, reflection, assembly, closures, large frames and switches.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/big"
	"os"
	"regexp"
	"sort"
	"strings"
	"text/tabwriter"
	"time"
)

type number interface{ ~int | ~uint8 | ~float64 }

type tree[K number, V any] struct {
	key         K
	value       V
	left, right *tree[K, V]
}

func (t *tree[K, V]) with(key K, value V) *tree[K, V] {
	if t == nil {
		return &tree[K, V]{key: key, value: value}
	}
	if key < t.key {
		t.left = t.left.with(key, value)
	} else {
		t.right = t.right.with(key, value)
	}
	return t
}

func (t *tree[K, V]) each(call func(K, V)) {
	if t != nil {
		t.left.each(call)
		call(t.key, t.value)
		t.right.each(call)
	}
}

func sum[T number](values ...T) (total T) {
	for _, value := range values {
		total += value
	}
	return
}

//go:noinline
func wide(kind int, text string) (found string) {
	var room [3000]byte
	defer func() {
		if recover() != nil {
			found = string(room[:copy(room[:], text)])
		}
	}()
	switch kind {
	case 0:
		return strings.ToUpper(text)
	case 1:
		return strings.Repeat(text, 3)
	case 2:
		return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	case 3:
		return fmt.Sprintf("%x", sha512.Sum512([]byte(text)))
	case 4:
		return fmt.Sprint(crc32.ChecksumIEEE([]byte(text)))
	case 5:
		return new(big.Int).Exp(big.NewInt(3), big.NewInt(1000), nil).String()
	case 6:
		return regexp.MustCompile(`(\w+) (\w+)`).ReplaceAllString(text, "$2 $1")
	case 7:
		block, _ := aes.NewCipher(room[:32])
		sealed, _ := cipher.NewGCM(block)
		return string(sealed.Seal(nil, room[:12], []byte(text), nil))
	case 8:
		var written bytes.Buffer
		packed := gzip.NewWriter(&written)
		packed.Write([]byte(text))
		packed.Close()
		return written.String()
	case 9:
		made, _ := json.Marshal(map[string]any{text: []float64{1, 2.5}, "time": time.Now()})
		return string(made)
	}
	return string(text[kind])
}

func main() {
	var all *tree[float64, string]
	for kind := 0; kind < 12; kind++ {
		all = all.with(float64(kind*7%5), wide(kind, "some text"))
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 1, ' ', 0)
	all.each(func(key float64, value string) { fmt.Fprintf(table, "%v\t%q\n", key, value) })
	lengths := []int{}
	all.each(func(_ float64, value string) { lengths = append(lengths, len(value)) })
	sort.Slice(lengths, func(i, j int) bool { return lengths[i] < lengths[j] })
	fmt.Fprintln(table, sum(lengths...), sum[uint8](1, 2), sum(1.5, 2.0))
	table.Flush()
}
