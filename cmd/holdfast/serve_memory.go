package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// leastHeap is how large the heap may grow before it is collected at all. A gateway keeps a few megabytes and makes thousands of
// small things a second for a moment: with the collector's own rule, twice what is kept, it would work a hundred times a second,
// for a twentieth of the processor.
const leastHeap = 32 << 20

const (
	standardPercent = 100  // of the collector
	mostPercent     = 1000 // a heap that is nearly empty says nothing about the next moment
)

// collectSeldom keeps the collector from working on a heap below least, until the returned function is called. Above half of it
// the collector's own rule holds. Whoever has set GOGC or GOMEMLIMIT knows better: then it does nothing.
func collectSeldom(least uint64, env func(string) string) (stop func()) {
	if env("GOGC") != "" || env("GOMEMLIMIT") != "" {
		return func() {}
	}
	c := &collecting{least: least}
	before := debug.SetGCPercent(percentFor(liveHeap(), least))
	// The finalizer runs after each collection, and waits for the next.
	runtime.SetFinalizer(&collection{c}, (*collection).over)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopped = true
		debug.SetGCPercent(before)
	}
}

type collecting struct {
	least uint64

	mu      sync.Mutex
	percent int
	stopped bool
}

// collection is garbage from the beginning.
type collection struct{ of *collecting }

func (n *collection) over() {
	c := n.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	if p := percentFor(liveHeap(), c.least); p != c.percent {
		c.percent = p
		debug.SetGCPercent(p)
	}
	runtime.SetFinalizer(&collection{c}, (*collection).over)
}

// percentFor is how much of what is kept may come on top before the next collection, in steps, since each change stops the process
// for a moment.
func percentFor(live, least uint64) int {
	const step = 25
	if live >= least/2 {
		return standardPercent
	}
	return int(min(max((least-live)*100/max(live, 1)/step*step, standardPercent), mostPercent))
}

// liveHeap is what the last collection kept.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return leastHeap // not told: the collector's own rule
	}
	return sample[0].Value.Uint64()
}

// collectSeldomHere is for a process that serves.
func collectSeldomHere() (stop func()) { return collectSeldom(leastHeap, os.Getenv) }
