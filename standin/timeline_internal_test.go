package standin

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLimitsAndLatencyFollowTheTimeline(t *testing.T) {
	t.Parallel()
	s := valid(t, Plan{
		Limits:  &Limits{RequestsPerMinute: 1},
		Latency: Latency{FirstToken: Spread{Min: 1, Max: 1}, PerToken: Spread{Min: 1, Max: 1}},
		Timeline: []Incident{
			{From: 10, To: 20, Limits: &Limits{RequestsPerMinute: 2}, Latency: &Latency{FirstToken: Spread{Min: 2, Max: 2}}},
			{From: 15, To: 30, Limits: &Limits{RequestsPerMinute: 3}, Latency: &Latency{PerToken: Spread{Min: 3, Max: 3}}, Match: Match{Model: "slow"}},
		},
	})
	for _, tt := range []struct {
		now         time.Duration
		model       string
		limit       int
		first, next time.Duration
	}{
		{0, "slow", 1, 1, 1}, {9, "slow", 1, 1, 1}, {10, "slow", 2, 2, 0}, {19, "slow", 2, 2, 0},
		{20, "slow", 3, 0, 3}, {20, "fast", 3, 1, 1}, {29, "slow", 3, 0, 3}, {30, "slow", 1, 1, 1},
	} {
		limits := s.limitsAt(tt.now)
		d := s.decide(facts{now: tt.now, model: tt.model})
		if limits.RequestsPerMinute != tt.limit || d.first != tt.first || d.tokens.next() != tt.next {
			t.Errorf("at %d for %s: limit %d, first %d, want %+v", tt.now, tt.model, limits.RequestsPerMinute, d.first, tt)
		}
	}
	if valid(t, Plan{}).limitsAt(5) != nil {
		t.Error("limits without any")
	}
}

func TestWhatAStepSaysGoesBeforeTheLatencyOfThePlan(t *testing.T) {
	t.Parallel()
	s := valid(t, Plan{
		Latency: Latency{FirstToken: Spread{Min: time.Second, Max: time.Second}, PerToken: Spread{Min: time.Second, Max: time.Second}},
		Steps:   []Step{{Gap: time.Minute}},
	})
	if d := s.decide(facts{}); d.first != time.Second || d.tokens.next() != time.Minute || d.tokens.next() != time.Minute {
		t.Errorf("%+v", d)
	}
	if first, tokens := s.latency.draw(Step{FirstToken: time.Hour}, subject{}); first != time.Hour || tokens.next() != time.Second {
		t.Errorf("first token after %v", first)
	}
}

func TestConnectionsSayWhenTheyChange(t *testing.T) {
	t.Parallel()
	s := valid(t, Plan{Timeline: []Incident{
		{From: 10, To: 20, Step: Step{Kind: Refused}},
		{From: 5, To: 7, Step: Step{Kind: Empty}},
		{From: 15, To: 30, Step: Step{Kind: Hang}},
		{From: 16, To: 18, Step: Step{Kind: Refused}},
		{From: 40, Step: Step{Kind: Hang}},
	}})
	for _, tt := range []struct {
		now   time.Duration
		kind  Kind
		until time.Duration
	}{
		{0, "", 10}, {9, "", 10}, {10, Refused, 20}, {16, Refused, 20}, {20, Hang, 30}, {29, Hang, 30}, {30, "", 40}, {40, Hang, never}, {1 << 60, Hang, never},
	} {
		if kind, until := s.connections(tt.now); kind != tt.kind || until != tt.until {
			t.Errorf("at %d: %q until %d, want %+v", tt.now, kind, until, tt)
		}
	}
	if kind, until := valid(t, Plan{}).connections(0); kind != "" || until != never {
		t.Errorf("of an empty plan: %q until %d", kind, until)
	}
}

func TestARampGoesEvenlyFromOneShareToTheOther(t *testing.T) {
	t.Parallel()
	n := Incident{From: 10 * time.Second, To: 20 * time.Second, Share: Ramp{From: 1, To: 0}}
	for _, tt := range []struct {
		now  time.Duration
		want float64
	}{{10 * time.Second, 1}, {12500 * time.Millisecond, 0.75}, {15 * time.Second, 0.5}, {20*time.Second - 1, 1e-10}} {
		if got := n.share(tt.now); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("at %v a share of %v, want %v", tt.now, got, tt.want)
		}
	}
	n.To = 0
	if got := n.share(time.Hour); got != 1 {
		t.Errorf("without an end %v, want to stay at 1", got)
	}
	if got := (&Incident{To: 5}).share(3); got != 1 {
		t.Errorf("the zero value is %v, want 1", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Ramp{From: rapid.Float64Range(0, 1).Draw(t, "from"), To: rapid.Float64Range(0.01, 1).Draw(t, "to")}
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		if x := r.at(a); x < min(r.From, r.To)-1e-9 || x > max(r.From, r.To)+1e-9 {
			t.Errorf("%v is outside of %+v", x, r)
		}
		if (a < b) && (r.From < r.To) && r.at(a) > r.at(b) {
			t.Errorf("%+v falls between %v and %v", r, a, b)
		}
	})
}
