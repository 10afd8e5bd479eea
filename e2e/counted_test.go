package e2e_test

import (
	"sync"

	"holdfast"
	"holdfast/gateway"
)

// counted counts the calls that came to a gateway.
type counted struct {
	mu sync.Mutex
	n  int
}

// Call implements gateway.Observer.
func (c *counted) Call(gateway.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// Event implements gateway.Observer.
func (c *counted) Event(holdfast.Event) {}

func (c *counted) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
