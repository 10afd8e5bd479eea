package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast"
	"holdfast/gateway"
)

// Callers and upstreams that mean no good, over real sockets: memory stays bounded, the error is clear, and the gateway
// lives on.

// fort is a gateway on loopback in front of one upstream.
type fort struct {
	t        *testing.T
	addr     string
	upstream *httptest.Server
	requests atomic.Int64
	smuggled atomic.Int64
	mu       sync.Mutex
	bodies   []string
	seen     *records
	gateway  *gateway.Gateway
}

// newFort opens it. A nil handler answers everything.
func newFort(t *testing.T, play http.HandlerFunc, change func(*gateway.Settings)) *fort {
	t.Helper()
	f := &fort{t: t, seen: &records{}}
	if play == nil {
		play = func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			f.mu.Lock()
			f.bodies = append(f.bodies, string(body))
			f.mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body)
			respond(200, answer)(w, r)
		}
	}
	f.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.Add(1)
		if strings.Contains(r.URL.Path, "smuggled") {
			f.smuggled.Add(1)
		}
		if strings.HasSuffix(r.URL.Path, "/healthy/v1/messages") {
			respond(200, answer)(w, r)
			return
		}
		play(w, r)
	}))
	t.Cleanup(f.upstream.Close)
	s := gateway.Settings{
		Targets: []gateway.Target{{Name: "api", URL: f.upstream.URL}, {Name: "healthy", URL: f.upstream.URL + "/healthy"}},
		Routes:  []gateway.Route{{Models: []string{"healthy"}, Chain: []gateway.Entry{{Target: "healthy"}}}, {Chain: []gateway.Entry{{Target: "api"}}}},
		Policy:  holdfast.Policy{Attempts: -1, Deadline: time.Minute}, FirstContent: time.Second, Idle: time.Second,
		BodyTimeout: time.Second, Observer: f.seen,
	}
	if change != nil {
		change(&s)
	}
	g, err := gateway.New(s)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr, f.gateway = l.Addr().String(), g
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, l, nil, 5*time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		f.upstream.CloseClientConnections()
	})
	return f
}

// raw sends bytes and returns all that comes back until the connection ends or nothing more comes.
func (f *fort) raw(text string) string {
	f.t.Helper()
	return f.rawWithin(1500*time.Millisecond, text)
}

func (f *fort) rawWithin(patience time.Duration, text string) string {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, text) }() // it may well take no more than a part
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	said, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
	return string(said)
}

func (f *fort) ask(body io.Reader, headers ...string) (status int, text string, err error) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.addr+"/v1/messages", body)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<30))
	return resp.StatusCode, string(said), err
}

// alive makes a healthy call, and holds that nothing is left of the others.
func (f *fort) alive() {
	f.t.Helper()
	status, text, err := f.ask(strings.NewReader(strings.Replace(message, "claude-sonnet-5-5", "healthy", 1)))
	if status != 200 || text != answer || err != nil {
		f.t.Errorf("a healthy call afterwards: %d %.300s %v", status, text, err)
	}
	for range 100 {
		if f.gateway.InFlight() == 0 {
			return
		}
		runtime.Gosched()
		<-time.After(20 * time.Millisecond)
	}
	f.t.Errorf("%d calls are in flight", f.gateway.InFlight())
}

// heap runs something and returns how much the heap had grown at most.
func heap(work func()) (grown int64) {
	runtime.GC()
	var start runtime.MemStats
	runtime.ReadMemStats(&start)
	done, told := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, int64(now.HeapAlloc)-int64(start.HeapAlloc))
			select {
			case <-done:
				told <- most
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	work()
	close(done)
	return <-told
}

// Two requests in one, as two readers would understand it differently.
func TestSmuggledRequests(t *testing.T) {
	t.Parallel()
	f := newFort(t, nil, nil)
	const inner = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	post := func(headers, body string) string {
		return "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n" + body
	}
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(message), message)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(message))
	for _, c := range []struct {
		name, text string
		refused    bool // at once, and nothing of it is sent
	}{
		{"TE and CL", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", chunked), false},
		{"CL and TE, with a request behind", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", len("0\r\n\r\n"+inner)) + "\r\n0\r\n\r\n" + inner, false},
		{"two lengths", post(length+"Content-Length: 3\r\n", message), true},
		{"a list of lengths", post("Content-Length: 3, 4\r\n", message), true},
		{"a length with a sign", post("Content-Length: +3\r\n", "abc"), true},
		{"a negative length", post("Content-Length: -1\r\n", message), true},
		{"a length above all", post("Content-Length: 99999999999999999999\r\n", message), true},
		{"an unknown TE", post("Transfer-Encoding: xchunked\r\n"+length, message), true},
		{"a list of TE", post("Transfer-Encoding: chunked, identity\r\n", chunked), true},
		{"two TE", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunked), true},
		{"TE with a space", post("Transfer-Encoding : chunked\r\n"+length, message), true},
		{"TE with a tab", post("Transfer-Encoding:\x0bchunked\r\n"+length, message), true},
		{"a folded header", post("X-A: 1\r\n Transfer-Encoding: chunked\r\n"+length, message), false},
		{"a NUL in a header", post("X-A: a\x00b\r\n"+length, message), true},
		{"a name with a space", post("X A: 1\r\n"+length, message), true},
		{"no name", post(": 1\r\n"+length, message), true},
		{"a lone CR", post("X-A: 1\rTransfer-Encoding: chunked\r\n"+length, message), true},
		{"a bare LF in the head", strings.ReplaceAll(post(length, ""), "\r\n", "\n") + message, false},
		{"a size that is none", post("Transfer-Encoding: chunked\r\n", "xyz\r\n"+message+"\r\n0\r\n\r\n"), true},
		{"a size above all", post("Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\n"+message+"\r\n0\r\n\r\n"), true},
		{"a negative size", post("Transfer-Encoding: chunked\r\n", "-1\r\n"+message+"\r\n0\r\n\r\n"), true},
		{"a chunk longer than its size", post("Transfer-Encoding: chunked\r\n", "3\r\n"+message+"\r\n0\r\n\r\n"), true},
		{"an endless chunk extension", post("Transfer-Encoding: chunked\r\n", "3;"+strings.Repeat("a", 1<<20)+"\r\nabc\r\n0\r\n\r\n"), true},
		{"many chunk extensions", post("Transfer-Encoding: chunked\r\n", strings.Repeat("1;"+strings.Repeat("e", 3000)+"\r\na\r\n", 400)+"0\r\n\r\n"), true},
		{"no host", "GET /v1/models HTTP/1.1\r\n\r\n", true},
		{"two hosts", "GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", true},
		{"a method that is none", "GE T /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", true},
		{"an unknown version", "GET /v1/models HTTP/9.9\r\nHost: localhost\r\n\r\n", true},
		{"a body with a GET", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " + fmt.Sprint(len(inner)) + "\r\n\r\n" + inner, false},
		{"CRLF in a path", "GET /v1/mod%0d%0aX-Evil:%201 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", false},
		{"an absolute address", "GET http://evil.test/v1/models HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", false},
		{"CONNECT", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", true},
		{"a huge header", post("X-A: "+strings.Repeat("a", 200<<10)+"\r\n"+length, message), true},
		{"many headers", post(strings.Repeat("X-A: aaaaaaaaaaaaaaaa\r\n", 20_000)+length, message), true},
		{"noise", strings.Repeat("\x00\xff\x16\x03\x01", 4000), true},
	} {
		before := f.requests.Load()
		said := f.raw(c.text)
		sent := f.requests.Load() - before
		status, _, _ := strings.Cut(strings.TrimPrefix(said, "HTTP/1.1 "), " ")
		if c.refused && (sent != 0 || said != "" && status < "400") || sent > 1 || f.smuggled.Load() != 0 {
			t.Errorf("%s: %d requests reached the upstream, the caller got %.200q", c.name, sent, said)
		}
		if strings.Count(said, "HTTP/1.1 2") > 1 {
			t.Errorf("%s: two answers", c.name)
		}
	}
	f.alive()
}

// Bodies that are meant to break whoever reads them, where the model must be replaced.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	f := newFort(t, nil, func(s *gateway.Settings) { s.Routes[1].Chain[0].Model = "other" })
	deep := func(open, end string) string { return strings.Repeat(open, 100_000) + strings.Repeat(end, 100_000) }
	for name, body := range map[string]string{
		"deep arrays":         `{"model":"m","messages":` + deep("[", "]") + `}`,
		"deep objects":        `{"model":"m","messages":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + `}`,
		"deep and not closed": `{"model":"m","messages":` + strings.Repeat("[", 1_000_000),
		"the model twice":     `{"model":"m","max_tokens":1,"model":"n"}`,
		"the model escaped":   `{"mod\u0065l":"m","max_tokens":1}`,
		"both":                `{"mod\u0065l":"m","model":"n"}`,
		"the model inside":    `{"metadata":{"model":"x"},"model":"m","messages":[{"model":"y"}]}`,
		"invalid UTF-8":       "{\"model\":\"m\",\"x\":\"\xff\xfe\xc3\"}",
		"a lone surrogate":    `{"model":"m","x":"\ud800"}`,
		"NUL bytes":           "{\"model\":\"m\"}\x00\x00\x00",
		"a byte order mark":   "\xEF\xBB\xBF{\"model\":\"m\"}",
		"many members":        `{"model":"m",` + strings.Repeat(`"a":1,`, 500_000) + `"b":2}`,
		"a huge number":       `{"model":"m","max_tokens":` + strings.Repeat("9", 1_000_000) + `}`,
		"a number as model":   `{"model":5}`,
		"a list":              `[{"model":"m"}]`,
		"two documents":       `{"model":"m"}{"model":"n"}`,
	} {
		var status int
		var text string
		var err error
		began := time.Now()
		grown := heap(func() { status, text, err = f.ask(strings.NewReader(body)) })
		if err != nil || status != 200 && status != 400 || grown > 150<<20 || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %d %.200s %v, %d MB, after %v", name, status, text, err, grown>>20, time.Since(began))
		}
		f.mu.Lock()
		last := f.bodies[len(f.bodies)-1]
		f.mu.Unlock()
		var asked struct{ Model any }
		if json.Unmarshal([]byte(last), &asked) == nil && strings.Contains(body, `"m"`) && body[0] == '{' && asked.Model != "other" {
			t.Errorf("%s: the upstream was asked for %v", name, asked.Model)
		}
		if (asked.Model == "m" || asked.Model == "n") && body[0] == '{' {
			t.Errorf("%s: the caller's model went through", name)
		}
	}
	f.alive()
}

// noise is a body of JSON of a given size, made as it is read.
func noise(size int) io.Reader {
	line := strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"`)
	return io.MultiReader(line, io.LimitReader(repeat("lorem ipsum "), int64(size)), strings.NewReader(`"}]}`))
}

type repeat string

func (r repeat) Read(p []byte) (int, error) {
	n := copy(p, r)
	for n < len(p) {
		n += copy(p[n:], p[:n])
	}
	return n, nil
}

// A body of 100 MB is kept in a file, one above the limit is refused, and one that never ends too.
func TestLargeBodies(t *testing.T) {
	f := newFort(t, nil, func(s *gateway.Settings) { s.MaxBody = 150 << 20 })
	var status int
	var text string
	var err error
	if grown := heap(func() { status, text, err = f.ask(noise(100 << 20)) }); status != 200 || err != nil || grown > 64<<20 {
		t.Errorf("100 MB: %d %.200s %v, the heap grew by %d MB", status, text, err, grown>>20)
	}
	if grown := heap(func() { status, text, err = f.ask(noise(10 << 30)) }); status != 413 && err == nil || grown > 64<<20 {
		t.Errorf("10 GB: %d %.200s %v, the heap grew by %d MB", status, text, err, grown>>20)
	}
	if n := f.requests.Load(); n != 1 {
		t.Errorf("%d requests reached the upstream", n)
	}
	said := f.raw("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000000000\r\nExpect: 100-continue\r\n\r\n")
	if !strings.HasPrefix(said, "HTTP/1.1 413") || !strings.Contains(said, "max_body") {
		t.Errorf("a length above the limit: %.300s", said)
	}
	f.alive()
}

// A caller who does not send his body is told so, whoever he is, and his connection is closed.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	f := newFort(t, nil, nil)
	locked := newFort(t, nil, func(s *gateway.Settings) {
		s.Clients = []gateway.Client{{Name: "x", KeySHA256: strings.Repeat("0", 64)}}
	})
	const begun = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
	for _, c := range []struct {
		name, text, status, reason string
		at                         *fort
	}{
		{"a part of the body", begun + "Content-Length: 100\r\n\r\n{\"model\"", "408", "slow-body", f},
		{"nothing of it", begun + "Content-Length: 100\r\n\r\n", "408", "slow-body", f},
		{"a part of a chunk", begun + "Transfer-Encoding: chunked\r\n\r\n100\r\n{", "408", "slow-body", f},
		{"a large body", begun + "Content-Length: 100000000\r\n\r\n{", "408", "slow-body", f},
		{"no key", begun + "Content-Length: 100\r\n\r\n", "401", "client-key", locked},
		{"no key and chunks", begun + "Transfer-Encoding: chunked\r\n\r\n", "401", "client-key", locked},
	} {
		said := c.at.rawWithin(20*time.Second, c.text)
		if !strings.HasPrefix(said, "HTTP/1.1 "+c.status) || !strings.Contains(said, c.reason) || c.at.requests.Load() != 0 {
			t.Errorf("%s: got %.300q, and %d requests were sent", c.name, said, c.at.requests.Load())
		}
	}
	f.alive()
}

// A caller who closes his half of the connection has left, as far as net/http knows. What he reads must not look like an
// empty answer.
func TestHalfClosedConnectionsGetNoFalseAnswer(t *testing.T) {
	t.Parallel()
	f := newFort(t, delayed(10*time.Second, good), nil)
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(message), message)
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if said, _ := io.ReadAll(conn); len(said) != 0 {
		t.Errorf("got %.200q", said)
	}
	f.alive()
}

// flood writes the same again and again until nobody takes it.
func flood(w http.ResponseWriter, r *http.Request, text string) {
	piece := bytes.Repeat([]byte(text), max(1, 64<<10/len(text)))
	for r.Context().Err() == nil {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// bomb is a gzip body that unpacks to 2 GB, of 2 MB: the same member again and again.
func bomb(w http.ResponseWriter, r *http.Request, kind, begin, text string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(zipped(begin))
	member := zipped(strings.Repeat(text, 1<<20/len(text)))
	for range 2000 {
		if _, err := w.Write(member); err != nil || r.Context().Err() != nil {
			return
		}
	}
}

func zipped(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return out.Bytes()
}

// What an upstream, or whoever has taken its place, may send without end.
func TestHostileUpstreams(t *testing.T) {
	events := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	for _, c := range []struct {
		name   string
		stream bool
		play   http.HandlerFunc
		status int // 0: any, but it ends with an error
	}{
		{"a line without an end", true, func(w http.ResponseWriter, r *http.Request) { events(w); flood(w, r, "data: x") }, 0},
		{"a line without an end behind content", true, func(w http.ResponseWriter, r *http.Request) {
			events(w)
			_, _ = io.WriteString(w, start+block+hello)
			flood(w, r, "data: x")
		}, 0},
		{"comments without an end", true, func(w http.ResponseWriter, r *http.Request) { events(w); flood(w, r, ": still here\n\n") }, 0},
		{"pings without an end", true, func(w http.ResponseWriter, r *http.Request) {
			events(w)
			_, _ = io.WriteString(w, start+block+hello)
			flood(w, r, ping)
		}, 0},
		{"an event of many lines without an end", true, func(w http.ResponseWriter, r *http.Request) { events(w); flood(w, r, "data: more\n") }, 0},
		{"blank lines without an end", true, func(w http.ResponseWriter, r *http.Request) { events(w); flood(w, r, "\n") }, 0},
		{"a packed stream", true, func(w http.ResponseWriter, r *http.Request) { bomb(w, r, "text/event-stream", start, ": x\n\n") }, 0},
		{"a packed line", true, func(w http.ResponseWriter, r *http.Request) { bomb(w, r, "text/event-stream", start, "data: x") }, 0},
		{"a packed answer", false, func(w http.ResponseWriter, r *http.Request) { bomb(w, r, "application/json", `{"x":"`, "zzzz") }, 200}, // the caller asked for it packed, and gets it so
		{"a packed error", false, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(400)
			bomb(w, r, "application/json", `{"x":"`, "zzzz")
		}, 400},
		{"an error without an end", false, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); flood(w, r, "no ") }, 500},
		{"a header of 10 MB", false, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 10<<20))
			_, _ = io.WriteString(w, answer)
		}, 502},
		{"many headers", false, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100_000 {
				w.Header().Set(fmt.Sprint("X-", i), "aaaaaaaaaaaaaaaaaaaaaaaa")
			}
			_, _ = io.WriteString(w, answer)
		}, 502},
		{"interim replies without an end", false, func(w http.ResponseWriter, r *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			for {
				if _, err := out.WriteString("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"); err != nil || out.Flush() != nil {
					return
				}
			}
		}, 502},
		{"a reply that is no HTTP", false, func(w http.ResponseWriter, _ *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = out.WriteString(strings.Repeat("SSH-2.0-x ", 1000))
				_ = out.Flush()
				_ = conn.Close()
			}
		}, 502},
		{"two lengths", false, func(w http.ResponseWriter, _ *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\n" + answer)
				_ = out.Flush()
				_ = conn.Close()
			}
		}, 502},
		{"a header split by the upstream", false, func(w http.ResponseWriter, _ *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = out.WriteString("HTTP/1.1 200 OK\r\nX-A: 1\rX-Evil: 1\r\nContent-Length: 2\r\n\r\n{}")
				_ = out.Flush()
				_ = conn.Close()
			}
		}, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			for word, delivery := range deliveries {
				if !c.stream && delivery == gateway.Whole {
					continue
				}
				f := newFort(t, c.play, func(s *gateway.Settings) { s.Stream.Delivery = delivery; s.Policy.Deadline = 20 * time.Second })
				body := message
				if c.stream {
					body = streamed(message)
				}
				var status int
				var ended bool
				var end []byte
				began := time.Now()
				grown := heap(func() { status, end, ended = f.drain(body) })
				took := time.Since(began)
				if grown > 256<<20 || took > 40*time.Second {
					t.Errorf("%s: the heap grew by %d MB in %v", word, grown>>20, took)
				}
				failed := status >= 400 || !ended || bytes.Contains(end, []byte("event: error\n"))
				if c.status == 0 && !failed || c.status != 0 && status != c.status {
					t.Errorf("%s: it ended with %d, %v, %.300s", word, status, ended, end)
				}
				f.alive()
			}
		})
	}
}

// drain reads a reply without keeping it, and returns its end.
func (f *fort) drain(body string) (status int, end []byte, whole bool) {
	req, _ := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.addr+"/v1/messages", strings.NewReader(body))
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Error(err)
		return 0, nil, false
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		end = append(end, buffer[:n]...)
		if len(end) > 4096 {
			end = append([]byte(nil), end[len(end)-2048:]...)
		}
		if err != nil {
			return resp.StatusCode, end, err == io.EOF
		}
	}
}
