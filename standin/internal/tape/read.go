package tape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// lineLimit is the length of the longest line that is read: the largest reply
// that is recorded, as base64, with a prompt.
const lineLimit = 160 << 20

// Read reads a tape. A last line without an end that cannot be read is passed
// over with a warning: the recording was killed while it wrote it. Every other
// mistake is an error with the number of its line, and all of them are
// reported together.
func Read(r io.Reader) (*Tape, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	t := &Tape{}
	var mistakes []error
	for number := 1; ; number++ {
		text, whole, err := nextLine(lines)
		if err != nil {
			return nil, fmt.Errorf("tape line %d: %w", number, err)
		}
		if len(text) == 0 && !whole {
			if number == 1 {
				return nil, errors.New("the tape is empty; its first line says {\"tape\": 1}")
			}
			break
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if number == 1 {
			if err := t.begin(text); err != nil {
				return nil, err
			}
			continue
		}
		x, err := parseLine(text)
		switch {
		case err != nil && !whole:
			t.Warnings = append(t.Warnings, fmt.Sprintf("tape line %d is torn and was left out: the recording ended while it was written", number))
		case err != nil:
			mistakes = append(mistakes, fmt.Errorf("tape line %d: %w", number, err))
		default:
			t.Exchanges = append(t.Exchanges, x)
		}
		if !whole {
			break
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	// The lines are in the order in which the exchanges ended.
	slices.SortStableFunc(t.Exchanges, func(a, b *Exchange) int { return a.Number - b.Number })
	t.index()
	return t, nil
}

// begin takes the first line.
func (t *Tape) begin(text []byte) error {
	var h head
	if err := strict(text, &h); err != nil || h.Tape == 0 {
		return errors.New("tape line 1 is not the head of a tape; it says {\"tape\": 1}")
	}
	if h.Tape != Version {
		return fmt.Errorf("the tape has format %d; this version reads format %d", h.Tape, Version)
	}
	t.Host, t.Created = h.Host, h.Created
	return nil
}

// nextLine returns the next line; whole tells that its end was there. At the end
// of the file it is empty and not whole.
func nextLine(r *bufio.Reader) (text []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			return text[:len(text)-1], true, nil
		case errors.Is(err, io.EOF):
			return text, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		case len(text) > lineLimit:
			return nil, false, fmt.Errorf("longer than %d MiB", lineLimit>>20)
		}
	}
}
