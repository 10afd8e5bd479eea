package config

import (
	"fmt"
	"net/url"
	"strings"
)

func (c checker) targets() {
	names := map[string]int{}
	for i, t := range c.Targets {
		at := item("targets", i)
		_, wrong := baseURL(t.URL)
		if (t.Provider != "" || c.doc.Unread(at+".provider")) && t.URL == "" {
			wrong = ""
		}
		if wrong != "" {
			c.wrong(at+".url", "%s", wrong)
		}
		if t.Label() != "" && (t.Name != "" || wrong == "") {
			c.name(at, t.Label(), names, i, "target")
		}
		c.keys(at, t)
		c.models(at, t)
		switch {
		case c.doc.Unread(at + ".provider"):
		case t.Provider == "":
			c.strays(at, t)
		case wrong == "":
			c.elsewhere(at, t)
		}
	}
}

// baseURL reads the URL of a target. What is wrong with it does not show it: it may hold a key.
func baseURL(text string) (u *url.URL, wrong string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, "is missing; such as https://api.anthropic.com"
	case err != nil:
		return nil, "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "must begin with https:// or http://"
	case u.Hostname() == "" || u.Port() != "" && !isPort(u.Port()):
		return nil, "must have a host, and a port from 0 to 65535 if it has one"
	case u.User != nil:
		return nil, "must not hold a user or password; the credentials are under key"
	case u.RawQuery != "" || u.ForceQuery:
		return nil, "must not have a query: that of each request is passed on as it is, and a key is under key"
	case u.Fragment != "":
		return nil, "must not have a fragment"
	}
	return u, ""
}

// keys checks the credentials of a target. No mistake shows one.
func (c checker) keys(at string, t Target) {
	if t.Key != "" && len(t.Keys) > 0 {
		c.wrong(at+".keys", "stands beside key; all of them belong under keys")
	}
	names, secrets := map[string]int{}, map[Secret]int{}
	for i, k := range t.Pool() {
		at := item(at+".keys", i)
		if t.Key != "" {
			break
		}
		first, taken := secrets[k.Key]
		switch {
		case k.Key == "":
			c.wrong(at+".key", "is missing")
		case taken:
			c.wrong(at+".key", "is that of %s too", item("keys", first))
		}
		secrets[k.Key] = i
		c.name(at, k.Name, names, i, "key")
	}
}

// targetNamed returns the target of that name.
func (f *File) targetNamed(name string) (Target, bool) {
	for _, t := range f.Targets {
		if t.Label() == name {
			return t, true
		}
	}
	return Target{}, false
}

func (f *File) targetNames() (names []string) {
	for _, t := range f.Targets {
		if t.Label() != "" { // else it has a mistake of its own
			names = append(names, t.Label())
		}
	}
	return names
}

// known lists the names that would have been right.
func known(names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return fmt.Sprintf("known are %s", strings.Join(names, ", "))
}
