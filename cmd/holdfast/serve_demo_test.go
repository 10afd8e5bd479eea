package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/testnet"
)

// inMemory is a place on a network in memory, where every listener has a host of its own.
func inMemory() place {
	network, hosts := testnet.New(), 0
	return place{
		listen: func(string) (net.Listener, error) {
			hosts++
			return network.Listen(fmt.Sprintf("host-%d.test:80", hosts)), nil
		},
		callers: network.Client(),
		base:    network.Client().Transport,
	}
}

// The demo shows all that it promises: every call through the gateway is answered, from each of the three sources, and many of
// the same calls without it are not.
func TestIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, words watched
		o := serveOptions{demo: true}
		began := time.Now()
		if err := o.showIncident(t.Context(), streams{nil, &out, &words}, inMemory()); err != nil {
			t.Errorf("%v\n%s", err, words.String())
		}
		if took := time.Since(began); took < incidentLength-incidentEvery || took > incidentLength+4*time.Second {
			t.Errorf("it takes %v", took)
		}
		text := out.String()
		for _, phase := range incidentPhases {
			if !strings.Contains(text, phase.says) {
				t.Errorf("it does not say %q", phase.says)
			}
		}
		if n := len(regexp.MustCompile(`(?m)^ *\d+\.\d s  #\d+ `).FindAllString(text, -1)); n != incidentCalls {
			t.Errorf("%d lines of calls, want %d", n, incidentCalls)
		}
		through, alone := rowOf(t, text, "through the gateway"), rowOf(t, text, "the same SDK alone")
		if through[0] != incidentCalls || through[1] != incidentCalls || through[5] != 0 {
			t.Errorf("through the gateway %d calls, %d answered, %d failed", through[0], through[1], through[5])
		}
		if through[2] < 15 || through[3] < 4 || through[4] < 1 || through[2]+through[3]+through[4] != incidentCalls {
			t.Errorf("through the gateway %d live, %d fallback, %d saved", through[2], through[3], through[4])
		}
		if alone[0] != incidentCalls || alone[5] < 10 || alone[5] > 25 || alone[2] != alone[1] {
			t.Errorf("without it %d calls, %d answered, %d failed", alone[0], alone[1], alone[5])
		}
		if t.Failed() {
			t.Log(text)
		}
	})
}

// rowOf is a row of the table at the end: calls, answered, live, fallback, saved, failed, requests.
func rowOf(t *testing.T, text, name string) (n [7]int) {
	t.Helper()
	_, rest, _ := strings.Cut(text, "\n"+name)
	if _, err := fmt.Sscan(rest, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6]); err != nil {
		t.Fatalf("no row %q: %v\n%s", name, err, text)
	}
	return n
}

// An interrupt ends the demo at once, and it leaves nothing behind.
func TestIncidentIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 3*time.Second)
		defer interrupt()
		var out, words watched
		o, began := serveOptions{demo: true}, time.Now()
		err := o.showIncident(ctx, streams{nil, &out, &words}, inMemory())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 3100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// With --keep the incident comes again, and the gateway serves until it is told to end. That is a good end.
func TestIncidentIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 4*incidentLength)
		defer interrupt()
		var out, words watched
		o := serveOptions{demo: true, keep: true}
		if err := o.showIncident(ctx, streams{nil, &out, &words}, inMemory()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "\nexport ANTHROPIC_BASE_URL=http://host-4.test:80\n") || !strings.Contains(words.String(), "shown under http://host-5.test:80/") {
			t.Errorf("stdout\n%s\nstderr\n%s", out.String(), words.String())
		}
	})
}

// A call that is lost is a failed demo.
func TestIncidentFailsWithACall(t *testing.T) {
	var out strings.Builder
	d := &incident{stage: &stage{streams: streams{out: &out}, colour: paint(&out)}}
	d.with.add(seen{answered: true, source: "live"})
	d.with.add(seen{failure: "overloaded_error 529"})
	if err := d.verdict(); err == nil || !strings.Contains(err.Error(), "1 call through the gateway got no answer") {
		t.Error(err)
	}
}
