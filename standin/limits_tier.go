package standin

import (
	"strings"
)

// Tier is a usage tier of the Claude API.
type Tier string

// The tiers with public numbers.
const (
	TierStart Tier = "start"
	TierBuild Tier = "build"
	TierScale Tier = "scale"
)

// rates are the numbers of a minute for one model group. 0: no limit.
type rates struct {
	requests, input, output, tokens, countTokens int64
}

// class is a row of the providers' table of tiers.
type class uint8

const (
	classPlain class = iota // Opus, Sonnet, Haiku from 4 on, and everything that is not in the table
	classFable
	classOldHaiku
)

// tiers holds the public numbers since 26 June 2026, by tier and class of models:
// requests, input tokens, output tokens per minute. The tokens of the OpenAI
// dialect, which has tiers of its own, are their sum.
var tiers = map[Tier][3]rates{
	"": {},
	TierStart: {
		classPlain:    {requests: 1_000, input: 2_000_000, output: 400_000, countTokens: 2_000},
		classFable:    {requests: 1_000, input: 500_000, output: 100_000, countTokens: 2_000},
		classOldHaiku: {requests: 1_000, input: 100_000, output: 20_000, countTokens: 2_000},
	},
	TierBuild: {
		classPlain:    {requests: 5_000, input: 5_000_000, output: 1_000_000, countTokens: 4_000},
		classFable:    {requests: 2_000, input: 1_500_000, output: 300_000, countTokens: 4_000},
		classOldHaiku: {requests: 2_000, input: 200_000, output: 40_000, countTokens: 4_000},
	},
	TierScale: {
		classPlain:    {requests: 10_000, input: 10_000_000, output: 2_000_000, countTokens: 8_000},
		classFable:    {requests: 4_000, input: 4_000_000, output: 800_000, countTokens: 8_000},
		classOldHaiku: {requests: 4_000, input: 400_000, output: 80_000, countTokens: 8_000},
	},
}

func classOf(group string) class {
	switch {
	case strings.HasPrefix(group, "claude-fable-"):
		return classFable
	case group == "claude-3-5-haiku", group == "claude-haiku-3-5":
		return classOldHaiku
	}
	return classPlain
}

// rates returns the numbers that are in force for a model group.
func (l *Limits) rates(group string) rates {
	r := tiers[l.Tier][classOf(group)]
	r.requests = either(l.RequestsPerMinute, r.requests)
	r.input = either(l.InputTokensPerMinute, r.input)
	r.output = either(l.OutputTokensPerMinute, r.output)
	r.countTokens = either(l.CountTokensPerMinute, r.countTokens)
	tokens := l.TokensPerMinute
	for name, g := range l.Groups { // few, and read only when a bucket is new or the limits change
		if modelGroup(name) != group {
			continue
		}
		r.requests = either(g.RequestsPerMinute, r.requests)
		r.input = either(g.InputTokensPerMinute, r.input)
		r.output = either(g.OutputTokensPerMinute, r.output)
		if g.TokensPerMinute != 0 {
			tokens = g.TokensPerMinute
		}
	}
	r.tokens = either(tokens, r.input+r.output)
	return r
}

// either returns the number of the plan when it is set, and what stands behind
// it otherwise. A negative one sets no limit.
func either(set int, behind int64) int64 {
	switch {
	case set > 0:
		return int64(set)
	case set < 0:
		return 0
	}
	return behind
}

// modelGroup returns the name of the group of models that share one limit with
// the model: its first member. The rule is that of the providers' page on rate
// limits; every model that it does not name is a group by itself. A model's
// dated and -latest names mean the same model.
func modelGroup(model string) string {
	model = undated(strings.TrimSuffix(model, "-latest"))
	switch model {
	case "claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8":
		return "claude-opus-4-5"
	case "claude-sonnet-4-6":
		return "claude-sonnet-4-5"
	case "claude-fable-5-1":
		return "claude-fable-5"
	}
	return model
}

// undated cuts a date off the end of a model's name: -20250929, @20250929 or
// -2024-08-06.
func undated(model string) string {
	for _, form := range []string{"-dddddddd", "@dddddddd", "-dddd-dd-dd"} {
		if rest := len(model) - len(form); rest > 0 && fits(model[rest:], form) {
			return model[:rest]
		}
	}
	return model
}

// fits reports whether the text has a digit where the form has a d, and is equal
// to the form elsewhere. Both are equally long.
func fits(text, form string) bool {
	for i := range len(form) {
		if form[i] == 'd' && (text[i] < '0' || text[i] > '9') || form[i] != 'd' && text[i] != form[i] {
			return false
		}
	}
	return true
}
