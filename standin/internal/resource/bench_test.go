package resource_test

import (
	"testing"
	"time"

	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

const large = 100_000 // the most items that the API takes

func ended(b *testing.B, all []request.Item) (*resource.Batches, string) {
	b.Helper()
	const id = "msgbatch_standin_000001"
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Takes: time.Second})
	if _, refusal := batches.Create(now(0), all); refusal != nil {
		b.Fatal(refusal.Message)
	}
	if _, over, refusal := batches.Get(now(1), id); !over || refusal != nil {
		b.Fatal("not ended")
	}
	return batches, id
}

// BenchmarkBatch creates a batch of 100,000 items and works it off.
func BenchmarkBatch(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		all := items(large)
		b.StartTimer()
		ended(b, all)
	}
}

// BenchmarkResults reads the results of 100,000 items.
func BenchmarkResults(b *testing.B) {
	b.ReportAllocs()
	batches, id := ended(b, items(large))
	for b.Loop() {
		lines, refusal := batches.Results(now(1), id)
		if refusal != nil {
			b.Fatal(refusal.Message)
		}
		n, size := 0, int64(0)
		for line := range lines {
			n++
			size += int64(len(line))
		}
		b.SetBytes(size)
		if n != large {
			b.Fatal(n)
		}
	}
}

// BenchmarkPoll gets a batch of 100,000 items that goes on.
func BenchmarkPoll(b *testing.B) {
	b.ReportAllocs()
	const id = "msgbatch_standin_000001"
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Takes: time.Hour})
	if _, refusal := batches.Create(now(0), items(large)); refusal != nil {
		b.Fatal(refusal.Message)
	}
	batches.Counts(now(1800).At) // half of the items are done before the clock runs
	for b.Loop() {
		if _, _, refusal := batches.Get(now(1800), id); refusal != nil {
			b.Fatal(refusal.Message)
		}
	}
}
