package drill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast"
)

// scene is one call against a scripted upstream, in a world of its own.
type scene struct {
	policy holdfast.Policy
	script []answer
	// client, when not nil, is the policy of a client that retries by itself under ours.
	client func() holdfast.Policy
	// bare tells that there is no saved answer to fall back on.
	bare bool
}

// played is what came of a scene.
type played struct {
	ended
	calls  int             // as the upstream counted
	gaps   []time.Duration // between them
	sleeps []time.Duration // that our policy planned
	log    []string        // a line per retry
	bare   bool
}

func (s scene) play(ctx context.Context) (played, error) {
	w := newWorld()
	return s.playIn(ctx, w)
}

func (s scene) playIn(ctx context.Context, w *world) (out played, err error) {
	up := w.server(s.script...)
	out.bare = s.bare
	policy, send := s.policy, upstream(up.serve)
	if s.client != nil {
		send = w.client(s.client, send)
	}
	policy.Observe = func(e holdfast.Event) {
		if e.Kind == holdfast.EventWait {
			out.sleeps = append(out.sleeps, e.Wait)
			out.log = append(out.log, retryLine(e, policy.Attempts))
		}
	}
	w.begin(&policy, send, func(e ended) { out.ended = e })
	err = w.run(ctx)
	out.calls, out.gaps = len(up.asked), up.gaps()
	return out, err
}

// source is where the answer came from.
func (p *played) source() string {
	if p.step.Saved && !p.bare {
		return holdfast.Saved.String()
	}
	return p.trace.Source.String()
}

// raised is the error that the caller gets: the upstream's own words.
func (p *played) raised() string {
	v := p.verdict()
	if v.Kind == holdfast.OK {
		return "none"
	}
	return fmt.Sprintf("%s %d", v.Type, v.Status)
}

// header is what the last answer said about waiting.
func (p *played) header() string {
	if v := p.verdict(); v.Wait > 0 {
		return "retry-after " + plain(v.Wait)
	}
	return "no retry-after"
}

// bareClient is a client that does not retry.
func bareClient() holdfast.Policy { return holdfast.Policy{Attempts: 1, MaxServerWait: -1} }

// sdk is what the SDKs do by default: two retries, 0.5 s doubling up to 8 s less up to a quarter, and the server's wait
// taken as it is.
func sdk(roll func() float64) func() holdfast.Policy {
	return func() holdfast.Policy {
		return holdfast.Policy{
			Attempts: 3, Backoff: holdfast.Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second},
			ServerWait: holdfast.Exact, MaxServerWait: -1,
			Dice: func() float64 { return 1 - 0.25*roll() },
		}
	}
}

// secs lists durations in seconds.
func secs(ds []time.Duration) string {
	texts := make([]string, len(ds))
	for i, d := range ds {
		texts[i] = sec(d)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// sec is a duration in seconds with at most three decimals and at least one.
func sec(d time.Duration) string { return decimals(d, 3) }

func decimals(d time.Duration, most int) string {
	text := fmt.Sprintf("%.*f", most, d.Seconds())
	text = strings.TrimRight(text, "0")
	if strings.HasSuffix(text, ".") {
		text += "0"
	}
	return text
}
