package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast"
	"holdfast/config"
	"holdfast/drill"
	"holdfast/internal/strict"
)

// drillOptions are the flags of holdfast drill.
type drillOptions struct {
	plan, out     string
	config        string
	set           []string
	seed          uint64
	live, json    bool
	model, second string
	traffic       drill.Traffic
	tokens        string
	changed       func(flag string) bool
}

func newDrillCommand() *cobra.Command {
	var o drillOptions
	var list strings.Builder
	var names []string
	for _, e := range drill.All() {
		fmt.Fprintf(&list, "  %-11s %s\n", e.Name, e.About)
		names = append(names, e.Name+"\t"+e.About)
	}
	cmd := &cobra.Command{
		Use:   "drill NAME",
		Short: "Play failures against a policy in simulated time",
		Long: `Play calls against failing upstreams in simulated time and check what came of
them. Minutes of failure take milliseconds, and a run repeats exactly.

` + list.String() + `
Exit code 1 means that a check failed. lab18, herd, outage and plan also judge a
policy of your own: --config and --set. plan takes what holdfast standin --plan
takes; holdfast standin faults lists the faults.`,
		Example: `  holdfast drill tutorial
  holdfast drill lab18 --plan plan.json --out out
  holdfast drill outage --set policy.attempts=6
  holdfast drill plan --plan plan.yaml --rate 50 --config policy.yaml`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return badUsage("holdfast drill --help lists the drills", "drill takes the name of one drill, not %d", len(args))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "lab18, plan: play the plan in `file` (JSON or YAML)")
	f.StringVar(&o.out, "out", "", "lab18: write trace.jsonl and outcomes.json into `directory`")
	f.BoolVar(&o.live, "live", false, "lab18: ask a real endpoint, in real time; the faults are still made here")
	f.StringVar(&o.model, "model", "claude-sonnet-5-5", "plan, and with --live: `name` of the model")
	f.StringVar(&o.second, "fallback-model", "claude-haiku-4-5", "with --live: `name` of the model to ask after a refusal")
	f.IntVar(&o.traffic.Calls, "calls", 0, "plan: make `N` calls; 0: until a minute after the last incident")
	f.Float64Var(&o.traffic.Rate, "rate", 10, "plan: begin `R` calls a second; 0: as many at once as --workers allows")
	f.IntVar(&o.traffic.Workers, "workers", 0, "plan: make `W` calls at a time; 0: no bound")
	f.StringVar(&o.tokens, "tokens", "500,100", "plan: tokens of a prompt and an answer, as `IN,OUT`")
	f.BoolVar(&o.traffic.Stream, "stream", false, "plan: ask for event streams")
	f.StringVar(&o.config, "config", "", "judge the policy in `file`")
	f.StringArrayVar(&o.set, "set", nil, "override one `key.path=value` of the policy to judge; may be repeated")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the dice; 0: the drill's own")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	o.changed = f.Changed
	cmd.RunE = command(o.run)
	return cmd
}

func (o *drillOptions) run(ctx context.Context, args []string, s streams) error {
	entry, ok := drill.Find(args[0])
	if !ok {
		var names []string
		for _, e := range drill.All() {
			names = append(names, e.Name)
		}
		hint := "known are " + strings.Join(names, ", ")
		if near := strict.Nearest(args[0], names); near != "" {
			hint = fmt.Sprintf("did you mean %q? %s", near, hint)
		}
		return badUsage(hint, "unknown drill %q", args[0])
	}
	options, err := o.options(entry)
	if err != nil {
		return err
	}
	if o.live {
		say(s.err, "asking %s for real; the waits are real too, about a minute in all", o.model)
	}
	report, err := entry.Play(ctx, options)
	var plan *drill.PlanError
	switch {
	case errors.As(err, &plan):
		lines := strings.ReplaceAll(plan.Mistakes.Error(), "\n", "\n"+o.plan+": ")
		return badUsage(plan.Hint(), "%s: %s", o.plan, lines)
	case err != nil:
		return failed("", "%w", err)
	}
	if o.out != "" {
		say(s.err, "trace.jsonl and outcomes.json are in %s", o.out)
	}
	return o.show(report, s)
}

func (o *drillOptions) show(report *drill.Report, s streams) error {
	write := report.Text
	if o.json {
		write = report.JSON
	}
	if err := write(s.out); err != nil {
		return failed("", "cannot write the output: %w", err)
	}
	if report.Exit() != 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

// options turns the flags into what the drill takes, and refuses those that it would not look at.
func (o *drillOptions) options(entry drill.Entry) (drill.Options, error) {
	options := drill.Options{Out: o.out, Seed: o.seed}
	if err := o.useless(entry.Name); err != nil {
		return options, err
	}
	switch {
	case entry.Name == "plan":
		var err error
		if options.Traffic, err = o.rehearsal(); err != nil {
			return options, err
		}
	case o.plan != "":
		text, err := os.ReadFile(o.plan)
		if err != nil {
			return options, badUsage("", "cannot read the plan: %w", err)
		}
		options.Plan = append([]byte{}, text...) // never nil: an empty file is an empty plan
	}
	if o.live {
		if err := checkEnvironment(os.Getenv); err != nil {
			return options, err
		}
		if o.model == o.second {
			return options, badUsage("a model that has refused is not asked again", "--model and --fallback-model are both %s", o.model)
		}
		options.Live = o.ask
	}
	if o.config == "" && len(o.set) == 0 {
		return options, nil
	}
	if !entry.Judges {
		return options, badUsage("lab18, herd, outage and plan judge a policy of your own", "drill %s plays a published policy and takes no --config or --set", entry.Name)
	}
	file, err := configFile(new(config.File), o.config, o.set)
	if err != nil {
		return options, err
	}
	options.Policy = func() holdfast.Policy { return file.Policy() }
	return options, nil
}

// ask makes one attempt that the plan lets through.
func (o *drillOptions) ask(ctx context.Context, r drill.LiveRequest) (drill.LiveReply, error) {
	model := o.model
	if r.Fallback {
		model = o.second
	}
	question := "Confirm in one short sentence that the support request " + r.Job + " has been filed."
	answer, err := newClient(model, int64(r.MaxTokens), question).whole(ctx)
	if err != nil {
		return drill.LiveReply{}, err
	}
	return drill.LiveReply{
		StopReason: string(answer.message.StopReason), Category: string(answer.message.StopDetails.Category), RequestID: answer.requestID,
	}, nil
}
