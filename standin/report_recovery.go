package standin

import (
	"net/http"
	"time"
)

// An outage is a run of arrivals that all failed by the server's fault. It
// has to be this long to say something about what comes after it.
const (
	outageRequests = 5
	outageSpan     = time.Second
	// rushWindow is the time after the recovery that is looked at, and calmWindow
	// the time before the outage that it is compared with.
	rushWindow = time.Second
	calmWindow = 10 * time.Second
	// rushFactor is how many times the arrivals of the calm a client may send at
	// once afterwards, and rushRequests the number that nobody minds.
	rushFactor   = 3.0
	rushRequests = 10
)

// judgeRecovery looks for a rush of requests when an API comes back: APIs
// answer it with their growth limits, and the outage goes on.
func judgeRecovery(e evidence, _ Report) Line {
	const name = "recovery"
	outages := 0
	for _, o := range e.journal.outages() {
		before, after := o.rates(e.journal)
		if before == 0 {
			continue // nothing to compare with: it began in an outage
		}
		outages++
		if after > rushRequests && float64(after) > rushFactor*before {
			rush := map[int]bool{}
			for _, x := range e.journal[o.back:] {
				if x.Arrived.Sub(e.journal[o.back].Arrived) >= rushWindow {
					break
				}
				rush[x.Number] = true
			}
			return warn(name, sorted(rush), "spread retries with jitter on top of the wait, and come back slowly after an outage",
				"%d requests came in the first second after an outage, %.1f a second before it", after, before)
		}
	}
	if outages == 0 {
		return untested(name, "there was no outage between two times of normal traffic", "an incident in the timeline would test it")
	}
	return pass(name, "no rush after %s", counted(outages, "outage"))
}

// outage is a run of failures: indexes into the journal.
type outage struct {
	began int // the first failure
	back  int // the first arrival after it that did not fail
}

// outages finds the runs of failures that ended.
func (j Journal) outages() (all []outage) {
	began := -1
	for i, e := range j {
		switch failed := e.failedByServer(); {
		case failed && began < 0:
			began = i
		case !failed && began >= 0:
			if i-began >= outageRequests && j[i-1].Arrived.Sub(j[began].Arrived) >= outageSpan {
				all = append(all, outage{began, i})
			}
			began = -1
		}
	}
	return all
}

func (e Exchange) failedByServer() bool {
	if e.Open() || e.Delivered() || e.ClosedBy == Client || e.Fault == Throttled {
		return false
	}
	return e.Status == 0 || e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Fault == Error || e.ClosedBy == Peer
}

// rates returns the arrivals in a second before the outage, on average, and
// those of the first second after it.
func (o outage) rates(j Journal) (before float64, after int) {
	first, back := j[o.began].Arrived, j[o.back].Arrived
	span, n := time.Duration(0), 0
	for i := o.began - 1; i >= 0 && first.Sub(j[i].Arrived) <= calmWindow; i-- {
		span, n = first.Sub(j[i].Arrived), n+1
	}
	if n > 0 {
		before = float64(n) / max(span, time.Second).Seconds()
	}
	for i := o.back; i < len(j) && j[i].Arrived.Sub(back) < rushWindow; i++ {
		after++
	}
	return before, after
}
