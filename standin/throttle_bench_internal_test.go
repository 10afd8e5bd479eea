package standin

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkAdmit is a whole decision: admitted, settled and over, or denied. A million a
// second on one core is the mark, so that limits never show in a measurement.
func BenchmarkAdmit(b *testing.B) {
	for name, limits := range map[string]*Limits{
		"admitted": {RequestsPerMinute: maxRate, InputTokensPerMinute: maxRate, OutputTokensPerMinute: maxRate, Concurrent: 100, Growth: 1e9},
		"denied":   {RequestsPerMinute: 1, InputTokensPerMinute: maxRate, OutputTokensPerMinute: maxRate},
		"none":     nil,
	} {
		b.Run(name, func(b *testing.B) {
			th, at, c := newThrottle(morning), time.Duration(0), opus(100)
			b.ReportAllocs()
			for b.Loop() {
				at += time.Microsecond
				if k, d := th.admit(after(at), limits, c); d == nil {
					k.settle(after(at), 90, 20)
					k.done()
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

// BenchmarkAdmitParallel has every hand use a key of its own, and now and then a new one.
func BenchmarkAdmitParallel(b *testing.B) {
	th, limits := newThrottle(morning), &Limits{Tier: TierScale, Concurrent: 1_000}
	var hands atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		hand := hands.Add(1)
		c := opus(100)
		c.key = fmt.Sprint("key ", hand)
		for i := 0; pb.Next(); i++ {
			if i%1_000 == 0 {
				c.key = fmt.Sprint("key ", hand, i)
			}
			if k, d := th.admit(after(time.Duration(i)*time.Microsecond), limits, c); d == nil {
				k.done()
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

// BenchmarkHeader is the twelve headers of one reply.
func BenchmarkHeader(b *testing.B) {
	th := newThrottle(morning)
	k, _ := th.admit(morning, &Limits{Tier: TierScale}, opus(100))
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		clear(h)
		k.header(h)
	}
}
