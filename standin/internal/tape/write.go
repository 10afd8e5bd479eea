package tape

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// writer puts exchanges on a tape behind the back of those who make them: put
// never waits for the file. One goroutine writes while there is something to
// write, and there is none at rest.
type writer struct {
	mu      sync.Mutex
	resting sync.Cond
	out     io.Writer
	queue   []*Exchange
	writing bool
	kept    int
	lost    int
	err     error // why the first of the lost is lost
}

// newWriter writes the head of the tape.
func newWriter(out io.Writer, host string, now time.Time) (*writer, error) {
	w := &writer{out: out}
	w.resting.L = &w.mu
	text, err := appendLine(nil, head{Tape: Version, Host: host, Created: now.UTC()})
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(text); err != nil {
		return nil, fmt.Errorf("tape: cannot write: %w", err)
	}
	return w, nil
}

// put takes an exchange, which then belongs to the writer.
func (w *writer) put(x *Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, x)
	if !w.writing {
		w.writing = true
		go w.drain()
	}
}

// lose counts an exchange that cannot be kept.
func (w *writer) lose(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost++
	if w.err == nil {
		w.err = why
	}
}

func (w *writer) drain() {
	var text []byte
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 {
		x, broken := w.queue[0], w.lost > 0 && w.out == nil
		w.queue = w.queue[1:]
		if broken {
			w.lost++
			continue
		}
		w.mu.Unlock()
		var err error
		if text, err = appendLine(text[:0], lineOf(x)); err == nil {
			// One write for the line: only the last one can be torn by a kill.
			_, err = w.out.Write(text)
			err = unwritten(err)
		}
		w.mu.Lock()
		w.book(err)
	}
	w.queue, w.writing = nil, false
	w.resting.Broadcast()
}

// book counts one exchange. After a failed write the end of the file is not
// known, so nothing more is written there.
func (w *writer) book(err error) {
	if err == nil {
		w.kept++
		return
	}
	w.lost++
	if w.err == nil {
		w.err = err
	}
	if errors.As(err, new(*writeError)) {
		w.out = nil
	}
}

// writeError is a failure of the file, not of one exchange.
type writeError struct{ err error }

func (e *writeError) Error() string { return "cannot write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return &writeError{err}
}

// rest waits until everything is written, and returns how many exchanges are on
// the tape and, as an error, how many are not and why.
func (w *writer) rest() (kept int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.writing {
		w.resting.Wait()
	}
	if w.lost > 0 {
		err = fmt.Errorf("tape: exchanges that are not on the tape: %d; the first: %w", w.lost, w.err)
	}
	return w.kept, err
}
