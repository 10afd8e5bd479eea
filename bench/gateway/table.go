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
	small, big, long []float64 // one for each round
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
			d, err := drive(s.addr, request(message, 0), connections, t.share(0.3, 7))
			f.small = append(f.small, d.perSecond())
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
			d, err := drive(s.addr, request(message, bigTokens), bigClients, t.share(0.15, 5))
			f.big = append(f.big, d.perSecond())
			return err
		}},
		{"long streams", 5, func(s *subject, f *figures) error {
			d, err := drive(s.addr, request(long, 0), longClients, t.share(0.1, 5))
			f.long = append(f.long, d.megabytes())
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
	fmt.Fprintln(out, "\tsmall answers\tof direct\tof ReverseProxy\tadded p50\tadded p99\tadded to first token\tprompts of 50,000 tokens\tlong streams\tmemory of a stream\t")
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
		fmt.Fprintf(out, "%s\t%.0f/s\t%.2f\t%.2f\t%s\t%s\t%s\t%.0f/s (%.2f)\t%.0f MB/s (%.2f)\t%s\t\n", s.name,
			median(f.small), ratio(f.small, direct.small), ratio(f.small, std.small),
			added(f.steady, direct.steady, 0.5), added(f.steady, direct.steady, 0.99), added(f.first, direct.first, 0.5),
			median(f.big), ratio(f.big, std.big), median(f.long), ratio(f.long, std.long), held)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nIn brackets: the ratio to ReverseProxy. Small answers: %d connections. Added: at %d requests a second. Memory: of %d streams open at once.\n",
		connections, steadyRate, slowStreams)
	return err
}
