package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast"
)

// askOptions are the flags of holdfast ask.
type askOptions struct {
	saved, usage string
	model        string
	maxTokens    int64
	stream, json bool
	fallback     []string
	policy       policyFlags
}

// maxQuestion bounds a question read from stdin, in bytes: the API takes no larger request.
const maxQuestion = 32 << 20

func newAskCommand() *cobra.Command {
	var o askOptions
	cmd := &cobra.Command{
		Use:   `ask "question"`,
		Short: "Ask Claude one question, and get an answer although the API fails",
		Long: `Ask one question of the Messages API with the Anthropic Go SDK and print the
answer. Failures that may pass (429, 5xx, lost connections) are repeated; the
wait that the server names is kept, within --max-wait.

With --saved every whole answer is kept in a file, and served from there, with a
label, when nothing live works. A bad key or a bad request is never hidden so.

With --fallback others are asked when the API does not answer, before a saved
answer is: Claude at another provider (bedrock, bedrock-mantle, aws, vertex,
google-cloud, foundry), with the credentials that are found here, or a target of
the file of --config. The key of one never goes to another.

ANTHROPIC_API_KEY holds the key; ANTHROPIC_BASE_URL, when set, the API's address.
The question "-" is read from stdin.`,
		Example: `  holdfast ask "Why is the sky blue?"
  holdfast ask --saved answers.json --usage spend.log "Why is the sky blue?"
  holdfast ask --fallback bedrock:us-east-1=MODEL --saved answers.json "Why is the sky blue?"
  holdfast ask --stream - < question.txt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return badUsage(`holdfast ask "Why is the sky blue?"; quote a question of several words`, "ask takes one question, not %d", len(args))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.saved, "saved", "", "keep good answers in `file`, and answer from it when nothing live works")
	f.StringVar(&o.usage, "usage", "", "append a line to `file` for every attempt that was billed")
	f.StringVar(&o.model, "model", "claude-sonnet-5-5", "`name` of the model")
	f.StringArrayVar(&o.fallback, "fallback", nil, "ask `who` next: PROVIDER:PLACE=MODEL, or a target of --config; may be repeated")
	f.Int64Var(&o.maxTokens, "max-tokens", 1024, "longest answer, in `tokens`")
	f.BoolVar(&o.stream, "stream", false, "print the answer as it comes")
	f.BoolVar(&o.json, "json", false, "print the answer and what it took as JSON")
	o.policy.add(f)
	cmd.RunE = command(o.run)
	return cmd
}

func (o *askOptions) run(ctx context.Context, args []string, s streams) error {
	question, err := readQuestion(ctx, args[0], s.in)
	if err != nil {
		return err
	}
	a, err := newAsker(*o, question, s)
	if err != nil {
		return err
	}
	defer a.close()
	return a.ask(ctx)
}

func readQuestion(ctx context.Context, arg string, stdin io.Reader) (string, error) {
	question := arg
	if arg == "-" {
		text, err := readWhile(ctx, io.LimitReader(stdin, maxQuestion+1))
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err != nil {
			return "", badUsage("", "cannot read the question from stdin: %w", err)
		}
		if len(text) > maxQuestion {
			return "", badUsage("", "the question is longer than %d MiB", maxQuestion>>20)
		}
		question = string(text)
	}
	if question = strings.TrimSpace(question); question == "" {
		return "", badUsage(`holdfast ask "Why is the sky blue?"`, "the question is empty")
	}
	return question, nil
}

// readWhile reads to the end, or until ctx ends: a terminal's stdin does not know of Ctrl-C, so the reader is left behind.
func readWhile(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(r)
		done <- result{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// asker carries one question to its end.
type asker struct {
	options  askOptions
	question string
	streams
	policy   holdfast.Policy
	client   *client    // of the API of the environment
	others   []fallback // in the order in which they are asked; none: no --fallback
	now      *client    // that was asked last
	nowModel string
	book     *spendBook   // nil: no --usage
	saved    *savedBook   // nil: no --saved
	kept     *savedAnswer // what the saved book gave
	why      error        // the failure for which it was asked
	waiting  string       // the target that was waited for last
	before   int          // attempts before those on it
}

// newAsker checks everything that can be checked before money is spent.
func newAsker(o askOptions, question string, s streams) (*asker, error) {
	if o.maxTokens < 1 {
		return nil, badUsage("", "--max-tokens is %d, and must be at least 1", o.maxTokens)
	}
	if o.model == "" {
		return nil, badUsage("", "--model is empty")
	}
	a := &asker{options: o, question: question, streams: s}
	var err error
	if a.policy, err = o.policy.policy(); err != nil {
		return nil, err
	}
	if err := checkEnvironment(os.Getenv); err != nil {
		return nil, err
	}
	a.policy.Observe = a.observe
	if o.saved != "" {
		if a.saved, err = openSavedBook(o.saved); err != nil {
			return nil, err
		}
	}
	if o.usage != "" {
		if a.book, err = openSpendBook(o.usage); err != nil {
			return nil, err
		}
	}
	others, err := o.fallbacks(question, nil)
	if err != nil {
		return nil, err
	}
	a.client = newClient(o.model, o.maxTokens, question)
	a.stand(others)
	return a, nil
}

func checkEnvironment(env func(string) string) error {
	if env("ANTHROPIC_API_KEY") == "" && env("ANTHROPIC_AUTH_TOKEN") == "" {
		return badUsage("export ANTHROPIC_API_KEY=sk-ant-…; a key is made at https://platform.claude.com. For holdfast standin any word will do",
			"ANTHROPIC_API_KEY is not set")
	}
	if base := env("ANTHROPIC_BASE_URL"); base != "" {
		u, ok := webURL(base)
		if !ok {
			return badUsage("export ANTHROPIC_BASE_URL=http://127.0.0.1:4010, or unset it", "ANTHROPIC_BASE_URL is not an http or https address")
		}
		if path := strings.TrimSuffix(u.Path, "/"); strings.HasSuffix(path, "/v1") || strings.HasSuffix(path, "/v1/messages") {
			return badUsage("leave /v1 and what is behind it out: the SDK adds /v1/messages", "ANTHROPIC_BASE_URL has /v1 in it")
		}
	}
	return nil
}

func (a *asker) close() {
	if a.book != nil {
		a.book.close()
	}
}

// observe writes the line of a retry: which of how many, what failed, what the server asked for, and the wait.
func (a *asker) observe(e holdfast.Event) {
	if e.Kind != holdfast.EventWait {
		return
	}
	if e.Target != a.waiting { // attempts count over all targets, retries on each
		a.waiting, a.before = e.Target, e.Attempt-1
	}
	say(a.err, "retry %d of %d: %s, %s, waiting %s", e.Attempt-a.before, a.retries(), class(e.Verdict), a.now.asked(), seconds(e.Wait))
}

func (a *asker) retries() int {
	if a.policy.Attempts == 0 {
		return tutorialAttempts - 1 // the root's default is the same
	}
	return max(a.policy.Attempts, 1) - 1
}

// class is the provider's word and status of a failure, or what is known of one that had none.
func class(v holdfast.Verdict) string {
	switch {
	case v.Status == 0:
		return strings.ReplaceAll(v.Rule, "-", " ")
	case v.Type == "":
		return fmt.Sprintf("%s %d", v.Kind, v.Status)
	}
	return fmt.Sprintf("%s %d", v.Type, v.Status)
}

func (a *asker) ask(ctx context.Context) error {
	send := (*client).whole
	if a.options.stream {
		send = (*client).open
	}
	r, trace, err := holdfast.Do(ctx, &a.policy, func(ctx context.Context) (*reply, error) {
		r, err := send(a.turn(ctx), ctx)
		if err != nil {
			a.spend(r) // a stream may be billed and cut before its first word
		}
		return r, err
	}, holdfast.SavedAnswers[*reply]{Load: a.load})
	switch {
	case err != nil:
		return a.explain(err, &trace)
	case trace.Source == holdfast.Saved:
		return a.giveSaved(&trace)
	}
	return a.deliver(ctx, r, &trace)
}

// deliver prints a live answer, to its end if it is still coming, and keeps it if it is whole.
func (a *asker) deliver(ctx context.Context, r *reply, trace *holdfast.Trace) error {
	var written error
	midLine := false
	err := r.rest(func(text string) bool {
		if !a.options.json {
			written = give(a.out, text)
			midLine = true
		}
		return written == nil
	})
	r.settle(err)
	a.spend(r)
	if midLine && written == nil {
		written = give(a.out, "\n")
	}
	if written != nil {
		return written
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return failed("what was printed is not the whole answer; ask again", "the answer was cut: %w", plainError(err))
	}
	elapsed := time.Since(trace.Started())
	if a.options.json {
		if err := giveJSON(a.out, a.report(r, trace, elapsed)); err != nil {
			return err
		}
	}
	say(a.err, "source %s%s, %s in %s, %d input and %d output tokens, request %s",
		trace.Source, a.from(trace), plural(trace.Sent(), "attempt"), seconds(elapsed), r.message.Usage.InputTokens, r.message.Usage.OutputTokens, r.requestID)
	if err := r.incomplete(a.options.maxTokens); err != nil {
		return err // and not kept: a saved answer has to be a whole one
	}
	if a.saved != nil && trace.Source == holdfast.Live { // it is kept as that of the model that was asked for
		if err := a.saved.keep(a.savedAnswer(r)); err != nil {
			say(a.err, "warning: the answer was not saved: %v", err)
		}
	}
	return nil
}

func (a *asker) spend(r *reply) {
	if a.book == nil || r == nil {
		return
	}
	if err := a.book.add(time.Now(), r, a.nowModel); err != nil {
		say(a.err, "warning: the usage was not written: %v", err)
	}
}

// explain makes the error of a failed call one that a person can act on.
func (a *asker) explain(err error, trace *holdfast.Trace) error {
	var ours *holdfast.Error
	if errors.As(err, &ours) {
		if a.saved != nil && a.why != nil {
			say(a.err, "there is no saved answer to this question of %s", a.options.model)
		}
		return a.unsent(ours, trace)
	}
	var v holdfast.Verdict
	if sent := trace.Attempts(); len(sent) > 0 {
		v = sent[len(sent)-1].Verdict
	}
	if v.Status == 0 {
		return failed("", "%w", plainError(err))
	}
	if who := trace.Target(); who != "" && who != firstName {
		return &exitError{code: exitFailed, err: fmt.Errorf("%s: %s", who, said(v)), hint: "this is what a --fallback says; holdfast validate tells what it lacks"}
	}
	return &exitError{code: exitFailed, err: errors.New(said(v)), hint: terminalHints[v.Status]}
}

var terminalHints = map[int]string{
	400: "the API does not take this request; its message says why",
	401: "ANTHROPIC_API_KEY is not a valid key; a saved answer is not served, since it would hide that",
	403: "this key may not use the model; --model takes another",
	404: "no such model or address; look at --model and ANTHROPIC_BASE_URL",
	413: "the question is too large",
}

// said is what the API said, without the address and the body that an SDK puts into its errors.
func said(v holdfast.Verdict) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", v.Status, v.Type))
	if v.Message != "" {
		text += ": " + v.Message
	}
	if v.RequestID != "" {
		text += " (request " + v.RequestID + ")"
	}
	return text
}

// plainError leaves out the address, which may carry a password, and the body that net/http and the SDK put into their
// errors.
func plainError(err error) error {
	if v := holdfast.Judge(err); v.Status != 0 {
		return errors.New(said(v))
	}
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		return u.Err
	}
	return err
}
