// Package telemetry counts what a gateway does, for Prometheus.
//
//	metrics := telemetry.New()
//	g, err := gateway.New(gateway.Settings{Observer: metrics, …})
//	metrics.Watch(g.Status)
//	http.Handle("/metrics", metrics.Handler())
//
// All names begin with holdfast_. Labels are names of the configuration (route, target, client) and fixed words, never a
// text of a caller; should there be more of them than anybody configures, the further ones are counted as "other". No
// metric holds a key, a prompt or an answer.
package telemetry

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast"
	"holdfast/gateway"
)

// Metrics are the counts of one gateway. Use [New]. They are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	calls    series[callKey, prometheus.Counter]
	routes   series[routeKey, routeSeries]
	tokens   series[tokenKey, tokenSeries]
	clients  series[clientKey, prometheus.Counter]
	attempts series[attemptKey, prometheus.Counter]
	moves    series[moveKey, prometheus.Counter]
	skips    series[skipKey, prometheus.Counter]
	waits    series[string, prometheus.Observer]
	stacked  prometheus.Counter
}

var _ gateway.Observer = (*Metrics)(nil)

type (
	callKey struct {
		route   string
		outcome gateway.Outcome
		source  holdfast.Source
	}
	routeKey struct {
		route  string
		stream bool
	}
	tokenKey  struct{ route, target string }
	clientKey struct {
		client  string
		outcome gateway.Outcome
	}
	attemptKey struct {
		target string
		kind   holdfast.Kind
	}
	moveKey struct {
		target string
		to     holdfast.State
	}
	skipKey struct{ target, reason string }
)

// routeSeries are the metrics of a route, for streams or for other answers.
type routeSeries struct {
	seconds, firstContent prometheus.Observer
	bytes                 prometheus.Counter
}

// tokenSeries are the tokens of a target, by kind.
type tokenSeries struct{ input, output, cacheRead, cacheWrite prometheus.Counter }

// New returns metrics that have counted nothing, with those of the Go runtime and of the process.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	m.countCalls()
	m.countAttempts()
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, Registry: m.registry})
}

// Gatherer gives the metrics to whoever serves them in another way.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// countCalls makes the metrics of whole calls.
func (m *Metrics) countCalls() {
	calls := m.counters("calls_total", "Calls that ended, by how they ended for the caller and where the answer came from.", "route", "outcome", "source")
	m.calls.make = func(k callKey) prometheus.Counter {
		return calls.WithLabelValues(k.route, string(k.outcome), k.source.String())
	}
	m.calls.rest = func(k callKey) callKey { return callKey{other, k.outcome, k.source} }

	seconds := m.histograms("call_seconds", "How long calls took that were answered, streams to their end.", callBuckets, "route", "stream")
	first := m.histograms("first_content_seconds", "How long callers waited for the first byte of an answer.", callBuckets, "route", "stream")
	bytes := m.counters("response_bytes_total", "Bytes that went to callers.", "route", "stream")
	m.routes.make = func(k routeKey) routeSeries {
		stream := yesNo(k.stream)
		return routeSeries{seconds.WithLabelValues(k.route, stream), first.WithLabelValues(k.route, stream), bytes.WithLabelValues(k.route, stream)}
	}
	m.routes.rest = func(k routeKey) routeKey { return routeKey{other, k.stream} }

	tokens := m.counters("tokens_total", "Tokens of the answers that were handed over, as the provider counted them; of one that broke off or was left, an estimate on the high side.", "route", "target", "kind")
	m.tokens.make = func(k tokenKey) tokenSeries {
		return tokenSeries{
			tokens.WithLabelValues(k.route, k.target, "input"), tokens.WithLabelValues(k.route, k.target, "output"),
			tokens.WithLabelValues(k.route, k.target, "cache_read"), tokens.WithLabelValues(k.route, k.target, "cache_write"),
		}
	}
	m.tokens.rest = func(tokenKey) tokenKey { return tokenKey{other, other} }

	clients := m.counters("client_calls_total", "Calls of each client that is configured, by how they ended.", "client", "outcome")
	m.clients.make = func(k clientKey) prometheus.Counter { return clients.WithLabelValues(k.client, string(k.outcome)) }
	m.clients.rest = func(k clientKey) clientKey { return clientKey{other, k.outcome} }

	m.stacked = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "stacked_retries_total",
		Help: "Calls that were a caller's own retry on top: his client should not retry.",
	})
	m.registry.MustRegister(m.stacked)
}

// countAttempts makes the metrics of what happens inside of calls.
func (m *Metrics) countAttempts() {
	attempts := m.counters("attempts_total", "Attempts that were sent and ended, by what came of them.", "target", "verdict")
	m.attempts.make = func(k attemptKey) prometheus.Counter { return attempts.WithLabelValues(k.target, k.kind.String()) }
	m.attempts.rest = func(k attemptKey) attemptKey { return attemptKey{other, k.kind} }

	moves := m.counters("circuit_transitions_total", "Changes of circuits, by the state that they changed to.", "target", "to")
	m.moves.make = func(k moveKey) prometheus.Counter { return moves.WithLabelValues(k.target, k.to.String()) }
	m.moves.rest = func(k moveKey) moveKey { return moveKey{other, k.to} }

	skips := m.counters("skips_total", "Targets that were not asked, or not again, although a call would have liked to.", "target", "reason")
	m.skips.make = func(k skipKey) prometheus.Counter { return skips.WithLabelValues(k.target, k.reason) }
	m.skips.rest = func(k skipKey) skipKey { return skipKey{other, k.reason} }

	waits := m.histograms("wait_seconds", "How long calls waited before they asked the same target again, by the verdict before, and how long they queued (pace).", waitBuckets, "reason")
	m.waits.make = func(reason string) prometheus.Observer { return waits.WithLabelValues(reason) }
	m.waits.rest = func(string) string { return other }
}

// Call counts a call that ended. It is part of [gateway.Observer].
func (m *Metrics) Call(r gateway.Record) {
	m.calls.get(callKey{r.Route, r.Outcome, r.Source}).Inc()
	if r.Client != "" {
		m.clients.get(clientKey{r.Client, r.Outcome}).Inc()
	}
	if r.Stacked > 0 {
		m.stacked.Inc()
	}
	if r.Outcome == gateway.Rejected {
		return // nothing was sent, and nothing of it is worth a measurement
	}
	route := m.routes.get(routeKey{r.Route, r.Stream})
	route.bytes.Add(float64(r.Bytes))
	if r.Outcome == gateway.Answered || r.Outcome == gateway.Refused {
		route.seconds.Observe(r.Elapsed.Seconds())
	}
	if r.FirstContent > 0 {
		route.firstContent.Observe(r.FirstContent.Seconds())
	}
	if r.Input|r.Output|r.CacheRead|r.CacheWrite != 0 {
		t := m.tokens.get(tokenKey{r.Route, r.Target})
		add(t.input, r.Input)
		add(t.output, r.Output)
		add(t.cacheRead, r.CacheRead)
		add(t.cacheWrite, r.CacheWrite)
	}
	m.waited(&r.Trace)
}

// add counts tokens. A provider's number may be nonsense, and a counter that is told to go down panics.
func add(c prometheus.Counter, n int) {
	if n > 0 {
		c.Add(float64(n))
	}
}

// waited measures the waits as they were, the last of which the caller may have cut short.
func (m *Metrics) waited(t *holdfast.Trace) {
	if t.Paced > 0 {
		m.waits.get("pace").Observe(t.Paced.Seconds())
	}
	if t.Waited <= 0 {
		return
	}
	left := t.Waited
	for _, a := range t.Attempts() {
		if wait := min(a.Wait, left); wait > 0 {
			left -= wait
			m.waits.get(a.Verdict.Kind.String()).Observe(wait.Seconds())
		}
	}
}

// Event counts what happened inside of a call. It is part of [gateway.Observer].
func (m *Metrics) Event(e holdfast.Event) {
	switch e.Kind {
	case holdfast.EventAttempt:
		m.attempts.get(attemptKey{e.Target, e.Verdict.Kind}).Inc()
	case holdfast.EventCircuit:
		m.moves.get(moveKey{e.Target, e.To}).Inc()
	case holdfast.EventSkip:
		m.skips.get(skipKey{e.Target, holdfast.ReasonWord(e.Reason)}).Inc()
	}
}

const namespace = "holdfast"

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

// The bounds of the classic buckets, in seconds. A server that knows native histograms gets finer ones.
var (
	callBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
	waitBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300}
)

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	m.registry.MustRegister(v)
	return v
}

func buildInfo() prometheus.Collector {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "What this program is. The value is always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

func yesNo(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
