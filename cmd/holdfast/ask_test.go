package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

// The question, key and answer of these tests are marked, so that they can be looked for in places where they must not be.
const (
	markedQuestion = "QUESTION-canary"
	markedKey      = "sk-canary"
	markedAnswer   = "ANSWER-canary and more"
)

// fixture is an asker on an in-memory network, inside the caller's bubble.
type fixture struct {
	*asker
	server     *standin.Server
	out, words strings.Builder
}

func newFixture(t *testing.T, plan standin.Plan, key string) *fixture {
	t.Helper()
	plan.Reply = markedAnswer
	f := &fixture{server: standin.New(plan)}
	n := testnet.New()
	server := n.Serve(t, "api.test:80", f.server)
	t.Cleanup(f.server.Close) // before the network, so that nothing hangs
	f.asker = &asker{
		options: askOptions{model: "claude-sonnet-5-5", maxTokens: 100}, question: markedQuestion,
		streams: streams{out: &f.out, err: &f.words}, policy: tutorialPolicy(),
		client: newClient("claude-sonnet-5-5", 100, markedQuestion, option.WithoutEnvironmentDefaults(),
			option.WithHTTPClient(n.Client()), option.WithBaseURL(server.URL), option.WithAPIKey(key)),
	}
	f.policy.Observe = f.observe
	return f
}

func (f *fixture) withSaved(t *testing.T) {
	t.Helper()
	book, err := openSavedBook(filepath.Join(t.TempDir(), "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := book.keep(savedAnswer{Question: hashOf(markedQuestion), Model: "claude-sonnet-5-5", SavedAt: time.Now(), Text: "kept"}); err != nil {
		t.Fatal(err)
	}
	f.saved = book
}

func dice(u float64) func() float64 { return func() float64 { return u } }

// The tutorial's published runs, on the fake clock: what is asserted is what the stand-in saw.
func TestAskTutorialFigures(t *testing.T) {
	ms := func(ns ...int) (ds []time.Duration) {
		for _, n := range ns {
			ds = append(ds, time.Duration(n)*time.Millisecond)
		}
		return ds
	}
	tests := []struct {
		name   string
		plan   standin.Plan
		key    string
		dice   float64
		gaps   []time.Duration
		out    string
		words  []string // patterns, in order
		failed string   // pattern
	}{
		{
			name: "wrapper 1, lowest dice", plan: standin.Failing(2, 429, "1"), dice: 0, gaps: ms(1000, 1000), out: markedAnswer,
			words: []string{`retry 1 of 3: rate_limit_error 429, retry-after 1, waiting 1.000s`, `retry 2 of 3: rate_limit_error 429, retry-after 1, waiting 1.000s`, `source live, 3 attempts in 2.000s`},
		},
		{
			name: "wrapper 1, highest dice", plan: standin.Failing(2, 429, "1"), dice: 1, gaps: ms(1500, 1500), out: markedAnswer,
			words: []string{`waiting 1.500s`, `waiting 1.500s`, `source live, 3 attempts in 3.000s`},
		},
		{
			name: "wrapper 2, highest dice", plan: standin.Failing(-1, 529, ""), dice: 1, gaps: ms(500, 1000, 2000), out: "kept",
			words: []string{
				`retry 1 of 3: overloaded_error 529, no retry-after, waiting 0.500s`, `retry 2 of 3`, `retry 3 of 3: .* waiting 2.000s`,
				`nothing live worked: holdfast: all attempts used after 4 attempts in 3.5s: 529 overloaded_error`, `\[saved answer of 2000-01-01 00:00 UTC\]`,
			},
		},
		{
			name: "test e", plan: standin.Failing(-1, 429, "60"), dice: 1, out: "kept",
			words: []string{`nothing live worked: holdfast: the server asks for too long a wait after 1 attempt in 0s, next in 1m0s`, `\[saved answer of `},
		},
		{name: "test f", key: "bad", failed: `^401 authentication_error: Invalid bearer token \(request req_standin_000001\)$`},
		{name: "403", plan: standin.Failing(1, 403, ""), failed: `^403 permission_error: `},
		{name: "refused question", plan: standin.Failing(1, 400, ""), failed: `^400 invalid_request_error: `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key := markedKey
				if tt.key != "" {
					key = tt.key
				}
				f := newFixture(t, tt.plan, key)
				f.withSaved(t)
				f.policy.Dice = dice(tt.dice)
				err := f.ask(t.Context())
				switch {
				case tt.failed == "" && err != nil:
					t.Fatalf("ask: %v", err)
				case tt.failed != "" && (err == nil || !regexp.MustCompile(tt.failed).MatchString(err.Error())):
					t.Fatalf("ask: %v, want %s", err, tt.failed)
				case tt.failed != "" && hintOf(err) == "":
					t.Error("the error has no hint")
				}
				if got := strings.TrimSuffix(f.out.String(), "\n"); got != tt.out {
					t.Errorf("stdout %q, want %q", got, tt.out)
				}
				if diff := cmp.Diff(tt.gaps, f.server.Journal().Gaps()); diff != "" {
					t.Errorf("gaps (-want +got):\n%s", diff)
				}
				lines := strings.Split(strings.TrimSpace(f.words.String()), "\n")
				if len(lines) != max(len(tt.words), 1) {
					t.Fatalf("stderr has %d lines, want %d:\n%s", len(lines), len(tt.words), f.words.String())
				}
				for i, want := range tt.words {
					if !regexp.MustCompile(want).MatchString(lines[i]) {
						t.Errorf("line %d of stderr is %q, want %s", i+1, lines[i], want)
					}
				}
			})
		})
	}
}

// After the first word nothing is repeated: the reader has seen it. Before it, a stream is repeated like any call.
func TestAskStream(t *testing.T) {
	tests := []struct {
		name    string
		step    standin.Step
		sent    int
		out     string
		failure string
	}{
		{"whole", standin.Step{}, 1, markedAnswer + "\n", ""},
		{"overloaded before the first event", standin.Step{Kind: standin.Error, At: standin.First}, 2, markedAnswer + "\n", ""},
		{"overloaded before the first word", standin.Step{Kind: standin.Error, At: standin.Preamble}, 2, markedAnswer + "\n", ""},
		{"cut before the first word", standin.Step{Kind: standin.Cut, At: standin.Preamble}, 2, markedAnswer + "\n", ""},
		{"reset before the headers", standin.Step{Kind: standin.Reset}, 2, markedAnswer + "\n", ""},
		{"a web page", standin.Step{Kind: standin.HTML}, 2, markedAnswer + "\n", ""},
		{"an empty 200", standin.Step{Kind: standin.Empty}, 2, markedAnswer + "\n", ""},
		{"cut after a word", standin.Step{Kind: standin.Cut, After: 1}, 1, "ANSWER-canary \n", "the answer was cut: "},
		{"cut without its end", standin.Step{Kind: standin.Cut, At: standin.Stop}, 1, markedAnswer + "\n", "the answer was cut: "},
		{"reset after a word", standin.Step{Kind: standin.Cut, After: 1, How: standin.Chunk}, 1, "ANSWER-canary \n", "the answer was cut: "},
		{"overloaded after a word", standin.Step{Kind: standin.Error, After: 1}, 1, "ANSWER-canary \n", "the answer was cut: "},
		{"silent until the deadline", standin.Step{Kind: standin.Cut, After: 1, How: standin.Silence}, 1, "ANSWER-canary \n", "the answer was cut: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, standin.Plan{Steps: []standin.Step{tt.step}}, markedKey)
				f.options.stream = true
				began := time.Now()
				err := f.ask(t.Context())
				if (err != nil) != (tt.failure != "") || err != nil && !strings.HasPrefix(err.Error(), tt.failure) {
					t.Errorf("ask: %v, want %q", err, tt.failure)
				}
				if f.out.String() != tt.out {
					t.Errorf("stdout %q, want %q", f.out.String(), tt.out)
				}
				if got := len(f.server.Journal()); got != tt.sent {
					t.Errorf("%d requests arrived, want %d", got, tt.sent)
				}
				if took := time.Since(began); tt.name == "silent until the deadline" && took != 10*time.Minute {
					t.Errorf("it ended after %v, want the deadline of 10m", took)
				}
			})
		})
	}
}

// The same faults without a stream.
func TestAskWhole(t *testing.T) {
	for _, step := range []standin.Step{
		{Kind: standin.HTML}, {Kind: standin.Empty}, {Kind: standin.Error}, {Kind: standin.Reset}, {Kind: standin.Cut, How: standin.Chunk},
		{Kind: standin.HTTP, Status: 503, Body: "<html>", ContentType: "text/html"}, {Kind: standin.HTTP, Status: 200, Body: "{}"},
	} {
		t.Run(fmt.Sprintf("%s %d", step.Kind, step.Status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, standin.Plan{Steps: []standin.Step{step}}, markedKey)
				if err := f.ask(t.Context()); err != nil {
					t.Fatalf("ask: %v", err)
				}
				if f.out.String() != markedAnswer+"\n" || len(f.server.Journal()) != 2 {
					t.Errorf("stdout %q after %d requests, want the answer after 2", f.out.String(), len(f.server.Journal()))
				}
			})
		})
	}
}

// An interrupt ends a wait at once, and the rest of the call with it.
func TestAskInterruptedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, standin.Failing(-1, 429, "9"), markedKey)
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(3*time.Second, cancel).Stop()
		began := time.Now()
		err := f.ask(ctx)
		if took := time.Since(began); took != 3*time.Second || err == nil || len(f.server.Journal()) != 1 {
			t.Errorf("ask returned %v after %v and %d requests", err, took, len(f.server.Journal()))
		}
		if code := report(ctx, f.err, err, true); code != exitInterrupted || !strings.HasSuffix(f.words.String(), "error: interrupted\n") {
			t.Errorf("exit code %d, stderr %q", code, f.words.String())
		}
	})
}

// Whatever fails: no key, no question and no answer reaches a line meant for people.
func TestAskKeepsSecrets(t *testing.T) {
	leaky := markedKey + " " + markedQuestion
	steps := []standin.Step{
		{Kind: standin.HTTP, Status: 400}, {Kind: standin.HTTP, Status: 401}, {Kind: standin.HTTP, Status: 529}, {Kind: standin.HTTP, Status: 429, RetryAfter: "999"},
		{Kind: standin.HTTP, Status: 500, Body: "<p>" + markedKey + "</p>", ContentType: "text/html"},
		{Kind: standin.HTTP, Status: 401, Message: "bad key sk-ant-" + markedKey}, {Kind: standin.Reset}, {Kind: standin.Timeout},
		{Kind: standin.Refusal}, {Kind: standin.Truncation}, {Kind: standin.Cut, After: 1}, {Kind: standin.OK},
	}
	for _, stream := range []bool{false, true} {
		for i, step := range steps {
			t.Run(fmt.Sprintf("%s %d stream %v #%d", step.Kind, step.Status, stream, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					step.Times = -1
					f := newFixture(t, standin.Plan{Steps: []standin.Step{step}}, markedKey)
					f.options.stream = stream
					err := f.ask(t.Context())
					report(t.Context(), f.err, err, true)
					for _, word := range append(strings.Fields(leaky), strings.Fields(markedAnswer)[0]) {
						if strings.Contains(f.words.String(), word) {
							t.Errorf("stderr holds %q:\n%s", word, f.words.String())
						}
					}
				})
			})
		}
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestAskSaysWhenTheOutputCannotBeWritten(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, standin.Plan{}, markedKey)
			f.streams.out, f.options.stream = closedPipe{}, stream
			if err := f.ask(t.Context()); err == nil || err.Error() != "cannot write the output: closed" {
				t.Errorf("stream %v: %v", stream, err)
			}
		})
	}
}

func TestClass(t *testing.T) {
	for want, v := range map[string]holdfast.Verdict{
		"rate_limit_error 429": {Kind: holdfast.Throttled, Status: 429, Type: "rate_limit_error"},
		"broken 502":           {Kind: holdfast.Broken, Status: 502},
		"connection lost":      {Kind: holdfast.Broken, Rule: "connection-lost"},
	} {
		if got := class(v); got != want {
			t.Errorf("class = %q, want %q", got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{"1": "1", "\x1b[2J": "?[2J", strings.Repeat("9", 60): strings.Repeat("9", 40)} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}
