package standin

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"holdfast/standin/internal/tape"
)

// RecordOptions are what Record can be told. The zero value is useful.
type RecordOptions struct {
	// NoPrompts keeps the SHA-256 digest and the size of a request's body in place
	// of the body. The answers stay on the tape: they are what is played.
	NoPrompts bool
	// Transport reaches the upstream. One that unpacks replies by itself changes
	// them; see http.Transport.DisableCompression. nil: a new one that does not.
	Transport http.RoundTripper
}

// Recorder passes requests through to an API and keeps every exchange on a
// tape, with the time of each read of the reply. It is an http.Handler, safe
// for concurrent use; use Record.
//
// What passes is neither changed nor delayed: the same bytes, flushed as they
// come, with hop-by-hop headers apart, and a reply that the API breaks off is
// broken off in the same way. A failure of the tape never shows in a reply; Close
// tells of it.
//
// A tape holds prompts and answers: that is its purpose, so keep it as you keep
// those. It holds no credentials. Of headers and query parameters only known
// harmless ones are kept, so neither keys nor cookies nor the ids of an
// organization; where an answer repeats the key of its request, the key is
// overwritten. A secret that stands in a prompt is a part of the prompt.
type Recorder struct {
	tape *tape.Recorder
}

// Record returns a recorder of the API at upstream, an http or https URL with or
// without a base path, and writes the head of the tape to out. It writes each
// exchange with one call when it has ended, so a file that a kill has ended is
// whole but for its last line. Out that is a file should have the mode 0600.
//
// A request body above 1 MiB or that is no JSON is kept as digest and size; an
// exchange with a reply above 64 MiB is not kept.
func Record(upstream *url.URL, out io.Writer, o RecordOptions) (*Recorder, error) {
	r, err := tape.NewRecorder(upstream, out, tape.Options{NoPrompts: o.NoPrompts, Transport: o.Transport, Break: breakOff})
	if err != nil {
		return nil, fmt.Errorf("standin: %w", err)
	}
	return &Recorder{r}, nil
}

// ServeHTTP passes one request through. It ends with http.ErrAbortHandler where
// the reply is broken off, as a Server does. A request for which the upstream
// cannot be reached gets a 502 and is not on the tape.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.tape.ServeHTTP(w, req) }

// Kept returns how many exchanges are on the tape by now.
func (r *Recorder) Kept() int { return r.tape.Kept() }

// Missed returns how many requests did not reach the upstream.
func (r *Recorder) Missed() int { return r.tape.Missed() }

// Close waits until every exchange that has ended is on the tape. Its error says
// how many are not, and why. Close what serves the recorder before; the writer
// of the tape is the caller's to close after.
func (r *Recorder) Close() error {
	if err := r.tape.Close(); err != nil {
		return fmt.Errorf("standin: %w", err)
	}
	return nil
}
