package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/strict"
)

// Gateway returns the settings of the gateway that the file describes. Base, Log, Observer and Saved are left to the caller,
// and so are the targets of a file that has none, and to [File.Elsewhere] the bases of those that name a provider. Whatever is wrong with the file, or with the files that it names, is in
// the [*Error].
func (f *File) Gateway() (gateway.Settings, error) {
	d := strict.Resume(f.source.lines)
	f.check(d)
	f.checkFiles(d)
	if err := problem(d, f.source.path); err != nil {
		return gateway.Settings{}, err
	}
	s := gateway.Settings{
		Policy:  f.Call.plain(),
		Breaker: f.Breaker.settings(),
		Pace:    f.Pace.limits(),
		Budget:  f.Call.RetryBudget.settings(),
		Connect: f.Call.ConnectTimeout, FirstContent: f.Call.FirstContentTimeout, Idle: f.Call.IdleTimeout,
		Stream:       gateway.Stream{Delivery: gateway.Delivery(f.Stream.Delivery), Hold: f.Stream.Hold, Ping: f.Stream.Ping},
		MaxBody:      int64(f.Limits.MaxBody),
		BodyMemory:   int64(f.Limits.BodyMemory),
		BodyTimeout:  f.Limits.BodyTimeout,
		WriteTimeout: f.Limits.WriteTimeout,
	}
	for _, t := range f.Targets {
		s.Targets = append(s.Targets, f.gatewayTarget(t))
	}
	for i, r := range f.Routes {
		r.Answer = f.answer(i)
		s.Routes = append(s.Routes, r.gateway())
	}
	for _, c := range f.Clients {
		s.Clients = append(s.Clients, gateway.Client{Name: c.Name, KeySHA256: c.KeySHA256, Lane: holdfast.Lane(c.Lane), RequestsPerMinute: c.RequestsPerMinute})
	}
	return s, nil
}

func (f *File) gatewayTarget(t Target) gateway.Target {
	made := gateway.Target{Name: t.Label(), URL: t.URL, Dialect: string(t.dialect()), Auth: string(t.auth()), Models: t.Models}
	t.foreknow(&made)
	for _, k := range t.Pool() {
		made.Keys = append(made.Keys, gateway.Key{Name: k.Name, Secret: k.Key.Reveal()})
	}
	if t.Breaker != nil {
		b := f.breakerOf(t).settings()
		made.Breaker = &b
	}
	if t.Pace != nil {
		p := f.paceOf(t).limits()
		made.Pace = &p
	}
	return made
}

func (r Route) gateway() gateway.Route {
	made := gateway.Route{Name: r.Name, Models: r.Models, Delivery: gateway.Delivery(r.Delivery), Answer: r.Answer}
	for _, e := range r.Chain {
		made.Chain = append(made.Chain, e.gateway())
	}
	if r.OnRefusal != nil {
		e := r.refusalEntry().gateway()
		made.OnRefusal = &e
	}
	return made
}

func (e Entry) gateway() gateway.Entry {
	return gateway.Entry{
		Target: e.Target, Saved: e.Saved, Model: e.Model, Key: e.Key, Path: e.Path, Betas: e.Betas, Version: e.Version, Sealed: string(e.Sealed),
	}
}

// answer is the file with the standing answer of a route.
func (f *File) answer(route int) string {
	return f.file(item("routes", route)+".answer", f.Routes[route].Answer)
}

// checkFiles looks at the files that the configuration names.
func (f *File) checkFiles(d *strict.Document) {
	if f.TLS.Cert != "" && f.TLS.Key != "" {
		f.checkTLS(d)
	}
	for i, r := range f.Routes {
		if r.Answer == "" {
			continue
		}
		at := item("routes", i) + ".answer"
		text, err := os.ReadFile(f.answer(i))
		switch {
		case err != nil:
			d.Wrong(at, "%s", cause(err))
		case !json.Valid(text):
			d.Wrong(at, "%s is not JSON", f.answer(i))
		}
	}
}

func (f *File) checkTLS(d *strict.Document) {
	cert, key := f.tlsFiles()
	missing := false
	for _, file := range []struct{ at, path string }{{"tls.cert", cert}, {"tls.key", key}} {
		if _, err := os.Stat(file.path); err != nil {
			d.Wrong(file.at, "%s", cause(err))
			missing = true
		}
	}
	if _, err := f.TLSConfig(); err != nil && !missing {
		d.Wrong("tls", "cert and key cannot be used: %v", errors.Unwrap(err))
	}
}

// cause is why a file cannot be read, with its path.
func cause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Path + ": " + at.Err.Error()
	}
	return err.Error()
}
