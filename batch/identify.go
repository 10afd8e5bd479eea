package batch

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/once"
)

// ErrNotMade is what Identify returns when none of the candidates is the batch, and no other that the list has of their
// time and number of requests: then creating it is safe.
var ErrNotMade = errors.New("batch: none of the candidates has the custom ids of the requests")

// ErrNoCandidates is in the [*DoubtfulError] of an Identify that was given nothing to look at, as after a Create that could
// not see the list: it proves nothing.
var ErrNoCandidates = errors.New("batch: there are no candidates, which proves nothing")

// Identify finds the batch of the requests among candidates, such as those of a [DoubtfulError]: it waits until each has
// ended, as Wait does, and compares the custom ids of its results with those of the requests. If it is none of them, the
// list is seen once more, Settle after the creation at the earliest, and what it has of that time and number of requests is
// compared too.
//
// The error is [ErrNotMade] when it is none of all these. It is a [*DoubtfulError] when it is several: then the work was done
// more than once, and either will do; when the list cannot be seen to that time; and when there are no candidates, with
// [ErrNoCandidates]. The Ledger is told what was found; its error stands beside a batch that was.
//
// It never creates, cancels or deletes a batch, never takes the count of the requests for a proof, and never lets the Ledger
// forget the requests while one batch that it could be was not compared.
func (c *Client) Identify(ctx context.Context, candidates []anthropic.MessageBatch, requests []Request) (*anthropic.MessageBatch, error) {
	in := inspect(c.Run, requests)
	if len(candidates) == 0 {
		return nil, &DoubtfulError{Key: in.key(), Err: ErrNoCandidates}
	}
	s := suspects{client: c, key: in.key(), requests: requests, compared: map[string]bool{}}
	if err := s.recorded(ctx); err != nil {
		return nil, err
	}
	same, err := s.compare(ctx, candidates)
	if err == nil && len(same) == 0 {
		same, err = s.others(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case len(same) > 1:
		return nil, &DoubtfulError{Key: s.key, Candidates: same}
	case len(same) == 1:
		c.remember(same[0].ID)
		if c.Ledger != nil {
			return &same[0], once.Resolve(ctx, c.Ledger, s.key, same[0].ID)
		}
		return &same[0], nil
	}
	if c.Ledger != nil {
		if err := c.Ledger.Forget(ctx, s.key); err != nil {
			return nil, err
		}
	}
	return nil, ErrNotMade
}

// suspects are the batches of one Identify.
type suspects struct {
	client   *Client
	key      string
	requests []Request
	compared map[string]bool // by id
	record   time.Time       // when the ledger noted the creation, by our clock; zero: it did not
	earliest time.Time       // creation of those compared, by the server's clock
}

// recorded asks the ledger when the creation began.
func (s *suspects) recorded(ctx context.Context) error {
	if s.client.Ledger == nil {
		return nil
	}
	r, found, err := s.client.Ledger.Record(ctx, s.key)
	if found && r.State != once.Done {
		s.record = r.First
	}
	return err
}

// compare returns those that have the custom ids of the requests.
func (s *suspects) compare(ctx context.Context, candidates []anthropic.MessageBatch) (same []anthropic.MessageBatch, err error) {
	for i := range candidates {
		ended, err := s.client.Wait(ctx, candidates[i].ID)
		if err != nil {
			return nil, err
		}
		ours, err := s.client.holds(ctx, ended, s.requests)
		if err != nil {
			return nil, err
		}
		if ours && !s.compared[ended.ID] {
			same = append(same, *ended)
		}
		s.compared[ended.ID] = true
		if s.earliest.IsZero() || ended.CreatedAt.Before(s.earliest) {
			s.earliest = ended.CreatedAt
		}
	}
	return same, nil
}

// others compares what else the list has of the time and the number of requests: the candidates need not be all it had.
func (s *suspects) others(ctx context.Context) ([]anthropic.MessageBatch, error) {
	began := s.earliest
	if !s.record.IsZero() {
		began = s.record
	}
	if pause(ctx, orDefault(s.client.Settle, defaultSettle)-time.Since(began)) != nil {
		return nil, &DoubtfulError{Key: s.key, List: context.Cause(ctx)}
	}
	from := began.Add(-slackOfRecords)
	told := func(resp *http.Response) {
		if !s.record.IsZero() {
			from = began.Add(clockLead(resp.Header, time.Now()) - slackOfRecords)
		}
	}
	var more []anthropic.MessageBatch
	for one, err := range s.client.batches(ctx, told) {
		if err != nil {
			return nil, &DoubtfulError{Key: s.key, List: err}
		}
		if one.CreatedAt.Before(from) {
			break // the latest come first
		}
		running := one.ProcessingStatus != anthropic.MessageBatchProcessingStatusEnded
		if sizeOf(&one) == int64(len(s.requests)) && !s.compared[one.ID] && (!running || !s.client.knows(one.ID)) {
			more = append(more, one)
		}
	}
	return s.compare(ctx, more)
}
