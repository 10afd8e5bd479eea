package standin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

var dawn = time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)

// posted is an exchange that arrived so many milliseconds after dawn and took
// ten; the changes make it what a test wants.
func posted(ms int, job, body string, changes ...func(*standin.Exchange)) standin.Exchange {
	arrived := dawn.Add(time.Duration(ms) * time.Millisecond)
	e := standin.Exchange{
		Arrived: arrived, HeadersAt: arrived.Add(10 * time.Millisecond), Departed: arrived.Add(10 * time.Millisecond),
		Method: "POST", Path: anthropicPath, CustomID: job, Digest: body, SDKRetry: -1, Status: 200, Fault: standin.OK, Input: 3, Output: 19,
	}
	for _, change := range changes {
		change(&e)
	}
	return e
}

func status(n int) func(*standin.Exchange) {
	return func(e *standin.Exchange) { e.Status, e.Fault, e.Input, e.Output = n, standin.HTTP, 0, 0 }
}

func asking(wait time.Duration) func(*standin.Exchange) {
	return func(e *standin.Exchange) { e.Wait = wait }
}

func sdkRetry(n int) func(*standin.Exchange) {
	return func(e *standin.Exchange) { e.SDKRetry = n }
}

func lost(e *standin.Exchange) { e.Fault, e.ClosedBy, e.Status = standin.Lost, standin.Peer, 0 }

func left(e *standin.Exchange) { e.ClosedBy, e.Output = standin.Client, 5 }

func open(e *standin.Exchange) { e.Departed = time.Time{} }

func creating(id string) func(*standin.Exchange) {
	return func(e *standin.Exchange) {
		e.Path, e.Effect, e.Input, e.Output = "/v1/messages/batches", id, 0, 0
	}
}

// journal numbers the exchanges.
func journal(exchanges ...standin.Exchange) standin.Journal {
	for i := range exchanges {
		exchanges[i].Number = i + 1
	}
	return exchanges
}

func TestLedgerTellsCallsFromAttempts(t *testing.T) {
	get := func(e *standin.Exchange) { e.Method, e.Input, e.Output = "GET", 0, 0 }
	tests := map[string]struct {
		journal standin.Journal
		want    standin.Account
	}{
		"nothing":         {nil, standin.Account{}},
		"one answer":      {journal(posted(0, "a", "x")), standin.Account{Calls: 1, Attempts: 1, Delivered: 1, Billed: 1, Input: 3, Output: 19}},
		"a retry is paid": {journal(posted(0, "a", "x", status(529)), posted(50, "a", "x")), standin.Account{Calls: 1, Attempts: 2, Delivered: 1, Billed: 1, Input: 3, Output: 19}},
		"a lost reply is paid twice": {journal(posted(0, "a", "x", lost), posted(50, "a", "x")),
			standin.Account{Calls: 1, Attempts: 2, Delivered: 1, Billed: 2, Lost: 1, Input: 6, Output: 38, PaidTwice: standin.Twice{Attempts: 1, Input: 3, Output: 19}}},
		"the same body after the answer": {journal(posted(0, "a", "x"), posted(50, "a", "x"), posted(90, "a", "x")),
			standin.Account{Calls: 1, Attempts: 3, Delivered: 3, Billed: 3, Input: 9, Output: 57, PaidTwice: standin.Twice{Attempts: 2, Input: 6, Output: 38}}},
		"the next turn of a conversation": {journal(posted(0, "a", "x"), posted(50, "a", "xy")),
			standin.Account{Calls: 2, Attempts: 2, Delivered: 2, Billed: 2, Input: 6, Output: 38}},
		"a changed attempt after a loss": {journal(posted(0, "a", "x", lost), posted(50, "a", "other model")),
			standin.Account{Calls: 1, Attempts: 2, Delivered: 1, Billed: 2, Lost: 1, Input: 6, Output: 38, PaidTwice: standin.Twice{Attempts: 1, Input: 3, Output: 19}}},
		"two at the same time": {journal(posted(0, "a", "x", status(500)), posted(5, "a", "y")),
			standin.Account{Calls: 2, Attempts: 2, Delivered: 1, Billed: 1, Input: 3, Output: 19}},
		"no job: told by the body": {journal(posted(0, "", "x", lost), posted(50, "", "y"), posted(90, "", "x")),
			standin.Account{Calls: 2, Attempts: 3, Delivered: 2, Billed: 3, Lost: 1, Input: 9, Output: 57, PaidTwice: standin.Twice{Attempts: 1, Input: 3, Output: 19}}},
		"still open":     {journal(posted(0, "a", "x", open)), standin.Account{Calls: 1, Attempts: 1, Billed: 1, Input: 3, Output: 19}},
		"polling":        {journal(posted(0, "", "", get), posted(50, "", "", get)), standin.Account{Calls: 1, Attempts: 2, Delivered: 2}},
		"another path":   {journal(posted(0, "a", "x"), posted(50, "a", "x", func(e *standin.Exchange) { e.Path = "/v1/responses" })), standin.Account{Calls: 2, Attempts: 2, Delivered: 2, Billed: 2, Input: 6, Output: 38}},
		"refused before": {journal(posted(0, "", "x", status(401)), posted(50, "a", "x")), standin.Account{Calls: 1, Attempts: 2, Delivered: 1, Billed: 1, Input: 3, Output: 19}},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.journal.Ledger().Total); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLedgerListsJobsInOrderOfArrival(t *testing.T) {
	l := journal(posted(0, "b", "x"), posted(5, "a", "x", status(529)), posted(60, "", strings.Repeat("f", 64)), posted(70, "a", "x")).Ledger()
	var got []string
	for _, a := range l.Jobs {
		got = append(got, a.Job)
	}
	if diff := cmp.Diff([]string{"b", "a", "ffffffffffff"}, got); diff != "" || l.Jobs[1].Attempts != 2 {
		t.Errorf("%+v (-want +got):\n%s", l.Jobs, diff)
	}
}

func TestLedgerShowsWhatWasCreatedTwice(t *testing.T) {
	l := journal(
		posted(0, "", "x", creating("msgbatch_1")), posted(50, "", "y", creating("msgbatch_2")), posted(90, "", "x", creating("msgbatch_3")),
	).Ledger()
	want := []standin.Effect{{Job: "x", Path: "/v1/messages/batches", Digest: "x", IDs: []string{"msgbatch_1", "msgbatch_3"}, Exchanges: []int{1, 3}}}
	if diff := cmp.Diff(want, l.Effects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeliveredIsAWholeUsableAnswer(t *testing.T) {
	for _, kind := range []standin.Kind{standin.OK, standin.Refusal, standin.Truncation, standin.Pause, standin.Duplicate, standin.StopReason} {
		if e := posted(0, "", "x", func(e *standin.Exchange) { e.Fault = kind }); !e.Delivered() {
			t.Errorf("%s: not delivered", kind)
		}
	}
	for _, kind := range []standin.Kind{standin.HTTP, standin.Error, standin.Empty, standin.HTML, standin.HalfTool, standin.Malformed, standin.Nameless, standin.Throttled, standin.Rejected, standin.SpendCap} {
		if e := posted(0, "", "x", func(e *standin.Exchange) { e.Fault = kind }); e.Delivered() {
			t.Errorf("%s: delivered", kind)
		}
	}
	for name, change := range map[string]func(*standin.Exchange){"open": open, "left": left, "lost": lost, "500": func(e *standin.Exchange) { e.Status = 500 }} {
		if posted(0, "", "x", change).Delivered() {
			t.Errorf("%s: delivered", name)
		}
	}
}

// The whole way: a server whose replies are cut bills work twice and says so.
func TestServerMarksWhatIsBilledTwice(t *testing.T) {
	s := standin.New(standin.Plan{Jobs: map[string][]standin.Step{"J-1": {{Kind: standin.Cut, How: standin.Clean}}}})
	for range 3 {
		serveOnce(s, about("J-1"))
	}
	j := s.Journal()
	if j[0].BilledTwice || !j[1].BilledTwice || !j[2].BilledTwice {
		t.Errorf("billed twice: %v, %v, %v", j[0].BilledTwice, j[1].BilledTwice, j[2].BilledTwice)
	}
	if l := s.Ledger(); l.Total.PaidTwice.Attempts != 2 || l.Total.Lost != 1 || l.Jobs[0].Job != "J-1" || l.Forgotten != 0 {
		t.Errorf("ledger %+v", l)
	}
}
