package holdfast

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
)

// SavedAnswers is where [Do] finds an answer when nothing live works, and where it keeps good ones. Both funcs are optional and
// run on the caller's goroutine.
type SavedAnswers[T any] struct {
	// Load returns a saved answer for this call, and false when there is none. It is asked only where the verdict
	// allows it: never after a terminal error, which it would hide, and never for a caller who left. The cause is
	// the error that Do would return.
	Load func(ctx context.Context, cause error) (T, bool)
	// Store keeps a live answer. It is not told of pending ones.
	Store func(ctx context.Context, answer T)
}

// Pending is an answer that is not over when the operation returns, such as a stream. Do returns it at once and leaves
// breaker, pace and budget unsettled, and the attempt's context alive, until end is called: with nil when the answer
// came to its end, with an error when it did not, and with [ErrCancelled] when the caller left it. Calls of end after
// the first change nothing. AtEnd must keep end and return. Only pointers and interface values can be Pending.
type Pending interface {
	AtEnd(end func(used Tokens, err error))
}

// Settled is what a [Pending] may be too, to learn the whole trace: the one that Do returns with it ends where the answer
// was handed over. Settled is called within end, by the same goroutine, once the call is settled; it must keep the trace
// and return.
type Settled interface {
	Settled(trace Trace)
}

// Do carries one call to its end: it runs op until it succeeds, until the policy allows no further attempt, or until ctx
// ends, whichever is first. A nil policy is the zero one. op must return when its context ends, and must not retry by
// itself.
//
// The trace is complete in every case. The error is nil when there is an answer, also a saved one; op's own error,
// unchanged, when it is terminal; and an [*Error] in all other cases. op's panics pass through, and nothing is kept.
//
// Do starts no goroutine.
func Do[T any](ctx context.Context, p *Policy, op func(context.Context) (T, error), saved ...SavedAnswers[T]) (T, Trace, error) {
	if p == nil {
		p = &zeroPolicy
	}
	c := Call{policy: p}
	var a attempt
	begun := false
	defer func() {
		if begun && !c.over { // a panic, of op or of a func of the policy
			a.end()
			c.leave(readClock(p.Clock), Failure)
		}
	}()
	var answer, none T
	if ctx.Err() != nil {
		err := left(ctx, &Error{Reason: ErrCancelled})
		c.trace.started, c.trace.Reason = readClock(p.Clock), err.Reason
		return none, c.trace, err
	}
	now := readClock(p.Clock)
	deadline := never
	if d, ok := ctx.Deadline(); ok {
		deadline = p.deadlineAt(d, now)
	}
	begun = true
	action := c.begin(now, deadline, p.estimate(ctx))
	var failure error
	for action != Stop {
		if action == Wait {
			woken := pause(ctx, p.Clock, c.step.Wait, c.step.Wake)
			if now = readClock(p.Clock); woken {
				action = c.resume(now)
			} else {
				action = c.leave(now, Ignore)
			}
			continue
		}
		a = attempt{ctx: ctx, own: ctx, policy: p}
		a.begin(now, deadline, &c.step)
		answer, failure = op(a.own)
		if failure == nil {
			if pending, ok := pendingOf(answer); ok {
				return answer, a.handOver(&c, pending), nil
			}
			var used Tokens
			if p.Usage != nil {
				used = p.Usage(answer)
			}
			a.end()
			c.succeed(readClock(p.Clock), used)
			for i := range saved {
				saved[i].keep(ctx, answer)
			}
			return answer, c.trace, nil
		}
		v := a.judge(failure)
		if v.Rule == ruleDeadline {
			v.Neutral = v.Neutral || c.trace.sent > 1 || c.trace.Paced > 0 // it did not have the whole time
		}
		a.end()
		now = readClock(p.Clock)
		action = c.settle(now, v, Tokens{})
	}
	return conclude(ctx, &c, failure, saved)
}

var zeroPolicy Policy

func (s *SavedAnswers[T]) keep(ctx context.Context, answer T) {
	if s.Store != nil {
		s.Store(ctx, answer)
	}
}

// conclude turns the machine's last step into what Do returns for a call without a live answer.
func conclude[T any](ctx context.Context, c *Call, failure error, saved []SavedAnswers[T]) (T, Trace, error) {
	var none T
	step := &c.step
	if step.Reason == nil {
		return none, c.trace, failure
	}
	err := &Error{
		Reason: step.Reason, Attempts: c.trace.sent, Elapsed: c.trace.Elapsed, Wait: c.hint, Verdict: c.trace.verdict(), Err: failure,
	}
	if step.Reason == ErrCancelled {
		c.trace.Reason = left(ctx, err).Reason
	}
	if step.Saved {
		for _, s := range saved {
			if s.Load == nil {
				continue
			}
			if kept, ok := s.Load(ctx, err); ok {
				c.trace.Source = Saved
				return kept, c.trace, nil
			}
		}
	}
	return none, c.trace, err
}

// left completes the error of a call whose caller is gone.
func left(ctx context.Context, err *Error) *Error {
	err.Cause = context.Cause(ctx)
	if errors.Is(err.Cause, context.DeadlineExceeded) {
		err.Reason = ErrDeadline // it was time that ran out, whoever set the clock
	}
	return err
}

// deadlineAt reads the caller's deadline. One without a monotonic reading is taken by the distance from the present: the
// wall clock may have been set since the process began.
func (p *Policy) deadlineAt(d time.Time, now instant) instant {
	if p.Clock == nil && d == d.Round(0) {
		return now.add(time.Until(d))
	}
	return instantOf(d)
}

func (p *Policy) estimate(ctx context.Context) Tokens {
	if p.Estimate == nil {
		return Tokens{}
	}
	return p.Estimate(ctx)
}

// pendingOf finds out whether the answer is pending. Only pointers and interfaces can be: to look into a value would
// cost an allocation on every success.
func pendingOf[T any](answer T) (Pending, bool) {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface:
		p, ok := any(answer).(Pending)
		if ok && reflect.ValueOf(p).Kind() == reflect.Pointer && reflect.ValueOf(p).IsNil() {
			return nil, false // nothing that could end
		}
		return p, ok
	}
	return nil, false
}

// attempt is the doing side of one send: its context and its timers.
type attempt struct {
	ctx    context.Context // the caller's
	own    context.Context // op's
	cancel context.CancelFunc
	policy *Policy
}

// begin starts the attempt's timers; deadline is that of the caller's context.
func (a *attempt) begin(now, deadline instant, s *Step) {
	if s.Target != nil {
		a.own = context.WithValue(a.own, targetKey{}, s.Target)
	}
	if s.Timeout <= 0 {
		return
	}
	cause := errAttemptTime
	if s.Whole {
		if deadline <= now.add(s.Timeout) {
			return // the caller's own deadline needs no second timer
		}
		cause = errCallTime
	}
	a.own, a.cancel = within(a.own, a.policy.Clock, s.Timeout, cause)
}

func (a *attempt) end() {
	if a.cancel != nil {
		a.cancel()
	}
}

// judge gives the verdict of a failed attempt. Whose timer fired is known by the contexts, never by the error's text:
// only the caller's own leaving is neutral, for otherwise an upstream that hangs would never open a breaker.
func (a *attempt) judge(err error) Verdict {
	if a.ctx.Err() != nil {
		return Verdict{Kind: Cancelled, Rule: "caller-left"}
	}
	if a.own.Err() != nil {
		v := Verdict{Kind: Broken, Silent: true}
		own, ok := ownVerdict(err)
		if ok { // it may know that bytes had come, or that it must not be repeated
			v.Silent, v.NotSent = own.Silent, own.NotSent
			if own.Kind == Unsafe {
				v.Kind, v.Was = Unsafe, Broken
			}
		}
		switch context.Cause(a.own) {
		case errAttemptTime:
			v.Rule = "attempt-timeout"
			return v
		case errCallTime:
			v.Rule, v.Neutral = ruleDeadline, own.Neutral
			return v
		}
	}
	return a.policy.judgeFailure(err)
}

const ruleDeadline = "deadline"

// handOver leaves the call open until the pending answer ends.
func (a *attempt) handOver(c *Call, pending Pending) Trace {
	held, p, cancel := new(Call), a.policy, a.cancel
	*held = *c
	trace := &held.trace
	trace.Source = held.source()
	trace.last().next = Answered
	now := readClock(p.Clock)
	trace.Elapsed = now.sub(held.start)
	handed := *trace
	handed.more = slices.Clone(trace.more)
	caller := a.ctx
	var first sync.Once // whichever goroutine ends it
	pending.AtEnd(func(used Tokens, err error) {
		first.Do(func() {
			if cancel != nil {
				defer cancel()
			}
			held.finish(readClock(p.Clock), p.verdictAtEnd(caller, err), used)
			if s, ok := pending.(Settled); ok {
				s.Settled(held.trace)
			}
		})
	})
	c.over = true // held settles in its place
	return handed
}

func (p *Policy) verdictAtEnd(caller context.Context, err error) Verdict {
	switch {
	case err == nil:
		return Verdict{}
	case errors.Is(err, ErrCancelled), caller.Err() != nil:
		return Verdict{Kind: Cancelled, Rule: "caller-left"}
	}
	return p.judgeFailure(err)
}

// judgeFailure gives the verdict of an error of op whose caller is still there: it is no success, whatever a Judge says,
// and a cancellation came from beneath op.
func (p *Policy) judgeFailure(err error) Verdict {
	judge := p.Judge
	if judge == nil {
		judge = Judge
	}
	v := judge(err)
	if v.Kind == OK || v.Kind == Cancelled {
		v.Kind = Broken
	}
	return v
}

// String returns the target's name.
func (t Target) String() string {
	if t.Name != "" {
		return t.Name
	}
	return fmt.Sprintf("%s %s", t.Credential, t.Model)
}
