package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/standin"
)

// demoCaller calls an API with the SDK as it comes, its two retries included.
type demoCaller struct {
	url  string
	http *http.Client
}

// seen is what a caller saw of one call.
type seen struct {
	answered bool
	failure  string // in words, of a call that was not answered
	source   string // as of the header holdfast-source; empty without a gateway
	attempts int
	wait     time.Duration
}

// sdkRetries is the default of the SDK, written out because newClient turns them off.
const sdkRetries = 2

// call makes call n: two of three are streams.
func (d demoCaller) call(ctx context.Context, n int) seen {
	c := newClient("claude-sonnet-5-5", 1024, demoQuestion,
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(d.url), option.WithAPIKey("any"), option.WithMaxRetries(sdkRetries),
		option.WithHTTPClient(d.http), option.WithHeader("x-custom-id", callName(n)))
	send := c.whole
	if streamed(n) {
		send = c.open
	}
	r, err := send(ctx)
	if err == nil {
		err = r.rest(func(string) bool { return true })
		r.settle(err)
	}
	s := seen{answered: err == nil, source: c.header.Get("holdfast-source")}
	s.attempts, _ = strconv.Atoi(c.header.Get("holdfast-attempts")) // 0: no gateway
	ms, _ := strconv.Atoi(c.header.Get("holdfast-wait-ms"))
	s.wait = time.Duration(ms) * time.Millisecond
	if err != nil {
		s.failure = failureSeen(err, c.header)
	}
	return s
}

// failureSeen says in a few words what a caller is left with.
func failureSeen(err error, header http.Header) string {
	v := holdfast.Judge(err)
	switch {
	case v.Status >= 300:
		return class(v)
	case header != nil:
		return "the answer broke off"
	}
	return plainError(err).Error()
}

func callName(n int) string { return "call-" + strconv.Itoa(n) }

func streamed(n int) bool { return n%3 != 0 }

// String says what the caller saw, and what the gateway says it did for it.
func (s seen) String() string {
	if !s.answered {
		return "FAILED: " + s.failure
	}
	words := []string{"answered"}
	if s.source != "" {
		words = append(words, s.source)
	}
	if s.attempts > 1 {
		words = append(words, plural(s.attempts, "attempt"))
	}
	if s.wait > 0 {
		words = append(words, "waited "+seconds(s.wait))
	}
	return strings.Join(words, ", ")
}

// repliesTo lists what a stand-in did with one call: 429 429 200.
func repliesTo(server *standin.Server, n int) string {
	return series("", server.Journal().Job(callName(n)), replied)
}

// tally counts what callers saw.
type tally struct {
	calls, answered int
	source          map[string]int
}

func (t *tally) add(s seen) {
	t.calls++
	if !s.answered {
		return
	}
	t.answered++
	if t.source == nil {
		t.source = map[string]int{}
	}
	t.source[s.source]++
}

// row is the tally as a line of the table below tallyHead.
func (t *tally) row(name string, requests int) string {
	live := t.source["live"] + t.source[""] // without a gateway, every answer is live
	return fmt.Sprintf("%-22s %7d %9d %6d %9d %6d %7d %9d", name, t.calls, t.answered, live, t.source["fallback"], t.source["saved"], t.calls-t.answered, requests)
}

var tallyHead = fmt.Sprintf("%-22s %7s %9s %6s %9s %6s %7s %9s", "", "calls", "answered", "live", "fallback", "saved", "failed", "requests")
