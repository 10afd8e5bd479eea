package holdfast_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast"
)

// wrongPolicy has every mistake that Validate knows.
func wrongPolicy() *holdfast.Policy {
	breaker := holdfast.BreakerSettings{
		Failures: -1, Ratio: -1, Window: -1, Cooldown: -2, MaxCooldown: -3, Lease: -4, MinCalls: -5,
	}
	return &holdfast.Policy{
		Deadline: time.Minute, AttemptTimeout: time.Hour, ServerWait: holdfast.Exact + 1,
		Backoff: holdfast.Backoff{Base: time.Minute, Cap: time.Second, ThrottleBase: -1, Jitter: holdfast.NoJitter + 1},
		Breaker: holdfast.NewBreaker(breaker),
		Budget:  holdfast.NewBudget(holdfast.BudgetSettings{Capacity: -1, Cost: -1, ThrottleCost: -1}),
		Targets: []holdfast.Target{
			{Name: "a"}, {Name: "b", Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Ratio: 1.5})}, {Name: "a"},
		},
	}
}

func TestValidateNamesEveryMistakeAtOnce(t *testing.T) {
	err := wrongPolicy().Validate()
	if err == nil {
		t.Fatal("no mistake found")
	}
	lines := strings.Split(err.Error(), "\n")
	want := []string{
		"Backoff.ThrottleBase", "Backoff.Base", "Backoff.Jitter", "ServerWait", "AttemptTimeout", "Targets", "Targets[2].Name",
		"Breaker.Window", "Breaker.Cooldown", "Breaker.MaxCooldown", "Breaker.Lease", "Breaker.MinCalls", "Breaker.Failures",
		"Targets[1].Breaker.Ratio", "Budget.Capacity", "Budget.Cost", "Budget.ThrottleCost",
	}
	for i, field := range want {
		if i >= len(lines) || !strings.HasPrefix(lines[i], "holdfast: policy "+field+" ") {
			t.Fatalf("mistake %d does not begin with %q:\n%v", i, field, err)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d mistakes, want %d:\n%v", len(lines), len(want), err)
	}
}

func TestValidateOne(t *testing.T) {
	withBreaker := func(s holdfast.BreakerSettings) holdfast.Policy {
		return holdfast.Policy{Breaker: holdfast.NewBreaker(s)}
	}
	withBudget := func(s holdfast.BudgetSettings) holdfast.Policy {
		return holdfast.Policy{Budget: holdfast.NewBudget(s)}
	}
	for _, row := range []struct {
		name   string
		policy holdfast.Policy
		field  string // "": no mistake
	}{
		{name: "zero value"},
		{name: "everything turned off", policy: holdfast.Policy{Attempts: -1, Deadline: -1, AttemptTimeout: -1, MaxServerWait: -1, Backoff: holdfast.Backoff{Base: -1, Cap: -1}}},
		{name: "all parts by default", policy: holdfast.Policy{Breaker: &holdfast.Breaker{}, Pace: &holdfast.Pace{}, Budget: &holdfast.Budget{}}},
		{name: "base is the cap", policy: holdfast.Policy{Backoff: holdfast.Backoff{Base: 8 * time.Second}}},
		{name: "base above the default cap", policy: holdfast.Policy{Backoff: holdfast.Backoff{Base: 8*time.Second + 1}}, field: "Backoff.Base"},
		{name: "cap below the default base", policy: holdfast.Policy{Backoff: holdfast.Backoff{Cap: time.Millisecond}}, field: "Backoff.Base"},
		{name: "base without a cap", policy: holdfast.Policy{Backoff: holdfast.Backoff{Base: time.Hour, Cap: -1}}},
		{name: "attempt as long as the call", policy: holdfast.Policy{AttemptTimeout: 10 * time.Minute}},
		{name: "attempt longer than the default deadline", policy: holdfast.Policy{AttemptTimeout: 10*time.Minute + 1}, field: "AttemptTimeout"},
		{name: "attempt without a deadline", policy: holdfast.Policy{Deadline: -1, AttemptTimeout: time.Hour}},
		{name: "targets and a breaker", policy: holdfast.Policy{Targets: []holdfast.Target{{Name: "a"}}, Breaker: &holdfast.Breaker{}}, field: "Targets"},
		{name: "targets and a pace", policy: holdfast.Policy{Targets: []holdfast.Target{{Name: "a"}}, Pace: &holdfast.Pace{}}, field: "Targets"},
		{name: "targets and a budget", policy: holdfast.Policy{Targets: []holdfast.Target{{Name: "a"}}, Budget: &holdfast.Budget{}}},
		{name: "two targets without a name", policy: holdfast.Policy{Targets: []holdfast.Target{{}, {}}}, field: "Targets[1].Name"},
		{name: "a pool", policy: holdfast.Policy{Targets: keys(3)}},
		{name: "a pool that is apart", policy: holdfast.Policy{Targets: []holdfast.Target{{Name: "a", Pool: "p"}, {Name: "b"}, {Name: "c", Pool: "p"}}}, field: "Targets[2].Pool"},
		{name: "a pool of two models", policy: holdfast.Policy{Targets: []holdfast.Target{{Name: "a", Pool: "p", Model: "m"}, {Name: "b", Pool: "p"}}}, field: "Targets[1].Pool"},
		{name: "a target for refusals", policy: holdfast.Policy{RefusalFallback: true, Targets: []holdfast.Target{{Name: "a", OnRefusal: true}, {Name: "b"}}}},
		{name: "a target for refusals that are answers", policy: holdfast.Policy{Targets: []holdfast.Target{{Name: "a"}, {Name: "b", OnRefusal: true}}}, field: "Targets[1].OnRefusal"},
		{name: "none but targets for refusals", policy: holdfast.Policy{RefusalFallback: true, Targets: []holdfast.Target{{Name: "a", OnRefusal: true}}}, field: "Targets[0].OnRefusal"},
		{name: "no such lane", policy: holdfast.Policy{Lane: holdfast.Bulk + 1}, field: "Lane"},
		{name: "ratio of all", policy: withBreaker(holdfast.BreakerSettings{Ratio: 1})},
		{name: "ratio above all", policy: withBreaker(holdfast.BreakerSettings{Ratio: 1.01}), field: "Breaker.Ratio"},
		{name: "ratio that is no number", policy: withBreaker(holdfast.BreakerSettings{Ratio: math.NaN()}), field: "Breaker.Ratio"},
		{name: "a maximum below the cooldown", policy: withBreaker(holdfast.BreakerSettings{Cooldown: time.Hour})},
		{name: "one rule off", policy: withBreaker(holdfast.BreakerSettings{Failures: -1})},
		{name: "no ramp, no slow calls", policy: withBreaker(holdfast.BreakerSettings{Ramp: -1, SlowCall: -1})},
		{name: "no refill, no earning", policy: withBudget(holdfast.BudgetSettings{Refill: -1, Earn: -1})},
		{name: "a cost of all", policy: withBudget(holdfast.BudgetSettings{Cost: 100})},
		{name: "a cost above all", policy: withBudget(holdfast.BudgetSettings{Cost: 101}), field: "Budget.Cost"},
		{name: "a capacity below the default cost", policy: withBudget(holdfast.BudgetSettings{Capacity: 13}), field: "Budget.Cost"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.policy.Validate()
			if row.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "holdfast: policy "+row.field+" ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("Validate = %v, want one mistake in %s", err, row.field)
			}
		})
	}
}

func TestValidateChangesNothing(t *testing.T) {
	validated, untouched := wrongPolicy(), wrongPolicy()
	first := validated.Validate()
	if again := validated.Validate(); again == nil || again.Error() != first.Error() {
		t.Errorf("a second look finds %v, the first found %v", again, first)
	}
	if !reflect.DeepEqual(validated, untouched) {
		t.Error("the policy was changed")
	}
	joined, ok := first.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 17 {
		t.Errorf("the mistakes are not joined: %T", first)
	}
	if errors.Is(first, holdfast.ErrAttempts) {
		t.Error("a mistake passes for the outcome of a call")
	}
}

// documented are the defaults as users know them. To change one is to change this table, the comment and the constant.
var documented = map[string]string{
	"Policy.Attempts": "4", "Policy.Deadline": "10m", "Policy.MaxServerWait": "60s",
	"Backoff.Base": "500ms", "Backoff.Cap": "8s",
	"BreakerSettings.Failures": "5", "BreakerSettings.Ratio": "0.5", "BreakerSettings.Window": "60s", "BreakerSettings.MinCalls": "10",
	"BreakerSettings.Cooldown": "20s", "BreakerSettings.MaxCooldown": "5m", "BreakerSettings.Lease": "2m", "BreakerSettings.Probes": "5", "BreakerSettings.Ramp": "10s",
	"Limits.Burst": "1m", "Limits.Queue": "1000",
	"BudgetSettings.Capacity": "100", "BudgetSettings.Cost": "14", "BudgetSettings.ThrottleCost": "5", "BudgetSettings.Earn": "1",
	"BudgetSettings.Refill": "10s",
}

// That comments and constants agree is tested for the whole tree; here that none of the root's is missing or new, and
// that no constant is a default which nobody is told of.
func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	told, constants := map[string]string{}, map[string]bool{}
	for _, s := range tree(t) {
		if s.dir != "." {
			continue
		}
		for field, said := range defaultsOf(s) {
			told[field] = said
		}
		for name := range constantsOf(s) {
			if regexp.MustCompile(`^default[A-Z]`).MatchString(name) {
				constants[strings.TrimPrefix(name, "default")] = true
			}
		}
	}
	if !reflect.DeepEqual(told, documented) {
		t.Errorf("the comments say %v,\nwant %v", told, documented)
	}
	for field := range told {
		_, name, _ := strings.Cut(field, ".")
		delete(constants, name)
	}
	if len(constants) != 0 {
		t.Errorf("defaults that no comment tells: %v", constants)
	}
}

// The defaults that are names are the zero values.
func TestNamedDefaultsAreZero(t *testing.T) {
	var p holdfast.Policy
	if p.Backoff.Jitter != holdfast.FullJitter || p.ServerWait != holdfast.PlusJitter || (holdfast.BreakerSettings{}).Count != holdfast.CountAttempts {
		t.Error("FullJitter, PlusJitter and CountAttempts must be the zero values")
	}
}

// Validate may be called while the policy is in use.
func TestValidateBesideCalls(t *testing.T) {
	p := holdfast.Policy{Breaker: &holdfast.Breaker{}, Budget: &holdfast.Budget{}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { _, _, _ = holdfast.Do(t.Context(), &p, func(context.Context) (int, error) { return 1, nil }) })
	}
	all.Wait()
}
