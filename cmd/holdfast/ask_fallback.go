package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/config"
	"holdfast/gateway"
	"holdfast/internal/endpoint"
	"holdfast/provider"
)

// firstName is the target that is asked first: the API of the environment.
const firstName = "anthropic"

// fallback is somebody who is asked when nobody before him answers.
type fallback struct {
	name, model string
	client      *client
}

const fallbackHint = `--fallback bedrock:us-east-1=MODEL, vertex:REGION/PROJECT=MODEL, foundry:RESOURCE=DEPLOYMENT, or the name of a target in --config`

// fallbacks makes what --fallback names, in order. It asks nobody and looks for no credentials.
func (o *askOptions) fallbacks(question string, base http.RoundTripper) ([]fallback, error) {
	var all []fallback
	for _, text := range o.fallback {
		spec, model, _ := strings.Cut(text, "=")
		f, options, err := o.fallbackOf(spec, base)
		if err != nil {
			return nil, err
		}
		if model != "" {
			f.model = model
		}
		if f.name == firstName || slices.ContainsFunc(all, func(other fallback) bool { return other.name == f.name }) {
			f.name = fmt.Sprintf("%s#%d", f.name, len(all)+1)
		}
		f.client = newClient(f.model, o.maxTokens, question, options...)
		all = append(all, f)
	}
	return all, nil
}

// fallbackOf reads one of them: a provider with its place, or a target of the configuration.
func (o *askOptions) fallbackOf(spec string, base http.RoundTripper) (fallback, []option.RequestOption, error) {
	name, place, placed := strings.Cut(spec, ":")
	f := fallback{name: name, model: o.model}
	if _, known := endpoint.Cloud(name); known && (placed || o.policy.config == "") {
		made, err := provider.New(settingsAt(name, place, base))
		if err != nil {
			return f, nil, badUsage(hintOf(err)+"; "+fallbackHint, "--fallback %s: %w", name, err)
		}
		return f, through(made), nil
	}
	if o.policy.config == "" {
		return f, nil, badUsage(fallbackHint, "--fallback names no provider, and there is no --config with a target of that name") // and is not shown: it may be a key
	}
	file, err := configFile(&config.File{}, o.policy.config, o.policy.overrides)
	if err != nil {
		return f, nil, err
	}
	return o.configuredFallback(file, spec, base)
}

// settingsAt are those of a provider whose place stands behind its name.
func settingsAt(name, place string, base http.RoundTripper) provider.Settings {
	s := provider.Settings{Provider: name, Base: base}
	switch name {
	case provider.Vertex:
		s.Region, s.Project, _ = strings.Cut(place, "/")
	case provider.GoogleCloud:
		s.Project, s.Workspace, _ = strings.Cut(place, "/")
	case provider.AWS:
		s.Region, s.Workspace, _ = strings.Cut(place, "/")
	case provider.Foundry:
		s.Resource = place
	default:
		s.Region = place
	}
	return s
}

// configuredFallback is a target of the configuration.
func (o *askOptions) configuredFallback(file *config.File, name string, base http.RoundTripper) (fallback, []option.RequestOption, error) {
	f := fallback{name: name, model: o.model}
	settings, err := file.Gateway()
	if err != nil {
		return f, nil, badUsage(hintOf(err), "%w", err)
	}
	i := slices.IndexFunc(settings.Targets, func(t gateway.Target) bool { return t.Name == name })
	if i < 0 {
		return f, nil, badUsage(fallbackHint, "--fallback names no provider, and no target of %s", o.policy.config)
	}
	t := settings.Targets[i]
	if t.Dialect == "openai" {
		return f, nil, badUsage("holdfast ask speaks the anthropic dialect alone", "--fallback %s: the target speaks openai", name)
	}
	if to, ok := t.Models[o.model]; ok {
		f.model = to
	}
	if file.Targets[i].Provider != "" {
		made, err := file.NewProvider(i, base)
		if err != nil {
			return f, nil, badUsage(hintOf(err), "%w", err)
		}
		return f, through(made), nil
	}
	options := []option.RequestOption{option.WithoutEnvironmentDefaults(), option.WithBaseURL(strings.TrimSuffix(strings.TrimSuffix(t.URL, "/"), "/v1"))}
	if base != nil {
		options = append(options, option.WithHTTPClient(&http.Client{Transport: base}))
	}
	if len(t.Keys) > 0 {
		options = append(options, keyed(t.Auth, t.Keys[0].Secret))
	}
	return f, options, nil
}

// keyed sends a key as a target wants it, and no other.
func keyed(auth, key string) option.RequestOption {
	switch auth {
	case "bearer":
		return option.WithHeader("Authorization", "Bearer "+key)
	case "api-key":
		return option.WithHeader("Api-Key", key)
	}
	return option.WithHeader("X-Api-Key", key)
}

// through asks by a transport that finds address and credentials itself; nothing of the environment goes with it.
func through(made *provider.Transport) []option.RequestOption {
	return []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL("https://" + made.Provider() + ".invalid"), option.WithHTTPClient(&http.Client{Transport: made}),
	}
}

// stand puts fallbacks behind the first target.
func (a *asker) stand(all []fallback) {
	if len(all) == 0 {
		return
	}
	a.others = all
	a.policy.Targets = []holdfast.Target{{Name: firstName, Credential: firstName, Model: a.options.model}}
	for _, f := range all {
		a.policy.Targets = append(a.policy.Targets, holdfast.Target{Name: f.name, Credential: f.name, Model: f.model})
	}
}

// turn is the client of the target that it is the turn of. It says when that is another one than before.
func (a *asker) turn(ctx context.Context) *client {
	next, name, model := a.client, firstName, a.options.model
	if t, ok := holdfast.TargetOf(ctx); ok {
		for _, f := range a.others {
			if f.name == t.Name {
				next, name, model = f.client, f.name, f.model
			}
		}
	}
	if next != a.now && a.now != nil {
		say(a.err, "asking %s for %s instead", name, model)
	}
	a.now, a.nowModel = next, model
	return next
}

// from names who answered, when there was a choice.
func (a *asker) from(trace *holdfast.Trace) string {
	if len(a.others) == 0 {
		return ""
	}
	return " (" + trace.Target() + ")"
}

// unsent tells of a fallback that could not be asked why, and of those before it what they said last. Any other error is as it was.
func (a *asker) unsent(ours *holdfast.Error, trace *holdfast.Trace) error {
	var own *provider.Error
	if !errors.Is(ours.Reason, holdfast.ErrNoRetry) || !errors.As(ours.Err, &own) {
		return ours
	}
	text, last := "", map[string]string{}
	for _, sent := range trace.Attempts() {
		last[sent.Target] = class(sent.Verdict)
	}
	for _, t := range a.policy.Targets {
		if said, ok := last[t.Name]; ok && t.Name != trace.Target() {
			text += t.Name + ": " + said + "; "
		}
	}
	return failed(own.Hint(), "%s%s: %w", text, trace.Target(), own)
}
