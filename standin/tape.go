package standin

import (
	"fmt"
	"io"
	"os"

	"holdfast/standin/internal/tape"
)

// Tape is a recording of real exchanges that a Server can play: see Record. Use
// LoadTape or ReadTape. It is safe for concurrent use once Speed is set, and
// several servers can play one tape, each from its beginning.
type Tape struct {
	// Speed is how fast the frames of a reply come: 1, which LoadTape sets, in
	// the time that was recorded, 2 in half of it. 0 and negative: all at once.
	Speed float64

	tape *tape.Tape
}

// LoadTape reads a tape from a file. The error of a file that is no tape names
// every bad line.
func LoadTape(path string) (*Tape, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("standin: cannot read the tape: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return ReadTape(file)
}

// ReadTape reads a tape.
func ReadTape(r io.Reader) (*Tape, error) {
	t, err := tape.Read(r)
	if err != nil {
		return nil, fmt.Errorf("standin: %w", err)
	}
	return &Tape{Speed: 1, tape: t}, nil
}

// Len returns the number of exchanges on the tape.
func (t *Tape) Len() int { return len(t.tape.Exchanges) }

// Warnings returns what was passed over in reading, a sentence each: a last line
// that was torn because the recording was killed.
func (t *Tape) Warnings() []string { return append([]string(nil), t.tape.Warnings...) }
