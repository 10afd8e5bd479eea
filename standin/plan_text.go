package standin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"holdfast/internal/strict"
)

// UnmarshalText reads the forms of a document: "3", "3-5", "3-", "/10", "3-20/5".
func (s *Span) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("must be a count 3, a range 3-5 or 3-, or /10 for every tenth, not %q", text)
	span := Span{}
	bounds, every, stepped := strings.Cut(string(text), "/")
	if stepped && !positive(every, &span.Every) {
		return wrong
	}
	first, last, ranged := strings.Cut(bounds, "-")
	switch {
	case bounds == "" && stepped:
	case !positive(first, &span.From):
		return wrong
	case !ranged:
		span.To = span.From
	case last != "" && (!positive(last, &span.To) || span.To < span.From):
		return wrong
	}
	*s = span
	return nil
}

// positive reads a number from 1 in its plain form.
func positive(text string, into *int) bool {
	n, err := strconv.Atoi(text)
	*into = n
	return err == nil && n > 0 && text == strconv.Itoa(n)
}

// String returns the form that UnmarshalText reads, "" for every count.
func (s Span) String() string {
	var b strings.Builder
	switch {
	case s.From == s.To && s.From != 0:
		fmt.Fprint(&b, s.From)
	case s.From != 0 || s.To != 0:
		fmt.Fprintf(&b, "%d-", max(s.From, 1))
		if s.To != 0 {
			fmt.Fprint(&b, s.To)
		}
	}
	if s.Every != 0 {
		fmt.Fprintf(&b, "/%d", s.Every)
	}
	return b.String()
}

// UnmarshalText reads one number for a share that stays.
func (r *Ramp) UnmarshalText(text []byte) error {
	share, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil:
		return fmt.Errorf("must be a share such as 0.1, or {from: 0, to: 1}, not %q", text)
	case share == 0:
		return errors.New("0 would hit no request; remove the incident")
	}
	*r = Ramp{From: share, To: share}
	return nil
}

// UnmarshalText reads one time for a constant spread.
func (s *Spread) UnmarshalText(text []byte) error {
	time, ok := strict.Period(string(text))
	if !ok {
		return fmt.Errorf("must be a time such as 300ms, or {min: 1s, max: 2s}, or {median: 1s, p99: 8s}, not %q", text)
	}
	*s = Spread{Min: time, Max: time}
	return nil
}
