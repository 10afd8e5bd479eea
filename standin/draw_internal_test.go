package standin

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hits is how many of 10,000 jobs a share hits.
func hits(about func(i int) subject, name string, share float64) int {
	n := 0
	for i := range 10_000 {
		if about(i).hit(name, share) {
			n++
		}
	}
	return n
}

func TestAShareHitsItsPartOfJobsAndOfAttempts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		name := rapid.String().Draw(t, "name")
		want, deviation := share*10_000, math.Sqrt(share*(1-share)*10_000)
		what := rapid.SampledFrom([]string{"jobs", "attempts", "seeds"}).Draw(t, "what")
		about := map[string]func(i int) subject{
			"jobs":     func(i int) subject { return subject{seed, fmt.Sprint("job-", i), 1} },
			"attempts": func(i int) subject { return subject{seed, "job", i} },
			"seeds":    func(i int) subject { return subject{seed + uint64(i), "job", 1} },
		}[what]
		if got := float64(hits(about, name, share)); math.Abs(got-want) > 6*deviation+1 {
			t.Errorf("%v of 10,000 %s with a share of %v", got, what, share)
		}
	})
	about := func(i int) subject { return subject{job: fmt.Sprint(i), attempt: 1} }
	if none, all := hits(about, "", 0), hits(about, "", 1); none != 0 || all != 10_000 {
		t.Errorf("a share of 0 hits %d, of 1 %d", none, all)
	}
}

// Two draws that share anything but one part must have nothing to do with each other.
func TestDrawsAreIndependent(t *testing.T) {
	t.Parallel()
	base := func(i int) subject { return subject{1, fmt.Sprint(i), 1} }
	for what, other := range map[string]func(i int) bool{
		"another seed":    func(i int) bool { return subject{2, fmt.Sprint(i), 1}.hit("a", 0.5) },
		"another rule":    func(i int) bool { return base(i).hit("b", 0.5) },
		"another job":     func(i int) bool { return subject{1, fmt.Sprint(i + 1), 1}.hit("a", 0.5) },
		"another attempt": func(i int) bool { return subject{1, fmt.Sprint(i), 2}.hit("a", 0.5) },
		"latency":         func(i int) bool { d := base(i).dice(drawFirst, ""); return d.next() < 0.5 },
		"the next draw":   func(i int) bool { d := base(i).dice(drawShare, "a"); d.next(); return d.next() < 0.5 },
	} {
		same := 0
		for i := range 10_000 {
			if base(i).hit("a", 0.5) == other(i) {
				same++
			}
		}
		if same < 4_700 || same > 5_300 {
			t.Errorf("%s agrees in %d of 10,000 cases, want about 5,000", what, same)
		}
	}
	moved := subject{1, "bc", 1}.dice("a", "")
	if stayed := (subject{1, "c", 1}).dice("a", "b"); moved.next() == stayed.next() {
		t.Error("where one text ends and the next begins makes no difference")
	}
}

// A seed is written into plans and reports, so its draws must stay what they are.
func TestASeedDrawsTheSameForEver(t *testing.T) {
	t.Parallel()
	var got []string
	for attempt := range 3 {
		d := subject{42, "SHP-1", attempt + 1}.dice(drawShare, "one in ten")
		got = append(got, fmt.Sprintf("%.6f", d.next()))
	}
	if want := []string{"0.225445", "0.892228", "0.736816"}; !slices.Equal(got, want) {
		t.Errorf("drew %v, want %v", got, want)
	}
}

func TestSpreadsHaveTheQuantilesTheySay(t *testing.T) {
	t.Parallel()
	span := rapid.Int64Range(0, int64(time.Hour))
	rapid.Check(t, func(t *rapid.T) {
		low, width := time.Duration(span.Draw(t, "low")), time.Duration(span.Draw(t, "width"))
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		even, normal := Spread{Min: low, Max: low + width}, Spread{Median: low + 1, P99: low + 1 + width}
		if x := even.at(a); x < even.Min || x > even.Max {
			t.Errorf("%v is outside of %+v", x, even)
		}
		near := func(what string, got, want time.Duration) {
			if d := float64(got - want); math.Abs(d) > 1+1e-9*float64(want) {
				t.Errorf("%s is %v, want %v", what, got, want)
			}
		}
		near("the middle", even.at(0.5), low+width/2)
		near("the median", normal.at(0.5), normal.Median)
		near("p99", normal.at(0.99), normal.P99)
		for _, s := range []Spread{even, normal} {
			if s.at(min(a, b)) > s.at(max(a, b)) || s.at(a) < 0 {
				t.Errorf("%+v falls between %v and %v", s, a, b)
			}
		}
	})
	if got := (Spread{Median: time.Second, P99: time.Second}).at(0); got != time.Second {
		t.Errorf("without a width %v", got)
	}
	if got := (Spread{Median: time.Second, P99: math.MaxInt64}).at(1 - 1e-15); got != math.MaxInt64 {
		t.Errorf("more than can be counted is %v", got)
	}
	if got := (Spread{}).at(0.7); got != 0 {
		t.Errorf("the zero value takes %v", got)
	}
}

// What requests meet is the spread itself, not only its formula.
func TestLatenciesOfManyJobsAreSpreadAsThePlanSays(t *testing.T) {
	t.Parallel()
	l := Latency{FirstToken: Spread{Median: time.Second, P99: 10 * time.Second}, PerToken: Spread{Min: 10 * time.Millisecond, Max: 30 * time.Millisecond}}
	var firsts, tokens []time.Duration
	for i := range 10_000 {
		first, each := l.draw(Step{}, subject{job: fmt.Sprint(i), attempt: 1})
		firsts = append(firsts, first)
		if i%100 == 0 {
			for range 100 {
				tokens = append(tokens, each.next())
			}
		}
	}
	for _, tt := range []struct {
		what     string
		all      []time.Duration
		part     float64
		from, to time.Duration
	}{
		{"median first token", firsts, 0.5, 960 * time.Millisecond, 1040 * time.Millisecond},
		{"p99 first token", firsts, 0.99, 8800 * time.Millisecond, 11500 * time.Millisecond},
		{"shortest gap", tokens, 0, 10 * time.Millisecond, 10100 * time.Microsecond},
		{"median gap", tokens, 0.5, 19500 * time.Microsecond, 20500 * time.Microsecond},
		{"longest gap", tokens, 1, 29900 * time.Microsecond, 30 * time.Millisecond},
	} {
		slices.Sort(tt.all)
		if got := tt.all[int(tt.part*float64(len(tt.all)-1))]; got < tt.from || got > tt.to {
			t.Errorf("%s %v, want %v to %v", tt.what, got, tt.from, tt.to)
		}
	}
}
