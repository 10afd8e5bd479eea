package resource_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

// naive is a batch as one would act it out: each item has a second at which it is done, and nothing is worked out ahead.
type naive struct {
	id       string
	born     int
	size     int
	takes    int // seconds; 0: at the speed of the looks
	lifetime int
	looks    int
	canceled int // second, -1: not
	done     int
	state    string
}

// tick lets the batch live up to a second.
func (n *naive) tick(second int) {
	if n.state != "in_progress" || n.takes == 0 {
		if n.state == "in_progress" && second >= n.born+n.lifetime {
			n.done, n.state = n.size, "ended"
		}
		if n.state == "canceling" && second >= n.born+n.lifetime {
			n.state = "ended"
		}
		return
	}
	for item := n.done; item < n.size; item++ {
		// Item number item is done when item+1 of size parts of the time are over.
		if due := n.takes * (item + 1); due <= (second-n.born)*n.size && due <= n.lifetime*n.size {
			n.done++
		}
	}
	if n.done == n.size || second >= n.born+n.lifetime {
		n.state = "ended"
	}
}

// look is a request that sees it.
func (n *naive) look(second int) {
	n.tick(second)
	switch n.looks++; {
	case n.state == "canceling":
		n.state = "ended"
	case n.state == "in_progress" && n.takes == 0 && n.looks == 1:
		n.done = n.size / 2
	case n.state == "in_progress" && n.takes == 0:
		n.done, n.state = n.size, "ended"
	}
}

func (n *naive) String() string {
	rest := n.size - n.done
	switch {
	case n.state != "ended":
		return fmt.Sprintf("%s %s processing %d succeeded %d canceled 0 expired 0", n.id, n.state, rest, n.done)
	case n.canceled >= 0:
		return fmt.Sprintf("%s ended processing 0 succeeded %d canceled %d expired 0", n.id, n.done, rest)
	}
	return fmt.Sprintf("%s ended processing 0 succeeded %d canceled 0 expired %d", n.id, n.done, rest)
}

// seen is the same of a real one.
type seen struct {
	ID     string `json:"id"`
	Status string `json:"processing_status"`
	Counts struct {
		Processing, Succeeded, Canceled, Expired int
	} `json:"request_counts"`
}

func (s seen) String() string {
	return fmt.Sprintf("%s %s processing %d succeeded %d canceled %d expired %d",
		s.ID, s.Status, s.Counts.Processing, s.Counts.Succeeded, s.Counts.Canceled, s.Counts.Expired)
}

func TestBatchesAgreeWithANaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			takes:    rapid.SampledFrom([]int{0, 1, 7, 30, 60}).Draw(t, "takes"),
			lifetime: rapid.SampledFrom([]int{5, 20, 100}).Draw(t, "lifetime"),
		}
		m.real = resource.NewBatches(resource.BatchSettings{
			Outcome: succeed, Takes: time.Duration(m.takes) * time.Second, Lifetime: time.Duration(m.lifetime) * time.Second,
		})
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create, "wait": m.wait, "get": m.get, "list": m.list, "cancel": m.cancel, "delete": m.remove,
			"results": m.results, "": m.account,
		})
	})
}

// machine drives the real batches and the naive ones with the same requests.
type machine struct {
	real            *resource.Batches
	takes, lifetime int
	second, number  int
	succeeded       int // of those deleted
	all             []*naive
}

func (m *machine) create(t *rapid.T) {
	size := rapid.IntRange(1, 12).Draw(t, "size")
	m.number++
	n := &naive{
		id: fmt.Sprintf("msgbatch_standin_%06d", m.number), born: m.second, size: size, takes: m.takes, lifetime: m.lifetime,
		canceled: -1, state: "in_progress",
	}
	body, refusal := m.real.Create(now(m.second), items(size))
	m.all = append(m.all, n)
	m.compare(t, n, body, refusal)
}

func (m *machine) wait(t *rapid.T) { m.second += rapid.IntRange(0, 25).Draw(t, "seconds") }

// pick draws a batch, or skips.
func (m *machine) pick(t *rapid.T) *naive {
	if len(m.all) == 0 {
		t.Skip("no batch")
	}
	return rapid.SampledFrom(m.all).Draw(t, "batch")
}

func (m *machine) compare(t *rapid.T, want *naive, body []byte, refusal *request.Refusal) {
	var got seen
	if refusal != nil {
		t.Fatalf("refused: %+v", *refusal)
	}
	if err := json.Unmarshal(body, &got); err != nil || got.String() != want.String() {
		t.Fatalf("second %d\n got %v\nwant %v\n%v", m.second, got, want, err)
	}
}

func (m *machine) get(t *rapid.T) {
	n := m.pick(t)
	n.look(m.second)
	body, over, refusal := m.real.Get(now(m.second), n.id)
	m.compare(t, n, body, refusal)
	if over != (n.state == "ended") {
		t.Fatalf("ended %v, want %s", over, n.state)
	}
}

func (m *machine) list(t *rapid.T) {
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	page := request.Page{Limit: limit}
	rest := slices.Clone(m.all)
	slices.Reverse(rest)
	for more := true; more; {
		body, refusal := m.real.List(now(m.second), page)
		if refusal != nil {
			t.Fatalf("refused: %+v", *refusal)
		}
		var got struct {
			Data    []json.RawMessage `json:"data"`
			HasMore bool              `json:"has_more"`
			LastID  string            `json:"last_id"`
		}
		if err := json.Unmarshal(body, &got); err != nil || len(got.Data) != min(limit, len(rest)) {
			t.Fatalf("%s: want %d, %v", body, min(limit, len(rest)), err)
		}
		for _, one := range got.Data {
			rest[0].look(m.second)
			m.compare(t, rest[0], one, nil)
			rest = rest[1:]
		}
		if more = got.HasMore; more != (len(rest) > 0) {
			t.Fatalf("more %v with %d to come", more, len(rest))
		}
		page.AfterID = got.LastID
	}
}

func (m *machine) cancel(t *rapid.T) {
	n := m.pick(t)
	n.tick(m.second)
	body, refusal := m.real.Cancel(now(m.second), n.id)
	if n.state == "ended" {
		if refusal == nil || refusal.Status != 400 {
			t.Fatalf("%v: %s, %+v", n, body, refusal)
		}
		return
	}
	if n.canceled < 0 {
		n.canceled = m.second
	}
	n.state = "canceling"
	m.compare(t, n, body, refusal)
}

func (m *machine) remove(t *rapid.T) {
	n := m.pick(t)
	n.tick(m.second)
	_, refusal := m.real.Delete(now(m.second), n.id)
	if (refusal == nil) != (n.state == "ended") {
		t.Fatalf("%v: %+v", n, refusal)
	}
	if refusal != nil {
		return
	}
	m.succeeded += n.done
	m.all = slices.DeleteFunc(m.all, func(other *naive) bool { return other == n })
	if _, _, refusal := m.real.Get(now(m.second), n.id); refusal == nil || refusal.Status != 404 {
		t.Fatalf("%v was deleted: %+v", n, refusal)
	}
}

func (m *machine) results(t *rapid.T) {
	n := m.pick(t)
	n.look(m.second)
	lines, refusal := m.real.Results(now(m.second), n.id)
	if n.state != "ended" {
		if refusal == nil || refusal.Status != 404 {
			t.Fatalf("%v: %+v", n, refusal)
		}
		return
	}
	if refusal != nil {
		t.Fatalf("%v: %+v", n, *refusal)
	}
	left := map[string]string{}
	for i, item := range items(n.size) {
		switch {
		case i < n.done:
			left[item.CustomID] = "succeeded"
		case n.canceled >= 0:
			left[item.CustomID] = "canceled"
		default:
			left[item.CustomID] = "expired"
		}
	}
	for line := range lines {
		var one struct {
			CustomID string `json:"custom_id"`
			Result   struct{ Type string }
		}
		if err := json.Unmarshal(line, &one); err != nil || left[one.CustomID] != one.Result.Type {
			t.Fatalf("%v: %s, want %q, %v", n, line, left[one.CustomID], err)
		}
		delete(left, one.CustomID)
	}
	if len(left) > 0 {
		t.Fatalf("%v: no result for %v", n, left)
	}
}

// account runs after every action.
func (m *machine) account(t *rapid.T) {
	want := resource.BatchCounts{Created: m.number, Succeeded: m.succeeded}
	for _, n := range m.all {
		if n.tick(m.second); n.state == "ended" {
			want.Succeeded += n.done
		} else {
			want.Waiting += n.size
		}
	}
	got := m.real.Counts(now(m.second).At)
	if got.Created != want.Created || got.Succeeded != want.Succeeded || got.Waiting != want.Waiting {
		t.Fatalf("second %d: counts %+v, want %+v", m.second, got, want)
	}
	if got.Usage.Output != 5*want.Succeeded {
		t.Fatalf("%d tokens for %d items", got.Usage.Output, want.Succeeded)
	}
}
