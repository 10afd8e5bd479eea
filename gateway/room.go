package gateway

import (
	"math/bits"
	"sync"
)

const (
	leastRoom = 16 << 10 // below it, memory is cheaper made anew
	mostRoom  = 4 << 20  // above it, it would be kept for too little
)

// rooms are bodies' memory that is used again, by the power of two that it holds.
var rooms [bits.UintSize]sync.Pool

// room returns memory for n bytes, with whatever is in it, and what gives it back.
func room(n int) (data []byte, giveBack func()) {
	if n > mostRoom {
		return make([]byte, n), nil
	}
	size := bits.Len(uint(n - 1))
	kept, ok := rooms[size].Get().(*[]byte)
	if !ok {
		made := make([]byte, 1<<size)
		kept = &made
	}
	return (*kept)[:n], func() { rooms[size].Put(kept) }
}
