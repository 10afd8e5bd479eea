package batch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/internal/wire"
)

// WaitError is a wait that ended before the batch did. The batch goes on, and is billed: Wait takes its id again.
type WaitError struct {
	// ID of the batch.
	ID string
	// Last is what the latest look has shown; nil when none has shown anything.
	Last *anthropic.MessageBatch
	// Err is why the wait ended.
	Err error
}

// Error names the batch, where it stood, and the cause. It never holds what a request says.
func (e *WaitError) Error() string {
	at := ""
	if e.Last != nil {
		at = fmt.Sprintf(" (%s, %d of %d processing)", e.Last.ProcessingStatus, e.Last.RequestCounts.Processing, sizeOf(e.Last))
	}
	id := e.ID
	if id == "" {
		id = "a batch"
	}
	return fmt.Sprintf("batch: stopped waiting for %s%s: %v", id, at, e.Err)
}

// Unwrap returns the cause, and never hides it behind another.
func (e *WaitError) Unwrap() error { return e.Err }

// Hint says how to go on; it never suggests a new batch.
func (e *WaitError) Hint() string {
	var unsent *unsentError
	switch {
	case errors.Is(e.Err, ErrUnnamed):
		return "give the id of a batch: Create returns it, and the list has it"
	case errors.As(e.Err, &unsent):
		return "no request could be made: look at the options and the credentials of the client; the batch goes on"
	case errors.Is(e.Err, ErrOverdue):
		return "ask the provider about the batch, or cancel it"
	case verdictOf(e.Err).Status == http.StatusNotFound:
		return "the workspace of the key has no such batch: look at the key, and at whether it was deleted"
	}
	return "the batch goes on without you: keep its id, and call Wait with it"
}

// ErrOverdue is why Wait gives up on a batch that should have expired long ago.
var ErrOverdue = errors.New("batch: it has not ended an hour after it should have expired")

const (
	lifetime  = 24 * time.Hour // where a batch does not say when it expires
	graceTime = time.Hour
)

// Wait returns the batch with this id once it has ended: when every request in it has succeeded, errored, been canceled or
// expired, which is 24 hours after its creation at the latest. It looks at once, then after Poll, and ever more rarely up
// to MaxPoll; a wait that the API names is kept. A look that fails is no failure of the batch: outages are waited out, and
// so are 404s during Appear, for a new batch may not be visible everywhere. It ends with a [*WaitError] when ctx does, when
// the API refuses to tell for a reason that no wait cures, such as a bad key, when no request could be made for a reason
// that is no connection's and none was made before, for an empty id with [ErrUnnamed], and an hour after the batch should
// have expired.
//
// It never cancels a batch, also not when ctx ends, never creates one, and never asks more often than every Poll.
func (c *Client) Wait(ctx context.Context, id string) (*anthropic.MessageBatch, error) {
	w := watch{client: c, id: id, began: time.Now()}
	if id == "" {
		return nil, w.stopped(ErrUnnamed)
	}
	for {
		ended, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, w.stopped(context.Cause(ctx))
		case err != nil:
			return nil, w.stopped(err)
		case ended:
			return w.last, nil
		case pause(ctx, w.pace()) != nil:
			return nil, w.stopped(context.Cause(ctx))
		}
	}
}

// watch is one Wait.
type watch struct {
	client  *Client
	id      string
	began   time.Time
	last    *anthropic.MessageBatch
	unknown time.Time     // the first of the latest 404s in a row; zero: the latest look was none
	named   time.Duration // the wait that the API has named
	waits   int
	reached bool // a look has sent a request, or could have
}

func (w *watch) stopped(err error) error { return &WaitError{ID: w.id, Last: w.last, Err: err} }

// look looks once. Its error is one that further looks do not cure.
func (w *watch) look(ctx context.Context) (ended bool, err error) {
	got, header, err := w.client.get(ctx, w.id)
	now := time.Now()
	if err != nil {
		w.named = max(0, verdictOf(err).Wait)
		return false, w.failed(err, now)
	}
	w.last, w.unknown, w.reached = got, time.Time{}, true
	w.named, _ = wire.Wait(header, nil, now)
	if w.client.Observe != nil {
		w.client.Observe(got)
	}
	if got.ProcessingStatus == anthropic.MessageBatchProcessingStatusEnded {
		return true, nil
	}
	return false, w.overdue(now)
}

// failed says whether a failed look ends the wait.
func (w *watch) failed(err error, now time.Time) error {
	var unsent *unsentError
	if errors.As(err, &unsent) && !w.reached {
		return err
	}
	w.reached = w.reached || unsent == nil
	switch v := verdictOf(err); {
	case v.Status == http.StatusNotFound:
		if w.unknown.IsZero() {
			w.unknown = now
		}
		if now.Sub(w.unknown) >= orDefault(w.client.Appear, defaultAppear) {
			return err
		}
		return nil
	case v.Kind == holdfast.Terminal && v.Status != 0:
		return err
	}
	w.unknown = time.Time{}
	return w.overdue(now)
}

func (w *watch) overdue(now time.Time) error {
	end := w.began.Add(lifetime)
	if w.last != nil && !w.last.ExpiresAt.IsZero() {
		if end = w.last.ExpiresAt; end.Before(w.began) {
			end = w.began // whoever asks late gets the hour too
		}
	}
	if now.After(end.Add(graceTime)) {
		return ErrOverdue
	}
	return nil
}

// pace is the time until the next look.
func (w *watch) pace() time.Duration {
	d := pollWait(w.client.Poll, w.client.MaxPoll, w.waits, w.client.dice())
	w.waits++
	if w.named > 0 {
		d = max(d, min(w.named, longestNamed))
	}
	return d
}

// longestNamed bounds the wait that the API may name: a batch takes no more than a day, and a mistaken header should not
// take longer than that.
const longestNamed = 15 * time.Minute

// pollWait is the own wait before look n+1, counted from 0: from first it grows by half each time up to most, and chance
// takes up to a fifth of it, but leaves first.
func pollWait(first, most time.Duration, n int, dice float64) time.Duration {
	if first <= 0 {
		first = defaultPoll
	}
	if most <= 0 {
		most = defaultMaxPoll
	}
	most = max(most, first)
	d := first
	for range n {
		if d >= most {
			break
		}
		d += max(d/2, 1)
	}
	d = min(d, most)
	return max(first, d-time.Duration(dice*float64(d)/5))
}

// get asks for the batch, as often as the policy allows.
func (c *Client) get(ctx context.Context, id string) (*anthropic.MessageBatch, http.Header, error) {
	p := c.policy()
	var header http.Header
	got, _, err := holdfast.Do(ctx, reading(&p), func(ctx context.Context) (*anthropic.MessageBatch, error) {
		var raw *http.Response
		sent := false
		began := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			sent = true
			return next(r)
		}
		got, err := c.API.Get(ctx, id, anthropic.MessageBatchGetParams{}, c.options(option.WithResponseInto(&raw), option.WithMiddleware(began))...)
		if raw != nil {
			header = raw.Header
		}
		if err == nil && (got == nil || got.ID != id) {
			err = holdfast.ErrEmpty
		}
		if v := holdfast.Judge(err); !sent && v.Kind == holdfast.Terminal && v.Status == 0 && !v.NotSent {
			err = &unsentError{err}
		}
		return got, err
	})
	return got, header, err
}

// unsentError is a request that the client itself could not make: a mistake of its use, and no outage.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// Verdict says that a repetition fails again.
func (e *unsentError) Verdict() holdfast.Verdict {
	return holdfast.Verdict{Kind: holdfast.Terminal, NotSent: true, Rule: "request-not-made"}
}

// sight returns the batch as it stands, once it can be seen.
func (c *Client) sight(ctx context.Context, id string) (*anthropic.MessageBatch, error) {
	w := watch{client: c, id: id, began: time.Now()}
	for {
		_, err := w.look(ctx)
		switch {
		case w.last != nil:
			return w.last, nil
		case err != nil:
			return nil, w.stopped(err)
		case pause(ctx, w.pace()) != nil:
			return nil, w.stopped(context.Cause(ctx))
		}
	}
}
