package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// other stands for all label values beyond maxSeries.
const other = "other"

// maxSeries is how many combinations of labels one metric may have. A configuration has fewer; it bounds the memory should a
// label ever come from elsewhere.
const maxSeries = 1000

// series hold what is counted for each combination of labels, found without a lock and without an allocation. The zero
// value with both functions set works.
type series[K comparable, V any] struct {
	make func(K) V
	rest func(K) K // the key that counts for all keys beyond maxSeries; there must be few

	known atomic.Pointer[map[K]V]
	mu    sync.Mutex // taken to add one
}

func (s *series[K, V]) get(k K) V {
	if known := s.known.Load(); known != nil {
		if v, ok := (*known)[k]; ok {
			return v
		}
	}
	return s.add(k)
}

// add copies the map: readers have no lock, and new keys are rare.
func (s *series[K, V]) add(k K) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known map[K]V
	if at := s.known.Load(); at != nil {
		known = *at
	}
	if v, ok := known[k]; ok {
		return v
	}
	if len(known) >= maxSeries {
		k = s.rest(k)
		if v, ok := known[k]; ok {
			return v
		}
	}
	more := maps.Clone(known)
	if more == nil {
		more = map[K]V{}
	}
	v := s.make(k)
	more[k] = v
	s.known.Store(&more)
	return v
}
