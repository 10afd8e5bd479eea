package tape

import (
	"strings"
	"sync"
)

// Request is what a recorded exchange is found by.
type Request struct {
	Method string
	Path   string // anything in front of /v1/ does not count
	Query  string // raw; only parameters that a tape keeps count
	Model  string // that the body asks for
	Digest string // SHA-256 of the body in hex
}

// Deck hands out the exchanges of a tape. It keeps a place for each kind of
// request and is safe for concurrent use. Use NewDeck.
type Deck struct {
	tape *Tape

	mu    sync.Mutex
	place map[string]int
}

// NewDeck returns a deck at the beginning of the tape.
func NewDeck(t *Tape) *Deck { return &Deck{tape: t, place: make(map[string]int)} }

// Next returns the exchange that answers the request: of those with the same
// method, path, query and body the next one in the order of recording, and when
// all have been played the last one again. When there is none, the same among
// those with the same method, path and model. false: there is none either.
func (d *Deck) Next(r Request) (*Exchange, bool) {
	if found := d.tape.exact[r.exact()]; len(found) > 0 {
		return d.take("exact "+r.exact(), found), true
	}
	if found := d.tape.alike[r.alike()]; len(found) > 0 {
		return d.take("alike "+r.alike(), found), true
	}
	return nil, false
}

// take returns the next of the exchanges, whose place has the name.
func (d *Deck) take(name string, found []*Exchange) *Exchange {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.place[name]
	d.place[name] = min(at+1, len(found)-1)
	return found[at]
}

// Reset goes back to the beginning.
func (d *Deck) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.place)
}

// index sorts the exchanges by what they are found by.
func (t *Tape) index() {
	t.exact, t.alike = make(map[string][]*Exchange), make(map[string][]*Exchange)
	for _, x := range t.Exchanges {
		r := Request{Method: x.Method, Path: x.Path, Query: x.Query, Model: x.Model, Digest: x.Digest}
		t.exact[r.exact()] = append(t.exact[r.exact()], x)
		t.alike[r.alike()] = append(t.alike[r.alike()], x)
	}
}

func (r Request) exact() string {
	return strings.Join([]string{r.Method, bare(r.Path), keepQuery(r.Query, nil), r.Digest}, "\n")
}

func (r Request) alike() string {
	return strings.Join([]string{r.Method, bare(r.Path), r.Model}, "\n")
}

// bare drops the base path that a gateway puts in front of the API's own.
func bare(path string) string {
	if i := strings.Index(path, "/v1/"); i > 0 {
		path = path[i:]
	}
	return strings.TrimSuffix(path, "/")
}
