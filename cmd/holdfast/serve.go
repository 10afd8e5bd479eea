package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"holdfast/config"
)

// serveOptions are the flags of holdfast serve.
type serveOptions struct {
	config    string
	upstream  string
	listen    string
	admin     string
	overrides []string
	demo      bool
	keep      bool
}

func newServeCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the gateway: the same protection for every SDK, by base URL alone",
		Long: `Serve a gateway in front of the Claude API and of APIs in the OpenAI dialect. Clients of any language are pointed at
it with the lines that it prints on stdout, and need no other change: what they send arrives as they sent it, and what
fails on the way is kept working as the configuration says.

Without --config it takes holdfast.yaml in this folder, and without that the APIs of Anthropic and OpenAI, each for
the requests in its dialect. The keys for those are ANTHROPIC_API_KEY and OPENAI_API_KEY; without them the caller's own
key passes through.

SIGHUP reads the configuration again without dropping a call; one with mistakes changes nothing. Ctrl-C and SIGTERM
drain: new calls are refused, those under way may go on for drain.grace (30s), and a second signal ends at once.`,
		Example: `  holdfast serve
  holdfast serve --upstream http://127.0.0.1:4010
  holdfast serve --config holdfast.yaml --set policy.attempts=6
  holdfast serve --demo`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = command(func(ctx context.Context, _ []string, s streams) error { return o.run(ctx, s) })
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "", "take the configuration from a YAML or JSON `file`")
	f.StringVar(&o.upstream, "upstream", "", "`URL` of the one API behind the gateway, in place of a configuration")
	f.StringVar(&o.listen, "listen", "", "TCP `address` of the gateway; port 0 takes a free one (default 127.0.0.1:4100)")
	f.StringVar(&o.admin, "admin", "", "TCP `address` of health, metrics and status, or off (default 127.0.0.1:4101)")
	f.StringArrayVar(&o.overrides, "set", nil, "override one `key.path=value` of the configuration; may be repeated")
	f.BoolVar(&o.demo, "demo", false, "show it: an API that fails on purpose, and the same calls with the gateway and without")
	f.BoolVar(&o.keep, "keep", false, "go on serving after the demo")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json") // fails only for a flag that does not exist
	return cmd
}

func (o *serveOptions) run(ctx context.Context, s streams) error {
	if err := o.contradiction(); err != nil {
		return err
	}
	if o.demo {
		return o.showIncident(ctx, s, onThisMachine)
	}
	conf, err := o.read()
	if err != nil {
		return err
	}
	service, err := openService(o, conf, s, onThisMachine)
	if err != nil {
		return err
	}
	defer collectSeldomHere()()
	return service.run(ctx)
}

// contradiction tells of flags that mean nothing together.
func (o *serveOptions) contradiction() error {
	switch {
	case o.config != "" && o.upstream != "":
		return badUsage("a configuration names its own targets; --set targets.0.url=URL changes one", "--config and --upstream do not go together")
	case o.demo && (o.config != "" || o.upstream != ""):
		return badUsage("holdfast serve --demo", "the demo has an API and a configuration of its own, so it goes with neither --config nor --upstream")
	case o.keep && !o.demo:
		return badUsage("without --demo the gateway serves until it is told to end", "--keep goes with --demo")
	}
	return nil
}

// configured is a configuration and where it came from.
type configured struct {
	file *config.File
	from string // for people
	path string // of the file that can be read again; empty when there is none
}

// read returns the configuration that the flags ask for, with what they override.
func (o *serveOptions) read() (configured, error) {
	conf, err := o.origin()
	if err != nil {
		return conf, badUsage(hintOf(err), "%w", err)
	}
	return conf, o.override(conf)
}

// override puts the flags over a configuration.
func (o *serveOptions) override(conf configured) error {
	overrides := o.overrides
	if o.listen != "" {
		overrides = append(slices.Clip(overrides), "listen="+o.listen)
	}
	if o.admin != "" {
		overrides = append(slices.Clip(overrides), "admin="+o.admin)
	}
	if err := conf.file.SetAll(overrides); err != nil {
		return badUsage(hintOf(err), "%w", err)
	}
	return nil
}

// origin returns the configuration without overrides.
func (o *serveOptions) origin() (configured, error) {
	if o.upstream != "" {
		target, err := upstreamTarget(o.upstream, os.Getenv)
		return configured{file: &config.File{Targets: []config.Target{target}}, from: "--upstream"}, err
	}
	path := o.config
	if path == "" {
		if _, err := os.Stat(configName); errors.Is(err, fs.ErrNotExist) {
			return configured{file: &config.File{Targets: providers(os.Getenv)}, from: "no " + configName + " here"}, nil
		}
		path = configName
	}
	file, err := config.Load(path)
	if err == nil && len(file.Targets) == 0 {
		file.Targets = providers(os.Getenv)
	}
	return configured{file: file, from: path, path: path}, err
}

// The providers' own APIs, and where their keys are found.
var knownAPIs = []struct{ name, url, dialect, variable string }{
	{"anthropic", "https://api.anthropic.com", "anthropic", "ANTHROPIC_API_KEY"},
	{"openai", "https://api.openai.com", "openai", "OPENAI_API_KEY"},
}

// providers are the targets of a configuration that names none.
func providers(env func(string) string) []config.Target {
	targets := make([]config.Target, len(knownAPIs))
	for i, api := range knownAPIs {
		targets[i] = target(api.name, api.url, env(api.variable))
		// It is one of the words.
		_ = targets[i].Dialect.UnmarshalText([]byte(api.dialect))
	}
	return targets
}

// upstreamTarget is the target of --upstream. A key from the environment goes to the provider that it is for, and to nobody else.
func upstreamTarget(text string, env func(string) string) (config.Target, error) {
	const hint = "--upstream https://api.anthropic.com takes the base URL as an SDK does"
	u, ok := webURL(text)
	if !ok || u.User != nil || u.RawQuery != "" {
		return config.Target{}, badUsage(hint, "--upstream is no http or https URL, or holds a password or a query") // and is not shown
	}
	for i, api := range knownAPIs {
		if u.Scheme+"://"+u.Host == api.url {
			known := providers(env)[i]
			known.URL = text
			return known, nil
		}
	}
	return target("upstream", text, ""), nil
}

func target(name, url, key string) config.Target {
	t := config.Target{Name: name, URL: url}
	if key != "" {
		t.Keys = []config.Key{{Name: "environment", Key: config.Secret(key)}}
	}
	return t
}

// described says in a line what a target is.
func described(t config.Target) string {
	whose := "the caller's key"
	if t.Provider != "" {
		whose = credentialsOf(t)
	}
	if n := len(t.Keys); n > 1 {
		whose = plural(n, "key")
	} else if n == 1 || t.Key != "" {
		whose = "the gateway's key"
	}
	return fmt.Sprintf("%s (%s, %s)", t.Label(), whereOf(t), whose)
}
