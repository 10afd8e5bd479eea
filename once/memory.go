package once

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// memory is a store that ends with its process.
type memory struct {
	mu      sync.Mutex
	records map[string]Record
	closed  bool
}

// NewMemory returns a store in memory: for tests, and for effects that need not be remembered longer than the process lives. It
// never survives a crash, which forgets what was done.
func NewMemory() Store { return &memory{records: map[string]Record{}} }

// enter locks the store for one operation; the caller unlocks it if there is no error.
func (m *memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	return nil
}

func (m *memory) Load(ctx context.Context, key string) (Record, bool, error) {
	if err := m.enter(ctx); err != nil {
		return Record{}, false, err
	}
	defer m.mu.Unlock()
	r, found := m.records[key]
	r.Outcome = bytes.Clone(r.Outcome)
	return r, found, nil
}

func (m *memory) Swap(ctx context.Context, key, revision string, next *Record) (bool, error) {
	if next != nil {
		if err := next.check(); err != nil {
			return false, err
		}
	}
	if err := m.enter(ctx); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	if m.records[key].Revision != revision {
		return false, nil
	}
	if next == nil {
		delete(m.records, key)
		return true, nil
	}
	r := *next
	r.Key, r.Outcome = key, bytes.Clone(r.Outcome)
	m.records[key] = r
	return true, nil
}

func (m *memory) Unfinished(ctx context.Context, after string, limit int) ([]Record, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var open []Record
	for key, r := range m.records {
		if r.State != Done && key > after {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, func(a, b Record) int { return cmp.Compare(a.Key, b.Key) })
	return open[:max(0, min(limit, len(open)))], nil
}

func (m *memory) Expire(ctx context.Context, before time.Time) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	expired := 0
	for key, r := range m.records {
		if r.State == Done && !r.Expires.IsZero() && r.Expires.Before(before) {
			delete(m.records, key)
			expired++
		}
	}
	return expired, nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.records = true, nil
	return nil
}
