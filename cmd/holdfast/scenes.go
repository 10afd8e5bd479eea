package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/standin"
)

// scenes are the demo, in order.
var scenes = []scene{
	{
		title:  "Two 429s, then an answer",
		told:   `answers the first two requests with 429 and "retry-after: 1"`,
		proves: "the wait that a server names is kept, plus a little chance, so that many clients do not return at once",
		plan:   standin.Failing(2, 429, "1"),
		play:   playThrottled,
	},
	{
		title:  "An overload that does not end, and a saved answer",
		told:   "answers once, and then every request with 529",
		proves: "when nothing live works, a page shows the last good answer, and says that it is one",
		plan:   standin.Plan{Steps: []standin.Step{{Kind: standin.OK}, {Kind: standin.HTTP, Status: 529, Times: -1}}},
		play:   playSaved,
	},
	{
		title:  "A bad key",
		told:   "knows the key for a bad one",
		proves: "an error that no retry can help is raised at once, and no saved answer hides it",
		play:   playBadKey,
	},
	{
		title:  "A circuit that opens, and closes again",
		told:   "answers the first three requests with 529, and then works",
		proves: "an API that keeps failing is left alone, and a single request finds out when it works again",
		plan:   standin.Failing(3, 529, ""),
		play:   playCircuit,
	},
	{
		title:  "Retries on top of retries",
		told:   `answers every request with 529 and "retry-after-ms: 50"`,
		proves: "retries multiply when two layers make them; one layer has to do it, and the other to be told so",
		plan: standin.Plan{Steps: []standin.Step{
			{Kind: standin.HTTP, Status: 529, Times: -1, Header: standin.Header{"retry-after-ms": {"50"}}},
		}},
		play: playStacked,
	},
}

const (
	demoBase     = tutorialBase
	demoCooldown = time.Second
)

func playThrottled(ctx context.Context, st *stage) error {
	policy := tutorialPolicy()
	r, trace, err := holdfast.Do(ctx, &policy, st.client("any").whole)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	j := st.journal(1)
	if err == nil {
		r.settle(nil)
		st.write("    the call: source %s, %s, %q", trace.Source, plural(trace.Sent(), "attempt"), text(r.message))
	}
	st.check(err == nil && trace.Source == holdfast.Live, "the call got its answer, live")
	st.check(statuses(j) == "429 429 200", "3 requests arrived: %s", statuses(j))
	planned, floor, ceiling := waits(&trace), time.Second, time.Second+demoBase
	st.check(within(planned, [2]time.Duration{floor, ceiling}, [2]time.Duration{floor, ceiling}) && neverEarly(j.Gaps(), planned),
		"the gaps, %s, keep the second asked for, and plan at most half a second more", listed(j.Gaps()))
	return nil
}

func playSaved(ctx context.Context, st *stage) error {
	folder, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return failed("the demo needs a temporary folder", "%w", err)
	}
	defer os.RemoveAll(folder)
	book, err := openSavedBook(filepath.Join(folder, "answers.json"))
	if err != nil {
		return err
	}
	a := &asker{question: demoQuestion, saved: book, client: st.client("any")}
	policy := tutorialPolicy()
	r, _, err := holdfast.Do(ctx, &policy, a.client.whole)
	if err != nil {
		return err
	}
	r.settle(nil)
	if err := book.keep(a.savedAnswer(r)); err != nil {
		return failed("", "%w", err)
	}
	_, trace, err := holdfast.Do(ctx, &policy, a.client.whole, holdfast.SavedAnswers[*reply]{Load: a.load})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	st.write("    request 1             answered 200, and the answer is saved; then a second call:")
	j := st.journal(2)
	if err == nil && a.kept != nil {
		st.write("    the call: source %s, %s, %q", trace.Source, plural(trace.Sent(), "attempt"), a.kept.Text)
		st.write("    %s", label(a.kept.SavedAt))
	}
	st.check(err == nil && trace.Source == holdfast.Saved, "the call got the saved answer, with its label")
	st.check(statuses(j) == "529 529 529 529", "4 requests arrived before that: %s", statuses(j))
	planned := waits(&trace)
	st.check(within(planned, [2]time.Duration{0, demoBase}, [2]time.Duration{0, 2 * demoBase}, [2]time.Duration{0, 4 * demoBase}) && neverEarly(j.Gaps(), planned),
		"the waits, %s, were drawn below 0.5, 1 and 2 s", listed(planned))
	return nil
}

func playBadKey(ctx context.Context, st *stage) error {
	policy := tutorialPolicy()
	asked := false
	_, trace, err := holdfast.Do(ctx, &policy, st.client("bad").whole, holdfast.SavedAnswers[*reply]{
		Load: func(context.Context, error) (*reply, bool) {
			asked = true
			return nil, false
		},
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	j := st.journal(1)
	v := holdfast.Judge(err)
	st.check(v.Kind == holdfast.Terminal && v.Status == 401, "the call raises the API's own error: %d %s", v.Status, v.Type)
	st.check(statuses(j) == "401" && trace.Sent() == 1, "1 request arrived: %s", statuses(j))
	st.check(!asked, "no saved answer was looked for")
	return nil
}

func playCircuit(ctx context.Context, st *stage) error {
	var moves []string
	policy := holdfast.Policy{
		Attempts: 1,
		Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{
			Failures: 3, Cooldown: demoCooldown,
			OnChange: func(from, to holdfast.State) { moves = append(moves, from.String()+" to "+to.String()) },
		}),
	}
	c := st.client("any")
	call := func() error {
		r, _, err := holdfast.Do(ctx, &policy, c.whole)
		if err == nil {
			r.settle(nil)
		}
		return err
	}
	for range 3 {
		_ = call() // the journal is what counts
	}
	var refused *holdfast.Error
	errors.As(call(), &refused)
	arrived := len(st.server.Journal())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	notSent := refused != nil && refused.Reason == holdfast.ErrOpen && arrived == 3
	if notSent {
		st.write("    call 4 was not sent: %v", refused)
		if err := pauseFor(ctx, refused.Wait+10*time.Millisecond); err != nil {
			return err
		}
	}
	probe, after := call(), call()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	j := st.journal(1)
	st.check(notSent, "the fourth call was refused without a request")
	gaps := j.Gaps()
	st.check(statuses(j) == "529 529 529 200 200" && gaps[2] >= demoCooldown && probe == nil && after == nil,
		"6 calls made 5 requests, and between the third and the fourth lies the second of rest")
	st.check(strings.Join(moves, ", ") == "closed to open, open to half_open, half_open to closed", "the circuit went %s", strings.Join(moves, ", "))
	return nil
}

func playStacked(ctx context.Context, st *stage) error {
	policy := holdfast.Policy{Attempts: 3, ServerWait: holdfast.Exact}
	_, stacked, _ := holdfast.Do(ctx, &policy, st.client("any", option.WithMaxRetries(2)).whole) // it fails; the journal is what counts
	if ctx.Err() != nil {
		return ctx.Err()
	}
	st.write("    3 attempts of ours, each over an SDK that retries twice by itself:")
	nine := st.journal(1)
	st.server.Reset()
	_, single, err := holdfast.Do(ctx, &policy, st.client("any").whole)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	st.write("    3 attempts of ours over an SDK that is told not to retry:")
	three := st.journal(1)
	st.check(stacked.Sent() == 3 && len(nine) == 9, "stacked, one call made %d requests", len(nine))
	st.check(single.Sent() == 3 && len(three) == 3 && errors.Is(err, holdfast.ErrAttempts), "alone, one call made %d requests", len(three))
	return nil
}

// pauseFor lets d pass, unless the user interrupts.
func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
