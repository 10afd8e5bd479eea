package gateway_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/gateway"
)

// Streams as they come: what is between the bytes must not matter.

const world = "日本語 und 🙂🙂 é"

var wide = start + block + strings.ReplaceAll(hello, `"hello"`, `"`+world+`"`) + stopped + over

// B68 B69: characters were torn where two writes met.
func TestB68_B69_CharactersSurviveEverySplit(t *testing.T) {
	from := strings.Index(wide, world)
	for at := from; at <= from+len(world); at++ {
		bubble(t, fmt.Sprint(at-from), func(t *testing.T) {
			h := newHouse(t)
			h.handle("api", parts(wide[:at], time.Millisecond, wide[at:]))
			h.open(one("api", ""))
			if r := h.ask("/v1/messages", streamed(message)); r.body != wide {
				t.Errorf("got %s", r.body)
			}
		})
	}
	bubble(t, "B69 4 KB that end inside of a character", func(t *testing.T) {
		many := start + block + strings.Repeat(strings.ReplaceAll(hello, `"hello"`, `"`+world+`"`), 40)
		at := 4000 + strings.Index(many[4000:], "日") + 1
		h := newHouse(t)
		h.handle("api", parts(many[:at], time.Millisecond, many[at:], stopped, over))
		h.open(one("api", ""))
		if r := h.ask("/v1/messages", streamed(message)); r.body != many+stopped+over || strings.Contains(r.body, "\uFFFD") {
			t.Errorf("%d bytes of %d", len(r.body), len(many+stopped+over))
		}
	})
}

// B71: CR and LF in two writes.
func TestB71_SplitsOfCRLF(t *testing.T) {
	whole := strings.ReplaceAll(fine, "\n", "\r\n")
	split := strings.ReplaceAll(whole, "data: {\"type\":\"ping\"", "data: {\r\ndata: \"type\":\"ping\"")
	for at := 1; at < len(split); at++ {
		if split[at-1] != '\r' && split[at] != '\r' {
			continue
		}
		bubble(t, fmt.Sprint(at), func(t *testing.T) {
			h := newHouse(t)
			h.handle("api", parts(split[:at], time.Millisecond, split[at:]))
			h.open(one("api", ""))
			if r := h.ask("/v1/messages", streamed(message)); r.body != split {
				t.Errorf("%q, want %q", r.body, split)
			}
		})
	}
}

// B77: long lines pass up to the limit of 32 MiB, and above it there is an error, not an end.
func TestB77_LongLines(t *testing.T) {
	for _, size := range []int{70_000, 300_000, 4 << 20, 20 << 20, 40 << 20} {
		for word, delivery := range deliveries {
			bubble(t, fmt.Sprint(size, " ", word), func(t *testing.T) {
				long := strings.Replace(hello, `"hello"`, `"`+strings.Repeat("x", size)+`"`, 1)
				h := newHouse(t)
				h.handle("api", parts(start, block, long, stopped, over))
				s := one("api", "")
				s.Stream.Delivery = delivery
				s.Policy.Attempts = -1
				h.open(s)
				r := h.ask("/v1/messages", streamed(message))
				switch whole := r.body == start+block+long+stopped+over; {
				case size < 32<<20 && !whole:
					t.Errorf("%d bytes of %d", len(r.body), len(start+block+long+stopped+over))
				case size < 32<<20:
				case r.StatusCode == 200 && !strings.Contains(r.body, "event: error\n") || strings.Contains(r.body, "message_stop"):
					t.Errorf("above the limit: %d, %d bytes", r.StatusCode, len(r.body))
				case len(r.body) > 1<<20:
					t.Errorf("half of it was handed over: %d bytes", len(r.body))
				}
			})
		}
	}
}

// B78: the last event without its blank line is handed over. B80: a broken event costs only itself, and passes as it came.
func TestOddEvents(t *testing.T) {
	broken := "event: content_block_delta\ndata: {broken\n\n"
	for _, c := range []struct{ name, sent, want string }{
		{"B78 one line feed at the end", start + block + hello + stopped + strings.TrimSuffix(over, "\n"), fine},
		{"B78 nothing at the end", start + block + hello + stopped + strings.TrimSuffix(over, "\n\n"), start + block + hello + stopped + strings.TrimSuffix(over, "\n\n") + "\n\n"},
		{"B80 an event that is no JSON", start + block + hello + broken + hello + stopped + over, start + block + hello + broken + hello + stopped + over},
		{"B74 retry, comment and id alone", start + block + "retry: 1000\n\n: keepalive\n\nid: 7\n\n" + hello + stopped + over, start + block + "retry: 1000\n\n: keepalive\n\nid: 7\n\n" + hello + stopped + over},
		{"B75 comments between events with ids", "id: 1\n" + start + ": ping\n\nid: 2\n" + block + ": ping\n\nid: 3\n" + hello + ": ping\n\n" + stopped + over, "id: 1\n" + start + ": ping\n\nid: 2\n" + block + ": ping\n\nid: 3\n" + hello + ": ping\n\n" + stopped + over},
		{"an unknown event", start + block + "event: tomorrow\ndata: {\"type\":\"tomorrow\"}\n\n" + hello + stopped + over, start + block + "event: tomorrow\ndata: {\"type\":\"tomorrow\"}\n\n" + hello + stopped + over},
		{"a byte order mark", "\xEF\xBB\xBF" + fine, "\xEF\xBB\xBF" + fine},
		{"no names", strings.NewReplacer("event: message_start\n", "", "event: content_block_delta\n", "", "event: message_stop\n", "").Replace(fine), strings.NewReplacer("event: message_start\n", "", "event: content_block_delta\n", "", "event: message_stop\n", "").Replace(fine)},
	} {
		bubble(t, c.name, func(t *testing.T) {
			h := newHouse(t)
			api := h.scripted("api", parts(c.sent))
			h.open(one("api", ""))
			r := h.ask("/v1/messages", streamed(message))
			if r.body != c.want || len(api.seen()) != 1 {
				t.Errorf("%d requests: got\n%q\nwant\n%q", len(api.seen()), r.body, c.want)
			}
			if rec := h.seen.last(t); rec.Outcome != gateway.Answered || rec.Output != 16 {
				t.Errorf("the record is %+v", rec)
			}
		})
	}
}

// B81 B84 B85: packed or not, asked for or not, events come when they are sent.
func TestB81_B84_B85_EventsComeWhenTheyAreSent(t *testing.T) {
	for _, accept := range []string{"", "gzip", "gzip, br", "identity"} {
		for _, zip := range []bool{false, true} {
			bubble(t, fmt.Sprintf("accept %q packed %v", accept, zip), func(t *testing.T) {
				h := newHouse(t)
				h.handle("api", func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if got := r.Header.Get("Accept-Encoding"); got != "" {
						t.Errorf("B84 the upstream was asked for %q", got)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					var out io.Writer = w
					flush := func() { _ = http.NewResponseController(w).Flush() }
					if zip {
						w.Header().Set("Content-Encoding", "gzip")
						z := gzip.NewWriter(w)
						defer func() { _ = z.Close() }()
						out, flush = z, func() { _ = z.Flush(); _ = http.NewResponseController(w).Flush() }
					}
					time.Sleep(500 * time.Millisecond)
					_, _ = io.WriteString(out, start+block)
					for range 60 {
						_, _ = io.WriteString(out, hello)
						flush()
						time.Sleep(250 * time.Millisecond)
					}
					_, _ = io.WriteString(out, stopped+over)
				})
				s := one("api", "")
				s.Base = h.plainBase()
				h.open(s)
				began := time.Now()
				headers := []string{"Accept-Encoding: " + accept}
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/v1/messages", strings.NewReader(streamed(message)))
				if accept != "" {
					req.Header.Set("Accept-Encoding", accept)
				}
				resp, err := h.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if took := time.Since(began); took > 600*time.Millisecond || resp.Header.Get("Content-Encoding") != "" {
					t.Errorf("headers after %v: %v, asked with %v", took, resp.Header, headers)
				}
				var text strings.Builder
				last, reads := time.Now(), 0
				for buffer := make([]byte, 64<<10); ; {
					n, err := resp.Body.Read(buffer)
					if gap := time.Since(last); gap > 260*time.Millisecond {
						t.Errorf("a silence of %v", gap)
					}
					last = time.Now()
					text.Write(buffer[:n])
					if strings.Contains(string(buffer[:n]), "hello") {
						reads++
					}
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if text.String() != start+block+strings.Repeat(hello, 60)+stopped+over || reads < 60 {
					t.Errorf("%d bytes in %d reads", text.Len(), reads)
				}
				synctest.Wait()
				if n := h.gateway.InFlight(); n != 0 {
					t.Errorf("%d calls are in flight", n)
				}
			})
		}
	}
}

// B88: JSON in two pieces, or with an empty last one.
func TestB88_JSONInPieces(t *testing.T) {
	for name, pieces := range map[string][]any{
		"two pieces":    {answer[:40], 50 * time.Millisecond, answer[40:]},
		"an empty last": {answer, 50 * time.Millisecond, ""},
		"byte by byte":  nil,
	} {
		if pieces == nil {
			for i := range len(answer) {
				pieces = append(pieces, answer[i:i+1])
			}
		}
		for _, length := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, " length ", length), func(t *testing.T) {
				h := newHouse(t)
				h.handle("api", func(w http.ResponseWriter, r *http.Request) {
					if length {
						w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
					}
					as := func(w http.ResponseWriter) http.ResponseWriter { return typed{w} }
					parts(pieces...)(as(w), r)
				})
				h.open(one("api", ""))
				if r := h.ask("/v1/messages", message); r.StatusCode != 200 || r.body != answer || r.err != nil {
					t.Errorf("got %d %s %v", r.StatusCode, r.body, r.err)
				}
			})
		}
	}
}

// typed is a reply of JSON from a handler that means a stream.
type typed struct{ http.ResponseWriter }

func (t typed) Write(p []byte) (int, error) {
	t.Header().Set("Content-Type", "application/json")
	return t.ResponseWriter.Write(p)
}

func (t typed) Unwrap() http.ResponseWriter { return t.ResponseWriter }
