package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

const (
	connections  = 64
	bigTokens    = 50_000
	bigClients   = 8
	longClients  = 4
	steadyRate   = 200 // requests per second
	slowStreams  = 2000
	defaultTotal = 110
)

// figures are those of one subject.
type figures struct {
	small, big, long []float64 // a second, one for each round
	cost, bigCost    []float64 // microseconds of processor time for each request
	longCost         []float64 // for each megabyte
	steady           times
	first            times
	memory           []float64 // bytes for each stream
}

type table struct {
	subjects []*subject
	seconds  int
	rows     map[*subject]*figures
}

// share is a part of the time there is, for one subject in one round.
func (t *table) share(part float64, rounds int) time.Duration {
	return time.Duration(part * float64(t.seconds) * float64(time.Second) / float64(rounds*len(t.subjects)))
}

// turns lets each subject have its turn in each round.
func (t *table) turns(ctx context.Context, what string, rounds int, turn func(*subject, *figures) error) error {
	for round := range rounds {
		for i := range t.subjects {
			s := t.subjects[(i+round)%len(t.subjects)]
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := turn(s, t.rows[s]); err != nil {
				return fmt.Errorf("%s through %s: %w", what, s.name, err)
			}
		}
	}
	return nil
}

func (t *table) measure(ctx context.Context) error {
	t.rows = map[*subject]*figures{}
	for _, s := range t.subjects {
		t.rows[s] = &figures{}
		if _, err := drive(s.addr, request(message, 0), connections, 100*time.Millisecond); err != nil { // warm up
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, section := range []struct {
		what   string
		rounds int
		turn   func(*subject, *figures) error
	}{
		{"small answers", 7, func(s *subject, f *figures) error {
			d, cost, err := t.drive(s, request(message, 0), connections, t.share(0.3, 7))
			f.small, f.cost = append(f.small, d.perSecond()), append(f.cost, cost/float64(d.requests))
			return err
		}},
		{"200 requests a second", 3, func(s *subject, f *figures) error {
			all, err := pace(s.addr, request(message, 0), steadyRate, t.share(0.2, 3))
			f.steady = append(f.steady, all...)
			return err
		}},
		{"first tokens", 5, func(s *subject, f *figures) error {
			all, err := firstTokens(s.addr, request(words, 0), 100)
			f.first = append(f.first, all...)
			return err
		}},
		{"long prompts", 5, func(s *subject, f *figures) error {
			d, cost, err := t.drive(s, request(message, bigTokens), bigClients, t.share(0.15, 5))
			f.big, f.bigCost = append(f.big, d.perSecond()), append(f.bigCost, cost/float64(d.requests))
			return err
		}},
		{"long streams", 5, func(s *subject, f *figures) error {
			d, cost, err := t.drive(s, request(long, 0), longClients, t.share(0.1, 5))
			f.long, f.longCost = append(f.long, d.megabytes()), append(f.longCost, cost/float64(d.bytes)*1e6)
			return err
		}},
		{"slow streams", 1, t.slowTurn},
	} {
		if err := t.turns(ctx, section.what, section.rounds, section.turn); err != nil {
			return err
		}
	}
	return nil
}

// drive keeps connections of the subject busy, and returns what was done and the microseconds that the subject worked for it.
func (t *table) drive(s *subject, request []byte, connections int, d time.Duration) (done, float64, error) {
	if s.pid == 0 {
		all, err := drive(s.addr, request, connections, d)
		return all, 0, err
	}
	before, err := s.worked()
	if err != nil {
		return done{}, 0, err
	}
	all, err := drive(s.addr, request, connections, d)
	if err != nil {
		return all, 0, err
	}
	after, err := s.worked()
	return all, float64((after - before).Microseconds()), err
}

// slowTurn measures the memory of a subject with streams open, less what it had before.
func (t *table) slowTurn(s *subject, f *figures) error {
	if s.pid == 0 {
		return nil
	}
	before, err := s.memory()
	if err != nil {
		return err
	}
	return hold(s.addr, request(slow, 0), slowStreams, func() {
		var most int64
		for range 8 {
			time.Sleep(250 * time.Millisecond) //nolint:forbidigo // it is sampled while streams come
			if now, err := s.memory(); err == nil {
				most = max(most, now)
			}
		}
		f.memory = append(f.memory, float64(most-before)/slowStreams)
	})
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// ratio is the median of the ratios of each round.
func ratio(of, to []float64) float64 {
	var all []float64
	for i := range min(len(of), len(to)) {
		all = append(all, of[i]/to[i])
	}
	return median(all)
}

// named returns the figures of a subject; nil when it is not there.
func (t *table) named(name string) *figures {
	for _, s := range t.subjects {
		if s.name == name {
			return t.rows[s]
		}
	}
	return &figures{}
}

func (t *table) write(w io.Writer) error {
	direct, std := t.named("direct"), t.named(bare)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	put := func(format string, values ...any) { _, _ = fmt.Fprintf(out, format, values...) } // Flush tells what goes wrong
	put("\tsmall answers\tof direct\tof ReverseProxy\twork\tadded p50\tadded p99\tto first token\t50,000 tokens\twork\tlong streams\twork\ta stream holds\t\n")
	for _, s := range t.subjects {
		f := t.rows[s]
		added := func(t, base times, at float64) string {
			slices.Sort(t)
			slices.Sort(base)
			return fmt.Sprintf("%d µs", (t.at(at) - base.at(at)).Microseconds())
		}
		held := "-"
		if len(f.memory) > 0 {
			held = fmt.Sprintf("%.1f KB", median(f.memory)/1024)
		}
		put("%s\t%.0f/s\t%.2f\t%.2f\t%.0f µs\t%s\t%s\t%s\t%.0f/s (%.2f)\t%.0f µs\t%.0f MB/s (%.2f)\t%.0f µs\t%s\t\n", s.name,
			median(f.small), ratio(f.small, direct.small), ratio(f.small, std.small), median(f.cost),
			added(f.steady, direct.steady, 0.5), added(f.steady, direct.steady, 0.99), added(f.first, direct.first, 0.5),
			median(f.big), ratio(f.big, std.big), median(f.bigCost), median(f.long), ratio(f.long, std.long), median(f.longCost), held)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nSmall answers: %d connections. Work: processor time for each, or for a megabyte of a stream. In brackets: the ratio to ReverseProxy.\n"+
		"Added: to no proxy, at %d requests a second. A stream holds: of %d that are open at once.\n",
		connections, steadyRate, slowStreams)
	return err
}
