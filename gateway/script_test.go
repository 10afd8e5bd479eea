package gateway_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// script is an upstream that plays one handler for each request, the last one for all that follow, and notes what came.
type script struct {
	play []http.HandlerFunc

	mu       sync.Mutex
	arrivals []arrival
}

type arrival struct {
	at   time.Time
	body string
	head http.Header
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	play := s.play[min(len(s.arrivals), len(s.play)-1)]
	s.arrivals = append(s.arrivals, arrival{time.Now(), string(body), r.Header})
	s.mu.Unlock()
	play(w, r)
}

func (s *script) seen() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]arrival(nil), s.arrivals...)
}

// scripted is an upstream with a script.
func (h *house) scripted(name string, play ...http.HandlerFunc) *script {
	h.t.Helper()
	s := &script{play: play}
	h.Serve(h.t, name+".test:80", s)
	return s
}

// respond is a reply with a body of JSON, unless a header says otherwise.
func respond(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// packed is a reply whose body is compressed.
func packed(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var text strings.Builder
		z := gzip.NewWriter(&text)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
		respond(status, text.String(), append(headers, "Content-Encoding: gzip")...)(w, r)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// delayed lets time pass before the reply.
func delayed(d time.Duration, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			then(w, r)
		case <-r.Context().Done():
		}
	}
}

const (
	completion = `{"id":"c","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`
	fine       = start + block + hello + stopped + over
	fineChunks = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
)

// good answers as it was asked: in the dialect of the path, as JSON or as a stream.
func good(w http.ResponseWriter, r *http.Request) {
	stream := strings.Contains(r.Header.Get("Accept"), "event-stream")
	switch messages := strings.HasSuffix(r.URL.Path, "/messages"); {
	case messages && stream:
		parts(fine)(w, r)
	case stream:
		parts(fineChunks)(w, r)
	case messages:
		respond(200, answer)(w, r)
	default:
		respond(200, completion)(w, r)
	}
}

const wantsStream = "Accept: text/event-stream"
