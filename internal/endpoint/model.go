package endpoint

import (
	"regexp"
	"strconv"
	"strings"
)

// Model is a Claude model by its name, however a provider writes it. The zero value is none.
type Model struct {
	// Family is opus, sonnet, haiku, fable or mythos.
	Family string
	// Version is major*100 + minor: 407 is 4.7.
	Version int
}

var claude = regexp.MustCompile(`claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2}))?(?:$|[^0-9.])`)

// ModelOf reads the name of a Claude model: claude-opus-4-8, anthropic.claude-opus-4-8-v1:0, claude-opus-4-5@20251101,
// anthropic/claude-opus-4.5. It reports false for any other name, also for those before Claude 4.
func ModelOf(name string) (Model, bool) {
	m := claude.FindStringSubmatch(strings.ToLower(name))
	if m == nil {
		return Model{}, false
	}
	major, _ := strconv.Atoi(m[2]) // the pattern takes digits alone
	minor, _ := strconv.Atoi("0" + m[3])
	return Model{m[1], major*100 + minor}, true
}

// groups are the models that share one rate limit at the Claude API; every other model has one of its own (its page on rate
// limits, 2026-10-04).
var groups = []struct {
	family   string
	from, to int
}{{"opus", 405, 408}, {"sonnet", 405, 406}, {"fable", 500, 501}}

// SharesLimit reports whether two models have one rate limit at the Claude API, so that to fall back from one to the other
// gains nothing when the first is throttled. It reports false for models of which that is not known.
func SharesLimit(a, b string) bool {
	if a == b {
		return a != ""
	}
	x, ok := ModelOf(a)
	y, also := ModelOf(b)
	if !ok || !also || x.Family != y.Family {
		return false
	}
	in := func(m Model, from, to int) bool { return m.Version >= from && m.Version <= to }
	for _, g := range groups {
		if g.family == x.Family && in(x, g.from, g.to) && in(y, g.from, g.to) {
			return true
		}
	}
	return x.Version == y.Version
}

// Differences are what a request that was made for another model may be refused for by this one, with status 400, a phrase
// each (the Claude API's pages on errors and on migration, 2026-08). None for a model of which nothing is known.
func Differences(model string) (all []string) {
	m, ok := ModelOf(model)
	if !ok {
		return nil
	}
	newest := m.Family == "fable" || m.Family == "mythos"
	if m.Version >= 406 || newest {
		all = append(all, "an assistant message at the end (prefill)")
	}
	if m.Family == "opus" && m.Version >= 407 {
		all = append(all, "temperature, top_p or top_k other than the default")
	}
	if m.Version >= 407 {
		all = append(all, "thinking of type enabled")
	}
	if m.Version <= 405 && !newest {
		all = append(all, "thinking of type adaptive")
	}
	if newest && m.Version >= 500 && m.Version < 600 {
		all = append(all, "thinking of type disabled")
	}
	return all
}
