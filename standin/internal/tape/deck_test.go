package tape_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"holdfast/standin/internal/tape"
)

// shelf is a tape of exchanges with the statuses 201, 202 and so on.
func shelf(t *testing.T, requests ...tape.Request) *tape.Tape {
	t.Helper()
	var whole tape.Tape
	for i, r := range requests {
		whole.Exchanges = append(whole.Exchanges, &tape.Exchange{
			Number: i + 1, Method: r.Method, Path: r.Path, Query: r.Query, Model: r.Model, Digest: digest(r.Digest), Status: 201 + i, End: tape.Complete,
		})
	}
	var file bytes.Buffer
	if err := tape.Write(&file, &whole); err != nil {
		t.Fatal(err)
	}
	read, err := tape.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestDeckFindsByBodyThenByModel(t *testing.T) {
	post := func(model, body string) tape.Request {
		return tape.Request{Method: "POST", Path: "/v1/messages", Model: model, Digest: body}
	}
	deck := tape.NewDeck(shelf(t,
		post("a", "one"), post("a", "two"), post("a", "one"), post("b", "three"),
		tape.Request{Method: "GET", Path: "/v1/models", Query: "limit=1"},
		tape.Request{Method: "GET", Path: "/v1/models", Query: "after_id=m&limit=1"},
	))
	prefixed, slash, get := post("a", "two"), post("a", "two"), tape.Request{Method: "GET", Path: "/v1/models"}
	prefixed.Path, slash.Path = "/anthropic/v1/messages", "/v1/messages/"
	second := get
	second.Query = "limit=1&after_id=m&key=of-mine"
	steps := []struct {
		name string
		ask  tape.Request
		want int // 0: none
	}{
		{"the same body", post("a", "one"), 201},
		{"the same body again", post("a", "one"), 203},
		{"then it stays", post("a", "one"), 203},
		{"another body", post("a", "two"), 202},
		{"a base path", prefixed, 202},
		{"a slash at the end", slash, 202},
		{"an unknown body, by model", post("a", "new"), 201},
		{"and goes on in order", post("a", "newer"), 202},
		{"to the last", post("a", "newest"), 203},
		{"which stays", post("a", "x"), 203},
		{"another model", post("b", "x"), 204},
		{"an unknown model", post("c", "x"), 0},
		{"a query, without the parameters that no tape keeps", second, 206},
		{"another query, by path", tape.Request{Method: "GET", Path: "/v1/models", Query: "limit=7"}, 205},
		{"another method", tape.Request{Method: "DELETE", Path: "/v1/models"}, 0},
	}
	for round := range 2 {
		for _, step := range steps {
			step.ask.Digest = digest(step.ask.Digest)
			x, ok := deck.Next(step.ask)
			got := 0
			if ok {
				got = x.Status
			}
			if got != step.want {
				t.Errorf("round %d, %s: %d, want %d", round, step.name, got, step.want)
			}
		}
		deck.Reset()
	}
}

func TestDeckGivesEachExchangeToOne(t *testing.T) {
	var requests []tape.Request
	for i := range 100 {
		requests = append(requests, tape.Request{Method: "POST", Path: "/v1/messages", Model: "m", Digest: fmt.Sprint(i)})
	}
	deck := tape.NewDeck(shelf(t, requests...))
	got := make([]int, len(requests))
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			x, _ := deck.Next(tape.Request{Method: "POST", Path: "/v1/messages", Model: "m", Digest: digest("another")})
			got[i] = x.Number
		})
	}
	all.Wait()
	seen := map[int]bool{}
	for _, n := range got {
		seen[n] = true
	}
	if len(seen) != len(requests) {
		t.Errorf("%d of %d exchanges were played", len(seen), len(requests))
	}
}
