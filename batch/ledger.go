package batch

import (
	"context"
	"errors"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast"
	"holdfast/once"
)

// Creating a batch is an effect of package once, whose far side honours no keys but can be asked: by a search of its list.

// errUnfinished is why a batch is searched for that a record tells of.
var errUnfinished = errors.New("batch: an earlier run was about to create it, and recorded no id")

const (
	deadline  = 10 * time.Minute // of a policy that names none
	afterword = time.Minute      // of a start, for what the deadline does not bound
)

// recorded is Create with a ledger.
func (j *job) recorded(ctx context.Context) (*anthropic.MessageBatch, Created, error) {
	ledger := j.client.Ledger
	earlier, found, err := ledger.Record(ctx, j.created.Key)
	if err != nil {
		return nil, j.created, err
	}
	j.since = time.Now()
	if found && earlier.State != once.Done {
		j.since, j.slack, j.created.Lost = earlier.First, slackOfRecords, errUnfinished
	}
	created := j.created
	for {
		result, err := once.Do(ctx, ledger, created.Key, j.effect())
		if !j.busy.TryLock() { // the caller has left, and the effect goes on for others who share it
			return nil, created, err
		}
		j.busy.Unlock()
		if err != nil && j.doubt != nil && j.doubt.absent && j.mayResend(ctx) {
			continue
		}
		return j.settled(ctx, result, err)
	}
}

func (j *job) effect() once.Effect[string] {
	p := j.client.policy()
	limit := p.Deadline
	if limit <= 0 {
		limit = deadline
	}
	return once.Effect[string]{
		Run:    j.run,
		Lookup: j.lookup,
		Policy: &holdfast.Policy{Attempts: -1, Deadline: -1}, // what may be repeated, Run has repeated
		Limit:  limit + afterword,
	}
}

// run sends the requests. The value of the effect is the id.
func (j *job) run(ctx context.Context, _ string) (string, error) {
	j.busy.Lock()
	defer j.busy.Unlock()
	j.made, j.failed, j.doubt = nil, nil, nil
	made, failed := j.post(ctx)
	if failed == nil {
		j.made, j.created.How = made, ByReply
		return made.ID, nil
	}
	if j.failed = failed; failed.neverMade() {
		return "", once.Nothing(failed.Err)
	}
	j.created.Lost = failed.Err
	return "", failed.Err
}

// lookup asks what became of it. That nothing was made is said only by who takes absence for a proof.
func (j *job) lookup(ctx context.Context, _ string) (string, bool, error) {
	j.busy.Lock()
	defer j.busy.Unlock()
	found, how, doubt := j.search(ctx)
	switch {
	case found != nil:
		j.made, j.created.How = found, how
		return found.ID, true, nil
	case doubt.absent && j.client.Resend:
		j.doubt = doubt
		return "", false, nil
	}
	j.doubt = doubt
	return "", false, doubt
}

// settled is what became of it. This job's own funcs ran only if no other caller's did.
func (j *job) settled(ctx context.Context, result once.Result[string], err error) (*anthropic.MessageBatch, Created, error) {
	var (
		store   *once.StoreError
		unknown *once.UnknownError
	)
	switch {
	case result.Value != "" && (j.made == nil || j.made.ID != result.Value):
		j.created.How = ByRecord
		seen, failed := j.client.sight(ctx, result.Value)
		j.made, err = seen, errors.Join(err, failed)
		fallthrough
	case result.Value != "":
		j.client.remember(result.Value)
		return j.made, j.created, err
	case errors.As(err, &store):
		return nil, j.created, err
	case j.doubt != nil:
		return nil, j.created, j.doubt
	case errors.As(err, &unknown):
		return nil, j.created, &DoubtfulError{Key: j.created.Key, Err: err}
	case j.failed != nil:
		return nil, j.created, j.failed.Err
	}
	return nil, j.created, err
}
