package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast"
	"holdfast/standin"
)

func TestReport(t *testing.T) {
	gone, leave := context.WithCancel(context.Background())
	leave()
	tests := []struct {
		name    string
		ctx     context.Context
		err     error
		started bool
		code    int
		words   string
	}{
		{"no error", nil, nil, true, 0, ""},
		{"a plain error of a job", nil, errors.New("x"), true, 1, "error: x\n"},
		{"a plain error before the job", nil, errors.New("x"), false, 2, "error: x\n"},
		{"bad usage", nil, badUsage("do y", "x"), true, 2, "error: x\nhint: do y\n"},
		{"a failed job", nil, failed("", "x: %w", errors.New("y")), true, 1, "error: x: y\n"},
		{"said already", nil, &exitError{code: 1}, true, 1, ""},
		{"several mistakes", nil, badUsage("do y", "%w", errors.Join(errors.New("a"), errors.New("b"))), true, 2, "error: a\nerror: b\nhint: do y\n"},
		{"wrapped", nil, fmt.Errorf("w: %w", badUsage("do y", "x")), true, 2, "error: w: x\nhint: do y\n"},
		{
			"an error of a call", nil, &holdfast.Error{Reason: holdfast.ErrSpent}, true, 1,
			"error: holdfast: a spend limit is reached, nothing was sent\nhint: " + (&holdfast.Error{Reason: holdfast.ErrSpent}).Hint() + "\n",
		},
		{"interrupted", gone, context.Canceled, true, 130, "error: interrupted\n"},
		{"interrupted and yet done", gone, nil, true, 0, ""},
		{"failed after an interrupt that was to come", gone, &exitError{code: 1, err: errors.New("x"), hint: "do y", ended: true}, true, 1, "error: x\nhint: do y\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			var words strings.Builder
			if code := report(ctx, &words, tt.err, tt.started); code != tt.code || words.String() != tt.words {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, words.String(), tt.code, tt.words)
			}
		})
	}
}

func TestPaint(t *testing.T) {
	if got := paint(&strings.Builder{})(red, "x"); got != "x" {
		t.Errorf("a pipe gets %q", got)
	}
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if info, err := device.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Skip("no device to stand for a terminal")
	}
	for _, tt := range []struct{ noColor, term, want string }{
		{"", "xterm", "\x1b[31mx\x1b[0m"}, {"1", "xterm", "x"}, {"", "dumb", "x"},
	} {
		t.Setenv("NO_COLOR", tt.noColor)
		t.Setenv("TERM", tt.term)
		if got := paint(device)(red, "x"); got != tt.want {
			t.Errorf("NO_COLOR %q TERM %q: %q, want %q", tt.noColor, tt.term, got, tt.want)
		}
	}
}

func TestBuildString(t *testing.T) {
	b := build{Version: "v1.2.3", Go: "go1.26.8", Platform: "linux/amd64"}
	if got := b.String(); got != "holdfast v1.2.3 go1.26.8 linux/amd64" {
		t.Error(got)
	}
	b.Revision, b.Modified = "0123456789abcdef", true
	if got := b.String(); got != "holdfast v1.2.3 (revision 0123456789ab, modified) go1.26.8 linux/amd64" {
		t.Error(got)
	}
}

func TestSummary(t *testing.T) {
	if got := summary(nil); got != "0 requests" {
		t.Error(got)
	}
	got := summary(make(standin.Journal, 25))
	if !strings.HasPrefix(got, "25 requests: ") || strings.Count(got, "0.000s") != 20 || !strings.HasSuffix(got, " and 4 more") || !strings.Contains(got, " and 5 more; gaps ") {
		t.Error(got)
	}
}

func TestSummaryTellsWhatAStatusDoesNot(t *testing.T) {
	got := summary(standin.Journal{
		{Status: 200, Fault: standin.OK}, {Status: 529, Fault: standin.HTTP}, {Status: 429, Fault: standin.Throttled}, {Status: 200, Fault: standin.Cut},
		{Fault: standin.Timeout, ClosedBy: standin.Client}, {Status: 200, Fault: standin.OK, ClosedBy: standin.Client}, {Status: 429, Fault: standin.SpendCap},
	})
	if want := "7 requests: 200 529 429 200 (cut) timeout 200 (left) 429 (spend_cap); gaps "; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want it to begin with %q", got, want)
	}
}

func TestBill(t *testing.T) {
	for want, l := range map[string]standin.Ledger{
		"":                                  {},
		"billed 3 input and 1 output token": {Total: standin.Account{Input: 3, Output: 1}},
		"items of batches: 1 expired":       {Items: standin.Items{Expired: 1}},
		"billed 7 input and 9 output tokens, 8 of them twice; items of batches: 2 succeeded, 1 errored, 4 waiting": {
			Total: standin.Account{Input: 6, Output: 7, PaidTwice: standin.Twice{Attempts: 1, Input: 3, Output: 3}},
			Items: standin.Items{Succeeded: 2, Errored: 1, Waiting: 4, Input: 1, Output: 2, PaidTwice: standin.Twice{Attempts: 1, Input: 1, Output: 1}},
		},
	} {
		if got := bill(l); got != want {
			t.Errorf("bill(%+v) = %q, want %q", l, got, want)
		}
	}
}

// A demo whose stand-in misbehaves has to say so: each scene fails against a plan that is not its own.
func TestDemoScenesCanFail(t *testing.T) {
	for i, wrong := range []standin.Plan{
		standin.Failing(1, 429, "0.01"), // one 429 too few, and a short wait
		{},                              // never fails
		{BadKeys: []string{"other"}},    // the key is good
		standin.Failing(2, 529, ""),     // one failure too few
		{},                              // never fails
	} {
		t.Run(scenes[i].title, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			st := &stage{streams: streams{out: &out}, colour: paint(&out)}
			sc := scenes[i]
			sc.plan = wrong
			if err := st.set(t.Context(), sc); err != nil {
				t.Fatal(err)
			}
			if st.failed == 0 || st.failed != strings.Count(out.String(), "  FAIL  ") {
				t.Errorf("%d checks failed:\n%s", st.failed, out.String())
			}
		})
	}
}

func TestDemoStopsWhenItCannotWrite(t *testing.T) {
	err := playDemo(t.Context(), streams{out: closedPipe{}})
	if err == nil || err.Error() != "cannot write the output: closed" {
		t.Errorf("playDemo: %v", err)
	}
}

func TestDemoStopsWhenInterrupted(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	var out strings.Builder
	if err := playDemo(ctx, streams{out: &out}); !errors.Is(err, context.Canceled) || strings.Contains(out.String(), "FAIL") {
		t.Errorf("playDemo: %v\n%s", err, out.String())
	}
}
