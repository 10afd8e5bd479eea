package standin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// journalDocument is what GET /_standin/journal gives.
type journalDocument struct {
	Open      int     `json:"open"`
	Input     int     `json:"input"`
	Output    int     `json:"output"`
	Exchanges Journal `json:"exchanges"`
}

// writeTo writes the document exchange by exchange, so that a full journal is
// not in memory a second time.
func (d journalDocument) writeTo(w io.Writer) {
	b := bufio.NewWriter(w) // an error stays in it, and comes only when nobody reads any more
	_, _ = fmt.Fprintf(b, `{"open":%d,"input":%d,"output":%d,"exchanges":[`, d.Open, d.Input, d.Output)
	encoder := json.NewEncoder(b) // ends each with LF
	for i, e := range d.Exchanges {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		_ = encoder.Encode(e)
	}
	_, _ = b.WriteString("]}\n")
	_ = b.Flush()
}

// ReadJournal reads back what GET /_standin/journal gave. Fields that it does
// not know are passed over, so that a newer stand-in's journal can be read. What
// cannot be in a journal is an error that names the exchange: numbers that do
// not grow, times that run backwards, negative counts.
func ReadJournal(r io.Reader) (Journal, error) {
	var document struct {
		Exchanges *Journal `json:"exchanges"`
	}
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("standin: this is no journal: %w; it is what GET %sjournal gives", err, inspectPrefix)
	}
	if document.Exchanges == nil {
		return nil, fmt.Errorf("standin: this is no journal: it has no list of exchanges; it is what GET %sjournal gives", inspectPrefix)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("standin: there is something behind the journal: give one document")
	}
	j := *document.Exchanges
	for i, e := range j {
		before := Exchange{}
		if i > 0 {
			before = j[i-1]
		}
		if err := e.plausible(before); err != nil {
			return nil, fmt.Errorf("standin: exchanges.%d: %w", i, err)
		}
	}
	return j, nil
}

// plausible says what cannot be in an exchange that follows another.
func (e Exchange) plausible(before Exchange) error {
	switch {
	case e.Number <= before.Number:
		return fmt.Errorf("number %d does not follow %d", e.Number, before.Number)
	case e.Arrived.IsZero() || e.Arrived.Before(before.Arrived):
		return fmt.Errorf("exchange %d arrived before the one in front of it", e.Number)
	case !e.Open() && e.Departed.Before(e.Arrived), !e.HeadersAt.IsZero() && e.HeadersAt.Before(e.Arrived):
		return fmt.Errorf("exchange %d ended before it began", e.Number)
	case e.Input < 0 || e.Output < 0 || e.Sent < 0 || e.Wait < 0 || e.Attempt < 0 || e.SDKRetry < -1 || e.Status < 0 || e.Status > 999:
		return fmt.Errorf("exchange %d has a count or a status that cannot be", e.Number)
	}
	return nil
}
