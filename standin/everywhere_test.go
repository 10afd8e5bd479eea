package standin_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/standin"
)

// operation is one endpoint of the API with a request that it takes. Where BATCH
// or FILE stands in the path it is about one that exists.
type operation struct {
	name, method, path, body string
}

const (
	batchItems = `{"requests":[{"custom_id":"one","params":` + question + `},{"custom_id":"two","params":` + question + `}]}`
	fileForm   = "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nthe content of a file\r\n--cut--\r\n"
)

var operations = []operation{
	{"messages", "POST", "/v1/messages", question},
	{"messages stream", "POST", "/v1/messages", streamQuestion},
	{"count_tokens", "POST", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hello there"}]}`},
	{"batch_create", "POST", "/v1/messages/batches", batchItems},
	{"batch_list", "GET", "/v1/messages/batches", ""},
	{"batch_get", "GET", "/v1/messages/batches/BATCH", ""},
	{"batch_results", "GET", "/v1/messages/batches/BATCH/results", ""},
	{"batch_cancel", "POST", "/v1/messages/batches/BATCH/cancel", ""},
	{"batch_delete", "DELETE", "/v1/messages/batches/BATCH", ""},
	{"model_list", "GET", "/v1/models", ""},
	{"model_get", "GET", "/v1/models/claude-sonnet-5-5", ""},
	{"file_upload", "POST", "/v1/files", fileForm},
	{"file_list", "GET", "/v1/files", ""},
	{"file_get", "GET", "/v1/files/FILE", ""},
	{"file_content", "GET", "/v1/files/FILE/content", ""},
	{"file_delete", "DELETE", "/v1/files/FILE", ""},
	{"chat_completions", "POST", "/v1/chat/completions", question},
	{"chat_completions stream", "POST", "/v1/chat/completions", streamQuestion},
	{"responses", "POST", "/v1/responses", `{"model":"m","input":"hello there"}`},
	{"responses stream", "POST", "/v1/responses", `{"model":"m","stream":true,"input":"hello there"}`},
}

// played marks the requests that get the step of playing.
const played = "x-played"

// playing is a plan whose step goes to the marked requests alone, each of them.
func playing(step standin.Step) standin.Plan {
	return standin.Plan{
		Reply: "one two three four",
		Rules: []standin.Rule{{Match: standin.Match{Header: map[string]string{played: "*"}}, Then: step}},
	}
}

// caller asks a stand-in for operations.
type caller struct {
	t      *testing.T
	client *http.Client
	url    string
	batch  string // that has ended
	file   string
}

// newCaller leaves a batch and a file behind.
func newCaller(t *testing.T, c *http.Client, url string) caller {
	t.Helper()
	all := caller{t: t, client: c, url: url}
	all.batch = all.idOf(operation{"", "POST", "/v1/messages/batches", batchItems})
	all.file = all.idOf(operation{"", "POST", "/v1/files", fileForm})
	for range 2 { // a batch ends at the second look
		all.ask(operation{"", "GET", "/v1/messages/batches/BATCH", ""})
	}
	return all
}

func (c caller) idOf(o operation) string {
	c.t.Helper()
	got := c.ask(o)
	_, rest, _ := strings.Cut(got.body, `"id":"`)
	id, _, found := strings.Cut(rest, `"`)
	if !found || got.status != 200 {
		c.t.Fatalf("%s: %+v", o.path, got)
	}
	return id
}

func (c caller) request(o operation, header ...string) *http.Request {
	c.t.Helper()
	path := strings.NewReplacer("BATCH", c.batch, "FILE", c.file).Replace(o.path)
	req, err := http.NewRequestWithContext(c.t.Context(), o.method, c.url+path, strings.NewReader(o.body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("x-api-key", "good")
	req.Header.Set("anthropic-version", "2023-06-01")
	if strings.HasPrefix(o.body, "--cut") {
		req.Header.Set("content-type", `multipart/form-data; boundary=cut`)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

func (c caller) ask(o operation, header ...string) answered {
	c.t.Helper()
	res, err := c.client.Do(c.request(o, header...))
	if err != nil {
		return answered{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header, string(body), nil, err}
}

// everyStep is each fault in all its forms. A step of silence ends when the client leaves.
func everyStep() (all []standin.Step) {
	all = []standin.Step{
		{}, {Gzip: true, Lines: standin.CRLF, Writes: standin.WriteByte, Between: standin.BetweenUnknown},
		{Gzip: true, Writes: standin.WriteAll}, {Delay: time.Millisecond, FirstToken: time.Millisecond, Gap: time.Millisecond, Ping: time.Millisecond},
		{Kind: standin.HTTP, Status: 204}, {Kind: standin.HTTP, Status: 304}, {Kind: standin.HTTP, Status: 200, Body: "{}"},
		{Kind: standin.RampLimit}, {Kind: standin.Empty}, {Kind: standin.HTML}, {Kind: standin.Timeout}, {Kind: standin.Reset},
		{Kind: standin.SlowHeaders, Gap: time.Millisecond}, {Kind: standin.Lost}, {Kind: standin.Lost, How: standin.Silence}, {Kind: standin.Lost, How: standin.RST},
		{Kind: standin.Refusal, Gzip: true}, {Kind: standin.Truncation}, {Kind: standin.Pause}, {Kind: standin.ContextWindow}, {Kind: standin.StopReason}, {Kind: standin.HalfTool},
		{Kind: standin.Stall, For: time.Millisecond}, {Kind: standin.Stall, After: 1, Ping: 10 * time.Millisecond, Gzip: true},
	}
	for _, form := range []standin.Form{standin.FormJSON, standin.FormHTML, standin.FormText, standin.FormEmpty, standin.FormTruncated, standin.FormOversized} {
		all = append(all, standin.Step{Kind: standin.HTTP, Status: 529, Form: form}, standin.Step{Kind: standin.HTTP, Status: 500, Form: form, Gzip: true})
	}
	for _, limit := range []standin.Cap{standin.CapTier, standin.CapContract, standin.CapOrganization, standin.CapWorkspace, standin.CapLinked, standin.CapBilling} {
		all = append(all, standin.Step{Kind: standin.SpendCap, Cap: limit})
	}
	for _, place := range []standin.Step{{At: standin.First}, {At: standin.Preamble}, {After: 3}, {At: standin.Content}, {At: standin.Stop}} {
		for _, kind := range []standin.Kind{standin.Error, standin.Duplicate, standin.Malformed, standin.Nameless} {
			place.Kind = kind
			all = append(all, place)
		}
		for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST, standin.Silence} {
			for _, torn := range []standin.Tear{"", standin.TornFrame, standin.TornRune} {
				place.Kind, place.How, place.Torn, place.Gzip = standin.Cut, how, torn, torn == ""
				all = append(all, place)
			}
		}
	}
	return all
}

// operationsFor is all operations. Of 4 MiB of an error it is those that tell two errors apart: dialect and stream.
func operationsFor(step standin.Step) []operation {
	if step.Form != standin.FormOversized {
		return operations
	}
	return slices.DeleteFunc(slices.Clone(operations), func(o operation) bool {
		return o.name != "messages" && o.name != "messages stream" && o.name != "chat_completions"
	})
}

func waitsForTheClient(s standin.Step) bool {
	return s.Kind == standin.Timeout || s.How == standin.Silence || s.Kind == standin.Stall && s.For == 0
}

func stepName(s standin.Step) string {
	name := fmt.Sprintf("%s %d %s%s%s %s %d %s %s", s.Kind, s.Status, s.Form, s.Cap, s.Lines, s.At, s.After, s.How, s.Torn)
	if s.Gzip {
		name += " gzip"
	}
	return strings.Join(strings.Fields(name), " ")
}

// TestEveryFaultAtEveryEndpoint plays each fault at each endpoint, and asks at every end
// whether the stand-in is well.
func TestEveryFaultAtEveryEndpoint(t *testing.T) {
	for _, step := range everyStep() {
		t.Run(stepName(step), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, c, url := serve(t, playing(step))
				all := newCaller(t, c, url)
				for _, o := range operationsFor(step) {
					c.Timeout = time.Second
					all.ask(o, played, "yes")
					all.isWell(s, o.name)
				}
			})
		})
	}
}

// isWell expects the newest exchange to be over and the next request to be answered.
func (c caller) isWell(s *standin.Server, after string) {
	c.t.Helper()
	synctest.Wait()
	j := s.Journal()
	if e := j[len(j)-1]; s.Open() != 0 || e.Open() || e.Rule == "" || e.RequestID == "" {
		c.t.Errorf("%s: %d are open; journal %+v", after, s.Open(), e)
	}
	if got := c.ask(operations[0]); got.status != 200 || got.readErr != nil || !strings.Contains(got.body, `"one two three four"`) {
		c.t.Errorf("%s: then an answer was %+v", after, got)
	}
}

// TestEveryFaultOverHTTP2 plays each fault where there is no connection to take over.
func TestEveryFaultOverHTTP2(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := standin.New(standin.Plan{})
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	defer s.Close()
	for _, step := range everyStep() {
		if err := s.SetPlan(playing(step)); err != nil {
			t.Fatal(err)
		}
		all := newCaller(t, server.Client(), server.URL)
		silent := waitsForTheClient(step)
		for _, o := range operationsFor(step) {
			if silent && o.name != "messages stream" || !slices.Contains([]string{"messages", "messages stream", "batch_create", "batch_results"}, o.name) {
				continue // here time is real
			}
			all.client.Timeout = 0
			if silent {
				all.client.Timeout = 30 * time.Millisecond
			}
			got := all.ask(o, played, "yes")
			all.client.Timeout = 0
			if silent && got.err == nil && got.readErr == nil {
				t.Errorf("%s, %s: an end without an end: %+v", stepName(step), o.name, got)
			}
			if got := all.ask(operations[0]); got.status != 200 || got.readErr != nil {
				t.Errorf("%s, %s: then an answer was %+v", stepName(step), o.name, got)
			}
		}
		ended(t, s)
	}
}

// ended waits until no request is open.
func ended(t *testing.T, s *standin.Server) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.Open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests are open", s.Open())
		}
	}
}

// bareWriter is a http.ResponseWriter and nothing more: it can neither flush nor hand over a connection.
type bareWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *bareWriter) Header() http.Header         { return w.header }
func (w *bareWriter) WriteHeader(status int)      { w.status = status }
func (w *bareWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// TestEveryFaultWithoutAConnection calls the handler as tests do that have no server.
func TestEveryFaultWithoutAConnection(t *testing.T) {
	t.Parallel()
	for _, step := range everyStep() {
		for _, o := range operationsFor(step) {
			synctest.Test(t, func(t *testing.T) {
				s := standin.New(playing(step))
				all := caller{t: t, url: "http://api.test", batch: "msgbatch_standin_000001", file: "file_1"}
				for i, w := range []http.ResponseWriter{&bareWriter{header: http.Header{}}, httptest.NewRecorder()} {
					if waitsForTheClient(step) {
						time.AfterFunc(time.Minute, s.Close)
					}
					func() {
						defer func() {
							if p := recover(); p != nil && p != http.ErrAbortHandler {
								t.Errorf("%s, %s: %v", stepName(step), o.name, p)
							}
						}()
						s.ServeHTTP(w, all.request(o, played, "yes"))
					}()
					if e := s.Journal()[i]; s.Open() != 0 || e.Open() || e.Rule == "" {
						t.Errorf("%s, %s: %d open, %+v", stepName(step), o.name, s.Open(), e)
					}
				}
			})
		}
	}
}
