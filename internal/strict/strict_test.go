package strict_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// share is one number, or a mapping.
type share struct {
	From float64 `yaml:"from"`
	To   float64 `yaml:"to"`
}

func (s *share) UnmarshalText(text []byte) error {
	_, err := fmt.Sscan(string(text), &s.From)
	s.To = s.From
	return err
}

type loose struct {
	Header map[string][]string `yaml:"header"`
	Wait   time.Duration       `yaml:"wait"`
	Share  share               `yaml:"share"`
	Keys   []string            `yaml:"keys"`
}

func TestAPlainFormMayStandForTheLongOne(t *testing.T) {
	t.Parallel()
	want := loose{Header: map[string][]string{"a": {"2.50"}, "b": {"x", "true"}, "c": nil}, Wait: 1500 * time.Millisecond, Share: share{0.5, 0.5}, Keys: []string{"k"}}
	for _, text := range []string{
		"header: {a: 2.50, b: [x, true], c: }\nwait: 1.5\nshare: 0.5\nkeys: k",
		`{"header": {"a": [2.50], "b": ["x", true], "c": null}, "wait": "1.5s", "share": {"from": 0.5, "to": 0.5}, "keys": ["k"]}`,
	} {
		var got loose
		d := strict.Document{Seconds: true, Single: true}
		d.Decode([]byte(text), &got)
		if err := d.Err(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	var d strict.Document
	d.Decode([]byte("header: {a: x}\nwait: 1.5\nshare: [1]\nkeys: k"), &loose{})
	wrong := strings.Join([]string{
		`line 1: header.a: must be a list, not "x"`,
		`line 2: wait: 1.5 has no unit; write 1.5s for seconds`,
		`line 3: share: must be text, not a list`,
		`line 4: keys: must be a list, not "k"`,
	}, "\n")
	if diff := cmp.Diff(wrong, d.Err().Error()); diff != "" {
		t.Errorf("without leave (-want +got)\n%s", diff)
	}
}

func TestMisreadIsWhatTheDocumentDoesNotSay(t *testing.T) {
	t.Parallel()
	var d strict.Document
	d.Decode([]byte("wait: soon\nheadr: {}\nshare: {from: 1}"), &loose{})
	d.Wrong("keys", "are wrong")
	for path, want := range map[string]bool{"wait": true, "header": true, "headr": true, "share": false, "share.from": false, "keys": false} {
		if d.Misread(path) != want {
			t.Errorf("%s misread: %v, want %v", path, !want, want)
		}
	}
	if n := len(d.Mistakes()); n != 3 {
		t.Errorf("%d mistakes, want 3", n)
	}
}

func TestPeriod(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"1m": time.Minute, "1.5": 1500 * time.Millisecond, "-2": -2 * time.Second, "0": 0, ".1": 100 * time.Millisecond} {
		if got, ok := strict.Period(text); !ok || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1 m", "soon", "NaN", "inf", "1e12", "1e300", "0x10", "1_0"} {
		if got, ok := strict.Period(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
