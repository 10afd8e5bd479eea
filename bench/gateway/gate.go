package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/telemetry"
)

// plenty is a limit per minute that is never reached, so that the pace counts every call and holds none back.
const plenty = 60_000_000_000

// gate is Holdfast as it is served, with every protection on: breaker, pace with limits that are counted, retry budget, streams
// held back to their first content, pings, records of calls and metrics; with log a line for each call, in a file.
func gate(ctx context.Context, l net.Listener, upstream, dir string, log bool) error {
	profile()
	settings := gateway.Settings{
		Targets:  []gateway.Target{{Name: "api", URL: "http://" + upstream, Dialect: "anthropic"}},
		Routes:   []gateway.Route{{Chain: []gateway.Entry{{Target: "api"}, {Target: "api", Model: "claude-haiku-4-5"}}}},
		Pace:     holdfast.Limits{RequestsPerMinute: plenty, InputTokensPerMinute: plenty, OutputTokensPerMinute: plenty},
		Observer: telemetry.New(),
	}
	if log {
		file, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}
		defer file.Close()
		settings.Log = slog.New(slog.NewTextHandler(file, nil))
	}
	g, err := gateway.New(settings)
	if err != nil {
		return err
	}
	return g.Serve(ctx, l, nil, time.Second)
}
