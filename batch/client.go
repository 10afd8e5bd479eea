package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/jsonl"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/pagination"

	"holdfast"
	"holdfast/once"
)

// Request is one request of a batch, as the SDK has it.
type Request = anthropic.MessageBatchNewParamsRequest

// API is the part of the SDK's service of message batches that is used: &client.Messages.Batches.
type API interface {
	New(ctx context.Context, params anthropic.MessageBatchNewParams, opts ...option.RequestOption) (*anthropic.MessageBatch, error)
	Get(ctx context.Context, id string, query anthropic.MessageBatchGetParams, opts ...option.RequestOption) (*anthropic.MessageBatch, error)
	List(ctx context.Context, params anthropic.MessageBatchListParams, opts ...option.RequestOption) (*pagination.Page[anthropic.MessageBatch], error)
	ResultsStreaming(ctx context.Context, id string, query anthropic.MessageBatchResultsParams, opts ...option.RequestOption) *jsonl.Stream[anthropic.MessageBatchIndividualResponse]
}

// Client works with the message batches of one workspace. Only API is required. It is safe for concurrent use and must not
// be copied; its fields must not be changed once it is in use. Creates of one Client run one after another, so that the
// batch of one is never taken for that of another: use one Client for all batches of a workspace that a process makes.
type Client struct {
	// API is &client.Messages.Batches of the SDK. Its own retries are turned off for each request.
	API API
	// Policy says how single requests are kept working. Its Targets are not used: a batch is where it was made.
	// Default: the zero Policy.
	Policy *holdfast.Policy
	// Options go with every request, such as a header with the workspace. Default: none.
	Options []option.RequestOption

	// Ledger records that a batch is about to be created, and its id, so that a crash between the two is survived, and so that
	// processes which create the same batch at once make one of it. After a crash Create waits until the dead run's time is
	// over, a little more than the policy's Deadline, and then searches. Default: none; then a crash before the caller has
	// kept the id loses the batch, and Create would make it again.
	Ledger *once.Ledger
	// Run tells batches of equal requests apart that are wanted more than once: it is a part of their key. Default: none;
	// then a Ledger gives the batch of equal requests back, and makes no second one.
	Run string
	// Settle is how long the list is searched for a batch whose reply was lost, and a little longer
	// if it has just appeared. Default: 1m. Negative: no longer than that.
	Settle time.Duration
	// Resend sends the batch once more if the reply was lost and no look during Settle has shown it. A list that is
	// later than Settle makes that a second batch. Default: off; then Create returns a [*DoubtfulError].
	Resend bool
	// Shared tells that others create batches in this workspace too. Then a batch that only looks like the lost one is
	// never adopted, and Create returns it as a candidate. Default: a lone candidate is adopted by its time and count.
	Shared bool

	// Poll and MaxPoll bound the time between two looks of Wait, which grows by half each time; chance takes up to a
	// fifth of it. A wait that the server names is never cut short. Default: 10s and 2m. Negative: as the default.
	Poll    time.Duration
	MaxPoll time.Duration
	// Appear is how long a batch may be unknown to the API, one 404 after another, before that is believed. Default:
	// 2m. Negative: the first 404 is believed.
	Appear time.Duration
	// Observe is told of the batch at every look of Wait, by the goroutine that waits. Default: nobody is told.
	Observe func(*anthropic.MessageBatch)

	once sync.Once
	gate chan struct{} // held while a batch is created

	mu    sync.Mutex
	known []string // ids of batches that were made or adopted, the latest last
}

const (
	defaultSettle  = time.Minute
	defaultPoll    = 10 * time.Second
	defaultMaxPoll = 2 * time.Minute
	defaultAppear  = 2 * time.Minute

	remembered = 10_000 // ids: more than a workspace can create within a Settle
)

// enter waits until no other batch is being created.
func (c *Client) enter(ctx context.Context) error {
	c.once.Do(func() { c.gate = make(chan struct{}, 1) })
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) leave() { <-c.gate }

// remember keeps the id of a batch that is spoken for.
func (c *Client) remember(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.known, id) {
		return
	}
	if len(c.known) == remembered {
		c.known = slices.Delete(c.known, 0, 1)
	}
	c.known = append(c.known, id)
}

func (c *Client) knows(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.known, id)
}

// options are those of one request without retries of the SDK.
func (c *Client) options(more ...option.RequestOption) []option.RequestOption {
	return slices.Concat(c.Options, []option.RequestOption{option.WithMaxRetries(0)}, more)
}

func (c *Client) policy() holdfast.Policy {
	if c.Policy == nil {
		return holdfast.Policy{}
	}
	p := *c.Policy
	p.Targets = nil
	return p
}

// reading is the policy for requests that change nothing: a reply that cannot be read is asked for again.
func reading(policy *holdfast.Policy) *holdfast.Policy {
	var p holdfast.Policy
	if policy != nil {
		p = *policy
	}
	judge := p.Judge
	if judge == nil {
		judge = holdfast.Judge
	}
	p.Judge = func(err error) holdfast.Verdict {
		v := judge(err)
		if v.Kind == holdfast.Terminal && v.Status == 0 && !v.NotSent {
			v.Kind, v.Rule = holdfast.Broken, "unreadable-reply"
		}
		return v
	}
	return &p
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dice is a number from [0, 1).
func (c *Client) dice() float64 {
	if c.Policy != nil && c.Policy.Dice != nil {
		return min(max(c.Policy.Dice(), 0), 1)
	}
	return rand.Float64()
}

// orDefault gives zero its documented meaning.
func orDefault(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}

// verdictOf is what an error means, whoever has judged it already.
func verdictOf(err error) holdfast.Verdict {
	var ours *holdfast.Error
	if errors.As(err, &ours) {
		return ours.Verdict
	}
	return holdfast.Judge(err)
}
