package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast"
	"holdfast/config"
)

// explainOptions are the flags of holdfast explain.
type explainOptions struct {
	status  int
	headers []string
	body    string
	event   string
	config  string
	set     []string
	json    bool
	admin   string
}

func newExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [TRACE-ID]",
		Short: "Tell what happened to a call, or what a reply of an API means",
		Long: `Tell what happened to a call that went through a running gateway, attempt by
attempt: what came back, what it meant, why the call waited or moved on, and what
would have helped. The id is in the answer's header holdfast-trace and in the
gateway's log; the word last stands for the last call that failed.

Without an id, tell what a reply of an API means: the verdict, the rule that gave it,
the wait that the server asks for, and what the policy does when every attempt ends
like this one. With --event the body is the data of an event inside an open stream,
whose own status counts for nothing.`,
		Example: `  holdfast explain 3f9c1b2a44d0e871
  holdfast explain last --admin http://127.0.0.1:4101
  holdfast explain --status 429 --header 'retry-after: 60'
  holdfast explain --status 400 --body error.json
  holdfast explain --event error --body data.json --set policy.attempts=6`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = command(func(ctx context.Context, args []string, s streams) error {
		if len(args) > 0 {
			return o.runCall(ctx, args[0], s)
		}
		return o.run(s)
	})
	f := cmd.Flags()
	f.IntVar(&o.status, "status", 0, "HTTP `status` of the reply")
	f.StringArrayVar(&o.headers, "header", nil, "a `header` of the reply, as 'name: value'; may be repeated")
	f.StringVar(&o.body, "body", "", "read the body from a `file`; - is standard input")
	f.StringVar(&o.event, "event", "", "judge an event inside a stream, by its `name`")
	f.StringVar(&o.config, "config", "", "take the policy from a YAML or JSON `file`")
	f.StringArrayVar(&o.set, "set", nil, "override one `key.path=value` of the policy; may be repeated")
	f.StringVar(&o.admin, "admin", adminURL(), "`URL` of the gateway's admin listener")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// explanation is what there is to say about a reply.
type explanation struct {
	Verdict   string   `json:"verdict"`
	Rule      string   `json:"rule"`
	Status    int      `json:"status"`
	Type      string   `json:"type,omitempty"`
	Code      string   `json:"code,omitempty"`
	Message   string   `json:"message,omitempty"`
	RequestID string   `json:"request_id,omitempty"`
	Wait      string   `json:"wait,omitempty"`
	Resumes   string   `json:"resumes,omitempty"`
	Breaker   string   `json:"breaker"`
	Fallback  bool     `json:"fallback"`
	Saved     bool     `json:"saved_answer"`
	Course    []string `json:"course"`
}

func (o explainOptions) run(s streams) error {
	verdict, err := o.verdict(s.in)
	if err != nil {
		return err
	}
	file, err := configFile(&config.File{}, o.config, o.set)
	if err != nil {
		return err
	}
	e := explain(verdict, file)
	if o.json {
		return giveJSON(s.out, e)
	}
	return give(s.out, e.text())
}

// verdict judges the reply that the flags describe.
func (o explainOptions) verdict(stdin io.Reader) (holdfast.Verdict, error) {
	header := http.Header{}
	for _, line := range o.headers {
		name, value, found := strings.Cut(line, ":")
		if !found || strings.TrimSpace(name) == "" {
			return holdfast.Verdict{}, badUsage("it looks like --header 'retry-after: 60'", "%q is not a header", line)
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	body, err := readAll(o.body, stdin)
	if err != nil {
		return holdfast.Verdict{}, badUsage("", "cannot read the body: %w", err)
	}
	switch {
	case o.event != "":
		return holdfast.FromEvent(o.event, body, header, time.Now()), nil
	case o.status < 100 || o.status > 599:
		return holdfast.Verdict{}, badUsage("--status 429 is that of a rate limit; for an event inside a stream there is --event", "--status is %d, and must be between 100 and 599", o.status)
	}
	return holdfast.FromReply(o.status, header, body, time.Now()), nil
}

// readAll reads a file, standard input for "-", nothing for "".
func readAll(name string, stdin io.Reader) ([]byte, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// explain finds out what the policy makes of the verdict by letting it happen to calls in simulated time.
func explain(v holdfast.Verdict, file *config.File) explanation {
	e := explanation{
		Verdict: v.Kind.String(), Rule: v.Rule, Status: v.Status, Type: v.Type, Code: v.Code, Message: v.Message, RequestID: v.RequestID,
		Breaker: "learns nothing",
	}
	if v.Wait > 0 {
		e.Wait = v.Wait.String()
	}
	if !v.Resumes.IsZero() {
		e.Resumes = v.Resumes.UTC().Format(time.RFC3339)
	}
	breaker := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})
	lone := holdfast.Policy{Attempts: 1, Breaker: breaker}
	e.Saved = after(&lone, v).Saved
	if breaker.State() == holdfast.Open {
		e.Breaker = "counts a failure"
	}
	pair := holdfast.Policy{Attempts: 1, RefusalFallback: true, Targets: []holdfast.Target{{Name: "first"}, {Name: "second"}}}
	e.Fallback = after(&pair, v).Action == holdfast.Send
	e.Course = course(v, file)
	return e
}

// after is what a call does once its first attempt has ended with the verdict.
func after(p *holdfast.Policy, v holdfast.Verdict) holdfast.Step {
	now := time.Unix(0, 0)
	call := holdfast.NewCall(p)
	call.Begin(now, time.Time{}, holdfast.Tokens{})
	return call.Settle(now, v, holdfast.Tokens{})
}

// course tells a call whose every attempt ends with the verdict, with the least and the greatest luck of the dice. The
// breaker and the pace are left out: they depend on other calls.
func course(v holdfast.Verdict, file *config.File) []string {
	least, most := luck(v, file, 0), luck(v, file, 1-1e-9)
	lines := make([]string, 0, len(most))
	for i, line := range most {
		if i < len(least) && least[i] != line && strings.HasPrefix(line, "wait ") {
			line = "wait " + strings.TrimPrefix(least[i], "wait ") + " to " + strings.TrimPrefix(line, "wait ")
		}
		lines = append(lines, line)
	}
	return lines
}

func luck(v holdfast.Verdict, file *config.File, draw float64) (lines []string) {
	policy := file.Policy()
	policy.Breaker, policy.Pace = nil, nil
	policy.Dice = func() float64 { return draw }
	now := time.Unix(0, 0)
	call := holdfast.NewCall(&policy)
	attempts := 0
	for step := call.Begin(now, time.Time{}, holdfast.Tokens{}); ; {
		switch step.Action {
		case holdfast.Send:
			attempts++
			lines = append(lines, fmt.Sprintf("attempt %d", attempts))
			step = call.Settle(now, v, holdfast.Tokens{})
		case holdfast.Wait:
			lines = append(lines, "wait "+step.Wait.Round(time.Millisecond).String())
			now = now.Add(step.Wait)
			step = call.Resume(now)
		default:
			return append(lines, ending(v, step))
		}
	}
}

func ending(v holdfast.Verdict, last holdfast.Step) string {
	switch {
	case v.Kind == holdfast.OK:
		return "the answer is returned"
	case last.Reason == nil:
		return "the error is returned as it is"
	default:
		return "the call ends: " + strings.TrimPrefix(last.Reason.Error(), "holdfast: ")
	}
}

func (e explanation) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", name, value) // a builder takes everything
		}
	}
	said := strings.TrimSpace(e.Type + " " + e.Code)
	if e.Message != "" {
		said = strings.TrimSpace(said + ": " + e.Message)
	}
	row("verdict", e.Verdict)
	row("rule", e.Rule)
	row("judged as status", fmt.Sprint(e.Status))
	row("upstream says", strings.TrimPrefix(said, ": "))
	row("request", e.RequestID)
	row("server's wait", e.Wait)
	row("works again at", e.Resumes)
	row("breaker", e.Breaker)
	row("another target", yesNo(e.Fallback, "may be asked", "is not asked"))
	row("saved answer", yesNo(e.Saved, "may stand in", "does not stand in"))
	_ = w.Flush()
	b.WriteString("\nwhen every attempt ends so:\n")
	for _, line := range e.Course {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

func yesNo(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
