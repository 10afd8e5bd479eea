package drill

import (
	"context"
	"fmt"
	"time"

	"holdfast"
)

// demoPolicy keeps a demo working: four attempts, full jitter, and the server's wait plus a part of the base. A server
// that asks for more than ten seconds sends the call straight to the saved answer.
func demoPolicy(roll func() float64) holdfast.Policy {
	return holdfast.Policy{
		Attempts: 4, Backoff: holdfast.Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second},
		ServerWait: holdfast.PlusBase, MaxServerWait: 10 * time.Second, Dice: roll,
	}
}

// tutorialRun is a row: a scene, what it prints, and what must be true of it.
type tutorialRun struct {
	name, input string
	scene       scene
	check       func(r *Report, name string, p *played)
}

// Tutorial plays the runs of a write-up about keeping a demo working.
func Tutorial(ctx context.Context, o Options) (*Report, error) {
	roll := dice(orSeed(o.Seed, 1))
	r := &Report{Title: "Tutorial: keep a demo working"}
	runs := Section{Columns: []string{"run", "input", "source", "raised", "calls", "gaps s"}}
	log := Section{Title: "The log of wrapper 1 and wrapper 2, a line per retry"}
	for _, run := range append(tutorialRuns(roll), tutorialTests()...) {
		p, err := run.scene.play(ctx)
		if err != nil {
			return nil, err
		}
		runs.Rows = append(runs.Rows, []string{run.name, run.input, p.source(), p.raised(), fmt.Sprint(p.calls), secs(p.gaps)})
		run.check(r, run.name, &p)
		if run.name == "wrapper 1" || run.name == "wrapper 2" {
			log.Lines = append(log.Lines, p.log...)
		}
	}
	r.add(runs)
	r.add(log)
	return r, nil
}

func orSeed(seed, own uint64) uint64 {
	if seed == 0 {
		return own
	}
	return seed
}

func tutorialRuns(roll func() float64) []tutorialRun {
	told := throttled.after("1")
	demo := demoPolicy(roll)
	three := demo
	three.Attempts = 3
	return []tutorialRun{
		{"reproduce 1", "429 with retry-after 1, client without retries", scene{policy: bareClient(), script: []answer{told}, bare: true}, func(r *Report, name string, p *played) {
			r.equal(name+" error", p.raised()+", "+p.header(), "rate_limit_error 429, retry-after 1")
			r.equal(name+" calls", p.calls, 1)
		}},
		{"reproduce 2", "529 without the header, client without retries", scene{policy: bareClient(), script: []answer{overloaded}, bare: true}, func(r *Report, name string, p *played) {
			r.equal(name+" error", p.raised()+", "+p.header(), "overloaded_error 529, no retry-after")
		}},
		{"reproduce 3", "429 twice with retry-after 1, then a reply; SDK defaults", scene{policy: sdk(roll)(), script: []answer{told, told, yes}, bare: true}, func(r *Report, name string, p *played) {
			r.equal(name+" answer and calls", fmt.Sprint(p.source(), " ", p.calls), "live 3")
			r.that(name+" gaps", between(p.gaps, 2, 990*time.Millisecond, 1010*time.Millisecond), secs(p.gaps), "two of about 1.0 s")
		}},
		{"reproduce 4", "429 three times with retry-after 1; SDK defaults", scene{policy: sdk(roll)(), script: []answer{told, told, told, yes}, bare: true}, func(r *Report, name string, p *played) {
			r.equal(name+" error and calls", fmt.Sprint(p.raised(), " ", p.calls), "rate_limit_error 429 3")
			r.that(name+" gaps", between(p.gaps, 2, 990*time.Millisecond, 1010*time.Millisecond), secs(p.gaps), "two of about 1.0 s")
		}},
		{"wrapper 1", "429 twice with retry-after 1, then a reply", scene{policy: demo, script: []answer{told, told, yes}}, func(r *Report, name string, p *played) {
			r.equal(name+" source, attempts, calls", fmt.Sprint(p.source(), " ", p.trace.Sent(), " ", p.calls), "live 3 3")
			r.that(name+" gaps", between(p.gaps, 2, time.Second, 1500*time.Millisecond), secs(p.gaps), "two in [1.0, 1.5] s")
		}},
		{"wrapper 2", "529 always", scene{policy: demo, script: []answer{overloaded}}, func(r *Report, name string, p *played) {
			r.equal(name+" source, attempts, calls", fmt.Sprint(p.source(), " ", p.trace.Sent(), " ", p.calls), "saved 4 4")
			r.that(name+" gaps", len(p.gaps) == 3 && p.gaps[0] < time.Second/2 && p.gaps[1] < time.Second && p.gaps[2] < 2*time.Second,
				secs(p.gaps), "below 0.5, 1 and 2 s")
		}},
		{"layers, 0 retries", "529 always, 3 attempts over a client that does not retry", scene{policy: three, script: []answer{overloaded}, bare: true}, func(r *Report, name string, p *played) {
			r.equal(name+" calls", p.calls, 3)
		}},
		{"layers, 2 retries", "529 always, 3 attempts over a client with 2 retries", scene{policy: three, script: []answer{overloaded}, client: sdk(roll), bare: true}, func(r *Report, name string, p *played) {
			r.equal(name+" calls", p.calls, 9)
		}},
	}
}

func tutorialTests() []tutorialRun {
	always := func(change func(*holdfast.Policy)) holdfast.Policy {
		p := demoPolicy(constant(1))
		change(&p)
		return p
	}
	return []tutorialRun{
		{"test a", "429 twice with retry-after 3, rand 1", scene{policy: always(func(*holdfast.Policy) {}), script: []answer{throttled.after("3"), throttled.after("3"), yes}}, func(r *Report, name string, p *played) {
			r.equal(name+" sleeps", secs(p.sleeps), "3.5, 3.5")
			r.equal(name+" calls and source", fmt.Sprint(p.calls, " ", p.source()), "3 live")
		}},
		{"test b", "529 three times, 5 attempts, cap 1.5, rand 1", scene{
			policy: always(func(p *holdfast.Policy) { p.Attempts, p.Backoff.Cap = 5, 1500*time.Millisecond }),
			script: []answer{overloaded, overloaded, overloaded, yes},
		}, func(r *Report, name string, p *played) {
			r.equal(name+" sleeps", secs(p.sleeps), "0.5, 1.0, 1.5")
			r.equal(name+" source", p.source(), "live")
		}},
		{"test c", "529 always, the wait after attempt 3", scene{policy: always(func(*holdfast.Policy) {}), script: []answer{overloaded}}, func(r *Report, name string, p *played) {
			b := demoPolicy(nil).Backoff
			r.equal(name+" rand 0", sec(b.Wait(3, constant(0))), "0.0")
			r.equal(name+" rand 1", sec(b.Wait(3, constant(1))), "2.0")
			r.equal(name+" in a call", sec(p.sleeps[len(p.sleeps)-1]), "2.0")
		}},
		{"test d", "529 always, 3 attempts", scene{policy: always(func(p *holdfast.Policy) { p.Attempts = 3 }), script: []answer{overloaded}}, func(r *Report, name string, p *played) {
			r.equal(name+" source, sleeps, calls", fmt.Sprint(p.source(), " ", len(p.sleeps), " ", p.calls), "saved 2 3")
		}},
		{"test e", "429 with retry-after 60, max wait 10", scene{policy: always(func(*holdfast.Policy) {}), script: []answer{throttled.after("60")}}, func(r *Report, name string, p *played) {
			r.equal(name+" source, sleeps, calls", fmt.Sprint(p.source(), " ", len(p.sleeps), " ", p.calls), "saved 0 1")
		}},
		{"test f", "401", scene{policy: always(func(*holdfast.Policy) {}), script: []answer{status(401)}}, func(r *Report, name string, p *played) {
			r.equal(name+" error, source, calls", fmt.Sprint(p.raised(), " ", p.source(), " ", p.calls), "authentication_error 401 none 1")
		}},
	}
}

// between reports whether there are n durations, all from low to high.
func between(ds []time.Duration, n int, low, high time.Duration) bool {
	for _, d := range ds {
		if d < low || d > high {
			return false
		}
	}
	return len(ds) == n
}
