package bench_test

import (
	"errors"
	"testing"
)

// work is one thing to be done, by us first and then by others.
type work struct {
	name       string
	contenders []contender
}

type contender struct {
	name string
	run  func(*testing.B)
}

// works are the rows of the table.
var works = []work{success, ownDeadline, breakerRead, breakerGiven, paceRead, paceGiven}

func (w work) benchmark(b *testing.B) {
	for _, c := range w.contenders {
		b.Run(c.name, c.run)
	}
}

func BenchmarkSuccess(b *testing.B)      { success.benchmark(b) }
func BenchmarkOwnDeadline(b *testing.B)  { ownDeadline.benchmark(b) }
func BenchmarkBreaker(b *testing.B)      { breakerRead.benchmark(b) }
func BenchmarkBreakerGiven(b *testing.B) { breakerGiven.benchmark(b) }
func BenchmarkPace(b *testing.B)         { paceRead.benchmark(b) }
func BenchmarkPaceGiven(b *testing.B)    { paceGiven.benchmark(b) }

// A contender that refuses or fails has not done the work that is measured.
var (
	errRefused = errors.New("refused")
	errAnswer  = errors.New("wrong answer")
)

// repeat measures op, and fails the benchmark if op does not do its work.
func repeat(b *testing.B, op func() error) {
	b.ReportAllocs()
	for b.Loop() {
		if err := op(); err != nil {
			b.Fatal(err)
		}
	}
}
