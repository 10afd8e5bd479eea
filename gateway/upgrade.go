package gateway

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"
)

// isUpgrade reports whether a connection is to become a web socket. Other offers, such as the h2c of some clients, may be
// ignored (RFC 9110, 7.8), and such a request is one like any other.
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && names(r.Header["Upgrade"], "websocket") && names(r.Header["Connection"], "upgrade")
}

func names(lists []string, wanted string) bool {
	for _, list := range lists {
		for token := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(token), wanted) {
				return true
			}
		}
	}
	return false
}

// upgrade passes a connection on that speaks another protocol from now on, such as a web socket. It is asked for once, at the
// first target: what is said on it is nothing that could be repeated.
func (c *call) upgrade() {
	c.body = &body{}
	if !c.plan() {
		return
	}
	st := c.lineup.stops[0]
	c.record.Target = st.name
	if st.entry.up.Base != nil {
		c.reject(refusal{http.StatusNotFound, "no-upgrade", "the target of this request takes no other protocol", 0, false, 0})
		return
	}
	status := &statusWriter{ResponseWriter: c.w}
	proxy := httputil.ReverseProxy{
		Transport: c.s.settings.Base,
		ErrorLog:  log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			st.address(p.Out)
			dropOwn(p.Out.Header)
			if st.secret != "" {
				setKey(p.Out.Header, st.entry.up.Auth, st.secret)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			c.reject(refusal{http.StatusBadGateway, "no-answer", "the upstream could not be reached: " + plain(err), 0, false, 0})
		},
	}
	proxy.ServeHTTP(status, c.r)
	if c.record.Outcome == "" {
		c.record.Status = status.status
		if c.record.Outcome = Answered; status.status >= http.StatusBadRequest {
			c.record.Outcome = Failed
		}
	}
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets a http.ResponseController through.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
