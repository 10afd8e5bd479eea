package resource

import (
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"time"

	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
)

// Batches are the message batches of all clients.
type Batches struct {
	settings BatchSettings
	hashes   maphash.Seed

	mu       sync.Mutex // never taken together with that of a batch
	era      int        // counts the resets
	number   int        // of the last batch
	all      []*batch   // the latest last
	finished []*batch   // in the order of their ends
	queued   int        // items
	kept     int        // items
	counts   BatchCounts
	made     map[uint64]bool // batches, by their items
	paid     map[uint64]bool // items
}

// BatchCounts are sums over all batches since NewBatches or the last Reset.
type BatchCounts struct {
	// Created counts batches, and Repeated those of them with the same items as an earlier one.
	Created, Repeated int
	// Succeeded, Errored, Canceled and Expired count items.
	Succeeded, Errored, Canceled, Expired int
	// Waiting counts the items of batches that have not ended. They are in no other sum.
	Waiting int
	// BilledAgain counts items that succeeded though an equal one, with the same custom id, had succeeded before in
	// another batch: work paid twice.
	BilledAgain int
	// Usage is the tokens of the items that succeeded, and UsageAgain those of the items billed again.
	Usage, UsageAgain answer.Usage
}

// NewBatches returns no batches.
func NewBatches(settings BatchSettings) *Batches {
	if settings.Lifetime <= 0 {
		settings.Lifetime = dayLong
	}
	if settings.Queue == 0 {
		settings.Queue = defaultItems
	}
	if settings.Kept == 0 {
		settings.Kept = defaultItems
	}
	b := &Batches{settings: settings, hashes: maphash.MakeSeed()}
	b.Reset()
	return b
}

// Reset forgets everything. The next batch is number 1 again.
func (b *Batches) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.era++
	b.number, b.queued, b.kept = 0, 0, 0
	b.all, b.finished = nil, nil
	b.counts = BatchCounts{}
	b.made, b.paid = map[uint64]bool{}, map[uint64]bool{}
}

// Counts returns the sums up to a moment. It is no look at any batch: one that is worked on at the speed of the looks
// stays where it is.
func (b *Batches) Counts(at time.Time) BatchCounts {
	b.sweep(at)
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := b.counts
	counts.Waiting = b.queued
	return counts
}

// Create starts a batch and returns it. The items belong to it from then on.
func (b *Batches) Create(look Look, items []request.Item) ([]byte, *request.Refusal) {
	if b.settings.Queue > 0 {
		b.sweep(look.At) // what has ended unseen waits no longer
	}
	created := b.enter(look.At, items)
	if created == nil {
		return nil, queueFull(b.settings.Queue)
	}
	created.mu.Lock()
	defer created.mu.Unlock()
	return encode(created.object(look, &b.settings)), nil
}

// enter adds a batch, or returns nil when too many items wait.
func (b *Batches) enter(at time.Time, items []request.Item) *batch {
	digest := b.digest(items)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settings.Queue > 0 && b.queued+len(items) > b.settings.Queue {
		return nil
	}
	b.number++
	created := &batch{
		id: fmt.Sprintf("msgbatch_standin_%06d", b.number), number: b.number, era: b.era, size: len(items),
		created: at, expires: at.Add(b.settings.Lifetime), items: items,
	}
	b.all = append(b.all, created)
	b.queued += len(items)
	b.counts.Created++
	if b.made[digest] {
		b.counts.Repeated++
	} else if len(b.made) < remembered {
		b.made[digest] = true
	}
	return created
}

// Get returns a batch, and whether it has ended.
func (b *Batches) Get(look Look, id string) ([]byte, bool, *request.Refusal) {
	one, refusal := b.find(look, id)
	if refusal != nil {
		return nil, false, refusal
	}
	object := b.see(look, one)
	return encode(object), object.Status == ended, nil
}

// List returns a page of the batches, the latest first.
func (b *Batches) List(look Look, page request.Page) ([]byte, *request.Refusal) {
	b.mu.Lock()
	all := slices.Clone(b.all)
	b.mu.Unlock()
	slices.Reverse(all)
	all = slices.DeleteFunc(all, func(one *batch) bool { return b.isHidden(look, one, false) })

	shown, more, refusal := cut(all, page, func(one *batch) string { return one.id })
	if refusal != nil {
		return nil, refusal
	}
	data := make([]batchObject, 0, len(shown))
	for _, one := range shown {
		data = append(data, b.see(look, one))
	}
	return encode(newList(data, more, func(one batchObject) string { return one.ID })), nil
}

// Cancel gives up the items of a batch that are not done, and returns it. Canceling again changes nothing.
func (b *Batches) Cancel(look Look, id string) ([]byte, *request.Refusal) {
	one, refusal := b.find(look, id)
	if refusal != nil {
		return nil, refusal
	}
	one.mu.Lock()
	b.advance(one, look.At)
	over := !one.end.IsZero()
	if !over && one.canceled.IsZero() {
		one.canceled, one.looks = look.At, 0
	}
	object := one.object(look, &b.settings)
	one.mu.Unlock()
	if over {
		b.settle(one)
		return nil, alreadyEnded(id)
	}
	return encode(object), nil
}

// Delete forgets a batch that has ended.
func (b *Batches) Delete(look Look, id string) ([]byte, *request.Refusal) {
	one, refusal := b.find(look, id)
	if refusal != nil {
		return nil, refusal
	}
	one.mu.Lock()
	b.advance(one, look.At)
	over := !one.end.IsZero()
	one.mu.Unlock()
	if !over {
		return nil, notDeletable()
	}
	b.settle(one)
	if !b.forget(one) {
		return nil, noBatch(id)
	}
	return encode(struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}{id, "message_batch_deleted"}), nil
}

// Results returns the lines of the results of a batch that has ended, in shuffled order. A line ends with LF and is good
// until the next one is asked for. The sequence holds no lock and can be run again.
func (b *Batches) Results(look Look, id string) (iter.Seq[[]byte], *request.Refusal) {
	one, refusal := b.find(look, id)
	if refusal != nil {
		return nil, refusal
	}
	object := b.see(look, one)
	one.mu.Lock()
	defer one.mu.Unlock()
	if object.Status != ended || !time.Time(object.ArchivedAt).IsZero() {
		return nil, noResults(id)
	}
	if one.late < b.settings.LateResults {
		one.late++
		return nil, noResults(id)
	}
	return lines(one.rows, b.settings.Seed, one.number), nil
}

// find returns the batch with the id when it can be seen.
func (b *Batches) find(look Look, id string) (*batch, *request.Refusal) {
	b.mu.Lock()
	at := slices.IndexFunc(b.all, func(one *batch) bool { return one.id == id })
	var one *batch
	if at >= 0 {
		one = b.all[at]
	}
	b.mu.Unlock()
	if one == nil || b.isHidden(look, one, true) {
		return nil, noBatch(id)
	}
	return one, nil
}

// isHidden says whether the batch cannot be seen yet. A request that names it counts.
func (b *Batches) isHidden(look Look, one *batch, named bool) bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.hidden < b.settings.HiddenLooks {
		if named {
			one.hidden++
		}
		return true
	}
	return b.settings.HiddenFor > 0 && look.At.Before(one.created.Add(b.settings.HiddenFor))
}

// see looks at the batch.
func (b *Batches) see(look Look, one *batch) batchObject {
	one.mu.Lock()
	one.looks++
	b.advance(one, look.At)
	object := one.object(look, &b.settings)
	one.mu.Unlock()
	b.settle(one)
	return object
}
