package config

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"holdfast/gateway"
	"holdfast/internal/endpoint"
	"holdfast/provider"
)

// Elsewhere gives the targets that name a provider their bases, which send by base. The settings are those that Gateway
// returned. It looks for no credentials: they are looked for when a target is asked. It never touches other targets.
func (f *File) Elsewhere(s *gateway.Settings, base http.RoundTripper) error {
	for i, t := range f.Targets {
		if t.Provider == "" || i >= len(s.Targets) {
			continue
		}
		made, err := f.NewProvider(i, base)
		if err != nil {
			return err
		}
		s.Targets[i].Base = made
	}
	return nil
}

// NewProvider returns the transport of the target at a place of the list, which must name a provider. It never asks a network.
func (f *File) NewProvider(target int, base http.RoundTripper) (*provider.Transport, error) {
	s := f.providerSettings(target)
	s.Base = base
	return provider.New(s)
}

// providerSettings is a target as package provider has it. The gateway maps models itself.
func (f *File) providerSettings(target int) provider.Settings {
	t := f.Targets[target]
	s := provider.Settings{
		Provider: string(t.Provider), Region: t.Region, Project: t.Project, Resource: t.Resource, Workspace: t.Workspace, URL: t.URL,
		Profile: t.Profile, Credentials: f.file(item("targets", target)+".credentials", t.Credentials),
	}
	if pool := t.Pool(); len(pool) > 0 {
		s.Key = pool[0].Key.Reveal()
	}
	if key := s.Key; t.Provider == provider.Foundry && t.Auth == bearer && key != "" {
		s.Key, s.Tokens = "", func(context.Context) (string, error) { return key, nil }
	}
	return s
}

// endpoint is what is known of the API of a target; false when that is nothing, or when it is asked in another dialect.
func (t Target) endpoint() (endpoint.Endpoint, bool) {
	if t.Provider != "" {
		return endpoint.Cloud(string(t.Provider))
	}
	if t.Dialect != anthropic {
		return endpoint.Endpoint{}, false
	}
	return endpoint.At(t.URL)
}

// dialect is that of the target. All providers speak the same.
func (t Target) dialect() Dialect {
	if t.Provider != "" {
		return anthropic
	}
	return t.Dialect
}

// auth is how a key is sent; empty: as the gateway has it.
func (t Target) auth() Auth {
	if known, ok := t.endpoint(); ok && t.Auth == "" && known.Auth == endpoint.Bearer {
		return bearer
	}
	return t.Auth
}

// foreknow tells the gateway what is known not to work with the API of a target.
func (t Target) foreknow(to *gateway.Target) {
	known, ok := t.endpoint()
	if !ok || known.Name == "anthropic" {
		return
	}
	to.Lacks.MaxBody = known.MaxBody
	to.Lacks.CountTokens = !known.Serves("/v1/messages/count_tokens")
	if !known.Claude || !known.Has(endpoint.Fallbacks) {
		to.Lacks.Members, to.Lacks.Betas = []string{"fallbacks"}, []string{"server-side-fallback-"}
	}
	if !known.Has(endpoint.Betas) {
		to.Betas = []string{}
	}
}

// elsewhere checks a target that names a provider. The rules are those of package provider.
func (c checker) elsewhere(at string, t Target) {
	if t.Dialect == openai {
		c.wrong(at+".dialect", "%s speaks anthropic", t.Provider)
	}
	switch {
	case len(t.Pool()) > 1:
		c.wrong(at+".keys", "a provider is asked with one key; a second one is a target of its own")
	case t.Auth != "" && (t.Provider != provider.Foundry || t.Auth != bearer || len(t.Pool()) == 0):
		c.wrong(at+".auth", "%s has its own way of sending a key; only foundry has another one, bearer, for the token under key", t.Provider)
	}
	for i := range c.Targets {
		if item("targets", i) != at {
			continue
		}
		var wrong *provider.Error
		if err := c.providerSettings(i).Validate(); errors.As(err, &wrong) {
			text := strings.TrimPrefix(wrong.Error(), provider.ErrSettings.Error()+" for "+string(t.Provider)+": ")
			c.wrong(at, "%s: %s; %s", t.Provider, text, wrong.Hint())
		}
	}
}

// strays finds keys that mean something to a provider alone.
func (c checker) strays(at string, t Target) {
	for _, k := range []struct{ key, value string }{
		{"region", t.Region}, {"project", t.Project}, {"resource", t.Resource}, {"workspace", t.Workspace}, {"profile", t.Profile}, {"credentials", t.Credentials},
	} {
		if k.value != "" {
			c.wrong(at+"."+k.key, "is that of a provider, and none is named; provider is one of %s", oneOf(elsewheres))
		}
	}
}

// models checks the names on both sides.
func (c checker) models(at string, t Target) {
	for from, to := range t.Models {
		if from == "" || to == "" || strings.ContainsFunc(from+to, isControl) {
			c.wrong(at+".models", "must map names of models to names of models")
			return
		}
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
