package batch

import (
	"context"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast"
)

const (
	// slackOfDates covers whole seconds and what the way takes, once the clocks are compared by a Date header.
	slackOfDates = 10 * time.Second
	// slackOfRecords is for a record of an earlier run, whose clock may have been set since.
	slackOfRecords = 15 * time.Minute

	firstLook = 2 * time.Second // between two looks at the list; it doubles
	laterLook = 15 * time.Second

	// confirmTime is how long a batch must have been the only one that it could be: the list may be late, and the first to
	// appear need not be the right one.
	confirmTime = 10 * time.Second
)

// search looks for the batch in the list until it is found, until there are too many that it could be, or until Settle is
// over. Either the batch or the doubt is nil.
func (j *job) search(ctx context.Context) (*anthropic.MessageBatch, How, *DoubtfulError) {
	var s sighting
	began, wait := time.Now(), firstLook
	settle := orDefault(j.client.Settle, defaultSettle)
	for {
		found, how := j.look(ctx, &s)
		if found != nil {
			return found, how, nil
		}
		left := settle - time.Since(began)
		if s.hopeless() || left <= 0 && (s.one == "" || left < -2*confirmTime) {
			break
		}
		d := wait + time.Duration(j.client.dice()*float64(wait)/4)
		if left > 0 {
			d = min(d, left)
		}
		if pause(ctx, d) != nil {
			break
		}
		wait = min(2*wait, laterLook)
	}
	doubt := &DoubtfulError{Key: j.created.Key, Candidates: s.candidates, Looks: s.looks, Err: j.created.Lost, List: s.err}
	if s.looks == 0 && s.err == nil {
		doubt.List = context.Cause(ctx)
	}
	doubt.absent = s.absent() && ctx.Err() == nil
	return nil, 0, doubt
}

// look looks once, and returns the batch if it is found.
func (j *job) look(ctx context.Context, s *sighting) (*anthropic.MessageBatch, How) {
	candidates, err := j.candidates(ctx)
	if err != nil {
		s.failed(err)
		return nil, 0
	}
	rest := candidates[:0]
	for i := range candidates {
		one := &candidates[i]
		if one.ProcessingStatus == anthropic.MessageBatchProcessingStatusEnded {
			switch same, err := j.client.holds(ctx, one, j.requests); {
			case err == nil && same:
				return one, ByIDs
			case err == nil:
				j.client.remember(one.ID) // it is somebody's, and surely not ours
				continue
			}
		}
		rest = append(rest, *one)
	}
	if one := s.saw(rest, time.Now()); one != nil && !j.client.Shared {
		return one, ByCount
	}
	return nil, 0
}

// candidates are the batches that the list shows and that could be this one.
func (j *job) candidates(ctx context.Context) ([]anthropic.MessageBatch, error) {
	var all []anthropic.MessageBatch
	from := j.since.Add(-j.slack)
	told := func(resp *http.Response) {
		from = j.since.Add(clockLead(resp.Header, time.Now()) - j.slack)
	}
	for one, err := range j.client.batches(ctx, told) {
		switch {
		case err != nil:
			return nil, err
		case one.CreatedAt.Before(from):
			return all, nil // the latest come first
		case sizeOf(&one) == int64(len(j.requests)) && !j.client.knows(one.ID):
			all = append(all, one)
		}
	}
	return all, nil
}

// clockLead is how far the server's clock is ahead of ours, by the Date header.
func clockLead(h http.Header, now time.Time) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return date.Sub(now)
}

// sizeOf is the number of a batch's requests, which its counts always add up to.
func sizeOf(b *anthropic.MessageBatch) int64 {
	n := &b.RequestCounts
	return n.Processing + n.Succeeded + n.Errored + n.Canceled + n.Expired
}

// sighting is what the looks have shown.
type sighting struct {
	looks      int // that showed the list
	ever       bool
	candidates []anthropic.MessageBatch
	one        string    // the id of the only candidate; empty when there is none, or several
	since      time.Time // one is the only candidate
	err        error     // of the latest look
}

// saw takes what a look has shown. It returns the batch that has been the only one for long enough.
func (s *sighting) saw(candidates []anthropic.MessageBatch, now time.Time) *anthropic.MessageBatch {
	s.looks++
	s.candidates, s.err = candidates, nil
	s.ever = s.ever || len(candidates) > 0
	switch {
	case len(candidates) != 1:
		s.one = ""
	case s.one != candidates[0].ID:
		s.one, s.since = candidates[0].ID, now
	case now.Sub(s.since) >= confirmTime:
		return &candidates[0]
	}
	return nil
}

func (s *sighting) failed(err error) { s.err = err }

// hopeless reports that further looks will not show more: two that could be it stay two.
func (s *sighting) hopeless() bool {
	return s.err == nil && len(s.candidates) > 1 || s.err != nil && verdictOf(s.err).Kind == holdfast.Terminal
}

// absent reports that the list was seen to the last, and never showed a batch that it could be.
func (s *sighting) absent() bool { return s.looks > 0 && s.err == nil && !s.ever }
