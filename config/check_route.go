package config

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"holdfast/internal/strict"
)

func (c checker) routes() {
	names := map[string]int{}
	for i, r := range c.Routes {
		at := item("routes", i)
		if r.Name != "" {
			c.name(at, r.Name, names, i, "route")
		}
		for j, pattern := range r.Models {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" || strings.ContainsFunc(pattern, unicode.IsControl) {
				c.wrong(item(at+".models", j), "is no pattern; such as claude-opus-*")
			}
		}
		c.chain(at+".chain", r.Chain)
		if r.OnRefusal != nil {
			c.onRefusal(at+".on_refusal", r)
		}
		if earlier := c.hides(c.Routes[:i], r); earlier >= 0 {
			c.wrong(at, "never matches: %s before it takes all its models", item("routes", earlier))
		}
	}
}

func (c checker) chain(at string, chain []Entry) {
	if len(chain) == 0 || chain[0].Saved && len(chain) == 1 {
		c.wrong(at, "asks nobody; it needs a target such as {target: NAME}")
	}
	for i, e := range chain {
		at := item(at, i)
		switch {
		case e.Saved && i < len(chain)-1:
			c.wrong(at, "saved must be the last of its chain: nothing after it would be asked")
		case e.Saved:
		default:
			c.entry(at, e)
			if j := slices.IndexFunc(chain[:i], e.asksTheSame); j >= 0 {
				c.wrong(at, "asks the same as place %d of its chain; policy.attempts says how often one is asked", j)
			}
			c.dialect(at, e, chain[:i])
		}
	}
}

// asksTheSame reports whether two entries ask one model of one target with the same keys at the same path.
func (e Entry) asksTheSame(other Entry) bool {
	return e.Target == other.Target && e.Model == other.Model && e.Key == other.Key && e.Path == other.Path
}

// entry checks one place by itself.
func (c checker) entry(at string, e Entry) {
	t, found := c.targetNamed(e.Target)
	switch {
	case c.doc.Unread("targets") || !found && c.unreadName():
		return // it cannot be told what there is
	case e.Target == "":
		c.wrong(at+".target", "is missing; %s", known(c.targetNames()))
		return
	case !found:
		if near := strict.Nearest(e.Target, c.targetNames()); near != "" {
			c.wrong(at+".target", "there is no target %q; did you mean %q?", e.Target, near)
			return
		}
		c.wrong(at+".target", "there is no target %q; %s", e.Target, known(c.targetNames()))
		return
	}
	if e.Key != "" && !slices.ContainsFunc(t.Pool(), func(k Key) bool { return k.Name == e.Key }) {
		var names []string
		for _, k := range t.Pool() {
			names = append(names, k.Name)
		}
		c.wrong(at+".key", "is not the name of a key of %s; %s", t.Label(), known(names)) // without it: it may be a key
	}
	if e.Path != "" && (!strings.HasPrefix(e.Path, "/") || strings.ContainsAny(e.Path, "?# ")) {
		c.wrong(at+".path", "must begin with / and have no query: it replaces the base path of the target's URL")
	}
	if strings.ContainsFunc(e.Model, unicode.IsControl) {
		c.wrong(at+".model", "holds a control character")
	}
	c.headers(at, e, t)
}

// headers checks what an entry sends in place of the caller's headers.
func (c checker) headers(at string, e Entry, t Target) {
	if t.Dialect == openai && (e.Betas != nil || e.Version != "") {
		c.wrong(at, "betas and version are headers of the anthropic dialect, and %s speaks openai", t.Label())
	}
	for i, b := range e.Betas {
		if !isToken(b) {
			c.wrong(item(at+".betas", i), "must be one name, without spaces or commas")
		}
	}
	if e.Version != "" && !isToken(e.Version) {
		c.wrong(at+".version", "must be a version such as 2023-06-01")
	}
}

func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' })
}

// unreadName reports whether the name of a target could not be read.
func (c checker) unreadName() bool {
	for i, t := range c.Targets {
		if at := item("targets", i); c.doc.Unread(at+".name") || t.Name == "" && c.doc.Unread(at+".url") {
			return true
		}
	}
	return false
}

// dialect checks that an entry speaks that of those before it.
func (c checker) dialect(at string, e Entry, before []Entry) {
	own, _ := c.targetNamed(e.Target)
	for _, b := range before {
		if t, _ := c.targetNamed(b.Target); own.Dialect != "" && t.Dialect != "" && t.Dialect != own.Dialect {
			c.wrong(at, "%s speaks %s and %s before it %s: nothing is translated between dialects", own.Label(), own.Dialect, t.Label(), t.Dialect)
			return
		}
	}
}

// refusalEntry is OnRefusal with the target that it has by default.
func (r Route) refusalEntry() Entry {
	e := *r.OnRefusal
	if e.Target == "" && len(r.Chain) > 0 {
		e.Target = r.Chain[0].Target
	}
	return e
}

// onRefusal checks that another model is asked.
func (c checker) onRefusal(at string, r Route) {
	e := r.refusalEntry()
	if e.Saved {
		c.wrong(at, "must be a target: a saved answer never stands in for a refusal")
		return
	}
	if len(r.Chain) == 0 || r.Chain[0].Saved {
		return // which has been said
	}
	c.entry(at, e)
	c.dialect(at, e, r.Chain)
	always := func(model string) bool { return model == e.Model }
	if same := e.Model == r.Chain[0].Model; same || r.Chain[0].Model == "" && len(r.Models) > 0 && !slices.ContainsFunc(r.Models, func(m string) bool { return !always(m) }) {
		c.wrong(at+".model", "is that of the chain's first entry, which has refused; name another")
	}
}

// hides returns the place of an earlier route that takes everything that r would match, -1 if there is none.
func (c checker) hides(earlier []Route, r Route) int {
	dialect := c.dialectOf(r)
	for i, e := range earlier {
		if d := c.dialectOf(e); d != "" && d != dialect {
			continue // it leaves the requests of other dialects alone
		}
		covered := func(pattern string) bool {
			return slices.ContainsFunc(e.Models, func(wider string) bool { return covers(wider, pattern) })
		}
		if len(e.Models) == 0 || len(r.Models) > 0 && !slices.ContainsFunc(r.Models, func(p string) bool { return !covered(p) }) {
			return i
		}
	}
	return -1
}

// dialectOf is the one dialect of a route's targets, empty when they take any.
func (c checker) dialectOf(r Route) Dialect {
	for _, e := range r.Chain {
		if t, _ := c.targetNamed(e.Target); t.Dialect != "" {
			return t.Dialect
		}
	}
	return ""
}

// covers reports whether every name that matches the pattern narrow matches wide. In doubt it reports false: patterns with
// classes or escapes cover only themselves and names without any.
func covers(wide, narrow string) bool {
	if wide == narrow {
		return true
	}
	if !strings.ContainsAny(narrow, `*?[\`) {
		ok, _ := path.Match(wide, narrow)
		return ok
	}
	if strings.ContainsAny(wide+narrow, `[\`) {
		return false
	}
	return swallows(wide, narrow)
}

// swallows matches patterns of literals, ? and * against each other: only a * takes a *, and neither * nor ? takes a slash.
func swallows(wide, narrow string) bool {
	reach := make([]bool, len(narrow)+1) // which beginnings of narrow the part of wide so far takes
	reach[0] = true
	for i := range len(wide) {
		next := make([]bool, len(narrow)+1)
		for j := range reach {
			switch {
			case wide[i] == '*':
				next[j] = reach[j] || j > 0 && next[j-1] && narrow[j-1] != '/'
			case j == 0 || !reach[j-1]:
			case wide[i] == '?':
				next[j] = narrow[j-1] != '/' && narrow[j-1] != '*' && narrow[j-1] < 0x80
			default:
				next[j] = narrow[j-1] == wide[i]
			}
		}
		reach = next
	}
	return reach[len(narrow)]
}
