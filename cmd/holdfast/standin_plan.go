package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"holdfast/standin"
)

// read returns the plan that the flags ask for.
func (o standinOptions) read(s streams) (standin.Plan, error) {
	if err := o.contradiction(); err != nil {
		return standin.Plan{}, err
	}
	plan, err := o.steps(s.in)
	if err != nil {
		return plan, err
	}
	if o.given("seed") {
		plan.Seed = o.seed
	}
	if o.given("latency") {
		plan.Latency.FirstToken = standin.Spread{Min: o.latency, Max: o.latency}
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
			say(s.err, "warning: %s: %s", o.tape, warning)
		}
		say(s.err, "%s on %s", plural(plan.Tape.Len(), "exchange"), o.tape)
		plan.Tape.Speed = o.speed
	}
	if err := plan.Validate(); err != nil {
		return plan, badUsage("holdfast standin --help lists the flags", "%w", ofFlags(err))
	}
	return plan, nil
}

// contradiction tells of flags that mean nothing, alone or together.
func (o standinOptions) contradiction() error {
	how := o.given("status") || o.given("retry-after")
	switch {
	case o.plan != "" && (how || o.given("fail")):
		return badUsage("a plan says by itself how requests fail", "--plan goes with none of --fail, --status and --retry-after")
	case how && o.fail == 0:
		return badUsage("--fail 2 fails the first two requests, --fail -1 all of them", "--status and --retry-after say how requests fail, but none is to fail")
	case !(o.speed >= 0):
		return badUsage("2 plays twice as fast, 0 at once", "--speed cannot be %v", o.speed)
	case o.given("speed") && o.tape == "":
		return badUsage("--tape names the recording", "--speed is that of a tape, and there is none")
	case o.latency < 0:
		return badUsage("--latency 300ms", "--latency cannot be %v", o.latency)
	case o.given("latency") && o.tape != "":
		return badUsage("--speed plays it slower or faster", "a tape has its own times, so it does not go with --latency")
	}
	return nil
}

// steps returns the plan without what other flags add.
func (o standinOptions) steps(in io.Reader) (standin.Plan, error) {
	if o.plan == "" {
		return standin.Failing(o.fail, o.status, o.retryAfter), nil
	}
	plan, err := loadPlan(o.plan, in)
	if err != nil {
		hint := "holdfast standin faults KIND tells the fields of a fault; holdfast standin schema lets an editor check plans"
		if unreadable := new(fs.PathError); errors.As(err, &unreadable) {
			hint = ""
		}
		return plan, badUsage(hint, "%w", err)
	}
	return plan, nil
}

// loadPlan reads a plan from a file, or from in when that is "-".
func loadPlan(name string, in io.Reader) (standin.Plan, error) {
	if name != "-" {
		return standin.LoadPlan(name)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return standin.Plan{}, fmt.Errorf("cannot read the plan from standard input: %w", err)
	}
	plan, err := standin.ParsePlan(text)
	if wrong := new(standin.PlanError); errors.As(err, &wrong) {
		wrong.File = "standard input"
	}
	return plan, err
}

// ofFlags names the flags in place of where in the plan they have put their values.
func ofFlags(err error) error {
	wrong := new(standin.PlanError)
	if !errors.As(err, &wrong) {
		return err
	}
	flags := map[string]string{"steps.0.status": "--status", "steps.0.retry_after": "--retry-after", "limits.tier": "--tier", "latency.first_token": "--latency"}
	all := make([]error, len(wrong.Mistakes))
	for i, m := range wrong.Mistakes {
		place := m.Path
		for path, flag := range flags {
			if strings.HasPrefix(m.Path, path) {
				place = flag
			}
		}
		all[i] = fmt.Errorf("%s: %s", place, m.Text)
	}
	return errors.Join(all...)
}

// watch returns where SIGHUP comes in. A plan that came from no file cannot be read again, so there the signal ends the
// process, as it does without us.
func (o standinOptions) watch() (again chan os.Signal, forget func()) {
	again = make(chan os.Signal, 1)
	if o.plan == "" || o.plan == "-" {
		return again, func() {}
	}
	signal.Notify(again, syscall.SIGHUP)
	return again, func() { signal.Stop(again) }
}

// serve waits for the end, and reads the plan again whenever that is asked for.
func (o standinOptions) serve(ctx context.Context, server *standin.Server, again <-chan os.Signal, s streams) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			if !o.reload(server, s) {
				return
			}
		}
	}
}

// reload plays the plan as it is in its file now, or keeps the one before and says why. It reports false when nobody
// reads what it says: then the terminal is gone, which sends the same signal, and that is the end.
func (o standinOptions) reload(server *standin.Server, s streams) bool {
	plan, err := o.read(s)
	if err != nil {
		report(context.Background(), s.err, err, true)
		_, err = fmt.Fprintln(s.err, "the plan before stays in force")
		return err == nil
	}
	before := account(server)
	if err := server.SetPlan(plan); err != nil {
		report(context.Background(), s.err, err, true)
		return true
	}
	_, err = fmt.Fprintf(s.err, "%s\n%s is in force; all begins anew\n", before, o.plan)
	return err == nil
}
