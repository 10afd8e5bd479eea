package main

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"holdfast/config"
	"holdfast/gateway"
)

// configName is the configuration that is taken where none is named.
const configName = "holdfast.yaml"

// validateOptions are the flags of holdfast validate.
type validateOptions struct {
	overrides []string
	schema    bool
}

func newValidateCommand() *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a configuration, and show what it means",
		Long: `Check a configuration file, holdfast.yaml unless one is named; - is standard input.
Every mistake is told at once, with its line. What works but is probably not meant
is a warning; where the APIs that it names are known to differ from the Claude API
is a note. No network is asked. Of a good file it prints what it means: who may
call, and what is asked in which order. Keys are shown as names and fingerprints.`,
		Example: `  holdfast validate
  holdfast validate /etc/holdfast/holdfast.yaml
  holdfast validate --set policy.attempts=2
  holdfast validate --schema > holdfast.schema.json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	cmd.RunE = command(o.run)
	cmd.Flags().StringArrayVar(&o.overrides, "set", nil, "override one `key.path=value`, as other commands would; may be repeated")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of the file, for editors that complete and check")
	return cmd
}

func (o *validateOptions) run(_ context.Context, args []string, s streams) error {
	if o.schema {
		return give(s.out, string(config.Schema()))
	}
	name := configName
	if len(args) > 0 {
		name = args[0]
	}
	file, err := readConfig(name, s.in)
	if len(args) == 0 && errors.Is(err, fs.ErrNotExist) {
		return badUsage("holdfast validate FILE names one; without any, every key has its default", "there is no %s here", configName)
	}
	if err == nil {
		err = file.SetAll(o.overrides)
	}
	if err == nil {
		err = accepted(file)
	}
	if err != nil {
		return badUsage(hintOf(err), "%w", err)
	}
	for _, w := range file.Warnings() {
		say(s.err, "warning: %s: %s", name, w)
	}
	for _, n := range file.Notes() {
		say(s.err, "note: %s: %s", name, n)
	}
	return give(s.out, name+" is good\n"+picture(file))
}

// accepted asks the gateway itself. One without targets gets them from the command that runs it.
func accepted(file *config.File) error {
	settings, err := file.Gateway()
	if err == nil {
		err = file.Elsewhere(&settings, nil)
	}
	if err == nil && len(settings.Targets) > 0 {
		_, err = gateway.New(settings)
	}
	return err
}

// readConfig reads a configuration from a file, or from in when that is "-".
func readConfig(name string, in io.Reader) (*config.File, error) {
	if name != "-" {
		return config.Load(name)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	file, err := config.Parse(text)
	if wrong := new(config.Error); errors.As(err, &wrong) {
		wrong.Path = "standard input"
	}
	return file, err
}
