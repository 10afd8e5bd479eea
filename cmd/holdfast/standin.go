package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/standin"
)

// standinOptions are the flags of holdfast standin.
type standinOptions struct {
	listen     string
	fail       int
	status     int
	retryAfter string
	plan       string
	tier       string
	tape       string
	speed      float64
	report     bool
	how        bool // --status or --retry-after was given
	single     bool // or --fail
}

func newStandinCommand() *cobra.Command {
	var o standinOptions
	cmd := &cobra.Command{
		Use:   "standin",
		Short: "Serve an API that fails on purpose",
		Long: `Serve a stand-in for the Claude API and the OpenAI API that fails as you tell it,
and then answers: messages, token counts, batches, models, files, chat completions
and responses, as JSON and as streams.
Any key but "bad" is good. The line it prints on stdout points an SDK at it.
Ctrl-C ends it and prints what arrived, and how far apart.

While it runs, GET /_standin/ lists what it can be asked: journal, ledger, report, plan, reset.`,
		Example: `  holdfast standin --fail 2 --status 429 --retry-after 1
  holdfast standin --fail -1 --status 529
  holdfast standin --tier start
  holdfast standin --plan plan.yaml --report
  holdfast standin --tape tape.jsonl`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	cmd.RunE = command(func(ctx context.Context, _ []string, s streams) error {
		o.how = f.Changed("status") || f.Changed("retry-after")
		o.single = o.how || f.Changed("fail")
		return o.run(ctx, s)
	})
	f.StringVar(&o.listen, "listen", standinAddress, "TCP `address`; port 0 takes a free one")
	f.IntVar(&o.fail, "fail", 0, "fail the first `N` requests; negative: all of them")
	f.IntVar(&o.status, "status", 429, "HTTP `status` of the failures")
	f.StringVar(&o.retryAfter, "retry-after", "", "retry-after header of the failures, sent as it is (default none)")
	f.StringVar(&o.plan, "plan", "", "play the plan in a YAML or JSON `file`")
	f.StringVar(&o.tier, "tier", "", "enforce the rate limits of a `tier`: start, build or scale")
	f.StringVar(&o.tape, "tape", "", "answer with what was recorded on a `file`; the faults lie over it")
	f.Float64Var(&o.speed, "speed", 1, "play the tape at a `factor` of its own speed; 0: at once")
	f.BoolVar(&o.report, "report", false, "judge the client in the end, as holdfast standin report does")
	cmd.AddCommand(newStandinRecordCommand(), newStandinReportCommand(), newStandinFaultsCommand(), newStandinSchemaCommand())
	return cmd
}

// standinAddress is where the stand-in listens unless told otherwise.
const standinAddress = "127.0.0.1:4010"

func (o standinOptions) run(ctx context.Context, s streams) error {
	plan, err := o.read(s.err)
	if err != nil {
		return err
	}
	server := standin.New(plan)
	url, stop, err := server.Start(o.listen)
	if err != nil {
		return badUsage("--listen takes another address; 127.0.0.1:0 finds a free port", "%w", err)
	}
	err = give(s.out, "export ANTHROPIC_BASE_URL="+url+"\n")
	if err == nil {
		say(s.err, "the stand-in listens; paste the line above where the client runs, and end with Ctrl-C")
		<-ctx.Done()
	}
	if closing := stop(); err == nil && closing != nil {
		err = failed("", "cannot close the stand-in: %w", closing)
	}
	say(s.err, "%s", summary(server.Journal()))
	if o.report {
		say(s.err, "\n%s", strings.TrimSuffix(server.Report().String(), "\n"))
	}
	return err
}

// read returns the plan that the flags ask for.
func (o standinOptions) read(warnings io.Writer) (standin.Plan, error) {
	plan, err := o.steps()
	if err != nil {
		return plan, err
	}
	if !(o.speed >= 0) {
		return plan, badUsage("2 plays twice as fast, 0 at once", "--speed cannot be %v", o.speed)
	}
	if o.tier != "" {
		if plan.Limits != nil {
			return plan, badUsage("leave --tier out", "the plan has limits of its own, so it does not go with --tier")
		}
		plan.Limits = &standin.Limits{Tier: standin.Tier(o.tier)}
	}
	if o.tape != "" {
		if plan.Tape, err = standin.LoadTape(o.tape); err != nil {
			return plan, badUsage("holdfast standin record makes a tape", "%w", err)
		}
		for _, warning := range plan.Tape.Warnings() {
			say(warnings, "warning: %s: %s", o.tape, warning)
		}
		plan.Tape.Speed = o.speed
	}
	if err := plan.Validate(); err != nil {
		return plan, badUsage("holdfast standin --help lists the flags", "%w", err)
	}
	return plan, nil
}

// steps returns the plan without what other flags add.
func (o standinOptions) steps() (standin.Plan, error) {
	if o.plan == "" {
		if o.how && o.fail == 0 {
			return standin.Plan{}, badUsage("--fail 2 fails the first two requests, --fail -1 all of them", "--status and --retry-after say how requests fail, but none is to fail")
		}
		return standin.Failing(o.fail, o.status, o.retryAfter), nil
	}
	if o.single {
		return standin.Plan{}, badUsage("a plan says by itself how requests fail", "--plan goes with none of --fail, --status and --retry-after")
	}
	plan, err := standin.LoadPlan(o.plan)
	if err != nil {
		hint := "holdfast standin faults lists the faults, and holdfast standin faults KIND the fields of one"
		if unreadable := new(fs.PathError); errors.As(err, &unreadable) {
			hint = ""
		}
		return plan, badUsage(hint, "%w", err)
	}
	return plan, nil
}

// summarized is how many requests a summary lists one by one.
const summarized = 20

// summary says in one line what arrived.
func summary(j standin.Journal) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", plural(len(j), "request"))
	for i, e := range j[:min(len(j), summarized)] {
		separator := " "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&b, "%s%s", separator, replied(e))
	}
	rest(&b, len(j))
	gaps := j.Gaps()
	for i, gap := range gaps[:min(len(gaps), summarized)] {
		separator := " "
		if i == 0 {
			separator = "; gaps "
		}
		fmt.Fprintf(&b, "%s%s", separator, seconds(gap))
	}
	rest(&b, len(gaps))
	return b.String()
}

func rest(w io.Writer, n int) {
	if n > summarized {
		_, _ = fmt.Fprintf(w, " and %d more", n-summarized)
	}
}

// replied is the status of an exchange, or what became of it when no headers were sent.
func replied(e standin.Exchange) string {
	if e.Status == 0 {
		return string(e.Fault)
	}
	return fmt.Sprint(e.Status)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
