package drill

import (
	"context"
	"fmt"
	"time"

	"holdfast"
)

// LiveRequest is one attempt that Lab18 lets through to a real endpoint.
type LiveRequest struct {
	// Job is its name. What to ask for it is the caller's business.
	Job string
	// MaxTokens for the answer.
	MaxTokens int
	// Fallback asks for the fallback model, after the first one refused.
	Fallback bool
}

// LiveReply is what the endpoint answered, without its text.
type LiveReply struct {
	// StopReason in the words of the Messages API: end_turn, max_tokens, refusal. A pause_turn ends the job, as paused.
	StopReason string
	// Category of a refusal, where one is given.
	Category string
	// RequestID is the provider's name for the attempt.
	RequestID string
}

// faultError carries a fault made here through the library's loop.
type faultError struct{ verdict holdfast.Verdict }

func (e *faultError) Error() string {
	return fmt.Sprintf("drill: fault of the plan: status %d %s", e.verdict.Status, e.verdict.Type)
}

func (e *faultError) Verdict() holdfast.Verdict { return e.verdict }

// callSimulated drives one call in simulated time.
func (l *lab) callSimulated(ctx context.Context, p *holdfast.Policy, ask func(context.Context) (spoken, error)) (trace holdfast.Trace) {
	send := func(reply func(holdfast.Verdict)) func() {
		s, err := ask(ctx)
		if err == nil && !s.hang {
			l.w.after(0, func() { reply(s.verdict) })
		}
		return nil
	}
	l.w.begin(p, send, func(e ended) { trace = e.trace })
	if err := l.w.run(ctx); err != nil {
		l.failure = err
	}
	return trace
}

// callLive makes one call in real time with the library's own loop.
func (l *lab) callLive(ctx context.Context, p *holdfast.Policy, ask func(context.Context) (spoken, error)) holdfast.Trace {
	own := *p
	own.Judge = func(err error) holdfast.Verdict { return l.counted(holdfast.Judge(err)) }
	_, trace, err := holdfast.Do(ctx, &own, func(ctx context.Context) (spoken, error) {
		s, err := ask(ctx)
		switch {
		case err != nil:
			return s, err
		case s.hang:
			<-ctx.Done()
			return s, ctx.Err()
		case s.verdict.Kind != holdfast.OK:
			return s, &faultError{s.verdict}
		}
		return s, nil
	})
	if err != nil && ctx.Err() != nil {
		l.failure = context.Cause(ctx)
	}
	return trace
}

// rest lets time pass.
func (l *lab) rest(ctx context.Context, d time.Duration) error {
	if l.live == nil {
		l.w.now += d
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
