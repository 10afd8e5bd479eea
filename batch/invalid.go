package batch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"holdfast/once"
)

const (
	// MaxRequests is how many requests a batch may hold, by the API's public rate limits.
	MaxRequests = 100_000
	// MaxBytes is the size of a batch, as JSON, that the API surely takes. Its documents say 256 MB and not which: what
	// Split makes is below the smaller reading, and what Create refuses is above the larger one.
	MaxBytes = 256_000_000

	tooManyBytes = 256 << 20
	idLength     = 64

	bodyFrame = len(`{"requests":[]}`)
)

// InvalidError is a batch that the API would refuse, found before anything was sent. It names every place, and never what
// a request says.
type InvalidError struct {
	// Places are in the order of the requests.
	Places []Place
}

// Place is one mistake: where, and what is wrong there.
type Place struct{ Path, Text string }

const shownPlaces = 10

// Error names the first ten places and counts the others. It never shows a custom id.
func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("batch: not sent: ")
	for i, p := range e.Places[:min(len(e.Places), shownPlaces)] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.Path + " " + p.Text)
	}
	if more := len(e.Places) - shownPlaces; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// Hint says what the API wants; it never depends on the requests.
func (e *InvalidError) Hint() string {
	return "custom ids are unique, of 1 to 64 letters, digits, _ and -; Split makes batches of a size that the API takes"
}

// inspection is what is known of requests before they are sent.
type inspection struct {
	digest string
	sizes  []int // of each request as JSON
	places []Place
}

func (in *inspection) wrong(path, format string, args ...any) {
	in.places = append(in.places, Place{path, fmt.Sprintf(format, args...)})
}

func (in *inspection) err() error {
	if len(in.places) == 0 {
		return nil
	}
	return &InvalidError{Places: in.places}
}

// inspect encodes the requests one after another, for their sizes and their digest, and keeps none of them.
func inspect(run string, requests []Request) inspection {
	in := inspection{sizes: make([]int, len(requests))}
	sum, length := sha256.New(), [8]byte{}
	add := func(data []byte) { // with its length, so that no two lists of parts look alike
		binary.BigEndian.PutUint64(length[:], uint64(len(data)))
		sum.Write(length[:])
		sum.Write(data)
	}
	add([]byte(run))
	first := make(map[string]int, len(requests))
	for i := range requests {
		id := requests[i].CustomID
		place := fmt.Sprintf("requests[%d].custom_id", i)
		if text := idMistake(id); text != "" {
			in.wrong(place, "%s", text)
		} else if j, taken := first[id]; taken {
			in.wrong(place, "is that of requests[%d] too", j)
		} else {
			first[id] = i
		}
		data, err := json.Marshal(requests[i])
		if err != nil {
			in.wrong(fmt.Sprintf("requests[%d]", i), "cannot be encoded: %v", deepest(err))
			continue
		}
		in.sizes[i] = len(data)
		add(data)
	}
	in.digest = hex.EncodeToString(sum.Sum(nil))
	return in
}

// key is that of the batch in a ledger.
func (in *inspection) key() string { return once.Key("batch", in.digest) }

// bounded adds what is wrong with the batch as a whole.
func (in *inspection) bounded() {
	if n := len(in.sizes); n == 0 || n > MaxRequests {
		in.wrong("requests", "holds %d, of 1 to %d", n, MaxRequests)
	}
	if total := bodySize(in.sizes); total > tooManyBytes {
		in.wrong("requests", "takes %d bytes, of at most %d", total, tooManyBytes)
	}
}

// bodySize is the size of the body that holds requests of these sizes.
func bodySize(sizes []int) int {
	total := bodyFrame + max(len(sizes)-1, 0)
	for _, n := range sizes {
		total += n
	}
	return total
}

// idMistake says what is wrong with a custom id, "" for nothing. The rule is the API's: ^[a-zA-Z0-9_-]{1,64}$.
func idMistake(id string) string {
	switch {
	case id == "":
		return "is empty"
	case len(id) > idLength:
		return fmt.Sprintf("has %d bytes, of at most %d", len(id), idLength)
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return "has characters other than letters, digits, _ and -"
		}
	}
	return ""
}

// deepest is the cause without the words of those who passed it on, which may quote a value.
func deepest(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return fmt.Errorf("%T", err)
		}
		err = next
	}
}
