package standin_test

import (
	"os"
	"regexp"
	"testing"

	"holdfast/standin"
)

// What the comment on a kind says is what the table of faults says.
func TestKindsAreCommentedAsTheirFaults(t *testing.T) {
	source, err := os.ReadFile("step.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range standin.Faults() {
		line := regexp.MustCompile(`Kind = "` + string(f.Kind) + `" +// ` + regexp.QuoteMeta(f.What) + "\n")
		if !line.Match(source) {
			t.Errorf("step.go does not say of %s that it is %q", f.Kind, f.What)
		}
	}
}
