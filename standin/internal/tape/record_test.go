package tape_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"holdfast/internal/testnet"
	"holdfast/standin"
	"holdfast/standin/internal/tape"
)

const (
	question       = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hello there"}]}`
	streamQuestion = `{"model":"m","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hello there"}]}`
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reel is what a recorder writes to.
type reel struct {
	mu sync.Mutex
	bytes.Buffer
}

func (r *reel) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Buffer.Write(p)
}

// studio is an upstream and its recorder in a network of their own.
type studio struct {
	t        *testing.T
	net      *testnet.Network
	client   *http.Client
	recorder *tape.Recorder
	reel     *reel
	url      string
}

func record(t *testing.T, upstream http.Handler, o tape.Options) *studio {
	t.Helper()
	s := &studio{t: t, net: testnet.New(), reel: &reel{}}
	s.net.Serve(t, "api.test", upstream)
	o.Transport = &http.Transport{DialContext: s.net.Dial, DisableCompression: true}
	t.Cleanup(o.Transport.(*http.Transport).CloseIdleConnections)
	o.Break = func(c net.Conn) { c.(*testnet.Conn).Reset() }
	var err error
	if s.recorder, err = tape.NewRecorder(&url.URL{Scheme: "http", Host: "api.test"}, s.reel, o); err != nil {
		t.Fatal(err)
	}
	s.url = s.net.Serve(t, "recorder.test", s.recorder).URL
	s.client = s.net.Client()
	s.client.Transport.(*http.Transport).DisableCompression = true
	return s
}

// tape closes the recorder and reads what it has kept.
func (s *studio) tape() *tape.Tape {
	s.t.Helper()
	synctest.Wait() // a client has its reply before the handler has ended
	if err := s.recorder.Close(); err != nil {
		s.t.Fatal(err)
	}
	played, err := tape.Read(bytes.NewReader(s.reel.Bytes()))
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.reel.String())
	}
	return played
}

// play serves a tape without any fault and returns its base URL.
func (s *studio) play(played *tape.Tape, speed float64, byEvent bool) string {
	deck := tape.NewDeck(played)
	return s.net.Serve(s.t, "player.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x, ok := deck.Next(tape.Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Digest: digest(string(body))})
		if !ok {
			http.Error(w, "not on the tape", http.StatusNotFound)
			return
		}
		p := x.Play(speed)
		if byEvent {
			if p, ok = x.PlayEvents(speed); !ok {
				http.Error(w, "no event stream", http.StatusInternalServerError)
				return
			}
			for _, e := range p.Events {
				p.Pieces = append(p.Pieces, e.Piece)
			}
		}
		give(w, r, p)
	})).URL
}

func give(w http.ResponseWriter, r *http.Request, p tape.Playback) {
	flush := http.NewResponseController(w).Flush
	time.Sleep(p.Before)
	if p.Status != 0 {
		for name, values := range p.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(p.Status)
		_ = flush()
	}
	for _, piece := range p.Pieces {
		time.Sleep(piece.Wait)
		_, _ = w.Write(piece.Data)
		_ = flush()
	}
	if p.Status != 0 {
		time.Sleep(p.After)
	}
	switch {
	case p.By == tape.Client:
		<-r.Context().Done()
	case p.End == tape.Reset:
		testnet.ConnOf(r).Reset()
	case p.End == tape.Cut:
		panic(http.ErrAbortHandler)
	}
}

// seen is what a client sees of a reply.
type seen struct {
	Status int
	Body   string
	Began  time.Duration
	Times  []time.Duration // at which something came
	Ended  time.Duration
	Err    string // a class of errors
}

func (s *studio) post(base, path, body string, header ...string) (seen, http.Header) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("x-api-key", canary)
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("content-type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	start, got := time.Now(), seen{}
	res, err := s.client.Do(req)
	if err != nil {
		return seen{Err: class(err), Ended: time.Since(start)}, nil
	}
	defer res.Body.Close()
	got.Status, got.Began = res.StatusCode, time.Since(start)
	for buffer := make([]byte, 64<<10); ; {
		n, err := res.Body.Read(buffer)
		got.Body += string(buffer[:n])
		if at := time.Since(start); n > 0 && !slices.Contains(got.Times, at) {
			got.Times = append(got.Times, at)
		}
		if err != nil {
			got.Err, got.Ended = class(err), time.Since(start)
			return got, res.Header
		}
	}
}

func class(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, io.EOF):
		return "end"
	}
	return err.Error()
}

// What a client gets of a tape is what it got while it was recorded, to the byte
// and to the nanosecond; and what it got then is what it gets without a recorder.
func TestRecordingAndReplayAreTheSameToAClient(t *testing.T) {
	ok := func(gap time.Duration) standin.Step { return standin.Step{Kind: standin.OK, Gap: gap} }
	tests := []struct {
		name, path, body string
		step             standin.Step
		end              tape.End
		by               tape.Closer
		frames           int // 0: not counted, several come at once
	}{
		{"JSON", "/v1/messages", question, ok(0), tape.Complete, "", 1},
		{"JSON after a delay", "/v1/messages", question, standin.Step{Delay: 1234567 * time.Nanosecond}, tape.Complete, "", 1},
		{"stream", "/v1/messages", streamQuestion, ok(1500*time.Millisecond + 1), tape.Complete, "", 0},
		{"chat stream", "/v1/chat/completions", streamQuestion, ok(time.Second), tape.Complete, "", 0},
		{"429", "/v1/messages", question, standin.Step{Kind: standin.HTTP, Status: 429, RetryAfter: "7"}, tape.Complete, "", 1},
		{"empty", "/v1/messages", question, standin.Step{Kind: standin.Empty}, tape.Complete, "", 0},
		{"error in the stream", "/v1/messages", streamQuestion, standin.Step{Kind: standin.Error, After: 2, Gap: time.Second}, tape.Complete, "", 0},
		{"clean cut", "/v1/messages", streamQuestion, standin.Step{Kind: standin.Cut, After: 3, Gap: time.Second}, tape.Complete, "", 0},
		{"cut", "/v1/messages", streamQuestion, standin.Step{Kind: standin.Cut, How: standin.Chunk, After: 3, Gap: time.Second, Torn: standin.TornFrame}, tape.Cut, tape.Upstream, 0},
		{"cut JSON", "/v1/messages", question, standin.Step{Kind: standin.Cut, How: standin.Chunk}, tape.Cut, tape.Upstream, 0},
		{"reset before the headers", "/v1/messages", question, standin.Step{Kind: standin.Reset, Delay: time.Second}, tape.Reset, tape.Upstream, 0},
		{"timeout", "/v1/messages", question, standin.Step{Kind: standin.Timeout}, tape.Cut, tape.Client, 0},
		{"stall", "/v1/messages", streamQuestion, standin.Step{Kind: standin.Cut, How: standin.Silence, After: 2, Gap: time.Second}, tape.Cut, tape.Client, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := standin.Plan{Steps: []standin.Step{test.step, test.step}}
				s := record(t, standin.New(plan), tape.Options{})
				direct, _ := s.post("http://api.test", test.path, test.body)
				recorded, header := s.post(s.url, test.path, test.body)
				recorded.Body = strings.ReplaceAll(recorded.Body, "standin_000002", "standin_000001")
				if diff := cmp.Diff(direct, recorded); diff != "" {
					t.Errorf("the recorder changes what passes (-direct +recorded):\n%s", diff)
				}
				recorded.Body = strings.ReplaceAll(recorded.Body, "standin_000001", "standin_000002")
				synctest.Wait()
				played := s.tape()
				if len(played.Exchanges) != 1 {
					t.Fatalf("%d exchanges on the tape", len(played.Exchanges))
				}
				x := played.Exchanges[0]
				if x.End != test.end || x.By != test.by {
					t.Errorf("recorded as %q by %q, want %q by %q", x.End, x.By, test.end, test.by)
				}
				if test.frames > 0 && len(x.Frames) != test.frames {
					t.Errorf("%d frames, want %d", len(x.Frames), test.frames)
				}
				replayed, again := s.post(s.play(played, 1, false), test.path, test.body)
				if diff := cmp.Diff(recorded, replayed); diff != "" {
					t.Errorf("the replay differs (-recorded +replayed):\n%s", diff)
				}
				for _, name := range []string{"Content-Type", "Content-Length", "Retry-After", "Request-Id"} {
					if header.Get(name) != again.Get(name) {
						t.Errorf("%s: recorded %q, replayed %q", name, header.Get(name), again.Get(name))
					}
				}
			})
		})
	}
}

func TestFramesAreTheReadsOfTheRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 40
		s := record(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("content-type", "text/event-stream")
			for i := range pieces {
				time.Sleep(time.Duration(i) * time.Millisecond)
				fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
			}
		}), tape.Options{})
		s.post(s.url, "/v1/messages", question)
		x := s.tape().Exchanges[0]
		if len(x.Frames) != pieces {
			t.Fatalf("%d frames, want %d", len(x.Frames), pieces)
		}
		at := time.Duration(0)
		for i, f := range x.Frames {
			at += time.Duration(i) * time.Millisecond
			if f.At != at || string(f.Data) != fmt.Sprintf("data: %d\n\n", i) {
				t.Errorf("frame %d is %q at %v, want it at %v", i, f.Data, f.At, at)
			}
		}
		for speed, want := range map[float64]time.Duration{0: 0, 1: at, 2: at / 2, 0.5: 2 * at, -1: 0} {
			total := time.Duration(0)
			for _, p := range x.Play(speed).Pieces {
				total += p.Wait
			}
			if total != want {
				t.Errorf("at speed %v the reply takes %v, want %v", speed, total, want)
			}
		}
	})
}

// Bytes that are no text, and a character that two reads have cut, come back as they were.
func TestBytesThatAreNoTextComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := [][]byte{[]byte("half a \xe2\x82"), []byte("\xac sign \u2028 </script> \ufffd"), {0, 0xff, 0xfe}, []byte("\r\n\"\\")}
		s := record(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, b := range sent {
				_, _ = w.Write(b)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
		}), tape.Options{})
		s.post(s.url, "/v1/messages", question)
		x := s.tape().Exchanges[0]
		if len(x.Frames) != len(sent) {
			t.Fatalf("%d frames, want %d", len(x.Frames), len(sent))
		}
		for i, f := range x.Frames {
			if !bytes.Equal(f.Data, sent[i]) {
				t.Errorf("frame %d is %q, want %q", i, f.Data, sent[i])
			}
		}
	})
}

// An upstream refuses a large request by its headers. The client gets the whole of that reply, as without a recorder.
func TestReplyBeforeTheEndOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := record(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			for range 10 {
				_, _ = io.WriteString(w, "too large; ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
		}), tape.Options{})
		body := strings.Repeat("x", 4<<20)
		direct, _ := s.post("http://api.test", "/v1/messages", body)
		recorded, _ := s.post(s.url, "/v1/messages", body)
		direct.Ended, recorded.Ended = 0, 0 // net/http waits 50 ms at each station for the rest of the request
		if diff := cmp.Diff(direct, recorded); diff != "" || direct.Body != strings.Repeat("too large; ", 10) {
			t.Errorf("the recorder changes what passes (-direct +recorded):\n%s", diff)
		}
		x := s.tape().Exchanges[0]
		if x.End != tape.Complete || len(x.Frames) != 10 || x.Size >= int64(len(body)) || x.Status != 413 {
			t.Errorf("status %d, %q with %d frames, %d bytes of the request", x.Status, x.End, len(x.Frames), x.Size)
		}
	})
}

// The transport looks for more of a request when it has all of it. Once in some thousand calls it did so after the reply
// had begun, found the body closed by net/http, took that for a failed request and cut the reply.
func TestRequestStaysAtItsEndWhileTheReplyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, looks := testnet.New(), 0
		r, err := tape.NewRecorder(&url.URL{Scheme: "http", Host: "api.test"}, io.Discard, tape.Options{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if body, err := io.ReadAll(req.Body); string(body) != question || err != nil {
				t.Errorf("request %q, %v", body, err)
			}
			pieces := 0
			reply := reader(func(p []byte) (int, error) {
				time.Sleep(time.Second) // the piece before has been sent
				if pieces++; pieces > 3 {
					return 0, io.EOF
				}
				looks++
				if n, err := req.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("behind its end the request gives %d, %v", n, err)
				}
				return copy(p, "piece"), nil
			})
			return &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{}, Body: io.NopCloser(reply), Request: req}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		s := &studio{t: t, net: network, client: network.Client()}
		if got, _ := s.post(network.Serve(t, "recorder.test", r).URL, "/v1/messages", question); got.Body != "piecepiecepiece" || looks != 3 {
			t.Errorf("looked %d times, reply %+v", looks, got)
		}
		synctest.Wait()
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type reader func([]byte) (int, error)

func (f reader) Read(p []byte) (int, error) { return f(p) }

func TestRecorderAddsNoHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived http.Header
		var target string
		s := record(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			arrived, target = r.Header.Clone(), r.RequestURI
			w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
			w.Header().Set("x-mark", "1")
			w.WriteHeader(200)
			_, _ = w.Write([]byte("<html>"))
		}), tape.Options{})
		_, header := s.post(s.url, "/v1/messages?beta=true&a;b=%zz", question, "user-agent", "mine/1", "x-forwarded-for", "192.0.2.7")
		if want := (http.Header{"X-Mark": {"1"}, "Content-Length": {"6"}}); !cmp.Equal(header, want) {
			t.Errorf("reply headers: %s", cmp.Diff(want, header))
		}
		want := http.Header{
			"X-Api-Key": {canary}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}, "User-Agent": {"mine/1"},
			"X-Forwarded-For": {"192.0.2.7"}, "Content-Length": {fmt.Sprint(len(question))},
		}
		if !cmp.Equal(arrived, want) {
			t.Errorf("request headers: %s", cmp.Diff(want, arrived))
		}
		if target != "/v1/messages?beta=true&a;b=%zz" {
			t.Errorf("the upstream was asked for %q", target)
		}
	})
}

func TestUnreachableUpstreamIsA502AndNotOnTheTape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := record(t, http.NotFoundHandler(), tape.Options{})
		s.net.Refuse("api.test")
		for range 3 { // on one connection
			got, _ := s.post(s.url, "/v1/messages", question)
			if got.Status != 502 || !strings.Contains(got.Body, `"type":"error"`) {
				t.Errorf("reply %+v", got)
			}
		}
		if n := len(s.tape().Exchanges); n != 0 || s.recorder.Missed() != 3 {
			t.Errorf("%d exchanges, %d missed", n, s.recorder.Missed())
		}
	})
}

// A full disk ends the recording and not the calls, and Close says what is missing.
func TestBrokenTapeBreaksNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		out := &limited{left: 2, err: full} // the head and one exchange
		net := testnet.New()
		net.Serve(t, "api.test", standin.New(standin.Plan{}))
		transport := &http.Transport{DialContext: net.Dial}
		defer transport.CloseIdleConnections()
		r, err := tape.NewRecorder(&url.URL{Scheme: "http", Host: "api.test"}, out, tape.Options{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		s := &studio{t: t, net: net, client: net.Client(), url: net.Serve(t, "recorder.test", r).URL}
		for range 4 {
			if got, _ := s.post(s.url, "/v1/messages", question); got.Status != 200 || got.Err != "end" {
				t.Errorf("reply %+v", got)
			}
			synctest.Wait()
		}
		err = r.Close()
		if !errors.Is(err, full) || !strings.Contains(err.Error(), "not on the tape: 3;") || r.Kept() != 1 {
			t.Errorf("kept %d, error %v", r.Kept(), err)
		}
		if out.calls != 3 {
			t.Errorf("%d writes: it went on writing behind a torn line", out.calls)
		}
	})
}

type limited struct {
	left, calls int
	err         error
}

func (l *limited) Write(p []byte) (int, error) {
	l.calls++
	if l.left--; l.left < 0 {
		return len(p) / 2, l.err
	}
	return len(p), nil
}

func TestRecorderRefusesWhatIsNoUpstream(t *testing.T) {
	for _, u := range []*url.URL{nil, {}, {Scheme: "ftp", Host: "x"}, {Scheme: "http"}} {
		if _, err := tape.NewRecorder(u, io.Discard, tape.Options{}); err == nil {
			t.Errorf("%v was taken", u)
		}
	}
	if _, err := tape.NewRecorder(&url.URL{Scheme: "http", Host: "x"}, &limited{err: io.ErrClosedPipe}, tape.Options{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

// Outside of a bubble: there the race detector of Go 1.26 crashes when two proxies start a timer of no time at once.
func TestThousandRecordingsAtOnce(t *testing.T) {
	const calls = 1000
	network, out := testnet.New(), &reel{}
	network.Serve(t, "api.test", standin.New(standin.Plan{Reply: "It works."}))
	transport := &http.Transport{DialContext: network.Dial, DisableCompression: true}
	defer transport.CloseIdleConnections()
	recorder, err := tape.NewRecorder(&url.URL{Scheme: "http", Host: "api.test"}, out, tape.Options{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	front := network.Start("recorder.test", recorder)
	s := &studio{t: t, net: network, client: network.Client(), recorder: recorder}
	ask := func(i int) string {
		return strings.Replace(streamQuestion, "hello", fmt.Sprintf("hello %d", i), 1)
	}
	var all sync.WaitGroup
	bodies := make([]string, calls)
	for i := range calls {
		all.Go(func() {
			got, _ := s.post(front.URL, "/v1/messages", ask(i))
			bodies[i] = got.Body
		})
	}
	all.Wait()
	front.Close()
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	played, err := tape.Read(&out.Buffer)
	if err != nil || len(played.Exchanges) != calls {
		t.Fatalf("%d exchanges, error %v", len(played.Exchanges), err)
	}
	deck := tape.NewDeck(played)
	for i := range calls {
		x, ok := deck.Next(tape.Request{Method: "POST", Path: "/v1/messages", Digest: digest(ask(i))})
		if !ok {
			t.Fatalf("call %d is not on the tape", i)
		}
		if x.End != tape.Complete || string(x.Reply()) != bodies[i] || bodies[i] == "" {
			t.Fatalf("call %d: %q by %q with %d bytes, the client got %d", i, x.End, x.By, len(x.Reply()), len(bodies[i]))
		}
	}
}
