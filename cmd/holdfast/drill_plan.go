package main

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"holdfast"
	"holdfast/drill"
	"holdfast/standin"
)

// flagsOf are the flags that some drills alone take.
var flagsOf = map[string][]string{
	"lab18": {"plan", "out", "live", "model", "fallback-model"},
	"plan":  {"plan", "calls", "rate", "workers", "tokens", "stream", "model"},
}

// What a rehearsal in memory can hold.
const mostCalls, mostTokens = 100_000, 1_000_000

// useless refuses the flags that the drill would not look at.
func (o *drillOptions) useless(name string) error {
	takes := map[string]bool{}
	for _, flag := range flagsOf[name] {
		takes[flag] = true
	}
	for _, owner := range []string{"lab18", "plan"} {
		for _, flag := range flagsOf[owner] {
			if o.changed(flag) && !takes[flag] {
				return badUsage("holdfast drill "+owner+" takes it", "drill %s has no use for --%s", name, flag)
			}
		}
	}
	for _, flag := range []string{"model", "fallback-model"} {
		if name == "lab18" && o.changed(flag) && !o.live {
			return badUsage("with --live the answers come from a model; else they are made here", "drill lab18 has no use for --%s without --live", flag)
		}
	}
	return nil
}

// rehearsal is the traffic that the flags ask for.
func (o *drillOptions) rehearsal() (drill.Traffic, error) {
	t := o.traffic
	t.Model = o.model
	switch {
	case t.Calls < 0:
		return t, badUsage("0 plays the whole timeline", "--calls is %d, and must not be negative", t.Calls)
	case t.Calls > mostCalls:
		return t, badUsage("the stand-in's journal keeps no more", "--calls is %d, and must be at most %d", t.Calls, mostCalls)
	case t.Workers < 0:
		return t, badUsage("0 sets no bound", "--workers is %d, and must not be negative", t.Workers)
	case !(t.Rate >= 0 && t.Rate <= 1e6):
		return t, badUsage("--rate 10 begins ten calls a second", "--rate is %v, and must be from 0 to 1000000", t.Rate)
	case t.Rate == 0:
		t.Rate = -1
	}
	in, out, ok := strings.Cut(o.tokens, ",")
	input, errIn := strconv.Atoi(strings.TrimSpace(in))
	output, errOut := strconv.Atoi(strings.TrimSpace(out))
	if !ok || errIn != nil || errOut != nil || input < 1 || output < 1 || input > mostTokens || output > mostTokens {
		return t, badUsage("500,100 is a prompt of 500 tokens and an answer of 100", "--tokens is %q, and must be two whole numbers from 1 to %d", o.tokens, mostTokens)
	}
	t.Tokens = holdfast.Tokens{Input: input, Output: output}
	if o.plan != "" {
		plan, err := standin.LoadPlan(o.plan)
		if err != nil {
			hint := "holdfast standin faults lists the faults, and holdfast standin faults KIND the fields of one"
			if unreadable := new(fs.PathError); errors.As(err, &unreadable) {
				hint = ""
			}
			return t, badUsage(hint, "%w", err)
		}
		t.Plan = &plan
	}
	return t, nil
}
