// Package config reads the one file that configures Holdfast. Every key is optional and absent keys have the library's
// own defaults, so an empty file is the zero [holdfast.Policy] with a breaker, a pace and a budget.
//
//	listen: 127.0.0.1:4100
//	targets:
//	  - {name: anthropic, url: https://api.anthropic.com, dialect: anthropic, key: "${ANTHROPIC_API_KEY}"}
//	routes:
//	  - {models: ["claude-opus-*"], chain: [{target: anthropic}, {target: anthropic, model: claude-sonnet-5-5}, saved]}
//	policy: {attempts: 4, deadline: 10m, backoff: {base: 500ms, cap: 8s}}
//	breaker: {failures: 5, ratio: 0.5, window: 60s}
//
// The file is YAML or JSON. "${NAME}" in a value is replaced by the environment variable, and "${file:PATH}" by what the file
// holds; inside braces they must be quoted. Unknown keys are mistakes, and all mistakes are reported at once with their lines. No mistake, warning or
// printed value shows a key.
package config

import (
	"path/filepath"

	"holdfast"
)

// File is the whole configuration. The zero value is the defaults. It is plain data: nothing here changes what a copy
// shares with it, and it is safe for concurrent use while nobody changes it.
type File struct {
	// Listen is the address of the gateway. Empty: the default, 127.0.0.1:4100. One that is not loopback needs Clients.
	Listen string `yaml:"listen"`
	// Admin is the address of health, metrics and status, or off. Empty: the default, 127.0.0.1:4101.
	Admin string `yaml:"admin"`
	// TLS of Listen. Default: none.
	TLS TLS `yaml:"tls"`
	// Targets are the APIs behind the gateway. Default: those of the providers themselves, which are the command's.
	Targets []Target `yaml:"targets"`
	// Routes, of which the first that matches a request holds. Default: every target of the request's dialect, in order.
	Routes []Route `yaml:"routes"`
	// Call is how a call is kept working: the section "policy".
	Call    Call    `yaml:"policy"`
	Breaker Breaker `yaml:"breaker"`
	Pace    Pace    `yaml:"pace"`
	Stream  Stream  `yaml:"stream"`
	Saved   Saved   `yaml:"saved"`
	// Clients that may use the gateway. Default: everybody, which only a loopback address allows.
	Clients []Client `yaml:"clients"`
	Limits  Limits   `yaml:"limits"`
	Drain   Drain    `yaml:"drain"`
	Log     Log      `yaml:"log"`

	source source
}

// source is where a file was read from.
type source struct {
	path  string
	lines map[string]int // of the keys; never changed
}

// file is the path of a file that the configuration names under a key. One that is relative is beside the file that names it,
// wherever the process was started; one that was set by a flag is where the process was started.
func (f *File) file(key, path string) string {
	if path == "" || filepath.IsAbs(path) || f.source.path == "" || f.source.lines[key] == 0 {
		return path
	}
	return filepath.Join(filepath.Dir(f.source.path), path)
}

// Policy returns the policy that the file describes, with a new breaker, pace and budget: keep it for all calls to one
// API. Each result starts with nothing counted.
func (f *File) Policy() holdfast.Policy {
	p := f.Call.plain()
	p.Breaker = holdfast.NewBreaker(f.Breaker.settings())
	p.Pace = holdfast.NewPace(f.Pace.limits())
	p.Budget = holdfast.NewBudget(f.Call.RetryBudget.settings())
	return p
}
