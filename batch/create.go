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
	"holdfast/transport"
)

// How says how Create knows that the batch is the one of its requests.
type How uint8

const (
	// ByReply: the API said so when it made the batch.
	ByReply How = iota
	// ByNote: the [Ledger] had its id. Nothing was sent.
	ByNote
	// ByCount: the reply was lost, and no other batch of so many requests was made at that time. It is no proof where
	// others create batches too; Results compares the custom ids in any case.
	ByCount
	// ByIDs: the reply was lost, and the results of this batch have the custom ids of the requests.
	ByIDs
)

// String returns the words used in logs; it never returns an empty one.
func (h How) String() string {
	switch h {
	case ByReply:
		return "reply"
	case ByNote:
		return "note"
	case ByCount:
		return "count"
	case ByIDs:
		return "custom ids"
	}
	return fmt.Sprintf("How(%d)", uint8(h))
}

// Created tells how a batch came to be.
type Created struct {
	// How it is known.
	How How
	// Digest is what the [Ledger] knows the requests by.
	Digest string
	// Lost is the error of the request whose reply was lost; nil when none was.
	Lost error
}

// Create makes one batch of the requests and returns it, or finds the one that was made of them. The package's table says
// what it does in each case. Errors: [*InvalidError] and [*LedgerError] before anything was sent; the API's own error, or a
// [*holdfast.Error], when surely no batch was made; [*DoubtfulError] when there may be one. A [*LedgerError] with an ID
// comes together with the batch. ctx bounds all of it, the search included.
//
// It never sends the requests again while a batch of them may exist, never cancels or deletes a batch, and never tells a
// ledger what a request says.
func (c *Client) Create(ctx context.Context, requests []Request) (*anthropic.MessageBatch, Created, error) {
	in := inspect(c.Run, requests)
	in.bounded()
	created := Created{Digest: in.digest}
	if err := in.err(); err != nil {
		return nil, created, err
	}
	if err := c.enter(ctx); err != nil {
		return nil, created, fmt.Errorf("batch: nothing was sent: %w", err)
	}
	defer c.leave()
	earlier, noted, err := c.begin(ctx, Note{Digest: in.digest, Requests: len(requests), At: time.Now()})
	switch {
	case err != nil:
		return nil, created, err
	case noted && earlier.ID != "":
		created.How = ByNote
		found, err := c.sight(ctx, earlier.ID)
		if err == nil {
			c.remember(found.ID)
		}
		return found, created, err
	}
	j := &job{client: c, requests: requests, created: created}
	if noted {
		j.created.Lost = errUnfinished
		j.since, j.slack = earlier.At, slackOfNotes
		return j.search(ctx)
	}
	return j.send(ctx)
}

// errUnfinished is why a batch is searched for that a note tells of.
var errUnfinished = errors.New("batch: an earlier run was about to create it, and noted no id")

// job is one Create, once the requests are known to be good.
type job struct {
	client   *Client
	requests []Request
	created  Created
	since    time.Time     // when the request was sent whose reply was lost
	slack    time.Duration // how far apart our clock and theirs may be, once the difference is known
	resent   bool
}

// send sends the requests once, as far as is known, and searches if that is not known.
func (j *job) send(ctx context.Context) (*anthropic.MessageBatch, Created, error) {
	made, err := j.post(ctx)
	switch {
	case err == nil:
		j.created.How = ByReply
		return j.finish(ctx, made)
	case neverMade(err):
		_ = j.client.done(ctx, j.created.Digest, "")
		return nil, j.created, err.(*postError).Err
	}
	j.created.Lost = err.(*postError).Err
	j.slack = max(j.slack, slackOfDates)
	return j.search(ctx)
}

func (j *job) finish(ctx context.Context, made *anthropic.MessageBatch) (*anthropic.MessageBatch, Created, error) {
	return made, j.created, j.client.done(ctx, j.created.Digest, made.ID)
}

// postError is a creation without a batch in its reply, and what the last attempt came to.
type postError struct {
	Verdict holdfast.Verdict
	Sent    bool // something was
	Err     error
}

func (e *postError) Error() string { return e.Err.Error() }

// post sends the requests as one call. The transport repeats it only where that is safe on such a path: after a 429, and
// when nothing had been sent. It also knows how far an attempt had come, which the SDK's errors do not tell.
func (j *job) post(ctx context.Context) (*anthropic.MessageBatch, error) {
	p := j.client.policy()
	p.Judge = nil // nobody's judgement makes this path safe
	var end *transport.End
	t := transport.New(&p, nil)
	t.ReturnErrors = true
	t.Ended = func(e transport.End) { end = &e }
	began := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		if !j.resent { // the first whose reply is lost counts; attempts before it surely made nothing
			j.since = time.Now()
		}
		return next(r)
	}
	if j.since.IsZero() {
		j.since = time.Now()
	}
	made, err := j.client.API.New(ctx, anthropic.MessageBatchNewParams{Requests: j.requests},
		j.client.options(option.WithMiddleware(t.Middleware, began))...)
	switch {
	case err == nil && made != nil && made.ID != "":
		return made, nil
	case err == nil:
		err = fmt.Errorf("batch: the reply names no batch: %w", holdfast.ErrEmpty)
	}
	failed := &postError{Verdict: verdictOf(err), Sent: true, Err: err}
	if end != nil && end.Err != nil {
		failed.Verdict, failed.Sent = end.Verdict, end.Trace.Sent() > 0
	}
	return nil, failed
}

// clientClosed is what proxies say of a request whose client, such as another proxy, has left: the API may have it.
const clientClosed = 499

// neverMade reports whether the API has surely made no batch. Whatever is not known to be so may have made one: a 5xx, a
// lost connection, a timeout, and a success that cannot be read.
func neverMade(err error) bool {
	var e *postError
	if !errors.As(err, &e) {
		return false
	}
	v := &e.Verdict
	switch {
	case !e.Sent, v.NotSent, v.Status == http.StatusTooManyRequests:
		return true
	case v.Kind == holdfast.Terminal, v.Kind == holdfast.Spent, v.Kind == holdfast.Overflow:
		return v.Status >= http.StatusBadRequest && v.Status < http.StatusInternalServerError && v.Status != clientClosed
	}
	return false
}
