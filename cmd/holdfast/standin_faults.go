package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/internal/strict"
	"holdfast/standin"
)

func newStandinFaultsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "faults [KIND]",
		Short: "List the faults that a plan can hold, or tell all of one",
		Example: `  holdfast standin faults
  holdfast standin faults cut`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(faultKinds(), cobra.ShellCompDirectiveNoFileComp),
	}
	cmd.RunE = command(func(_ context.Context, args []string, s streams) error {
		if len(args) == 0 {
			return give(s.out, faultTable())
		}
		for _, f := range standin.Faults() {
			if string(f.Kind) == args[0] {
				return give(s.out, faultPage(f))
			}
		}
		hint := "there are " + strings.Join(faultKinds(), ", ")
		if near := strict.Nearest(args[0], faultKinds()); near != "" {
			hint = fmt.Sprintf("did you mean %q? %s", near, hint)
		}
		return badUsage(hint, "there is no fault %q", args[0])
	})
	return cmd
}

func faultKinds() (kinds []string) {
	for _, f := range standin.Faults() {
		kinds = append(kinds, string(f.Kind))
	}
	return kinds
}

func faultTable() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range standin.Faults() {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", f.Kind, f.What) // a builder takes everything
	}
	_ = w.Flush()
	return b.String()
}

func faultPage(f standin.Fault) string {
	fields := strings.Join(f.Fields, ", ")
	if fields == "" {
		fields = "none of its own"
	}
	return fmt.Sprintf("%s: %s\n\n%s\n\nfields: %s\n", f.Kind, f.What, f.Doc, fields)
}

func newStandinSchemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of a plan, for editors",
		Example: `  holdfast standin schema > plan.schema.json`,
		Args:    cobra.NoArgs,
	}
	cmd.RunE = command(func(_ context.Context, _ []string, s streams) error {
		return give(s.out, string(standin.PlanSchema()))
	})
	return cmd
}
