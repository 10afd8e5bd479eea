package standin_test

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/standin"
)

// TestAnOutageOfConnectionsEndsOnTime: the port stayed closed for the time from the start of
// the timeline to the end of the incident, counted from the moment it was closed.
func TestAnOutageOfConnectionsEndsOnTime(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const from, to = time.Second, 1200 * time.Millisecond
	for _, kind := range []standin.Kind{standin.Refused, standin.Hang} {
		s := standin.New(standin.Plan{Timeline: []standin.Incident{{From: from, To: to, Step: standin.Step{Kind: kind}}}})
		began := time.Now()
		url, stop, err := s.Start("")
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if got := post(t, c, url+anthropicPath, question); got.status != 200 {
			t.Errorf("%s, before: %+v", kind, got)
		}
		time.Sleep(time.Until(began.Add(from + 50*time.Millisecond)))
		during := post(t, c, url+anthropicPath, question) // a connection that hangs is closed at the end
		if refused := errors.Is(during.err, syscall.ECONNREFUSED); refused != (kind == standin.Refused) || during.err == nil {
			if time.Since(began) < to { // else the machine was too busy to ask in time
				t.Errorf("%s, during: %+v", kind, during)
			}
		}
		for {
			got := post(t, c, url+anthropicPath, question)
			if got.status == 200 {
				break
			}
			if !errors.Is(got.err, syscall.ECONNREFUSED) && !dropped(got.err) {
				t.Fatalf("%s, after: %+v", kind, got)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if late := time.Since(began); late > from+to-100*time.Millisecond {
			t.Errorf("%s ended after %v, want %v", kind, late, to)
		}
		if err := stop(); err != nil || s.Open() != 0 {
			t.Errorf("%s: %v, %d open", kind, err, s.Open())
		}
	}
}

// TestStopDuringAnOutage ends at once whatever the port is doing.
func TestStopDuringAnOutage(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, kind := range []standin.Kind{standin.Refused, standin.Hang} {
		for range 20 {
			s := standin.New(standin.Plan{Timeline: []standin.Incident{{Step: standin.Step{Kind: kind}}}})
			_, stop, err := s.Start("")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := stop(); err != nil || time.Since(began) > 5*time.Second {
				t.Errorf("%s: %v after %v", kind, err, time.Since(began))
			}
		}
	}
}

// TestTimelineAsAnHourOfTrouble asks once a second through a slow hour, a growing outage, its
// end and a recovery, and counts.
func TestTimelineAsAnHourOfTrouble(t *testing.T) {
	t.Parallel()
	even := func(d time.Duration) standin.Spread { return standin.Spread{Min: d, Max: d} }
	plan := standin.Plan{Seed: 7, Reply: "one", Timeline: []standin.Incident{
		{Name: "ramp", From: 10 * time.Minute, To: 20 * time.Minute, Share: standin.Ramp{From: 0.0001, To: 1}, Step: standin.Step{Kind: standin.HTTP, Status: 529}},
		{Name: "outage", From: 20 * time.Minute, To: 30 * time.Minute, Step: standin.Step{Kind: standin.HTTP, Status: 503}},
		{Name: "recovery", From: 30 * time.Minute, To: 40 * time.Minute, Share: standin.Ramp{From: 1, To: 0.0001}, Step: standin.Step{Kind: standin.HTTP, Status: 503}},
		{Name: "brown-out", From: 40 * time.Minute, To: 50 * time.Minute, Latency: &standin.Latency{FirstToken: even(700 * time.Millisecond)}},
	}}
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, plan)
		origin := time.Now()
		failed, slow := [6]int{}, [6]int{}
		for second := range 3600 {
			time.Sleep(time.Until(origin.Add(time.Duration(second) * time.Second)))
			body := strings.Replace(question, "hello", "hello "+strings.Repeat("x", second), 1) // a job each
			asked := time.Now()
			got := post(t, c, url+anthropicPath, body)
			part := second / 600
			if got.status != 200 {
				failed[part]++
			}
			if time.Since(asked) == 700*time.Millisecond {
				slow[part]++
			}
		}
		for part, want := range [6][2]int{{0, 0}, {250, 350}, {600, 600}, {250, 350}, {0, 0}, {0, 0}} {
			if failed[part] < want[0] || failed[part] > want[1] {
				t.Errorf("in the %dth ten minutes %d of 600 failed, want %v", part+1, failed[part], want)
			}
		}
		if slow != [6]int{4: 600} {
			t.Errorf("slow answers: %v", slow)
		}
		if outage := s.Journal().Where(func(e standin.Exchange) bool { return e.Rule == "outage" }); len(outage) != 600 {
			t.Errorf("%d exchanges of the outage", len(outage))
		}
	})
}
