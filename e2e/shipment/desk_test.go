package shipment_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/once"
	"holdfast/standin"
	"holdfast/transport"
	"holdfast/turn"
)

// expect is what the desk must have seen of SHP-1, and the requests that the API must have.
func (o *office) expect(t *testing.T, posts, tickets, requests int) {
	t.Helper()
	if o.posted("SHP-1") != posts || len(o.of("SHP-1")) != tickets || len(o.upstream.Journal()) != requests {
		t.Errorf("%d posts, %d tickets, %d requests; want %d, %d and %d", o.posted("SHP-1"), len(o.of("SHP-1")), len(o.upstream.Journal()), posts, tickets, requests)
	}
}

func TestAcknowledgementsThatAreLost(t *testing.T) {
	for lost, posts := range []int{1, 2, 3, 4, 4} { // four attempts are what a call has
		inBubble(t, fmt.Sprint(lost, " lost"), func(t *testing.T) {
			o := newOffice("{}")
			defer o.close()
			for range lost {
				o.loseAcknowledgement("SHP-1")
			}
			c := newClerk(o.api(), o.far(), once.NewMemory(), time.Now)
			s := shipment{Number: "SHP-1"}
			err := c.handle(t.Context(), &s)
			var doubt *once.UnknownError
			if lost < 4 && (err != nil || s.Ticket != "TCK-1") || lost == 4 && (!errors.As(err, &doubt) || s.Ticket != "") {
				t.Errorf("%v, ticket %q", err, s.Ticket)
			}
			o.expect(t, posts, 1, 1)
			if err := c.handle(t.Context(), &s); err != nil || s.Ticket != "TCK-1" {
				t.Errorf("later: %v, ticket %q", err, s.Ticket)
			}
			o.expect(t, max(posts, lost+1), 1, 1)
		})
	}
}

// A desk that was never reached is no doubt: nothing is recorded, and the note, which is paid for, is not asked for again.
func TestDeskThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice("{}")
		defer o.close()
		c := newClerk(o.api(), o.far(), once.NewMemory(), time.Now)
		s := shipment{Number: "SHP-1"}
		o.network.Refuse("desk.test")
		err := c.handle(t.Context(), &s)
		var doubt *once.UnknownError
		if _, recorded, _ := c.ledger.Record(t.Context(), once.Key("ticket", "SHP-1")); err == nil || errors.As(err, &doubt) || recorded {
			t.Errorf("%v, recorded %v", err, recorded)
		}
		o.expect(t, 0, 0, 1)
		o.network.Restore("desk.test")
		if err := c.handle(t.Context(), &s); err != nil || s.Ticket != "TCK-1" {
			t.Errorf("later: %v, %q", err, s.Ticket)
		}
		o.expect(t, 1, 1, 1)
	})
}

// diesPosting is a process that dies when it posts, before anything of it has left.
type diesPosting struct{ dead *atomic.Bool }

func (d diesPosting) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.Body.Close()
	d.dead.Store(true)
	return nil, errors.New("gone")
}

// A process dies beside the ticket. The next one waits until it must be dead, a little more than two minutes, and asks the
// desk with the same key.
func TestProcessesThatDie(t *testing.T) {
	for name, posts := range map[string]int{"before the ticket": 1, "between ticket and record": 2} {
		inBubble(t, name, func(t *testing.T) {
			o := newOffice("{}")
			defer o.close()
			store, s := once.NewMemory(), shipment{Number: "SHP-1"}
			dead := atomic.Bool{}
			dying := newClerk(o.api(), diesPosting{&dead}, &dying{store, dead.Load}, time.Now)
			if posts == 2 {
				dying = newClerk(o.api(), o.far(), o.dying(store, "SHP-1"), time.Now)
			}
			_ = dying.handle(t.Context(), &s)
			s.Ticket = "" // which nobody has heard of
			o.expect(t, posts-1, posts-1, 1)

			start := time.Now()
			next := newClerk(o.api(), o.far(), store, time.Now)
			if err := next.handle(t.Context(), &s); err != nil || s.Ticket != "TCK-1" {
				t.Errorf("%v, ticket %q", err, s.Ticket)
			}
			if took := time.Since(start); took < 2*time.Minute || took > 3*time.Minute {
				t.Errorf("the next process waited %v", took)
			}
			o.expect(t, posts, 1, 1)
			r, _, err := next.ledger.Record(t.Context(), once.Key("ticket", "SHP-1"))
			if err != nil || r.State != once.Done || r.Starts != 2 {
				t.Errorf("the record is %v after %d starts, %v", r.State, r.Starts, err)
			}
		})
	}
}

// Any number of clerks in two processes: one ticket, and everybody has it.
func TestManyClerksOpenOneTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice("{}")
		defer o.close()
		o.loseAcknowledgement("SHP-1")
		store := once.NewMemory()
		var all sync.WaitGroup
		for range 2 {
			c := newClerk(o.api(), o.far(), store, time.Now)
			for range 20 {
				all.Go(func() {
					s := shipment{Number: "SHP-1"}
					if err := c.handle(t.Context(), &s); err != nil || s.Ticket != "TCK-1" {
						t.Errorf("%v, ticket %q", err, s.Ticket)
					}
				})
			}
		}
		all.Wait()
		o.expect(t, 2, 1, 40)
	})
}

// B53: a stream dies behind its content, so the job asks the same turn again, without a stream. It pays twice, which its
// result says, and acts once.
func TestB53_ATurnThatIsAskedAgainActsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := officeOf(standin.Plan{Steps: []standin.Step{{Kind: standin.Cut, After: 4}}})
		defer o.close()
		c := newClerk(o.api(), o.far(), once.NewMemory(), time.Now)
		calls := holdfast.Policy{}
		c.claude = anthropic.NewClient(option.WithMaxRetries(0), option.WithBaseURL("http://api.test"), option.WithAPIKey("any"),
			option.WithHTTPClient(&http.Client{Transport: o.api()}), option.WithMiddleware(transport.Middleware(&calls)))
		s := shipment{Number: "SHP-1"}
		err := c.handle(t.Context(), &s)
		if !errors.Is(err, turn.ErrUnfinished) || !errors.Is(err, holdfast.ErrCut) || !s.Answer.Usage.Partial || s.Answer.Usage.Input == 0 {
			t.Errorf("%v, %+v", err, s.Answer.Usage)
		}
		o.expect(t, 0, 0, 1)
		c.turns.Stream = false
		if err := c.handle(t.Context(), &s); err != nil || s.Ticket != "TCK-1" || s.Note != note {
			t.Errorf("%v, ticket %q", err, s.Ticket)
		}
		if err := c.handle(t.Context(), &shipment{Number: "SHP-1"}); err != nil {
			t.Error(err)
		}
		o.expect(t, 1, 1, 3)
	})
}

// A caller who leaves while the note is written leaves nothing behind.
func TestCallersWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := officeOf(standin.Plan{Latency: standin.Latency{FirstToken: standin.Spread{Min: 200 * time.Millisecond, Max: 200 * time.Millisecond}}})
		defer o.close()
		c := newClerk(o.api(), o.far(), once.NewMemory(), time.Now)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		s := shipment{Number: "SHP-1"}
		if err := c.handle(ctx, &s); !errors.Is(err, context.DeadlineExceeded) || s.Answer.Outcome != turn.Unfinished {
			t.Errorf("%v, %v", err, s.Answer.Outcome)
		}
		o.expect(t, 0, 0, 1)
	})
}
