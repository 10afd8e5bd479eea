package strict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/strict"
)

type step struct {
	Kind string  `yaml:"kind"`
	Wait float64 `yaml:"wait"`
}

type plan struct {
	Seed uint64                 `yaml:"seed"`
	Jobs strict.Ordered[[]step] `yaml:"jobs"`
	Max  *int                   `yaml:"max"`
	On   bool                   `yaml:"on"`
}

func TestFreeKeysKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var p plan
	var d strict.Document
	d.Decode([]byte(`{"jobs": {"b": [{"kind": "x", "wait": 1.5}, {}], "a": []}, "max": 0, "on": true, "seed": 18446744073709551615}`), &p)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	zero := 0
	want := plan{Seed: 1<<64 - 1, Jobs: strict.Ordered[[]step]{{Key: "b", Value: []step{{"x", 1.5}, {}}}, {Key: "a", Value: []step{}}}, Max: &zero, On: true}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMistakesOfNestedValuesHaveTheirLines(t *testing.T) {
	t.Parallel()
	var p plan
	var d strict.Document
	d.Decode([]byte("{\n\t\"seed\": -1,\n\t\"jobs\": {\n\t\t\"a\": [\n\t\t\t{\"kind\": \"x\"},\n\t\t\t{\"kidn\": \"y\"}],\n\t\t\"a\": 3\n\t},\n\t\"on\": \"yes\"\n}\n"), &p)
	d.Wrong("jobs.a.0.kind", "no such kind")
	d.Wrong("jobs.a.0.wait", "must be there")
	want := strings.Join([]string{
		`line 2: seed: must be a whole number, not negative, not "-1"`,
		`line 5: jobs.a.0.kind: no such kind`,
		`line 5: jobs.a.0.wait: must be there`,
		`line 6: jobs.a.1.kidn: unknown key; did you mean "kind"?`,
		`line 7: jobs.a: stands here again after line 4`,
		`line 9: on: must be true or false, not the text "yes"`,
	}, "\n")
	if diff := cmp.Diff(want, d.Err().Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"deadline", "attempts", "max_server_wait", "cap"}
	for word, want := range map[string]string{
		"dedline": "deadline", "attemtps": "attempts", "MaxServerWait": "max_server_wait", "cpa": "cap", "colour": "", "": "", "zzz": "",
	} {
		if got := strict.Nearest(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
