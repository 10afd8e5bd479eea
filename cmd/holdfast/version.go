package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the program knows of its own making.
type build struct {
	Version  string `json:"version"`  // of the module; (devel) for a build outside version control
	Revision string `json:"revision"` // of the source; empty when unknown
	Time     string `json:"time"`     // of the revision
	Modified bool   `json:"modified"` // the source had changes that the revision lacks
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built from",
		Args:  cobra.NoArgs,
		RunE: command(func(_ context.Context, _ []string, s streams) error {
			b := readBuild()
			if !asJSON {
				return give(s.out, b.String()+"\n")
			}
			return giveJSON(s.out, b)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	text := "holdfast " + b.Version
	if b.Revision != "" {
		text += fmt.Sprintf(" (revision %.12s", b.Revision)
		if b.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return text + " " + b.Go + " " + b.Platform
}
