package shipment_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/once"
	"holdfast/transport"
	"holdfast/turn"
)

// clerk writes a note for each shipment and opens one ticket with it, through every fault.
type clerk struct {
	claude anthropic.Client
	turns  turn.Policy
	ledger *once.Ledger
	desk   desk // whose http.Client has a once.Transport
}

type shipment struct {
	Number, Note, Ticket string
	Answer               turn.Result // every request, and what it cost
}

func (c *clerk) handle(ctx context.Context, s *shipment) (err error) {
	if s.Note == "" {
		s.Answer, err = turn.Run(ctx, &c.claude.Messages, &c.turns, anthropic.MessageNewParams{
			Model: "claude-sonnet-5-5", MaxTokens: 60,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Write the note for shipment " + s.Number + "."))},
		})
		if err != nil {
			return err // truncated, refused, paused, …: no whole answer, no ticket
		}
		s.Note = s.Answer.Text // save it with the shipment: whoever goes on after a crash posts the same note
	}
	opened, err := once.Do(ctx, c.ledger, once.Key("ticket", s.Number), once.Effect[string]{
		Run:     func(ctx context.Context, _ string) (string, error) { return c.desk.open(ctx, s.Number, s.Note) },
		Replays: true, // the desk honours Idempotency-Key
	})
	s.Ticket = opened.Value
	return err // an *once.UnknownError if nobody can know whether there is a ticket
}

// newClerk connects a clerk. In a program of yours api and far are nil, which is net/http's own transport, and the store is
// that of once.OpenSQLite or once.OpenPostgres.
func newClerk(api, far http.RoundTripper, store once.Store, now func() time.Time) *clerk {
	calls := holdfast.Policy{
		Deadline: 10 * time.Second, AttemptTimeout: 500 * time.Millisecond, // an Example does not like to wait
		Backoff: holdfast.Backoff{Base: 10 * time.Millisecond},
	}
	return &clerk{
		claude: anthropic.NewClient(option.WithMaxRetries(0), option.WithBaseURL("http://api.test"), option.WithAPIKey("any"),
			// Whole: nobody looks at these streams while they come, so one that is cut is asked for again.
			option.WithHTTPClient(&http.Client{Transport: &transport.Transport{Policy: &calls, Base: api, Whole: true}})),
		turns:  turn.Policy{FallbackModel: "claude-opus-5-5", Stream: true},
		ledger: once.New(store, once.Options{Now: now}),
		desk:   desk{http.Client{Transport: &once.Transport{Base: far}}},
	}
}

func Example() {
	here := newOffice(`jobs:
  SHP-102: [{kind: http, status: 429, retry_after: 0.05}]
  SHP-103: [{kind: http, status: 529}]
  SHP-104: [{kind: timeout}]
  SHP-105: [{kind: cut, after: 3}]
  SHP-106: [{kind: truncation}]
  SHP-107: [{kind: refusal, category: cyber}]
  SHP-108: [{kind: pause_turn}]
  SHP-109: [{kind: refusal}, {kind: refusal}]`)
	defer here.close()
	here.loseAcknowledgement("SHP-110")
	store := once.NewMemory()
	c := newClerk(here.api(), here.far(), store, time.Now)
	for n := 101; n <= 110; n++ {
		s := shipment{Number: fmt.Sprint("SHP-", n)}
		err := c.handle(context.Background(), &s)
		fmt.Println(here.summary(&s, err))
	}

	// This process dies when the ticket is open and not yet recorded. Another one goes on an hour later.
	s := shipment{Number: "SHP-111"}
	_ = newClerk(here.api(), here.far(), here.dying(store, "SHP-111"), time.Now).handle(context.Background(), &s)
	later := newClerk(here.api(), here.far(), store, func() time.Time { return time.Now().Add(time.Hour) })
	err := later.handle(context.Background(), &s)
	fmt.Println(here.summary(&s, err))
	// Output:
	// SHP-101 completed: end_turn. TCK-1
	// SHP-102 completed: end_turn. TCK-2
	// SHP-103 completed: end_turn. TCK-3
	// SHP-104 completed: end_turn. TCK-4
	// SHP-105 completed: end_turn. TCK-5
	// SHP-106 completed: max_tokens at 60, budget raised to 240; end_turn. TCK-6
	// SHP-107 completed: refusal, category cyber, fallback model; end_turn; by claude-opus-5-5. TCK-7
	// SHP-108 completed: paused, resumed; end_turn. TCK-8
	// SHP-109 human_review: refusal, fallback model; refusal, by the fallback model too; by claude-opus-5-5. No ticket
	// SHP-110 completed: end_turn. TCK-9 after 2 posts
	// SHP-111 completed: end_turn. TCK-10 after 2 posts
}
