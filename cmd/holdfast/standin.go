package main

import (
	"context"
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
	seed       uint64
	latency    time.Duration
	tier       string
	tape       string
	speed      float64
	report     bool

	given func(flag string) bool // on the command line
}

func newStandinCommand() *cobra.Command {
	var o standinOptions
	cmd := &cobra.Command{
		Use:   "standin",
		Short: "Serve an API that fails on purpose",
		Long: `Serve a stand-in for the Claude API and the OpenAI API that fails as you tell it,
and then answers: messages, token counts, batches, models, files, chat completions
and responses, as JSON and as streams.
Any key but "bad" is good. The lines it prints on stdout point the SDKs at it.
Ctrl-C ends it and prints what arrived, how far apart, and what was billed.

While it runs, GET /_standin/ lists what it can be asked: journal, ledger, report, plan, reset.
SIGHUP reads the file of --plan again and begins anew; a plan with mistakes changes nothing.`,
		Example: `  holdfast standin --fail 2 --status 429 --retry-after 1
  holdfast standin --fail -1 --status 529
  holdfast standin --tier start --latency 300ms
  holdfast standin --plan plan.yaml --seed 7 --report
  holdfast standin --plan - < plan.yaml
  holdfast standin --tape tape.jsonl --speed 0`,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: 2,
	}
	f := cmd.Flags()
	o.given = f.Changed
	cmd.RunE = command(func(ctx context.Context, _ []string, s streams) error { return o.run(ctx, s) })
	f.StringVar(&o.listen, "listen", standinAddress, "TCP `address`; port 0 takes a free one")
	f.IntVar(&o.fail, "fail", 0, "fail the first `N` requests; negative: all of them")
	f.IntVar(&o.status, "status", 429, "HTTP `status` of the failures")
	f.StringVar(&o.retryAfter, "retry-after", "", "retry-after header of the failures: `seconds`, or any text, sent as it is (default none)")
	f.StringVar(&o.plan, "plan", "", "play the plan in a YAML or JSON `file`; - is standard input")
	f.Uint64Var(&o.seed, "seed", 0, "draw what is drawn with this `number` in place of the plan's")
	f.DurationVar(&o.latency, "latency", 0, "`time` to the first token of every answer, in place of the plan's")
	f.StringVar(&o.tier, "tier", "", "enforce the rate limits of a `tier`: start, build or scale")
	f.StringVar(&o.tape, "tape", "", "answer with what was recorded on a `file`; the faults lie over it")
	f.Float64Var(&o.speed, "speed", 1, "play the tape at a `factor` of its own speed; 0: at once")
	f.BoolVar(&o.report, "report", false, "judge the client in the end, as holdfast standin report does")
	complete(cmd)
	cmd.AddCommand(newStandinRecordCommand(), newStandinReportCommand(), newStandinFaultsCommand(), newStandinSchemaCommand())
	return cmd
}

// complete says how a shell completes the values of flags.
func complete(cmd *cobra.Command) {
	tiers := cobra.FixedCompletions([]string{string(standin.TierStart), string(standin.TierBuild), string(standin.TierScale)}, cobra.ShellCompDirectiveNoFileComp)
	// They fail only for a flag that does not exist; a test asks for the completions.
	_ = cmd.RegisterFlagCompletionFunc("tier", tiers)
	_ = cmd.MarkFlagFilename("plan", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("tape", "jsonl")
}

// standinAddress is where the stand-in listens unless told otherwise.
const standinAddress = "127.0.0.1:4010"

func (o standinOptions) run(ctx context.Context, s streams) error {
	plan, err := o.read(s)
	if err != nil {
		return err
	}
	server := standin.New(plan)
	url, stop, err := server.Start(o.listen)
	if err != nil {
		return badUsage("--listen takes another address; 127.0.0.1:0 finds a free port", "%w", err)
	}
	again, forget := o.watch()
	defer forget()
	if err = give(s.out, exports(url)); err == nil {
		say(s.err, "the stand-in listens; paste the lines above where the client runs, and end with Ctrl-C")
		say(s.err, "what arrives is under %s/_standin/", url)
		o.serve(ctx, server, again, s)
	}
	if closing := stop(); err == nil && closing != nil {
		err = failed("", "cannot close the stand-in: %w", closing)
	}
	say(s.err, "%s", account(server))
	if o.report {
		say(s.err, "\n%s", strings.TrimSuffix(server.Report().String(), "\n"))
	}
	return err
}

// exports are the lines that point the SDKs of both dialects at a URL.
func exports(url string) string {
	return "export ANTHROPIC_BASE_URL=" + url + "\nexport OPENAI_BASE_URL=" + url + "/v1\n"
}
