package batch

import (
	"context"
	"fmt"
	"net/http"
	"sync"
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
	// ByRecord: the Ledger had its id. Nothing was sent.
	ByRecord
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
	case ByRecord:
		return "record"
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
	// Key is what the Ledger knows the requests by: a hash of them in their order, and of the Run.
	Key string
	// Lost is the error of the request whose reply was lost; nil when none was.
	Lost error
}

// Create makes one batch of the requests and returns it, or finds the one that was made of them. The package's table says
// what it does in each case. ctx bounds all of it, the search included.
//
// Errors: an [*InvalidError] and those of the Ledger before anything was sent; the API's own error, or a [*holdfast.Error], when
// surely no batch was made; a [*DoubtfulError] when there may be one. With a Ledger, a once.InProgressError says that others
// create the batch and that the caller has left them to it, and a once.StoreError that comes together with a batch that its id
// is not recorded.
//
// It never sends the requests again while a batch of them may exist, never cancels or deletes a batch, and never tells a
// ledger what a request says.
func (c *Client) Create(ctx context.Context, requests []Request) (*anthropic.MessageBatch, Created, error) {
	in := inspect(c.Run, requests)
	in.bounded()
	created := Created{Key: in.key()}
	if err := in.err(); err != nil {
		return nil, created, err
	}
	if err := c.enter(ctx); err != nil {
		return nil, created, fmt.Errorf("batch: nothing was sent: %w", err)
	}
	defer c.leave()
	j := &job{client: c, requests: requests, created: created}
	if c.Ledger != nil {
		return j.recorded(ctx)
	}
	return j.send(ctx)
}

// job is one Create, once the requests are known to be good.
type job struct {
	client   *Client
	requests []Request
	created  Created
	since    time.Time     // when the first request was sent whose reply was lost
	slack    time.Duration // how far apart our clock and theirs may be, once the difference is known
	sends    int

	busy   sync.Mutex // held by the funcs of an effect, which leave behind:
	made   *anthropic.MessageBatch
	failed *postError
	doubt  *DoubtfulError
}

// send sends the requests, and searches if nobody knows what became of them.
func (j *job) send(ctx context.Context) (*anthropic.MessageBatch, Created, error) {
	for {
		made, failed := j.post(ctx)
		switch {
		case failed == nil:
			j.created.How = ByReply
		case failed.neverMade():
			return nil, j.created, failed.Err
		default:
			var doubt *DoubtfulError
			j.created.Lost = failed.Err
			made, j.created.How, doubt = j.search(ctx)
			if made == nil && doubt.absent && j.mayResend(ctx) {
				continue
			}
			if made == nil {
				return nil, j.created, doubt
			}
		}
		j.client.remember(made.ID)
		return made, j.created, nil
	}
}

func (j *job) mayResend(ctx context.Context) bool {
	return j.client.Resend && j.sends < 2 && ctx.Err() == nil
}

// postError is a creation without a batch in its reply.
type postError struct {
	verdict holdfast.Verdict // of the last attempt
	sent    bool             // there was one
	Err     error
}

// post sends the requests as one call. The transport repeats it only where that is safe on such a path: after a 429, and
// when nothing had been sent. It also knows how far an attempt had come, which the SDK's errors do not tell.
func (j *job) post(ctx context.Context) (*anthropic.MessageBatch, *postError) {
	p := j.client.policy()
	p.Judge = nil // nobody's judgement makes this path safe
	var end *transport.End
	t := transport.New(&p, nil)
	t.ReturnErrors = true
	t.Ended = func(e transport.End) { end = &e }
	began := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		if j.created.Lost == nil { // attempts before this one surely made nothing
			j.since = time.Now()
		}
		return next(r)
	}
	j.sends++
	j.slack = max(j.slack, slackOfDates)
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
	failed := &postError{verdict: verdictOf(err), sent: true, Err: err}
	if end != nil && end.Err != nil {
		failed.verdict, failed.sent = end.Verdict, end.Trace.Sent() > 0
	}
	return nil, failed
}

// clientClosed is what proxies say of a request whose client, such as another proxy, has left: the API may have it.
const clientClosed = 499

// neverMade reports whether the API has surely made no batch. Whatever is not known to be so may have made one: a 5xx, a
// lost connection, a timeout, and a success that cannot be read.
func (e *postError) neverMade() bool {
	v := &e.verdict
	switch {
	case !e.sent, v.NotSent, v.Status == http.StatusTooManyRequests:
		return true
	case v.Kind == holdfast.Terminal, v.Kind == holdfast.Spent, v.Kind == holdfast.Overflow:
		return v.Status >= http.StatusBadRequest && v.Status < http.StatusInternalServerError && v.Status != clientClosed
	}
	return false
}
