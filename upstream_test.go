package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"holdfast"
)

// apiError looks like the error structs of the SDKs: exported fields StatusCode and Response, a method RawJSON.
type apiError struct {
	StatusCode int
	Response   *http.Response
	body       string
}

func (e *apiError) Error() string   { return fmt.Sprintf("api: %d %s", e.StatusCode, e.body) }
func (e *apiError) RawJSON() string { return e.body }

// reply makes an API error from a status, a body and header pairs.
func reply(status int, body string, header ...string) error {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &apiError{StatusCode: status, Response: &http.Response{StatusCode: status, Header: h}, body: body}
}

func anthropicError(status int, kind string, header ...string) error {
	return reply(status, `{"type":"error","error":{"type":"`+kind+`","message":"x"}}`, header...)
}

// upstream is a scripted far side that notes when it was asked. A nil error is an answer; past the script's end it
// repeats the last outcome if it loops, else it answers.
type upstream struct {
	mu     sync.Mutex
	start  time.Time
	script []error
	loop   bool
	seen   []time.Duration // when, since start
	names  []string        // of the targets
}

func play(script ...error) *upstream { return &upstream{start: time.Now(), script: script} }

func always(outcome error) *upstream {
	return &upstream{start: time.Now(), script: []error{outcome}, loop: true}
}

func (u *upstream) ask(ctx context.Context) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.seen)
	u.seen = append(u.seen, time.Since(u.start))
	target, _ := holdfast.TargetOf(ctx)
	u.names = append(u.names, target.Name)
	switch {
	case n < len(u.script):
	case u.loop:
		n = len(u.script) - 1
	default:
		return "answer", nil
	}
	if err := u.script[n]; err != nil {
		return "", err
	}
	return "answer", nil
}

func (u *upstream) gaps() (gaps []time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := 1; i < len(u.seen); i++ {
		gaps = append(gaps, u.seen[i]-u.seen[i-1])
	}
	return gaps
}

func (u *upstream) requests() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.seen)
}

// hang answers never: it returns when its context ends, with what the context says.
func hang(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func top() float64    { return 1 }
func bottom() float64 { return 0 }

// diff is empty when the two are equal. The tests of this package use the standard library alone: what they import
// comes into the go.sum of everybody who imports the package.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("\nwant %v\ngot  %v", want, got)
}

func wantReason(t *testing.T, err, reason error) *holdfast.Error {
	t.Helper()
	var own *holdfast.Error
	if !errors.As(err, &own) {
		t.Fatalf("error is %T %v, want *holdfast.Error", err, err)
	}
	if !errors.Is(err, reason) {
		t.Fatalf("error is %v, want reason %v", err, reason)
	}
	return own
}
