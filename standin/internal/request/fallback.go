package request

import "strings"

// The betas that know fallbacks. The first one takes a list alone.
const (
	fallbackBetaList = "server-side-fallback-2026-06-01"
	fallbackBeta     = "server-side-fallback-2026-07-01"
)

// fallbackDefault is the model that stands for the word "default", whose choice is the API's own.
const fallbackDefault = "claude-sonnet-5-5"

// readFallbacks reads the models that the API is to ask when one refuses, and refuses what it could not do with them.
// platform.claude.com/docs/en/build-with-claude/refusals-and-fallback. The wordings are ours.
func (r *reading) readFallbacks(fallbacks *value) {
	if !fallbacks.given() {
		return
	}
	list, both := strings.Contains(r.betas, fallbackBetaList), strings.Contains(r.betas, fallbackBeta)
	switch {
	case !list && !both:
		r.refuse("fallbacks: Extra inputs are not permitted")
	case fallbacks.kind == isString && fallbacks.text() == "default" && both:
		if r.fallsBack() {
			r.q.Fallbacks = []string{fallbackDefault}
		}
		return
	case fallbacks.kind != isArray:
		r.refuse("fallbacks: Input should be a valid list")
	case len(fallbacks.members) > 3:
		r.refuse("fallbacks: List should have at most 3 items after validation, not %d", len(fallbacks.members))
	case r.model.claude && !r.fallsBack():
		r.refuse("fallbacks: this model does not support fallbacks")
	}
	seen := map[string]bool{r.q.Model: true}
	for i, m := range fallbacks.items() {
		name := m.get("model").kept()
		switch {
		case name == "":
			r.refuse("fallbacks.%d.model: Field required", i)
		case seen[name]:
			r.refuse("fallbacks: models must be distinct")
		}
		seen[name] = true
		r.q.Fallbacks = append(r.q.Fallbacks, name)
	}
}

// fallsBack says whether the model that is asked takes fallbacks.
func (r *reading) fallsBack() bool {
	return r.model.since(50) && (r.model.family == "fable" || r.model.family == "opus")
}
