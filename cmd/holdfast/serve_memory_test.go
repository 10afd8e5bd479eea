package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercentFor(t *testing.T) {
	const mb = 1 << 20
	for live, want := range map[uint64]int{
		0: 1000, 1 * mb: 1000, 4 * mb: 700, 6 * mb: 425, 10 * mb: 200, 15 * mb: 100, 16 * mb: 100, 17 * mb: 100, 32 * mb: 100, 1000 * mb: 100,
	} {
		if got := percentFor(live, 32*mb); got != want {
			t.Errorf("%d MB kept: %d %%, want %d", live/mb, got, want)
		}
	}
}

// A small heap is collected seldom while the gateway serves, and the collector is left as it was found.
func TestCollectSeldom(t *testing.T) {
	none := func(string) string { return "" }
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	before := percent()
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		stop := collectSeldom(1<<40, func(s string) string {
			if s == name {
				return "50"
			}
			return ""
		})
		if got := percent(); got != before {
			t.Errorf("with %s set it is %d %%", name, got)
		}
		stop()
	}
	stop := collectSeldom(1<<40, none)
	runtime.GC()
	if got := percent(); got != mostPercent {
		t.Errorf("%d %%, want %d", got, mostPercent)
	}
	stop()
	runtime.GC()
	if got := percent(); got != before {
		t.Errorf("%d %% afterwards, want %d", got, before)
	}
}
