package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	caseRow  = regexp.MustCompile(`^\| (B\d+) \| (.+) \|$`)
	caseTest = regexp.MustCompile("`(Test\\w+)` in `([\\w/.-]+)`")
)

// Every case is in the table once, and every test that it names stands where it says, in a file that names the case. It does
// not see whether the test itself proves it: many are rows of a table that stands elsewhere in the file.
func TestCasesAreProven(t *testing.T) {
	table, err := os.ReadFile("CASES.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		row := caseRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		id, proof := row[1], row[2]
		if seen[id] {
			t.Errorf("%s is listed twice", id)
		}
		seen[id] = true
		tests := caseTest.FindAllStringSubmatch(proof, -1)
		if len(tests) == 0 && !strings.HasPrefix(proof, "later, ") && !strings.HasPrefix(proof, "no test: ") {
			t.Errorf("%s is neither proven, nor later, nor needs no test: %s", id, proof)
		}
		for _, named := range tests {
			source, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(named[2])))
			if err != nil {
				t.Errorf("%s: %v", id, err)
				continue
			}
			if !strings.Contains(string(source), "func "+named[1]+"(t *testing.T)") {
				t.Errorf("%s: there is no %s in %s", id, named[1], named[2])
			}
			if !strings.HasPrefix(proof, "later, ") && !strings.Contains(string(source), id) {
				t.Errorf("%s: %s does not say that it proves it", id, named[2])
			}
		}
	}
	const cases = 127
	if len(seen) != cases {
		t.Errorf("%d cases are listed, want %d", len(seen), cases)
	}
}
