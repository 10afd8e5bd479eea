package main

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"holdfast/config"
)

// wordsOf returns where the words of a service go: as they are, or, when its log is JSON, as records of that log, for whoever
// reads it expects nothing else.
func wordsOf(file *config.File, stderr io.Writer) io.Writer {
	if file.Log.Format != "json" {
		return stderr
	}
	return recorded{file.Logger(stderr)}
}

// recorded makes a record of every line.
type recorded struct{ log *slog.Logger }

func (r recorded) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		level := slog.LevelInfo
		line = strings.TrimSuffix(line, "\n")
		for start, of := range map[string]slog.Level{"error: ": slog.LevelError, "warning: ": slog.LevelWarn} {
			if rest, ok := strings.CutPrefix(line, start); ok {
				level, line = of, rest
			}
		}
		r.log.Log(context.Background(), level, line)
	}
	return len(text), nil
}

// announce prints the lines to paste, and says in a few more what is served and what is missing.
func (sv *service) announce() error {
	file := sv.now.file
	if err := give(sv.out, exports(sv.url())); err != nil {
		return err
	}
	say(sv.err, "the gateway listens; paste the lines above where the clients run, and end with Ctrl-C")
	say(sv.err, "%s: %s", sv.now.from, contents(file))
	if len(file.Clients) > 0 {
		say(sv.err, "clients send their own key (holdfast key new makes one) where they send the API's")
	}
	if sv.admin != nil {
		say(sv.err, "what it does is shown under http://%s/", reachable(sv.admin.Addr()))
	}
	if sv.now.path == "" && !hasKey(file) && sv.options.upstream == "" {
		say(sv.err, "no key is set, so callers bring their own. To keep it here instead: export ANTHROPIC_API_KEY=sk-ant-… and start again,")
		say(sv.err, "or write a %s: the README has one, and holdfast validate checks it", configName)
	}
	return nil
}

// url is where clients on this machine find the gateway.
func (sv *service) url() string {
	scheme := "http://"
	if sv.certificate.Load() != nil {
		scheme = "https://"
	}
	return scheme + reachable(sv.api.Addr())
}

// contents says in a line what a configuration holds.
func contents(file *config.File) string {
	targets := make([]string, len(file.Targets))
	for i, t := range file.Targets {
		targets[i] = described(t)
	}
	line := strings.Join(targets, ", ")
	if n := len(file.Routes); n > 0 {
		line += "; " + plural(n, "route")
	}
	if n := len(file.Clients); n > 0 {
		line += "; " + plural(n, "client")
	}
	return line
}

func hasKey(file *config.File) bool {
	for _, t := range file.Targets {
		if t.Key != "" || len(t.Keys) > 0 || t.Provider != "" {
			return true
		}
	}
	return false
}
