package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"holdfast/internal/testnet"
	"holdfast/standin"
)

// goSDK is one of the Go SDKs, making an ordinary call with its own retries.
type goSDK struct {
	name string
	call func(ctx context.Context, client *http.Client, url string, timeout time.Duration) error
}

var goSDKs = []goSDK{
	{"anthropic", func(ctx context.Context, client *http.Client, url string, timeout time.Duration) error {
		c := anthropicClient(client, url, option.WithHeader("x-test", "1"))
		var more []option.RequestOption
		if timeout > 0 {
			more = append(more, option.WithRequestTimeout(timeout))
		}
		_, err := c.Messages.New(ctx, params(), more...)
		return err
	}},
	{"openai", func(ctx context.Context, client *http.Client, url string, timeout time.Duration) error {
		c := openaiClient(client, url, openaioption.WithHeader("x-test", "1"))
		var more []openaioption.RequestOption
		if timeout > 0 {
			more = append(more, openaioption.WithRequestTimeout(timeout))
		}
		_, err := c.Chat.Completions.New(ctx, chatParams(), more...)
		return err
	}},
}

func chatParams() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "gpt-6", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
}

// waited is the shortest and the longest time between two attempts that is right.
type waited struct{ least, most time.Duration }

func exactly(d time.Duration) waited { return waited{d, d} }

// byItself are the waits that both SDKs take when no reply names one: 0.5 s doubled, less up to a quarter.
var byItself = []waited{{375 * time.Millisecond, 500 * time.Millisecond}, {750 * time.Millisecond, time.Second}}

// outcome is what an SDK makes of a fault.
type outcome struct {
	status int  // of its error; 0: no error of the API
	failed bool // with any error
	waits  []waited
}

// gaveUp is an outcome after as many attempts as there are waits, and one.
func gaveUp(status int, waits ...waited) outcome { return outcome{status, true, waits} }

func recovered(waits ...waited) outcome { return outcome{0, false, waits} }

// sdkRow is what one plan makes of both SDKs.
type sdkRow struct {
	name      string
	plan      standin.Plan
	timeout   time.Duration // of each attempt; 0: the SDK's default
	leave     time.Duration // when the caller gives up; 0: never
	anthropic outcome
	openai    outcome
}

// The waits are exact, for the bubble's clock moves only while all wait.
func TestRetriesOfTheGoSDKs(t *testing.T) {
	for _, row := range slices.Concat(sdkStatusRows(), sdkWaitRows(), sdkBrokenRows()) {
		for _, sdk := range goSDKs {
			t.Run(row.name+"/"+sdk.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					want := row.anthropic
					if sdk.name == "openai" {
						want = row.openai
					}
					row.play(t, sdk, want)
				})
			})
		}
	}
}

func (row sdkRow) play(t *testing.T, sdk goSDK, want outcome) {
	net := testnet.New()
	s := standin.New(row.plan)
	server := net.Serve(t, "api.test:80", s)
	t.Cleanup(s.Close)
	ctx := t.Context()
	if row.leave > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, row.leave)
		defer cancel()
	}
	start := time.Now()
	err := sdk.call(ctx, net.Client(), server.URL, row.timeout)
	if (err != nil) != want.failed || statusOf(err) != want.status {
		t.Errorf("error %v of status %d, want status %d", err, statusOf(err), want.status)
	}
	if spent := time.Since(start); row.leave > 0 && spent != row.leave {
		t.Errorf("the call came back after %v, want %v", spent, row.leave)
	}
	j := s.Journal()
	right := slices.EqualFunc(j.Gaps(), want.waits, func(got time.Duration, want waited) bool { return want.least <= got && got <= want.most })
	if len(j) != len(want.waits)+1 || !right {
		t.Errorf("%d attempts, waits %v, want %v", len(j), j.Gaps(), want.waits)
	}
	for i, e := range j {
		if e.SDKRetry != i || e.Digest != j[0].Digest {
			t.Errorf("attempt %d: counted %d by the client, same body %v", i+1, e.SDKRetry, e.Digest == j[0].Digest)
		}
	}
}

// statusOf is the status in an error of either SDK; 0 for other errors.
func statusOf(err error) int {
	a, o := new(anthropic.Error), new(openai.Error)
	switch {
	case errors.As(err, &a):
		return a.StatusCode
	case errors.As(err, &o):
		return o.StatusCode
	}
	return 0
}

// sdkStatusRows are the statuses, and the header that overrules them.
func sdkStatusRows() []sdkRow {
	var rows []sdkRow
	for status, attempts := range map[int]int{
		400: 1, 401: 1, 402: 1, 403: 1, 404: 1, 408: 3, 409: 3, 413: 1, 422: 1, 424: 1, 429: 3, 500: 3, 502: 3, 503: 3, 504: 3, 529: 3,
	} {
		want := gaveUp(status, byItself[:attempts-1]...)
		rows = append(rows, sdkRow{name: strconv.Itoa(status), plan: standin.Failing(-1, status, ""), anthropic: want, openai: want})
	}
	told := func(status int, should string) standin.Plan {
		return always(standin.Step{Kind: standin.HTTP, Status: status, Header: standin.Header{"x-should-retry": {should}}})
	}
	spent := always(standin.Step{Kind: standin.HTTP, Status: 429, Code: "enforced_spend_limit_reached"})
	page := always(standin.Step{Kind: standin.HTTP, Status: 413, Body: "<html>too large</html>", ContentType: "text/html"})
	return append(rows,
		sdkRow{name: "529 and x-should-retry false", plan: told(529, "false"), anthropic: gaveUp(529), openai: gaveUp(529)},
		sdkRow{name: "400 and x-should-retry true", plan: told(400, "true"), anthropic: gaveUp(400, byItself...), openai: gaveUp(400, byItself...)},
		sdkRow{name: "a spend limit is repeated as well", plan: spent, anthropic: gaveUp(429, byItself...), openai: gaveUp(429, byItself...)},
		sdkRow{name: "413 as a page", plan: page, anthropic: gaveUp(413), openai: gaveUp(413)},
		sdkRow{name: "twice 529, then the answer", plan: standin.Failing(2, 529, ""), anthropic: recovered(byItself...), openai: recovered(byItself...)},
	)
}

// sdkWaitRows are the forms of retry-after. The bubble's clock begins at midnight of 2000-01-01, UTC.
func sdkWaitRows() []sdkRow {
	const second = time.Second
	once := func(header standin.Header) standin.Plan {
		return steps(standin.Step{Kind: standin.HTTP, Status: 429, Header: header})
	}
	after := func(value string) standin.Plan { return once(standin.Header{"retry-after": {value}}) }
	own := recovered(byItself[0])
	return []sdkRow{
		{name: "seconds", plan: after("3"), anthropic: recovered(exactly(3 * second)), openai: recovered(exactly(3 * second))},
		{name: "a fraction", plan: after("0.25"), anthropic: recovered(exactly(second / 4)), openai: recovered(exactly(second / 4))},
		{name: "a date", plan: after("Sat, 01 Jan 2000 00:00:03 GMT"), anthropic: recovered(exactly(3 * second)), openai: recovered(exactly(3 * second))},
		{name: "milliseconds win", plan: once(standin.Header{"retry-after-ms": {"100"}, "retry-after": {"9"}}),
			anthropic: recovered(exactly(second / 10)), openai: recovered(exactly(second / 10))},
		{name: "zero is at once", plan: after("0"), anthropic: recovered(exactly(0)), openai: recovered(exactly(0))},
		{name: "negative", plan: after("-5"), anthropic: recovered(exactly(0)), openai: own},
		{name: "a past date is at once", plan: after("Wed, 21 Oct 1998 07:28:00 GMT"), anthropic: recovered(exactly(0)), openai: recovered(exactly(0))},
		{name: "no number", plan: after("soon"), anthropic: own, openai: own},
		{name: "two minutes", plan: after("120"), anthropic: recovered(exactly(120 * second)), openai: recovered(exactly(120 * second))},
		{name: "an hour", plan: after("3600"), anthropic: recovered(exactly(time.Hour)), openai: gaveUp(429)},
		{name: "a minute, and a caller who has two seconds", plan: after("60"), leave: 2 * second, anthropic: gaveUp(0), openai: gaveUp(0)},
	}
}

// sdkBrokenRows are replies that break off or never begin.
func sdkBrokenRows() []sdkRow {
	slow := func(w waited) waited { return waited{w.least + 20*time.Second, w.most + 20*time.Second} }
	return []sdkRow{
		{name: "a reset before the headers", plan: always(standin.Step{Kind: standin.Reset}), anthropic: gaveUp(0, byItself...), openai: gaveUp(0, byItself...)},
		{name: "one reset", plan: steps(standin.Step{Kind: standin.Reset}), anthropic: recovered(byItself[0]), openai: recovered(byItself[0])},
		{name: "no byte within the timeout", plan: always(standin.Step{Kind: standin.Timeout}), timeout: 20 * time.Second,
			anthropic: gaveUp(0, slow(byItself[0]), slow(byItself[1])), openai: gaveUp(0)},
		{name: "a body that breaks off", plan: steps(standin.Step{Kind: standin.Cut, How: standin.Chunk}), anthropic: recovered(byItself[0]), openai: gaveUp(0)},
		{name: "a body that ends too soon", plan: steps(standin.Step{Kind: standin.Cut}), anthropic: gaveUp(0), openai: gaveUp(0)},
	}
}

// An error of a middleware is taken for a broken connection by both SDKs, and repeated.
func TestMiddlewareErrorsOfTheGoSDKs(t *testing.T) {
	open := errors.New("circuit open")
	for name, call := range map[string]func(ctx context.Context, client *http.Client, url string, calls *int) error{
		"anthropic": func(ctx context.Context, client *http.Client, url string, calls *int) error {
			c := anthropicClient(client, url, option.WithMiddleware(func(*http.Request, option.MiddlewareNext) (*http.Response, error) { *calls++; return nil, open }))
			_, err := c.Messages.New(ctx, params())
			return err
		},
		"openai": func(ctx context.Context, client *http.Client, url string, calls *int) error {
			c := openaiClient(client, url, openaioption.WithMiddleware(func(*http.Request, openaioption.MiddlewareNext) (*http.Response, error) { *calls++; return nil, open }))
			_, err := c.Chat.Completions.New(ctx, chatParams())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := testnet.New()
				s := standin.New(standin.Plan{})
				server := net.Serve(t, "api.test:80", s)
				calls := 0
				err := call(t.Context(), net.Client(), server.URL, &calls)
				if !errors.Is(err, open) || calls != 3 || len(s.Journal()) != 0 {
					t.Errorf("error %v after %d calls, %d requests", err, calls, len(s.Journal()))
				}
			})
		})
	}
}

// A stream that breaks is not begun anew by either SDK, wherever it breaks. A clean end before the last event is no error
// to them at all.
func TestBrokenStreamsOfTheGoSDKs(t *testing.T) {
	for name, c := range map[string]struct {
		step   standin.Step
		failed bool
		status int // in the error of the Anthropic SDK
	}{
		"error event first":         {standin.Step{Kind: standin.Error, At: standin.First}, true, 200},
		"error event after content": {standin.Step{Kind: standin.Error, After: 2}, true, 200},
		"cut inside a chunk":        {standin.Step{Kind: standin.Cut, How: standin.Chunk, After: 2}, true, 0},
		"cut by a reset":            {standin.Step{Kind: standin.Cut, How: standin.RST, After: 2, Gap: time.Second}, true, 0}, // the gap: a reset takes what was not read yet
		"cut clean":                 {standin.Step{Kind: standin.Cut, After: 2}, false, 0},
		"cut clean before the end":  {standin.Step{Kind: standin.Cut, At: standin.Stop}, false, 0},
	} {
		for sdk, read := range map[string]func(client *http.Client, url string) (int, error){"anthropic": readMessages, "openai": readChunks} {
			t.Run(name+"/"+sdk, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := testnet.New()
					s := standin.New(always(c.step))
					server := net.Serve(t, "api.test:80", s)
					events, err := read(net.Client(), server.URL)
					if (err != nil) != c.failed || sdk == "anthropic" && statusOf(err) != c.status {
						t.Errorf("error %v of status %d after %d events", err, statusOf(err), events)
					}
					if n := len(s.Journal()); n != 1 {
						t.Errorf("%d attempts at a stream that had begun", n)
					}
				})
			})
		}
	}
}

func readMessages(client *http.Client, url string) (events int, err error) {
	c := anthropicClient(client, url, option.WithHeader("x-test", "1"))
	stream := c.Messages.NewStreaming(context.Background(), params())
	defer stream.Close()
	for stream.Next() {
		events++
	}
	return events, stream.Err()
}

func readChunks(client *http.Client, url string) (chunks int, err error) {
	c := openaiClient(client, url, openaioption.WithHeader("x-test", "1"))
	stream := c.Chat.Completions.NewStreaming(context.Background(), chatParams())
	defer stream.Close()
	for stream.Next() {
		chunks++
	}
	return chunks, stream.Err()
}

// The Anthropic SDK refuses a call by itself that could take longer than ten minutes: an hour for 128,000 tokens.
func TestLongCallsOfTheGoSDK(t *testing.T) {
	for tokens, requests := range map[int64]int{21_333: 1, 21_334: 0} {
		net := testnet.New()
		s := standin.New(standin.Plan{})
		server := net.Serve(t, "api.test:80", s)
		c := anthropicClient(net.Client(), server.URL, option.WithHeader("x-test", "1"))
		p := params()
		p.MaxTokens = tokens
		_, err := c.Messages.New(t.Context(), p)
		if (err == nil) != (requests == 1) || len(s.Journal()) != requests {
			t.Errorf("max_tokens %d: error %v, %d requests, want %d", tokens, err, len(s.Journal()), requests)
		}
	}
}
