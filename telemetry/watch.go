package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast"
	"holdfast/gateway"
)

// Watch adds what is to be seen of a gateway at the moment of each scrape: calls under way, circuits, paces, retry budgets
// and saved answers. It must be called once at most; status must be safe for concurrent use, as
// [gateway.Gateway.Status] is.
func (m *Metrics) Watch(status func(now time.Time) gateway.Status) {
	m.registry.MustRegister(watcher{status})
}

// watcher makes metrics of a status.
type watcher struct {
	status func(now time.Time) gateway.Status
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	inFlight     = describe("in_flight_calls", "Calls under way.")
	draining     = describe("draining", "1 while the gateway shuts down.")
	reloaded     = describe("reload_timestamp_seconds", "When settings were last taken or refused.")
	reloadGood   = describe("reload_success", "1 if the settings of the last reload hold, 0 if they were refused.")
	circuits     = describe("circuits", "Circuits of a target, one for each model group that was used, by state.", "target", "state")
	circuitState = describe("circuit_state", "The worst state of a target's circuits: 0 closed, 1 half-open, 2 open.", "target")
	queued       = describe("pace_queued_calls", "Calls that wait for permission to send to a target.", "target")
	held         = describe("pace_held_seconds", "For how long a key of the target still rests as its upstream asked, the longest of all keys.", "target")
	resting      = describe("resting_credentials", "Keys and model groups of a target that are not used at present.", "target")
	budget       = describe("retry_budget_ratio", "What is left of the retry budget of a target, from 0 to 1, the least of all keys.", "target")
	savedCount   = describe("saved_answers", "Saved answers that are kept.")
	savedBytes   = describe("saved_answers_bytes", "Size of the saved answers that are kept.")
	savedLookups = describe("saved_lookups_total", "Saved answers that were looked for, by whether there was one.", "result")
	savedKept    = describe("saved_kept_total", "Answers that were saved.")
	savedDropped = describe("saved_dropped_total", "Answers that were not saved because too many waited to be.")
)

// Describe implements prometheus.Collector.
func (watcher) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		inFlight, draining, reloaded, reloadGood, circuits, circuitState, queued, held, resting, budget,
		savedCount, savedBytes, savedLookups, savedKept, savedDropped,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (w watcher) Collect(out chan<- prometheus.Metric) {
	s := w.status(time.Now())
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	gauge(inFlight, float64(s.InFlight))
	gauge(draining, number(s.Draining))
	if !s.Reload.At.IsZero() {
		gauge(reloaded, float64(s.Reload.At.Unix()))
	}
	gauge(reloadGood, number(s.Reload.Error == ""))
	for i := range s.Targets {
		collectTarget(&s.Targets[i], gauge)
	}
	if s.Saved != nil {
		gauge(savedCount, float64(s.Saved.Answers))
		gauge(savedBytes, float64(s.Saved.Bytes))
		counter(savedLookups, s.Saved.Hits, "hit")
		counter(savedLookups, s.Saved.Misses, "miss")
		counter(savedKept, s.Saved.Kept)
		counter(savedDropped, s.Saved.Dropped)
	}
}

func collectTarget(t *gateway.TargetStatus, gauge func(*prometheus.Desc, float64, ...string)) {
	worst := holdfast.Closed
	for i, state := range []holdfast.State{holdfast.Closed, holdfast.HalfOpen, holdfast.Open} {
		n := t.CircuitStates[state.String()]
		gauge(circuits, float64(n), t.Name, state.String())
		if n > 0 {
			worst = holdfast.State(i) //nolint:gosec // 0 to 2
		}
	}
	gauge(circuitState, float64(worst), t.Name)
	var waiting, rest int
	var longest float64
	least := 1.0
	for i := range t.Credentials {
		c := &t.Credentials[i]
		waiting += c.Queued
		if c.Resting != "" {
			rest++
		}
		if c.Resting == "held" {
			longest = max(longest, c.RestingSeconds)
		}
		if c.BudgetCapacity > 0 {
			least = min(least, c.Budget/c.BudgetCapacity)
		}
	}
	gauge(queued, float64(waiting), t.Name)
	gauge(held, longest, t.Name)
	gauge(resting, float64(rest), t.Name)
	gauge(budget, least, t.Name)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
