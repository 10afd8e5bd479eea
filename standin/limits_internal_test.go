package standin

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestModelsShareALimitByGroup(t *testing.T) {
	for group, models := range map[string][]string{
		"claude-opus-4-5":   {"claude-opus-4-5", "claude-opus-4-5-20251101", "claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-4-8-latest", "claude-opus-4-6@20260205"},
		"claude-sonnet-4-5": {"claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-6", "claude-sonnet-4-6-latest"},
		"claude-fable-5":    {"claude-fable-5", "claude-fable-5-1", "claude-fable-5-1-20261001"},
		"claude-opus-5":     {"claude-opus-5"},
		"claude-opus-5-5":   {"claude-opus-5-5"},
		"claude-sonnet-5":   {"claude-sonnet-5", "claude-sonnet-5-20260801"},
		"claude-sonnet-5-5": {"claude-sonnet-5-5"},
		"claude-haiku-4-5":  {"claude-haiku-4-5", "claude-haiku-4-5-20251001"},
		"claude-opus-4-1":   {"claude-opus-4-1-20250805"},
		"claude-opus-4":     {"claude-opus-4-20250514"},
		"claude-3-5-haiku":  {"claude-3-5-haiku-20241022", "claude-3-5-haiku-latest"},
		"gpt-4o":            {"gpt-4o", "gpt-4o-2024-08-06"},
		"-20250929":         {"-20250929"},
		"":                  {"", "-latest"},
	} {
		for _, model := range models {
			if got := modelGroup(model); got != group {
				t.Errorf("modelGroup(%q) = %q, want %q", model, got, group)
			}
		}
	}
}

func TestTierHasThePublicNumbers(t *testing.T) {
	for _, tt := range []struct {
		tier  Tier
		model string
		want  rates
	}{
		{TierStart, "claude-opus-5", rates{1_000, 2_000_000, 400_000, 2_400_000, 2_000}},
		{TierStart, "claude-fable-5-1", rates{1_000, 500_000, 100_000, 600_000, 2_000}},
		{TierStart, "claude-3-5-haiku-20241022", rates{1_000, 100_000, 20_000, 120_000, 2_000}},
		{TierBuild, "claude-haiku-4-5", rates{5_000, 5_000_000, 1_000_000, 6_000_000, 4_000}},
		{TierBuild, "claude-fable-5", rates{2_000, 1_500_000, 300_000, 1_800_000, 4_000}},
		{TierBuild, "claude-haiku-3-5", rates{2_000, 200_000, 40_000, 240_000, 4_000}},
		{TierScale, "claude-sonnet-5-5", rates{10_000, 10_000_000, 2_000_000, 12_000_000, 8_000}},
		{TierScale, "claude-fable-5", rates{4_000, 4_000_000, 800_000, 4_800_000, 8_000}},
		{TierScale, "claude-3-5-haiku-latest", rates{4_000, 400_000, 80_000, 480_000, 8_000}},
		{"", "claude-opus-5", rates{}},
	} {
		limits := &Limits{Tier: tt.tier}
		if got := limits.rates(modelGroup(tt.model)); got != tt.want {
			t.Errorf("%s of %q: got %+v, want %+v", tt.model, tt.tier, got, tt.want)
		}
	}
}

func TestNumbersReplaceThoseBehindThem(t *testing.T) {
	limits := &Limits{
		Tier: TierStart, RequestsPerMinute: 50, InputTokensPerMinute: -1, CountTokensPerMinute: 7,
		Groups: map[string]GroupLimits{
			"claude-opus-4-7": {RequestsPerMinute: 5, OutputTokensPerMinute: -1},
			"gpt-4o":          {TokensPerMinute: 30_000},
			"gpt-free":        {TokensPerMinute: -1},
		},
	}
	for model, want := range map[string]rates{
		"claude-haiku-4-5":         {50, 0, 400_000, 400_000, 7},
		"claude-opus-4-5-20251101": {5, 0, 0, 0, 7},
		"gpt-4o-2024-08-06":        {50, 0, 400_000, 30_000, 7},
		"gpt-free":                 {50, 0, 400_000, 0, 7},
	} {
		if got := limits.rates(modelGroup(model)); got != want {
			t.Errorf("%s: got %+v, want %+v", model, got, want)
		}
	}
}

func TestLimitsReportEveryMistake(t *testing.T) {
	bad := Limits{
		RequestsPerMinute: maxRate + 1, Window: time.Hour, Concurrent: -1, Growth: math.NaN(),
		Groups: map[string]GroupLimits{"": {}, "claude-opus-4-5": {}, "claude-opus-4-8": {TokensPerMinute: maxRate + 1}},
	}
	want := []limitMistake{
		{"requests_per_minute", "1000000000001 is above 1000000000000; a negative number means no limit"},
		{`groups.""`, "a group needs the name of a model"},
		{"groups.claude-opus-4-8", "it shares one limit with claude-opus-4-5; keep one of them"},
		{"groups.claude-opus-4-8", "1000000000001 is above 1000000000000; a negative number means no limit"},
		{"window", "1h0m0s is not between 0 and 1m"},
		{"concurrent", "-1 is negative; leave it out for no limit"},
		{"growth", "NaN is not a factor from 1, such as 1.5"},
	}
	if diff := cmp.Diff(want, bad.mistakes(), cmp.AllowUnexported(limitMistake{})); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
	for _, good := range []Limits{{}, {Tier: TierScale, Growth: 1, Window: time.Minute, Concurrent: 1, RequestsPerMinute: -1, Groups: map[string]GroupLimits{"m": {}}}} {
		if got := good.mistakes(); got != nil {
			t.Errorf("%+v: %v", good, got)
		}
	}
	for _, growth := range []float64{0.5, -1, math.Inf(1)} {
		if len((&Limits{Growth: growth}).mistakes()) != 1 {
			t.Errorf("growth %v passes", growth)
		}
	}
}

func TestPlanReadsAllOfTheLimits(t *testing.T) {
	plan, err := ParsePlan([]byte("limits:\n  tier: build\n  window: 2s\n  tokens_per_minute: 30000\n  groups:\n    claude-opus-4-7: {requests_per_minute: 5, output_tokens_per_minute: -1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Limits{
		Tier: TierBuild, Window: 2 * time.Second, TokensPerMinute: 30_000,
		Groups: map[string]GroupLimits{"claude-opus-4-7": {RequestsPerMinute: 5, OutputTokensPerMinute: -1}},
	}
	if diff := cmp.Diff(want, plan.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	_, err = ParsePlan([]byte("limits:\n  window: 2m\n  groups:\n    claude-opus-4-7: {}\n    claude-opus-4-8: {tokens_per_minute: 9000000000000}\n"))
	for _, want := range []string{"2: limits.window: 2m0s is not", "5: limits.groups.claude-opus-4-8: it shares", "5: limits.groups.claude-opus-4-8: 9000000000000 is above"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func FuzzModelGroup(f *testing.F) {
	for _, seed := range []string{"", "claude-opus-4-8-20260101", "gpt-4o-2024-08-06", "@20250929", "-latest", "é-12345678"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, model string) {
		group := modelGroup(model)
		if len(group) > len(model) && group != "claude-opus-4-5" {
			t.Errorf("%q is in the group %q", model, group)
		}
		if dated := modelGroup(group + "-20261130"); group != "" && modelGroup(group) == group && dated != group {
			t.Errorf("%q with a date is in the group %q", group, dated)
		}
	})
}
