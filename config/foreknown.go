package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"holdfast/internal/endpoint"
	"holdfast/internal/strict"
	"holdfast/internal/wire"
)

// Notes tells what is known beforehand of the APIs that the file names, each with its line: what they lack and where they differ
// from the Claude API. Nothing is wrong with any of it, and no network is asked. No note shows a key.
func (f *File) Notes() []string {
	c := checker{f, strict.Resume(f.source.lines)}
	for i, t := range f.Targets {
		if known, ok := t.endpoint(); ok && known.Name != "anthropic" {
			c.noteOf(item("targets", i), t, known)
		}
	}
	for i, r := range f.Routes {
		c.noteSwaps(item("routes", i)+".chain", r)
	}
	var all []string
	for _, m := range c.doc.Mistakes() {
		all = append(all, wire.Scrub(m.Error(), longestMistake))
	}
	return all
}

func (c checker) noteOf(at string, t Target, known endpoint.Endpoint) {
	if len(known.Lacks) > 0 {
		var lacks []string
		for _, f := range known.Lacks {
			lacks = append(lacks, string(f))
		}
		c.wrong(at, "%s has no %s (%s)", known.Title, strings.Join(lacks, ", "), known.AsOf)
	}
	limit := int64(c.Limits.MaxBody)
	if known.MaxBody > 0 && (limit <= 0 || limit > known.MaxBody) {
		c.wrong(at, "%s takes requests up to %d MB, less than limits.max_body: larger ones go past it (%s)", known.Title, known.MaxBody/1e6, known.AsOf)
	}
	for _, b := range known.Bites {
		c.wrong(at, "%s: %s (%s)", known.Title, b, known.AsOf)
	}
	if !known.Claude && !known.Cloud {
		c.wrong(at, "%s serves models of its own: signed thinking and betas are left out for it, and whether it takes anthropic-version 2026-10-21 is not known", known.Title)
	}
}

// noteSwaps tells what a chain's other models refuse that its first one may take.
func (c checker) noteSwaps(at string, r Route) {
	for i, e := range r.Chain {
		if i == 0 || e.Saved || e.Model == "" || e.Model == r.Chain[0].Model {
			continue
		}
		if all := endpoint.Differences(e.Model); len(all) > 0 {
			c.wrong(item(at, i), "%s refuses with a 400, which no fallback hides: %s", e.Model, strings.Join(all, "; "))
		}
	}
}

// warnOfEndpoints tells of what is known of the targets' APIs and does not go together with what the file says.
func (c checker) warnOfEndpoints() {
	for i, t := range c.Targets {
		known, ok := t.endpoint()
		if !ok {
			continue
		}
		at := item("targets", i)
		if want, wrong := known.WrongPath(t.URL); wrong && t.URL != "" && t.Provider == "" {
			c.wrong(at+".url", "the messages of %s are at the base path %q; such as %s", known.Title, want, known.Base)
		}
		c.warnOfAuth(at, t, known)
		if t.Provider != "" && len(t.Pool()) == 0 && t.Profile == "" && t.Credentials == "" {
			if lacks := around().Missing(string(t.Provider)); lacks != "" {
				c.wrong(at, "%s", lacks)
			}
		}
	}
	for i, t := range c.Targets {
		at := item("targets", i) + ".credentials"
		if path := c.file(at, t.Credentials); path != "" && !around().Exists(path) {
			c.wrong(at, "there is no file %s: the target fails until there is", path)
		}
	}
	for i, r := range c.Routes {
		c.warnOfChain(item("routes", i)+".chain", r)
	}
	if len(c.Routes) == 0 {
		for i, t := range c.Targets {
			c.warnOfModel(item("targets", i), t, Entry{}, nil)
		}
	}
}

func (c checker) warnOfAuth(at string, t Target, known endpoint.Endpoint) {
	if known.Auth != endpoint.Bearer || t.Provider != "" {
		return
	}
	switch keyless := len(t.Pool()) == 0; {
	case t.Auth != "" && t.Auth != bearer:
		c.wrong(at+".auth", "%s takes its key as bearer alone (%s)", known.Title, known.AsOf)
	case keyless:
		c.wrong(at, "%s takes a key as bearer alone, and the caller's own passes through as he sends it; key holds one for it", known.Title)
	}
}

// around is what this process finds around it.
func around() endpoint.Surroundings {
	home, _ := os.UserHomeDir()
	return endpoint.Surroundings{Env: os.Getenv, Home: home, Exists: func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}}
}

func (c checker) warnOfChain(at string, r Route) {
	for i, e := range r.Chain {
		t, found := c.targetNamed(e.Target)
		if e.Saved || !found {
			continue
		}
		c.warnOfModel(item(at, i), t, e, r.Models)
		for j, before := range r.Chain[:i] {
			a, b := before.asks(r), e.asks(r)
			if known, _ := t.endpoint(); known.Name == "anthropic" && before.Target == e.Target && before.Key == e.Key && endpoint.SharesLimit(a, b) {
				c.wrong(item(at, i), "%s has one rate limit together with %s at place %d: when that one is throttled, so is this", b, a, j)
				break
			}
		}
	}
}

// asks is the one model that an entry asks for; empty when there are several.
func (e Entry) asks(r Route) string {
	if e.Model == "" && len(r.Models) == 1 && !strings.ContainsAny(r.Models[0], `*?[\`) {
		return r.Models[0]
	}
	return e.Model
}

// warnOfModel tells of a target that would be asked for a model by a name that it does not know.
func (c checker) warnOfModel(at string, t Target, e Entry, asked []string) {
	known, ok := t.endpoint()
	if !ok || !known.Renames || e.Model != "" {
		return
	}
	lacking := slices.DeleteFunc(slices.Clone(asked), func(m string) bool { return t.Models[m] != "" || strings.ContainsAny(m, `*?[\`) })
	switch {
	case len(t.Models) == 0:
		such := ""
		if known.Example != "" {
			such = fmt.Sprintf(", such as %s", known.Example)
		}
		c.wrong(at, "%s names models in its own way%s; the target's models, or model in the chain, says how", known.Title, such)
	case len(lacking) > 0:
		c.wrong(at, "%s names models in its own way, and the models of %s do not list %s", known.Title, t.Label(), strings.Join(lacking, ", "))
	}
}
