package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"holdfast/config"
)

// picture is what a configuration means, for people. It shows keys as names and fingerprints.
func picture(f *config.File) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // a builder takes everything
	row("listen", f.ListenAddress(), whoMayCall(f))
	row("admin", orWord(f.AdminAddress(), "off"))
	for _, t := range f.Targets {
		row("target", t.Label(), whereOf(t), "speaks "+spoken(t), keysOf(t))
	}
	if len(f.Targets) == 0 {
		row("target", "none: the APIs of the providers themselves")
	}
	_ = w.Flush()
	for _, t := range f.Targets {
		for _, model := range slices.Sorted(maps.Keys(t.Models)) {
			fmt.Fprintf(&b, "%s calls %s %s\n", t.Label(), model, t.Models[model])
		}
	}
	for i, r := range f.Routes {
		b.WriteString(routeLine(r, i))
	}
	rest := "every request"
	if len(f.Routes) > 0 {
		rest = "what no route takes"
	}
	fmt.Fprintf(&b, "%s asks every target of its dialect, in order\n", rest)
	if f.KeepsAnswers() {
		fmt.Fprintf(&b, "saved answers are kept in %s\n", orWord(f.SavedPath(), "memory"))
	}
	return b.String()
}

// whereOf is where a target is asked.
func whereOf(t config.Target) string {
	if t.Provider == "" {
		return t.URL
	}
	where := string(t.Provider)
	for _, place := range []string{t.Region, t.Project, t.Resource, t.Workspace} {
		if place != "" {
			where += " " + place
		}
	}
	if t.URL != "" {
		where += " at " + t.URL
	}
	return where
}

func spoken(t config.Target) string {
	if t.Provider != "" {
		return "anthropic"
	}
	return orWord(string(t.Dialect), "any dialect")
}

// credentialsOf says whose credentials a provider is asked with that has no key.
func credentialsOf(t config.Target) string {
	switch {
	case t.Profile != "":
		return "credentials of the profile " + t.Profile
	case t.Credentials != "":
		return "credentials in " + t.Credentials
	}
	return "credentials that are found here"
}

func orWord(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func whoMayCall(f *config.File) string {
	if len(f.Clients) == 0 {
		return "everybody on this machine may call"
	}
	var names []string
	for _, c := range f.Clients {
		name := c.Name
		if c.Lane != 0 {
			name += " (bulk)"
		}
		if c.RequestsPerMinute > 0 {
			name += fmt.Sprintf(" (%d a minute)", c.RequestsPerMinute)
		}
		names = append(names, name)
	}
	return "with the keys of " + strings.Join(names, ", ")
}

// keysOf names the keys of a target, with their fingerprints: whether two files hold the same key can be told, and which
// one it is cannot.
func keysOf(t config.Target) string {
	var names []string
	for _, k := range t.Pool() {
		names = append(names, fmt.Sprintf("%s (#%s)", k.Name, fingerprint(k.Key)))
	}
	switch len(names) {
	case 0:
		if t.Provider != "" {
			return credentialsOf(t)
		}
		return "the caller's own key"
	case 1:
		return "key " + names[0]
	}
	return "keys " + strings.Join(names, ", ")
}

func fingerprint(key config.Secret) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:4])
}

// routeLine tells what a route takes, and what it asks.
func routeLine(r config.Route, place int) string {
	line := fmt.Sprintf("route %s", orWord(r.Name, fmt.Sprint(place+1)))
	takes := "every model"
	if len(r.Models) > 0 {
		takes = strings.Join(r.Models, ", ")
	}
	line += ": " + takes + "\n"
	for i, e := range r.Chain {
		word := "then"
		if i == 0 {
			word = "asks"
		}
		line += "  " + word + " " + entryText(e) + "\n"
	}
	if r.OnRefusal != nil {
		e := *r.OnRefusal
		if e.Target == "" {
			e.Target = r.Chain[0].Target
		}
		line += "  after a refusal " + entryText(e) + "\n"
	}
	if r.Answer != "" {
		line += "  in the end the answer in " + r.Answer + "\n"
	}
	if r.Delivery != 0 {
		line += "  delivered " + r.Delivery.String() + "\n"
	}
	return line
}

func entryText(e config.Entry) string {
	if e.Saved {
		return "the saved answer"
	}
	text := e.Target
	if e.Model != "" {
		text += " for " + e.Model
	}
	if e.Key != "" {
		text += " with key " + e.Key
	}
	return text
}
