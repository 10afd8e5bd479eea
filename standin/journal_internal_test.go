package standin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"holdfast/standin/internal/request"
)

var messages = &url.URL{Path: "/v1/messages"}

// record1 plays the life of one exchange on the journal, as a server does. Its reply has so many events.
func (j *journal) record1(i int, header http.Header, events int) *entry {
	e := j.arrive(&http.Request{Method: "POST", URL: messages, Header: header})
	e.read([]byte("{}"))
	e.asked(request.Request{Key: header.Get("x-api-key"), Endpoint: request.Messages, Model: "claude-sonnet-5-5", Stream: true})
	e.rule("rules.0")
	e.begin(OK, fmt.Sprintf("JOB-%06d", i), 1, fmt.Sprintf("req_standin_%06d", i))
	e.headers(200, http.Header{})
	for n := range events {
		e.sent(100)
		e.bill(tokens{Input: 10, Output: n})
	}
	e.depart()
	return e
}

// The journal is always full in a long run, so its size is what a run needs.
func TestFullJournalTakesLessThanFiftyMegabytesAndKeepsTheNewest(t *testing.T) {
	const more = 7
	header := http.Header{"X-Api-Key": {"k"}, "X-Stainless-Retry-Count": {"0"}}
	before := heap()
	j := newJournal(time.Now)
	for i := range journalSize + more {
		j.record1(i, header, 1)
	}
	size := heap() - before
	t.Logf("%.1f MB, %d bytes for each exchange", float64(size)/1e6, size/journalSize)
	if size > 50e6 {
		t.Errorf("a full journal takes %.1f MB", float64(size)/1e6)
	}
	all, forgotten := j.copy()
	if len(all) != journalSize || forgotten != more || all[0].Number != more+1 || all[len(all)-1].Number != journalSize+more {
		t.Errorf("%d exchanges, %d to %d, %d forgotten", len(all), all[0].Number, all[len(all)-1].Number, forgotten)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A reset in the middle of an exchange leaves nothing of it behind, but the
// exchange is open until it ends.
func TestResetForgetsWhatIsOpen(t *testing.T) {
	j := newJournal(time.Now)
	e := j.arrive(httptest.NewRequest("POST", "/v1/messages", http.NoBody))
	e.bill(tokens{Input: 5})
	j.reset()
	e.bill(tokens{Input: 5, Output: 7})
	if all, forgotten := j.copy(); len(all) != 0 || forgotten != 0 || j.billedSoFar() != (tokens{}) || j.openNow() != 1 {
		t.Errorf("%v, %d forgotten, billed %v, %d open", all, forgotten, j.billedSoFar(), j.openNow())
	}
	e.depart()
	if n := j.openNow(); n != 0 {
		t.Errorf("%d open", n)
	}
	if got := j.arrive(httptest.NewRequest("POST", "/v1/messages", http.NoBody)).number(); got != 1 {
		t.Errorf("the first after a reset has number %d", got)
	}
}

// Many streams write, one reader looks on, and a reset comes: run with -race.
func TestEntriesAreSafeForConcurrentUse(t *testing.T) {
	j := newJournal(time.Now)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 20 {
				j.record1(i, http.Header{}, 10)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			all, _ := j.copy()
			for i, e := range all {
				if i > 0 && (e.Number != all[i-1].Number+1 || e.Arrived.Before(all[i-1].Arrived)) {
					t.Errorf("number %d at %v after %d at %v", e.Number, e.Arrived, all[i-1].Number, all[i-1].Arrived)
				}
			}
		}
	})
	wg.Wait()
	if all, _ := j.copy(); len(all) != 1000 || j.billedSoFar() != (tokens{10_000, 9_000}) || j.openNow() != 0 {
		t.Errorf("%d exchanges, billed %v, %d open", len(all), j.billedSoFar(), j.openNow())
	}
}

func TestWaitIsWhatTheHeadersAskFor(t *testing.T) {
	soon := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	for name, tt := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"none":         {http.Header{}, 0},
		"seconds":      {http.Header{"Retry-After": {"3"}}, 3 * time.Second},
		"ms first":     {http.Header{"Retry-After": {"3"}, "Retry-After-Ms": {"250"}}, 250 * time.Millisecond},
		"negative":     {http.Header{"Retry-After": {"-5"}}, 0},
		"no number":    {http.Header{"Retry-After": {"NaN"}}, 0},
		"date":         {http.Header{"Retry-After": {"Mon, 30 Nov 2026 06:00:03 GMT"}, "Date": {"Mon, 30 Nov 2026 06:00:00 GMT"}}, 3 * time.Second},
		"buckets only": {http.Header{"Anthropic-Ratelimit-Requests-Remaining": {"0"}, "Anthropic-Ratelimit-Requests-Reset": {soon}}, 0},
	} {
		e := newJournal(time.Now).arrive(httptest.NewRequest("POST", "/v1/messages", http.NoBody))
		e.headers(429, tt.header)
		if got := e.exchange().Wait; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func BenchmarkJournal(b *testing.B) {
	header := http.Header{"X-Api-Key": {"k"}}
	b.Run("exchange", func(b *testing.B) {
		j := newJournal(time.Now)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				j.record1(i, header, 10)
			}
		})
	})
	b.Run("event", func(b *testing.B) { // of 2,000 open streams
		j := newJournal(time.Now)
		open := make([]*entry, 2000)
		for i := range open {
			open[i] = j.arrive(httptest.NewRequest("POST", "/v1/messages", http.NoBody))
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				e := open[i%len(open)]
				e.sent(100)
				e.bill(tokens{Output: i})
			}
		})
	})
	b.Run("copy", func(b *testing.B) { // of a full journal
		j := newJournal(time.Now)
		for i := range journalSize {
			j.record1(i, header, 1)
		}
		for b.Loop() {
			j.copy()
		}
	})
}
