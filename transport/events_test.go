package transport_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"holdfast"
	"holdfast/internal/sse"
	"holdfast/transport"
)

// Pieces of a stream of the other dialect.
const (
	chatRole   = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
	chatChunk  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hé\"}}]}\n\n"
	chatFinish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	chatUsage  = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n"
	chatDone   = "data: [DONE]\n\n"
	chat       = chatRole + chatChunk + chatFinish + chatUsage + chatDone
)

func TestStreamByEventsEndsBehindOne(t *testing.T) {
	const half = len(delta) / 2
	for _, c := range []struct {
		name   string
		path   string
		script http.HandlerFunc
		got    string
		fails  bool
	}{
		{"whole", "/v1/messages", stream(complete), complete, false},
		{"B60 cut in an event", "/v1/messages", stream(begun + delta[:half]), begun, true},
		{"B61 cut in an event by reset", "/v1/messages", then(stream(begun+delta[:half]), reset), begun, true},
		{"B60 cut between events", "/v1/messages", then(stream(begun), abort), begun, true},
		{"cut before the last blank line", "/v1/messages", stream(begun + delta[:len(delta)-1]), begun, true},
		{"stalled in an event", "/v1/messages", then(stream(begun+delta[:half]), hang), begun, true},
		{"B64 torn in the terminal event", "/v1/messages", stream(complete[:len(complete)-14]), complete, false},
		{"B64 torn in its name", "/v1/messages", then(stream(complete[:len(complete)-len(end)+9]), reset), complete, false},
		{"B64 without it", "/v1/messages", stream(begun + stop + reason), complete, false},
		{"B78 without the last blank line", "/v1/messages", stream(complete[:len(complete)-1]), complete, false},
		{"B78 without the last line end", "/v1/messages", stream(complete[:len(complete)-2]), complete, false},
		{"B78 the stop reason without its blank line", "/v1/messages", stream(begun + stop + reason[:len(reason)-1]), complete, false},
		{"B78 in lone CRs", "/v1/messages", stream(strings.ReplaceAll(complete[:len(complete)-1], "\n", "\r")), strings.ReplaceAll(complete[:len(complete)-1], "\n", "\r") + "\n\n", false},
		{"B66 an error event", "/v1/messages", stream(begun, failing), begun + failing, false},
		{"B66 an error event without its blank line", "/v1/messages", stream(begun, failing[:len(failing)-1]), begun + failing, false},
		{"a torn error event", "/v1/messages", stream(begun, failing[:len(failing)-9]), begun, true},
		{"B80 a malformed event", "/v1/messages", stream(preamble, delta, "data: {broken\n\n", delta, stop, reason, end), preamble + delta + "data: {broken\n\n" + delta + stop + reason + end, false},
		{"B74 B75 comments and ids", "/v1/messages", stream("retry: 1000\n\n", ": keepalive\n\n", "id: 7\n\n", complete), "retry: 1000\n\n: keepalive\n\nid: 7\n\n" + complete, false},
		{"something behind the terminal event", "/v1/messages", stream(complete, chatDone), complete + chatDone, false},
		{"a torn something behind it", "/v1/messages", stream(complete, chatDone[:9]), complete, false},
		{"whole, chat", "/v1/chat/completions", stream(chat), chat, false},
		{"B64 without the last mark, chat", "/v1/chat/completions", stream(chatRole + chatChunk + chatFinish), chatRole + chatChunk + chatFinish + chatDone, false},
		{"B64 torn in the last mark, chat", "/v1/chat/completions", then(stream(chat[:len(chat)-5]), reset), chat, false},
		{"B78 without the last blank line, chat", "/v1/chat/completions", stream(chat[:len(chat)-2]), chat, false},
		{"cut, chat", "/v1/chat/completions", stream(chatRole + chatChunk + chatFinish[:30]), chatRole + chatChunk, true},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			policy, verdicts := watched(1)
			resp, err := u.through(&transport.Transport{Policy: policy, Events: true}).Post(u.URL+c.path, "application/json", strings.NewReader(streamPrompt))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := failedRead(resp)
			if got != c.got {
				t.Errorf("got %q\nwant %q", got, c.got)
			}
			if errors.Is(err, holdfast.ErrCut) != c.fails {
				t.Errorf("it ended with %v", err)
			}
			if v := verdicts(); len(v) != 1 || (v[0].Kind != holdfast.OK) != (c.fails || strings.Contains(c.got, "event: error")) {
				t.Errorf("the verdicts are %+v", v)
			}
			u.expect(t, 1)
		})
	}
}

func TestStreamByEventsComesUntouched(t *testing.T) {
	for name, whole := range map[string]string{
		"LF": complete, "CRLF": strings.ReplaceAll(complete, "\n", "\r\n"), "CR": strings.ReplaceAll(complete, "\n", "\r"), "mark": "\xEF\xBB\xBF" + complete,
	} {
		for _, size := range []int{1, 3, 100, len(whole)} {
			bubble(t, name, func(t *testing.T) {
				u := serve(t, stream(cutUp(whole, size)...))
				resp := askStream(t, u.through(&transport.Transport{Events: true}), u.URL)
				var got strings.Builder
				buffer := make([]byte, 64<<10)
				for {
					n, err := resp.Body.Read(buffer)
					got.Write(buffer[:n])
					if read := strings.TrimSuffix(got.String(), "\n"); n > 0 && !strings.HasSuffix(read, "\n") && !strings.HasSuffix(read, "\r") {
						t.Errorf("a read ends with %q", buffer[max(0, n-20):n])
					}
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if got.String() != whole {
					t.Errorf("got %q", got.String())
				}
			})
		}
	}
}

func cutUp(whole string, size int) (pieces []string) {
	for whole != "" {
		n := min(size, len(whole))
		pieces, whole = append(pieces, whole[:n]), whole[n:]
	}
	return pieces
}

func TestB82_PackedStreamByEventsIsUnpacked(t *testing.T) {
	good := gzipped(preamble, delta, delta, stop, reason, end)
	for _, c := range []struct {
		name     string
		first    http.HandlerFunc
		requests int
		got      string
		encoding string
		fails    bool
	}{
		{"whole", encoded("gzip", good...), 1, complete, "", false},
		{"in one byte each", encoded("gzip", cutUp(strings.Join(good, ""), 1)...), 1, complete, "", false},
		{"cut before content", encoded("gzip", good[0]), 2, complete, "", false},
		{"cut behind content", encoded("gzip", good[:3]...), 1, begun, "", true},
		{"cut in its bytes", encoded("gzip", good[0], good[1], good[2][:3]), 1, preamble + delta, "", true},
		{"never packed", encoded("gzip", complete), 1, complete, "", false},
		{"broken", encoded("gzip", good[0]+good[1]+strings.Repeat("\xff", 99)), 1, preamble + delta, "", true},
		{"a kind that is not known", encoded("br", "whatever", "it is"), 1, "whateverit is", "br", false},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, then(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Own", "1") }, c.first), encoded("gzip", good...))
			resp := askPacked(t, u, &transport.Transport{Policy: &holdfast.Policy{Dice: half}, Events: true})
			if got := resp.Header.Get("Content-Encoding"); got != c.encoding || resp.Header.Get("Content-Length") != "" || resp.ContentLength != -1 {
				t.Errorf("content-encoding is %q, content-length %d", got, resp.ContentLength)
			}
			got, err := failedRead(resp)
			if got != c.got || errors.Is(err, holdfast.ErrCut) != c.fails {
				t.Errorf("got %q, ended with %v", got, err)
			}
			u.expect(t, c.requests)
		})
	}
}

// endless is a body of an event that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read == 0 {
		e.read = copy(p, begun+"data: ")
		return e.read, nil
	}
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func TestEventWithoutAnEndIsBounded(t *testing.T) {
	for _, whole := range []bool{false, true} {
		src := &endless{}
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: src}, nil
		})
		tr := &transport.Transport{Base: base, Policy: &holdfast.Policy{Attempts: 1}, Events: true, Whole: whole, MaxAnswer: 2 * sse.DefaultLimit}
		resp := askStream(t, &http.Client{Transport: tr}, "http://api.test")
		got, err := failedRead(resp)
		if !whole && (got != begun || !errors.Is(err, sse.ErrTooLarge) || !errors.Is(err, holdfast.ErrCut)) {
			t.Errorf("got %d bytes, ended with %v", len(got), err)
		}
		if whole && (resp.StatusCode != 502 || !errors.Is(transport.ErrorOf(resp).Err, sse.ErrTooLarge)) {
			t.Errorf("got %d, %v", resp.StatusCode, transport.ErrorOf(resp))
		}
		if src.read > sse.DefaultLimit+128<<10 {
			t.Errorf("%d bytes were read", src.read)
		}
		runtime.GC()
	}
}

func TestB77_HugeEventsPassByEvents(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		whole := preamble + strings.Replace(delta, "hé", strings.Repeat("x", 4<<20), 1) + stop + reason + end
		u := serve(t, stream(whole))
		if got := text(t, askStream(t, u.through(&transport.Transport{Events: true}), u.URL)); got != whole {
			t.Errorf("got %d bytes, want %d", len(got), len(whole))
		}
	})
}

// pieces is a body that gives some bytes per Read.
type pieces struct {
	src  *bytes.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.src.Read(b[:min(len(b), p.size)]) }
func (p *pieces) Close() error               { return nil }

// FuzzEvents cuts a stream anywhere, in any framing, and holds what a reader gets against what was sent.
func FuzzEvents(f *testing.F) {
	for at := range len(complete) + 1 {
		if at%37 == 0 || at > len(complete)-len(end)-len(reason) {
			f.Add(at, uint8(at), uint8(at%3), false, at%2 == 0)
		}
	}
	for at := range len(chat) + 1 {
		if at%17 == 0 || at > len(chat)-len(chatDone) {
			f.Add(at, uint8(at), uint8(at%3), true, at%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, at int, size, framing uint8, openAI, packed bool) {
		whole, path, last := complete, "/v1/messages", "event: message_stop"
		if openAI {
			whole, path, last = chat, "/v1/chat/completions", "data: [DONE]"
		}
		whole = strings.ReplaceAll(whole, "\n", []string{"\n", "\r\n", "\r"}[framing%3])
		whole = whole[:max(0, min(at, len(whole)))]
		sent, header := []byte(whole), http.Header{"Content-Type": {"text/event-stream"}}
		if packed {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write(sent)
			_ = w.Close()
			sent = b.Bytes()
			header.Set("Content-Encoding", "gzip")
		}
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: header.Clone(), Body: &pieces{bytes.NewReader(sent), int(size) + 1}}, nil
		})
		tr := &transport.Transport{Base: base, Policy: &holdfast.Policy{Attempts: 1}, Events: true}
		resp, err := (&http.Client{Transport: tr}).Post("http://api.test"+path, "application/json", strings.NewReader(streamPrompt))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			return // lost before content
		}
		got, err := io.ReadAll(resp.Body)
		r := sse.NewReader(bytes.NewReader(got), 0)
		ended := false
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			if e.Unterminated {
				t.Errorf("the last event of %q is torn", got)
			}
			ended = bytes.Contains(e.Raw, []byte(last))
		}
		if (err == nil) != ended {
			t.Errorf("%q ended with %v", got, err)
		}
		if own := strings.TrimRight(strings.Split(string(got), last)[0], "\r\n"); !strings.HasPrefix(whole, own) {
			t.Errorf("%q is not what was sent", got)
		}
	})
}
