package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"holdfast/internal/wire"
)

// Gateway is an http.Handler that makes a call of every request. Use [New]. It is safe for concurrent use.
type Gateway struct {
	now      atomic.Pointer[state]
	health   *health
	draining atomic.Bool
	inFlight atomic.Int64
	started  time.Time
	records  *records
	reload   atomic.Pointer[Reload]
}

// New returns a gateway. Mistakes in the settings are reported all at once.
func New(s Settings) (*Gateway, error) {
	g := &Gateway{health: newHealth(), started: time.Now(), records: newRecords(0)}
	if err := g.Reload(s); err != nil {
		return nil, err
	}
	return g, nil
}

// Reload takes new settings for the calls that begin from now on. Calls under way keep theirs, and breakers, paces and
// budgets keep what they know unless their own settings changed. On an error nothing changes.
func (g *Gateway) Reload(s Settings) error {
	next, err := compile(s, g.health)
	last := &Reload{At: time.Now()}
	defer g.reload.Store(last)
	if err != nil {
		last.Error = err.Error()
		return err
	}
	g.now.Store(next)
	return nil
}

// NoteReload tells the status page of settings that could not even be read. Whatever was in force stays so.
func (g *Gateway) NoteReload(err error) { g.reload.Store(&Reload{At: time.Now(), Error: err.Error()}) }

// InFlight returns the number of calls under way.
func (g *Gateway) InFlight() int { return int(g.inFlight.Load()) }

// ServeHTTP makes a call of the request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.inFlight.Add(1)
	defer g.inFlight.Add(-1)
	c := &call{g: g, s: g.now.Load(), w: w, r: r}
	c.record.Start = time.Now()
	c.record.ID = newID()
	c.record.Method, c.record.Path = r.Method, r.URL.Path
	c.dialect = dialectOf(r)
	c.record.Dialect = c.dialect.String()
	defer c.ended()
	c.serve()
}

// newID names a call. It needs to be unique, not secret.
func newID() string {
	const digits = 16
	id := strconv.FormatUint(rand.Uint64(), 16) //nolint:gosec // a name, not a secret
	for len(id) < digits {
		id = "0" + id
	}
	return id
}

// call is one request on its way through the gateway.
type call struct {
	g *Gateway
	s *state
	w http.ResponseWriter
	r *http.Request

	dialect wire.Dialect
	client  *client
	route   *route
	lineup  *lineup
	body    *body
	asked   wire.Request // what the body says

	bodies map[*stop][]byte // as rewritten for a target
	answer *answer          // what went to the caller, kept for the saved answers
	record Record
	bill   bill
	broken bool // the connection to the caller must not be used any more
}

// ended tells of the call, once, whatever became of it.
func (c *call) ended() {
	if fault := recover(); fault != nil {
		c.failed(fault)
	}
	c.record.Elapsed = time.Since(c.record.Start)
	c.reckon()
	if !c.broken && c.record.Bytes > 0 {
		_ = http.NewResponseController(c.w).Flush() // a slow log must not hold the answer back
	}
	kept := c.g.records.add(c.record)
	logCall(c.s.settings.Log, kept)
	if c.s.settings.Observer != nil {
		c.s.settings.Observer.Call(*kept)
	}
	if c.broken {
		panic(http.ErrAbortHandler) // the one way to end a reply so that nobody takes it for whole
	}
}

// failed is for a panic. Its value is told nobody, since it may hold anything; where it came from is.
func (c *call) failed(fault any) {
	c.broken = true
	c.record.Outcome, c.record.Reason, c.record.Error = Failed, "panic", fmt.Sprintf("panic: %T", fault)
	if log := c.s.settings.Log; log != nil && fault != any(http.ErrAbortHandler) {
		log.Error("panic", "trace", c.record.ID, "type", fmt.Sprintf("%T", fault), "stack", string(debug.Stack()))
	}
}

func (c *call) serve() {
	if c.g.draining.Load() {
		c.w.Header().Set("Connection", "close")
		c.reject(refusal{http.StatusServiceUnavailable, "draining", "the gateway is shutting down; another instance will take the request", time.Second, true, 0})
		return
	}
	if c.r.ProtoMajor == 1 && len(c.r.TransferEncoding) > 0 {
		// It may have had a length too, of which net/http tells nothing: somebody in front of us may take what is behind it
		// for a part of it (RFC 9112, 6.1).
		c.w.Header().Set("Connection", "close")
	}
	if c.r.Method == http.MethodConnect {
		c.reject(refusal{http.StatusMethodNotAllowed, "method", "the gateway is no proxy for other hosts; it is used as the base URL of an API", 0, false, 0})
		return
	}
	if !c.admit() {
		return
	}
	if len(c.s.clients) == 0 && fromAPage(c.r) {
		c.reject(refusal{http.StatusForbidden, "web-page", "a web page asks, and without clients the gateway serves this machine's own programs alone; name clients to serve pages", 0, false, 0})
		return
	}
	if isUpgrade(c.r) {
		c.upgrade()
		return
	}
	if !c.read() {
		return
	}
	defer c.body.Close()
	if !c.plan() {
		return
	}
	c.send()
}

// read takes the body.
func (c *call) read() bool {
	var err error
	c.body, err = readBody(c.w, c.r, &c.s.settings)
	var tooLarge *tooLargeError
	switch {
	case err == nil:
		if c.r.Method == http.MethodPost && c.dialect != wire.DialectUnknown {
			c.asked = wire.ReadRequest(c.body.data)
			c.record.Model = c.asked.Model
			c.bill.request = len(c.body.data)
		}
		return true
	case errors.As(err, &tooLarge):
		c.w.Header().Set("Connection", "close")
		c.reject(refusal{http.StatusRequestEntityTooLarge, "too-large", tooLarge.Error(), 0, false, 0})
	case isTimeout(err):
		c.w.Header().Set("Connection", "close")
		c.reject(refusal{http.StatusRequestTimeout, "slow-body", fmt.Sprintf("the request's body did not come within %v of its last part", orDefault(c.s.settings.BodyTimeout, defaultBodyTimeout)), 0, false, 0})
	case c.r.Context().Err() != nil: // net/http ends it for a timeout too
		c.left()
	case errors.Is(err, errNoRoom):
		c.w.Header().Set("Connection", "close")
		c.reject(refusal{http.StatusServiceUnavailable, "no-room", "the gateway has no room on its disk to keep the body", time.Second, true, 0})
	default:
		c.w.Header().Set("Connection", "close")
		c.reject(refusal{http.StatusBadRequest, "bad-body", "the request's body could not be read: " + plain(err), 0, false, 0})
	}
	return false
}

// plan finds the route and the targets.
func (c *call) plan() bool {
	c.route = c.s.route(c)
	if c.route == nil {
		c.reject(refusal{http.StatusNotFound, "no-route", "no route of the gateway takes this request: no target speaks its dialect", 0, false, 0})
		return false
	}
	c.record.Route = c.route.name
	c.lineup = c.s.lineup(c).fitting(int64(len(c.body.data)))
	return true
}

// left is for a caller who went away before anything was sent to him.
func (c *call) left() {
	c.record.Status, c.record.Outcome = statusClientLeft, Left
	if context.Cause(c.r.Context()) == errShutdown {
		f := refusal{http.StatusServiceUnavailable, "draining", "the gateway was shut down before the call was over", time.Second, true, 0}
		if n := c.record.Trace.Sent(); n > 0 { // it may have been answered, and paid for
			f.sent, f.again, f.wait = n, false, 0
		}
		c.reject(f)
		return
	}
	c.broken = true // he may have closed his half alone: nothing must look like an answer
}

// statusClientLeft is what access logs call a caller who went away; nobody is ever sent it.
const statusClientLeft = 499

var errShutdown = errors.New("holdfast: the gateway shuts down")

func orDefault(field, standard time.Duration) time.Duration {
	if field == 0 {
		return standard
	}
	return field
}
