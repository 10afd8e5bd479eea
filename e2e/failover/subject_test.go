package failover_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"sync"
	"testing"
	"time"

	"holdfast"
	"holdfast/gateway"
)

// gatewaySubject is Holdfast: two targets of one upstream, which differ in the model.
func gatewaySubject(delivery gateway.Delivery) func(*testing.T, http.RoundTripper, [2]string) (http.Handler, func() []account) {
	return func(t *testing.T, base http.RoundTripper, models [2]string) (http.Handler, func() []account) {
		books := &books{}
		g, err := gateway.New(gateway.Settings{
			Targets: []gateway.Target{{Name: "api", URL: upstreamURL}},
			Routes: []gateway.Route{{
				Chain:     []gateway.Entry{{Target: "api"}, {Target: "api", Model: models[1]}},
				OnRefusal: &gateway.Entry{Target: "api", Model: models[1]},
			}},
			Policy:       holdfast.Policy{Attempts: 3},
			FirstContent: 30 * time.Second,
			Stream:       gateway.Stream{Delivery: delivery},
			Base:         base,
			Observer:     books,
		})
		if err != nil {
			t.Fatal(err)
		}
		return g, books.all
	}
}

// books keep what the gateway records.
type books struct {
	mu      sync.Mutex
	records []gateway.Record
}

func (b *books) Call(r gateway.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, r)
}

func (*books) Event(holdfast.Event) {}

func (b *books) all() (accounts []account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.records {
		accounts = append(accounts, account{r.Target, r.Source.String(), r.Input, r.Output})
	}
	return accounts
}

// bareSubject is what one has without a gateway: the proxy of the standard library.
func bareSubject(_ *testing.T, base http.RoundTripper, _ [2]string) (http.Handler, func() []account) {
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream()) },
		Transport: base,
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without it the server now and then closes the body of a request under the proxy, which then cuts a reply that has
		// begun. That is no fault of the sixteen, and the table must be the same each time.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}), nil
}
