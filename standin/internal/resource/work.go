package resource

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"holdfast/standin/internal/request"
)

// batch is one batch.
type batch struct {
	id      string
	number  int
	era     int
	settled bool // its items are in the counts; guarded by the mutex of Batches
	size    int
	created time.Time
	expires time.Time

	mu       sync.Mutex // held while Outcome runs
	hidden   int        // requests that did not see it
	late     int        // requests for results that got none
	looks    int        // since it was created, or canceled
	canceled time.Time
	end      time.Time
	items    []request.Item // that are not done
	rows     []row
	tally    requestCounts
}

// advance brings the batch up to a moment. The caller holds its mutex.
func (b *Batches) advance(one *batch, at time.Time) {
	if !one.end.IsZero() {
		return
	}
	next := b.settings.progressAt(facts{
		size: one.size, created: one.created, expires: one.expires,
		canceled: one.canceled, looks: one.looks, done: len(one.rows),
	}, at)
	if one.rows == nil && next.done > 0 {
		one.rows = make([]row, 0, one.size)
	}
	for i := len(one.rows); i < next.done; i++ {
		result := b.settings.outcome(one.items[i], b.settings.doneAt(one, i, at))
		one.add(row{one.items[i].CustomID, b.itemDigest(&one.items[i]), result})
		one.items[i] = request.Item{}
	}
	if next.end.IsZero() {
		return
	}
	for _, item := range one.items[len(one.rows):] {
		one.add(row{customID: item.CustomID, result: Result{Kind: next.rest}})
	}
	one.end, one.items = next.end, nil
}

// doneAt is when item i is done, of a batch that is looked at.
func (s *BatchSettings) doneAt(one *batch, i int, look time.Time) time.Time {
	if s.Takes <= 0 {
		return look
	}
	return one.created.Add(time.Duration(part(uint64(s.Takes), time.Duration(i+1), time.Duration(one.size))))
}

// add takes the result of the next item.
func (one *batch) add(r row) {
	one.rows = append(one.rows, r)
	switch r.result.Kind {
	case Errored:
		one.tally.Errored++
	case Canceled:
		one.tally.Canceled++
	case Expired:
		one.tally.Expired++
	default:
		one.tally.Succeeded++
	}
}

// settle puts the items of a batch that has ended into the counts, once.
func (b *Batches) settle(one *batch) {
	one.mu.Lock()
	over, rows, tally := !one.end.IsZero(), one.rows, one.tally
	one.mu.Unlock()
	if !over {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if one.settled || one.era != b.era {
		return
	}
	one.settled = true
	b.queued -= one.size
	b.counts.Succeeded += tally.Succeeded
	b.counts.Errored += tally.Errored
	b.counts.Canceled += tally.Canceled
	b.counts.Expired += tally.Expired
	for _, r := range rows {
		if r.result.Kind == Succeeded {
			b.bill(r)
		}
	}
	b.keep(one)
}

// bill counts an item that succeeded. The caller holds the mutex.
func (b *Batches) bill(r row) {
	addUsage(&b.counts.Usage, r.result.Usage)
	if b.paid[r.digest] {
		b.counts.BilledAgain++
		addUsage(&b.counts.UsageAgain, r.result.Usage)
	} else if len(b.paid) < remembered {
		b.paid[r.digest] = true
	}
}

// keep makes room for a batch that has ended. The caller holds the mutex.
func (b *Batches) keep(one *batch) {
	b.finished = append(b.finished, one)
	b.kept += one.size
	for b.settings.Kept > 0 && b.kept > b.settings.Kept && len(b.finished) > 1 {
		b.drop(b.finished[0])
	}
}

// forget drops a batch and says whether it was still there.
func (b *Batches) forget(one *batch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return one.era == b.era && b.drop(one)
}

// drop drops a batch that has been settled. The caller holds the mutex.
func (b *Batches) drop(one *batch) bool {
	at := slices.Index(b.all, one)
	if at < 0 {
		return false
	}
	b.all = slices.Delete(b.all, at, at+1)
	b.finished = slices.DeleteFunc(b.finished, func(other *batch) bool { return other == one })
	b.kept -= one.size
	return true
}

// sweep brings all batches up to a moment without a look at them.
func (b *Batches) sweep(at time.Time) {
	b.mu.Lock()
	waiting := slices.DeleteFunc(slices.Clone(b.all), func(one *batch) bool { return one.settled })
	b.mu.Unlock()
	for _, one := range waiting {
		one.mu.Lock()
		b.advance(one, at)
		one.mu.Unlock()
		b.settle(one)
	}
}

// digest stands for the items of a batch.
func (b *Batches) digest(items []request.Item) uint64 {
	var sum maphash.Hash
	sum.SetSeed(b.hashes)
	for i := range items {
		_ = binary.Write(&sum, binary.LittleEndian, b.itemDigest(&items[i])) // a hash takes all
	}
	return sum.Sum64()
}

// itemDigest stands for the work that an item is.
func (b *Batches) itemDigest(item *request.Item) uint64 {
	var sum maphash.Hash
	sum.SetSeed(b.hashes)
	maphash.WriteComparable(&sum, [...]string{item.CustomID, item.Params.Model, item.Params.Prompt})
	maphash.WriteComparable(&sum, item.Params.MaxTokens)
	return sum.Sum64()
}
