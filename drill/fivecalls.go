package drill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast"
)

// FiveCalls plays five calls through one breaker that counts the calls that gave up: two of them open it.
func FiveCalls(ctx context.Context, _ Options) (*Report, error) {
	breaker := holdfast.NewBreaker(holdfast.BreakerSettings{
		Failures: 2, Ratio: -1, Cooldown: 30 * time.Second, Count: holdfast.CountCalls, Ramp: -1,
	})
	policy := holdfast.Policy{
		Attempts: 4, Backoff: holdfast.Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second, Jitter: holdfast.NoJitter}, Breaker: breaker,
	}
	down := func(letter string) (script []answer) {
		for i := range 4 {
			script = append(script, status(503).id(fmt.Sprintf("req_%s%d", letter, i+1)))
		}
		return script
	}
	calls := []struct {
		script         []answer
		input          string
		ok             bool
		sends          int
		outcome        string
		waits, breaker string
	}{
		{[]answer{overloaded.id("req_a1"), throttled.id("req_a2"), yes.id("req_a3")}, "529, 429, answer", true, 3, "answered", "0.5, 1.0", "closed"},
		{[]answer{status(400).id("req_b1")}, "400", false, 1, "stopped, bad request", "none", "closed"},
		{down("c"), "503 four times", false, 4, "gave up", "0.5, 1.0, 2.0", "closed"},
		{down("d"), "503 four times", false, 4, "gave up", "0.5, 1.0, 2.0", "open"},
		{[]answer{yes}, "not asked", false, 0, "circuit open, not sent", "none", "open"},
	}
	r := &Report{Title: "Five calls: the reliable call"}
	rows := Section{Columns: []string{"call", "script", "ok", "sends", "outcome", "waits s", "breaker then"}}
	w := newWorld()
	var third holdfast.Trace
	for i, c := range calls {
		p, err := (scene{policy: policy, script: c.script}).playIn(ctx, w)
		if err != nil {
			return nil, err
		}
		got := []string{fmt.Sprint(p.ok()), fmt.Sprint(p.calls), p.trace.Outcome(), secs(p.sleeps), breaker.State().String()}
		rows.Rows = append(rows.Rows, append([]string{fmt.Sprint(i + 1), c.input}, got...))
		want := []string{fmt.Sprint(c.ok), fmt.Sprint(c.sends), c.outcome, c.waits, c.breaker}
		r.equal(fmt.Sprintf("call %d", i+1), strings.Join(got, "; "), strings.Join(want, "; "))
		if i == 2 {
			third = p.trace
		}
	}
	r.add(rows)
	r.add(Section{Title: "The trace of call 3", Lines: strings.Split(third.Summary(), "\n")})
	r.equal("request ids of call 3", strings.Join(third.RequestIDs(), " "), "req_c1 req_c2 req_c3 req_c4")
	var next []string
	for _, a := range third.Attempts() {
		next = append(next, a.Next.String())
	}
	r.equal("what was done about its attempts", strings.Join(next, ", "), "retried, retried, retried, gave up")
	return r, nil
}
