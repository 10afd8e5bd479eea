package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/spf13/cobra"

	"holdfast"
	"holdfast/standin"
)

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show in a few seconds what Holdfast does when an API fails",
		Long: `Play five scenes on this machine, without a key and without a network: a stand-in
for the API fails on purpose, and the real SDK calls it over real HTTP. Every
scene is judged by what the stand-in saw. The exit code is 1 if one fails.`,
		Args: cobra.NoArgs,
		RunE: command(func(ctx context.Context, _ []string, s streams) error { return playDemo(ctx, s) }),
	}
}

// scene is one thing to show. Its play returns an error only when it could not be played.
type scene struct {
	title  string
	told   string // what the stand-in is told to do
	proves string
	plan   standin.Plan
	play   func(ctx context.Context, st *stage) error
}

// stage is where a scene plays: a stand-in of its own, and a place to write.
type stage struct {
	streams
	server         *standin.Server
	url            string
	colour         func(colour, text string) string
	checks, failed int
	broken         error // stdout could not be written
}

func playDemo(ctx context.Context, s streams) error {
	st := &stage{streams: s, colour: paint(s.out)}
	began := time.Now()
	st.write("Holdfast keeps LLM calls working when the API does not. Here a stand-in on this machine")
	st.write("plays an API that fails as it is told. The SDK, the HTTP and the clock are real.")
	for i, sc := range scenes {
		st.write("\n%s", st.colour(bold, fmt.Sprintf("%d of %d  %s", i+1, len(scenes), sc.title)))
		st.write("  The stand-in %s.", sc.told)
		if st.broken != nil {
			return st.broken
		}
		if err := st.set(ctx, sc); err != nil {
			return err
		}
		st.write("  %s", st.colour(faint, "So: "+sc.proves+"."))
	}
	verdict := st.colour(green, "all passed")
	if st.failed > 0 {
		verdict = st.colour(red, plural(st.failed, "check")+" FAILED")
	}
	st.write("\n%d scenes, %d checks, %s, %.1f s", len(scenes), st.checks, verdict, time.Since(began).Seconds())
	switch {
	case st.broken != nil:
		return st.broken
	case st.failed > 0:
		return failed("the lines marked FAIL say what was seen", "%s failed", plural(st.failed, "check"))
	}
	return nil
}

// set starts the scene's stand-in and plays the scene against it.
func (st *stage) set(ctx context.Context, sc scene) error {
	st.server = standin.New(sc.plan)
	url, stop, err := st.server.Start("")
	if err != nil {
		return failed("the demo needs a free port on the loopback interface", "%w", err)
	}
	st.url = url
	err = sc.play(ctx, st)
	if closing := stop(); err == nil && closing != nil {
		err = failed("", "cannot close the stand-in: %w", closing)
	}
	return err
}

func (st *stage) write(format string, args ...any) {
	if st.broken == nil {
		st.broken = give(st.out, fmt.Sprintf(format, args...)+"\n")
	}
}

// check writes one line of judgement.
func (st *stage) check(ok bool, format string, args ...any) {
	st.checks++
	mark := st.colour(green, "PASS")
	if !ok {
		st.failed++
		mark = st.colour(red, "FAIL")
	}
	st.write("  %s  %s", mark, fmt.Sprintf(format, args...))
}

// client is one of the real SDK against the scene's stand-in, which the user's own settings do not reach.
func (st *stage) client(key string, more ...option.RequestOption) *client {
	options := append([]option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(st.url), option.WithAPIKey(key), option.WithMaxRetries(0),
	}, more...)
	return newClient("claude-sonnet-5-5", 1024, demoQuestion, options...)
}

const demoQuestion = "Does it still work?"

// journal writes what the stand-in saw from its request number first on, and returns it.
func (st *stage) journal(first int) standin.Journal {
	seen := st.server.Journal()[first-1:]
	for i, e := range seen {
		gap := ""
		if i > 0 {
			gap = fmt.Sprintf("+%.3f s", e.Arrived.Sub(seen[i-1].Arrived).Seconds())
		}
		st.write("    request %d  %9s  answered %s", e.Number, gap, replied(e))
	}
	return seen
}

// statuses are those of the journal, to compare and to print.
func statuses(j standin.Journal) string {
	words := make([]string, len(j))
	for i, e := range j {
		words[i] = status(e)
	}
	return strings.Join(words, " ")
}

// waits are what a call waited between its attempts.
func waits(trace *holdfast.Trace) (found []time.Duration) {
	for _, a := range trace.Attempts() {
		if a.Next == holdfast.Retried {
			found = append(found, a.Wait)
		}
	}
	return found
}

// listed writes durations for people.
func listed(ds []time.Duration) string {
	words := make([]string, len(ds))
	for i, d := range ds {
		words[i] = fmt.Sprintf("%.3f s", d.Seconds())
	}
	return strings.Join(words, ", ")
}

// within reports whether each duration lies in its range, ends included.
func within(ds []time.Duration, ranges ...[2]time.Duration) bool {
	if len(ds) != len(ranges) {
		return false
	}
	for i, d := range ds {
		if d < ranges[i][0] || d > ranges[i][1] {
			return false
		}
	}
	return true
}

// neverEarly reports whether no gap is shorter than the wait that was planned for it.
func neverEarly(gaps, planned []time.Duration) bool {
	if len(gaps) != len(planned) {
		return false
	}
	for i := range gaps {
		if gaps[i] < planned[i] {
			return false
		}
	}
	return true
}
