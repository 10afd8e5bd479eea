package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// newRootCommand returns the whole command line. A new subcommand is a file of its own and a line here.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Keep LLM API calls working when the API does not",
		Long: `Holdfast keeps LLM API calls working when the API does not: it waits as asked,
retries what may be retried, stops at a deadline, leaves a failing API alone,
and answers from a saved answer when nothing live works.

Exit codes: 0 done, 1 the job failed, 2 bad usage or input,
3 an answer that was refused or cut off, 130 interrupted.`,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: 2,

		SilenceErrors: true, // main prints them, once
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return badUsage(fmt.Sprintf("%s --help lists the flags", cmd.CommandPath()), "%w", err)
	})
	root.AddCommand(
		newDemoCommand(),
		newServeCommand(),
		newAskCommand(),
		newStandinCommand(),
		newDrillCommand(),
		newExplainCommand(),
		newSavedCommand(),
		newValidateCommand(),
		newKeyCommand(),
		newVersionCommand(),
	)
	return root
}

// refuseUnknownTopics makes mistakes of what cobra answers with help and exit code 0: an unknown topic of help, and an
// unknown shell of completion. cobra makes the two commands for the streams that root has by then.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, topic []string) error {
				found, rest, _ := root.Find(topic) // what it has not found is in rest
				return knownCommand(found, rest)
			}
		case "completion":
			cmd.Args = knownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help lists the commands"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q? %s", near[0], hint)
	}
	return badUsage(hint, "unknown command %q", args[0])
}

// job is what a subcommand does.
type job func(ctx context.Context, args []string, s streams) error

// command makes a job a subcommand's RunE.
func command(do job) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return do(cmd.Context(), args, streams{cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()})
	}
}
