package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"holdfast/internal/wire"
)

// state is settings made ready. It does not change.
type state struct {
	settings Settings
	targets  []*upstream
	routes   []*route
	clients  []*client
	health   *health
	loaded   time.Time
	lineups  *lru.Cache[lineupKey, *lineup]
}

// upstream is a target made ready.
type upstream struct {
	Target
	url     *url.URL
	dialect wire.Dialect // unknown: any
}

// route is a route made ready.
type route struct {
	name      string
	models    []string
	chain     []*entry
	onRefusal *entry
	saved     bool
	answer    []byte // nil: none
	delivery  Delivery
	dialect   wire.Dialect // of the chain; unknown: any
}

// entry is a place of a chain made ready.
type entry struct {
	Entry
	up    *upstream
	url   *url.URL // of the target, with the entry's own path
	keys  []Key
	strip bool // what only another provider can open
}

// mostLineups bounds how many combinations of route, model and credential are kept ready.
const mostLineups = 1024

// compile makes settings ready, or says everything that is wrong with them.
func compile(s Settings, h *health) (*state, error) {
	next := &state{settings: s, health: h, loaded: time.Now()}
	next.lineups, _ = lru.New[lineupKey, *lineup](mostLineups) // fails only for a size that is not positive
	if next.settings.Base == nil {
		next.settings.Base = h.standardBase()
	}
	var mistakes []error
	wrong := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf("gateway: "+format, args...)) }
	if len(s.Targets) == 0 {
		wrong("there is no target to ask")
	}
	known := map[string]*upstream{}
	for i, t := range s.Targets {
		up, err := compileTarget(t)
		switch {
		case err != nil:
			wrong("target %d (%s): %w", i+1, t.Name, err)
			continue
		case known[t.Name] != nil:
			wrong("target %d: the name %q is taken", i+1, t.Name)
		}
		known[t.Name] = up
		next.targets = append(next.targets, up)
	}
	for i, r := range s.Routes {
		made, err := compileRoute(r, i, known, s.Stream.Delivery)
		if err != nil {
			wrong("route %d (%s): %w", i+1, r.Name, err)
			continue
		}
		next.routes = append(next.routes, made)
	}
	if s.Saved == nil {
		for _, r := range next.routes {
			r.saved = false
		}
	}
	var err []error
	next.clients, err = compileClients(s.Clients, h)
	mistakes = append(mistakes, err...)
	if p := s.Policy; true {
		p.Targets = nil
		if err := p.Validate(); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	next.routes = append(next.routes, next.standardRoutes()...)
	return next, nil
}

func compileTarget(t Target) (*upstream, error) {
	u, err := url.Parse(t.URL)
	if t.Base != nil && t.URL == "" {
		u = &url.URL{Scheme: "https", Host: t.Name} // which is its own, and nobody else's
	}
	switch {
	case t.Name == "":
		return nil, errors.New("it has no name")
	case err != nil:
		return nil, errors.New("its URL cannot be read") // the error would show the URL
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("its URL must begin with http:// or https:// and name a host")
	case u.User != nil:
		return nil, errors.New("its URL must not hold a user and password; keys has the credentials")
	case t.Base != nil && len(t.Keys) > 1:
		return nil, errors.New("it has several keys, and a base that knows one")
	}
	up := &upstream{Target: t, url: u}
	switch t.Dialect {
	case "":
	case wire.DialectAnthropic.String():
		up.dialect = wire.DialectAnthropic
	case wire.DialectOpenAI.String():
		up.dialect = wire.DialectOpenAI
	default:
		return nil, fmt.Errorf("its dialect is %q, not anthropic or openai", t.Dialect)
	}
	switch t.Auth {
	case "":
		up.Auth = authBearer
		if up.dialect == wire.DialectAnthropic {
			up.Auth = authKey
		}
	case authKey, authBearer, authAPIKey:
	default:
		return nil, fmt.Errorf("its auth is %q, not x-api-key, bearer or api-key", t.Auth)
	}
	up.Keys = nil
	for i, k := range t.Keys {
		if k.Secret == "" {
			return nil, fmt.Errorf("its key %d is empty", i+1)
		}
		if k.Name == "" {
			k.Name = fmt.Sprint(i + 1)
		}
		up.Keys = append(up.Keys, k)
	}
	return up, nil
}

func compileRoute(r Route, place int, known map[string]*upstream, standard Delivery) (*route, error) {
	made := &route{name: r.Name, models: r.Models, delivery: r.Delivery}
	if made.name == "" {
		made.name = strings.Join(r.Models, ",")
	}
	if made.name == "" {
		made.name = fmt.Sprintf("route-%d", place+1)
	}
	if made.delivery == 0 {
		made.delivery = standard
	}
	for _, pattern := range r.Models {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("its pattern %q is none", pattern)
		}
	}
	for i, e := range r.Chain {
		if e.Saved {
			if i != len(r.Chain)-1 {
				return nil, errors.New("saved must be the last of its chain")
			}
			made.saved = true
			continue
		}
		link, err := compileEntry(e, known)
		if err != nil {
			return nil, fmt.Errorf("entry %d of its chain: %w", i+1, err)
		}
		made.chain = append(made.chain, link)
	}
	if len(made.chain) == 0 {
		return nil, errors.New("its chain has no target")
	}
	if r.OnRefusal != nil {
		e := *r.OnRefusal
		if e.Target == "" {
			e.Target = made.chain[0].Entry.Target
		}
		link, err := compileEntry(e, known)
		if err != nil {
			return nil, fmt.Errorf("its on_refusal: %w", err)
		}
		made.onRefusal = link
	}
	if err := made.oneDialect(); err != nil {
		return nil, err
	}
	made.seal()
	if r.Answer != "" {
		text, err := os.ReadFile(r.Answer)
		if err != nil {
			return nil, fmt.Errorf("its answer: %w", err)
		}
		made.answer = text
	}
	return made, nil
}

func compileEntry(e Entry, known map[string]*upstream) (*entry, error) {
	up := known[e.Target]
	if up == nil {
		return nil, fmt.Errorf("there is no target %q", e.Target)
	}
	made := &entry{Entry: e, up: up, url: up.url, keys: up.Keys}
	if e.Betas == nil {
		made.Betas = up.Betas
	}
	if e.Version == "" {
		made.Version = up.Version
	}
	if e.Path != "" {
		if up.Base != nil {
			return nil, fmt.Errorf("target %s finds its paths itself", up.Name)
		}
		u := *up.url
		u.Path, u.RawPath = e.Path, ""
		made.url = &u
	}
	if e.Key != "" {
		made.keys = nil
		for _, k := range up.Keys {
			if k.Name == e.Key {
				made.keys = []Key{k}
			}
		}
		if made.keys == nil {
			return nil, fmt.Errorf("target %s has no key %q", up.Name, e.Key)
		}
	}
	switch e.Sealed {
	case "", "keep", "strip":
	default:
		return nil, fmt.Errorf("sealed is %q, not keep or strip", e.Sealed)
	}
	return made, nil
}

// links are all entries of a route.
func (r *route) links() []*entry {
	if r.onRefusal == nil {
		return r.chain
	}
	return append(r.chain[:len(r.chain):len(r.chain)], r.onRefusal)
}

// oneDialect finds the dialect of a route. Nothing is ever translated, so there can be only one.
func (r *route) oneDialect() error {
	for _, e := range r.links() {
		switch {
		case e.up.dialect == wire.DialectUnknown || e.up.dialect == r.dialect:
		case r.dialect == wire.DialectUnknown:
			r.dialect = e.up.dialect
		default:
			return fmt.Errorf("its chain mixes the dialects %v and %v, and nothing is translated between them", r.dialect, e.up.dialect)
		}
	}
	return nil
}

// seal decides where the history loses what only the first provider can open.
func (r *route) seal() {
	for _, e := range r.links() {
		e.strip = e.Sealed == "strip" || e.Sealed == "" && e.url.Host != r.chain[0].url.Host
	}
}

// standardRoutes take what no configured route takes: the targets of a dialect, in order.
func (s *state) standardRoutes() (routes []*route) {
	for _, d := range []wire.Dialect{wire.DialectAnthropic, wire.DialectOpenAI} {
		r := &route{name: "default", dialect: d, delivery: s.settings.Stream.Delivery}
		for _, up := range s.targets {
			if up.dialect == d || up.dialect == wire.DialectUnknown {
				e, _ := compileEntry(Entry{Target: up.Name}, map[string]*upstream{up.Name: up}) // which names nothing that could be wrong
				r.chain = append(r.chain, e)
			}
		}
		if len(r.chain) > 0 {
			r.seal()
			routes = append(routes, r)
		}
	}
	return routes
}

// route is the first one that takes the call.
func (s *state) route(c *call) *route {
	for _, r := range s.routes {
		if r.dialect != wire.DialectUnknown && r.dialect != c.dialect {
			continue
		}
		if len(r.models) == 0 || c.record.Model != "" && r.takes(c.record.Model) {
			return r
		}
	}
	return nil
}

func (r *route) takes(model string) bool {
	for _, pattern := range r.models {
		if ok, _ := path.Match(pattern, model); ok { // the pattern was checked
			return true
		}
	}
	return false
}

// dialectOf is the dialect of a request: by its path, and where both APIs have the path, by the header that only one of
// them asks for.
func dialectOf(r *http.Request) wire.Dialect {
	if d := wire.DialectOf(r.URL.Path); d != wire.DialectUnknown {
		return d
	}
	if r.Header.Get("Anthropic-Version") != "" || r.Header.Get("Anthropic-Beta") != "" || r.Header.Get("X-Api-Key") != "" {
		return wire.DialectAnthropic
	}
	if r.Header.Get("Authorization") != "" {
		return wire.DialectOpenAI
	}
	return wire.DialectAnthropic
}
