package batch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/jsonl"

	"holdfast"
)

// ReadError is results that could not be read to their end. What was yielded before stands.
type ReadError struct {
	// ID of the batch.
	ID string
	// Read is how many results came, of Want.
	Read, Want int
	// Err is why the latest reading ended.
	Err error
}

// Error says how far it came and why it ended. It never holds what a result says.
func (e *ReadError) Error() string {
	return fmt.Sprintf("batch: the results of %s broke off after %d of %d: %v", e.ID, e.Read, e.Want, e.Err)
}

// Unwrap returns the cause, and never hides it behind another.
func (e *ReadError) Unwrap() error { return e.Err }

// Hint says how to go on; it never suggests a new batch.
func (e *ReadError) Hint() string {
	return "read the results again later: they are kept for 29 days, and reading them costs nothing"
}

// GoneError is results that the API keeps no longer.
type GoneError struct {
	// ID of the batch.
	ID string
	// Created is when it was made; results are kept for 29 days from then.
	Created time.Time
}

// Error says which results are gone, and since when. It never holds what a result said.
func (e *GoneError) Error() string {
	return fmt.Sprintf("batch: the results of %s are gone: it was created on %s, and they are kept for 29 days",
		e.ID, e.Created.UTC().Format(time.DateOnly))
}

// Hint says what is left to do; it never suggests to ask again.
func (e *GoneError) Hint() string {
	return "a new batch of the same requests is the only way to answers"
}

// ErrNotEnded is what Results yields for a batch that goes on.
var ErrNotEnded = errors.New("batch: it has not ended, and has no results yet")

// ErrUnnamed is what Results yields, and what a [WaitError] holds, where no batch is named. Nothing was sent.
var ErrUnnamed = errors.New("batch: no batch is named")

const (
	keptFor  = 29 * 24 * time.Hour // from creation, by the API's documents
	idleTime = 90 * time.Second    // without a line
	readings = 5                   // in a row that bring nothing new
)

var (
	errIdle  = errors.New("batch: no further result in time")
	errShort = errors.New("batch: the results end too early")
	errOther = errors.New("batch: a line that is no result")
)

// lines yields the results as they stand in the file, each of them once: a reading that breaks off is begun anew, and what
// came before is left out. One that stands in the file twice is yielded twice. It ends without an error when as many lines
// came as the batch has requests, and when several whole readings have not brought one more.
func (c *Client) lines(ctx context.Context, ended *anthropic.MessageBatch) iter.Seq2[*anthropic.MessageBatchIndividualResponse, error] {
	return func(yield func(*anthropic.MessageBatchIndividualResponse, error) bool) {
		if ended == nil || ended.ID == "" {
			yield(nil, ErrUnnamed)
			return
		}
		r := reader{client: c, batch: ended, want: int(sizeOf(ended)), given: map[string]int{}}
		err := r.readable()
		for err == nil {
			before := r.read
			stopped, failed := r.once(ctx, yield)
			if stopped || r.read >= r.want {
				return
			}
			if r.vain++; r.read > before {
				r.vain = 0
			}
			if failed == nil && r.vain >= readings {
				return
			}
			err = r.again(ctx, failed)
		}
		yield(nil, err)
	}
}

// reader reads the results of one batch, as often as it takes.
type reader struct {
	client  *Client
	batch   *anthropic.MessageBatch
	want    int
	read    int
	given   map[string]int // how often each custom id was yielded
	vain    int            // the latest readings in a row that brought nothing
	unknown time.Time      // the first 404; zero: there was none
}

func (r *reader) readable() error {
	switch {
	case r.batch.ProcessingStatus != anthropic.MessageBatchProcessingStatusEnded:
		return ErrNotEnded
	case !r.batch.ArchivedAt.IsZero():
		return &GoneError{ID: r.batch.ID, Created: r.batch.CreatedAt}
	}
	return nil
}

// once reads the file from its beginning.
func (r *reader) once(ctx context.Context, yield func(*anthropic.MessageBatchIndividualResponse, error) bool) (stopped bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(idleTime, func() { cancel(errIdle) })
	defer idle.Stop()
	stream, err := r.open(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = stream.Close() }()
	passed := map[string]int{}
	for stream.Next() {
		line := stream.Current()
		if line.CustomID == "" || line.Result.Type == "" {
			return false, errOther
		}
		passed[line.CustomID]++
		if passed[line.CustomID] > r.given[line.CustomID] {
			r.given[line.CustomID]++
			r.read++
			idle.Stop() // the reader may take as long as it likes
			if !yield(&line, nil) {
				return true, nil
			}
		}
		idle.Reset(idleTime)
	}
	if err = stream.Err(); err != nil && context.Cause(ctx) == errIdle {
		err = errIdle
	}
	return false, err
}

// open asks for the file, as often as the policy allows. The attempt's own context would end with it: the file outlasts it.
func (r *reader) open(ctx context.Context) (*jsonl.Stream[anthropic.MessageBatchIndividualResponse], error) {
	p := r.client.policy()
	stream, _, err := holdfast.Do(ctx, reading(&p), func(context.Context) (*jsonl.Stream[anthropic.MessageBatchIndividualResponse], error) {
		stream := r.client.API.ResultsStreaming(ctx, r.batch.ID, anthropic.MessageBatchResultsParams{}, r.client.options()...)
		return stream, stream.Err()
	})
	return stream, err
}

// again waits until the file is to be read once more, or returns why it is not.
func (r *reader) again(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return r.broken(context.Cause(ctx))
	}
	v := holdfast.Verdict{}
	if failed == nil {
		failed = errShort
	} else {
		v = verdictOf(failed)
	}
	d := holdfast.Backoff{}.Wait(r.vain+1, r.client.dice)
	switch {
	case v.Status == http.StatusNotFound:
		if err := r.missing(ctx, failed); err != nil {
			return err
		}
		d = pollWait(r.client.Poll, r.client.MaxPoll, 0, 0)
	case v.Kind == holdfast.Terminal && v.Status != 0, r.vain >= readings:
		return r.broken(failed)
	}
	if pause(ctx, max(d, min(v.Wait, longestNamed))) != nil {
		return r.broken(context.Cause(ctx))
	}
	return nil
}

// missing says what a 404 means: results that are late, which is waited out during Appear, or gone.
func (r *reader) missing(ctx context.Context, failed error) error {
	now := time.Now()
	if r.unknown.IsZero() {
		r.unknown = now
	}
	created := r.batch.CreatedAt
	got, _, err := r.client.get(ctx, r.batch.ID)
	if err == nil && !got.ArchivedAt.IsZero() || !created.IsZero() && now.Sub(created) >= keptFor {
		return &GoneError{ID: r.batch.ID, Created: created}
	}
	if now.Sub(r.unknown) >= orDefault(r.client.Appear, defaultAppear) {
		return r.broken(failed)
	}
	return nil
}

func (r *reader) broken(err error) error {
	return &ReadError{ID: r.batch.ID, Read: r.read, Want: r.want, Err: err}
}
