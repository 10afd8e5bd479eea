package standin

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkDecide is what a decision costs under a plan that draws everything,
// with a prompt of 4 KiB that a rule searches.
func BenchmarkDecide(b *testing.B) {
	plan := chaos
	plan.Rules = append([]Rule{{Name: "text", Match: Match{Text: "nowhere"}}}, plan.Rules...)
	prompt := strings.Repeat("tell me more ", 320)
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = fmt.Sprint("job-", i)
	}
	for _, workers := range []int{1, 8} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			s := newScript(plan)
			b.ReportAllocs()
			b.SetParallelism(workers)
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					s.decide(facts{now: 2 * time.Second, model: "m", prompt: prompt, customID: ids[i%len(ids)]})
				}
			})
		})
	}
}
