package wire_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"holdfast/internal/wire"
)

var seeds = []string{
	``, `{`, `"`, `"\`, `[`, `{"error":`, `{"error":{"code":429}}`, `[{"error":{"status":"UNAVAILABLE"}}]`, `null`, `{"a":}`, `{"a" "b"}`,
	`{"type":"error","error":{"type":"overloaded_error","message":"<b>x</b>"},"request_id":"r"}`,
	`{"error":{"message":"{\"error\":{\"code\":\"context_length_exceeded\"}}"}}`,
	`{"error":{"details":[{"retryDelay":"45.8s"}],"retry_after":"1e9"}}`,
	`{"choices":[{"finish_reason":"error"}],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":10}}}`,
	`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}`,
	"<!DOCTYPE html><html><script>", "\xef\xbb\xbf{}", "\x1f\x8b\x08\x00", "[DONE]",
	`You have reached your specified API usage limits until 9999-99-99`,
	strings.Repeat("[", 300), strings.Repeat(`{"a":`, 300), strings.Repeat(`{"error":`, 300),
}

// checkReply holds for the facts of any answer whatever.
func checkReply(t *testing.T, r wire.Reply) {
	t.Helper()
	if r.Rule == "" || r.Fault.String() == "unknown" {
		t.Errorf("no rule or a fault outside the list: %+v", r)
	}
	if r.Wait < 0 || (r.Wait == 0) != (r.WaitFrom == "") {
		t.Errorf("wait %v from %q", r.Wait, r.WaitFrom)
	}
	if r.Status == 429 && r.Fault == wire.FaultOverflow {
		t.Errorf("a 429 became an overflow by %s", r.Rule)
	}
	for _, text := range []string{r.Message, r.Type, r.Code, r.RequestID} {
		checkScrubbed(t, text, 200)
	}
}

var tagOrKey = regexp.MustCompile(`<[a-zA-Z/!?]|sk-[A-Za-z0-9]{16}|://[^ ]*\?`)

func checkScrubbed(t *testing.T, text string, max int) {
	t.Helper()
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > max || tagOrKey.MatchString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("unfit to be shown: %q", text)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range seeds {
		for _, status := range []int{200, 400, 429, 529} {
			f.Add(status, "3", "application/json", []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter, media string, body []byte) {
		r := wire.Read(status, header("Retry-After", retryAfter, "Content-Type", media, "Request-Id", retryAfter), body, noon)
		checkReply(t, r)
		if r.InBand && (r.Status < 400 || r.Status > 599) {
			t.Errorf("in-band status %d", r.Status)
		}
		if !r.InBand && r.Status != status {
			t.Errorf("status %d became %d", status, r.Status)
		}
	})
}

func FuzzReadEvent(f *testing.F) {
	for _, seed := range seeds {
		f.Add("error", []byte(seed))
		f.Add("throttlingException", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, event string, data []byte) {
		r := wire.ReadEvent(event, data, nil, noon)
		checkReply(t, r)
		if !r.InBand || r.Status < 400 || r.Status > 599 || r.Fault == wire.FaultNone {
			t.Errorf("in-band error is %+v", r)
		}
	})
}

func FuzzWait(f *testing.F) {
	for _, seed := range []string{"", "1", "-1", "1e3", "inf", "NaN", "0x1p4", "1.5", "99999999999999999999", "6m0s", "Mon, 30 Nov 2026 12:00:30 GMT", "2026-11-30T12:00:30Z", "1796040005", "5, 20"} {
		f.Add(seed, seed, []byte(`{"error":{"retry_after":`+seed+`}}`))
	}
	f.Fuzz(func(t *testing.T, value, date string, body []byte) {
		h := http.Header{"Retry-After": {value}, "Retry-After-Ms": {date}, "Date": {date}, "X-Ratelimit-Reset": {value},
			"Anthropic-Ratelimit-Requests-Remaining": {"0"}, "Anthropic-Ratelimit-Requests-Reset": {value}}
		if d, from := wire.Wait(h, body, noon); d < 0 || (d == 0) != (from == "") {
			t.Errorf("Wait(%q) = %v from %q", value, d, from)
		}
	})
}

func FuzzStreamEvent(f *testing.F) {
	for _, seed := range seeds {
		f.Add("content_block_delta", []byte(seed), "error", []byte(seed))
		f.Add("", []byte(seed), "", []byte("[DONE]"))
	}
	f.Fuzz(func(t *testing.T, name1 string, data1 []byte, name2 string, data2 []byte) {
		var s wire.Stream
		first := s.Event(name1, data1)
		second := s.Event(name2, data2)
		failed := first == wire.ProgressError || second == wire.ProgressError
		if failed && s.Complete() {
			t.Error("an error and yet complete")
		}
		if (first == wire.ProgressContent || second == wire.ProgressContent) && !s.Started() {
			t.Error("content and yet not started")
		}
		if (first == wire.ProgressEnd || second == wire.ProgressEnd) && !s.Complete() {
			t.Error("the end and yet not complete")
		}
		if r := s.Reply(nil, noon); failed {
			checkReply(t, r)
		} else if r.Fault != wire.FaultNone {
			t.Errorf("no error and yet %v", r.Fault)
		}
		if tokens, found := s.Tokens(); tokens.Input < 0 || tokens.Output < 0 || tokens.CacheRead < 0 || tokens.CacheWrite < 0 || !found && tokens != (wire.Tokens{}) {
			t.Errorf("tokens %+v, %v", tokens, found)
		}
	})
}

func FuzzUsage(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"usage":{"input_tokens":9223372036854775807,"input_tokens_details":{"cached_tokens":9223372036854775807,"cache_write_tokens":9223372036854775807}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, _ := wire.Usage(body); got.Input < 0 || got.Output < 0 || got.CacheRead < 0 || got.CacheWrite < 0 {
			t.Errorf("tokens %+v", got)
		}
	})
}

func FuzzSafe(f *testing.F) {
	for _, seed := range seeds {
		f.Add("/v1/messages", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		wire.Safe("POST", path, body)
		if wire.Safe("POST", path+"/v1/messages/batches", body) {
			t.Error("a batch may not be created twice")
		}
	})
}

func FuzzScrub(f *testing.F) {
	for _, seed := range append(seeds, "a&lt;b", "<\x00b>", "sk-ant-AAAAAAAAAAAAAAAAAAAAAA", "https://h/x?k=v", "<<b>b>", "&#60;b", "a://?") {
		f.Add(seed, 40)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		checkScrubbed(t, wire.Scrub(text, limit), max(0, limit))
	})
}
