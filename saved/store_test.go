package saved_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/saved"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string, o saved.Options) *saved.Store {
	t.Helper()
	s, err := saved.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// numbered is a question of its own for each n.
func numbered(n int) *saved.Question {
	q := question(messages, false)
	q.Body = fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"%d"}]}`, n)
	return q
}

// saying is a message made at a time.
func saying(text string, at time.Time) *saved.Answer {
	a := asJSON(strings.Replace(goodMessage, "Because.", text, 1))
	a.At = at
	return a
}

func put(t testing.TB, s *saved.Store, q *saved.Question, a *saved.Answer) {
	t.Helper()
	if err := s.Put(t.Context(), q, a); err != nil {
		t.Fatal(err)
	}
}

// text loads an answer and returns the text of its only block, "" when there is none.
func text(t testing.TB, s *saved.Store, q *saved.Question) string {
	t.Helper()
	a, found := s.Load(t.Context(), q)
	if !found {
		return ""
	}
	content := tree(t, string(a.Body)).(map[string]any)["content"].([]any)
	return content[0].(map[string]any)["text"].(string)
}

func TestAnAnswerKeptInOneFormIsGivenInBoth(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", filepath.Join(t.TempDir(), "a b?c#d%25.db")} {
		s := open(t, path, saved.Options{MaxAge: -1})
		for api, whole := range good {
			for _, kept := range []*saved.Answer{asJSON(whole), asStream(stream(t, api, whole))} {
				if err := s.Keep(t.Context(), question(api, true), kept); err != nil {
					t.Fatal(err)
				}
				if err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				a, found := s.Load(t.Context(), question(api, false))
				if !found || a.ContentType != "application/json" || !a.At.Equal(day) {
					t.Fatalf("%s: got %+v, %v", api, a, found)
				}
				b, found := s.Load(t.Context(), question(api, true))
				if !found || b.ContentType != "text/event-stream; charset=utf-8" || string(b.Body) != stream(t, api, whole) {
					t.Fatalf("%s: got %+v, %v", api, b, found)
				}
				if api == messages && (string(a.Body) != goodMessage || a.Model != "claude-sonnet-5-5") {
					t.Errorf("%s of %s", a.Body, a.Model)
				}
			}
		}
		if got := s.Stats(); got.Answers != 3 || got.Keeps != 6 || got.Hits != 12 || got.Misses != 0 || got.Err != nil || got.Bytes < 900 {
			t.Errorf("stats %+v", got)
		}
	}
}

func TestAFresherAnswerTakesThePlaceOfTheOlder(t *testing.T) {
	t.Parallel()
	s := open(t, "", saved.Options{})
	now := time.Now()
	for _, a := range []*saved.Answer{saying("first", now.Add(-2*time.Hour)), saying("second", now.Add(-time.Hour)), saying("late", now.Add(-3*time.Hour))} {
		put(t, s, numbered(1), a)
	}
	if got := text(t, s, numbered(1)); got != "second" {
		t.Errorf("got %q", got)
	}
	before := s.Stats()
	put(t, s, numbered(1), saying("a longer one", time.Time{})) // made now
	if got := text(t, s, numbered(1)); got != "a longer one" {
		t.Errorf("got %q", got)
	}
	if after := s.Stats(); after.Answers != 1 || after.Bytes != before.Bytes+int64(len("a longer one")-len("second")) {
		t.Errorf("%d answers with %d bytes after %d", after.Answers, after.Bytes, before.Bytes)
	}
	if err := s.Put(t.Context(), numbered(1), asJSON(strings.Replace(goodMessage, "end_turn", "max_tokens", 1))); !errors.Is(err, saved.ErrNotGood) {
		t.Errorf("a cut answer: %v", err)
	}
	if got := text(t, s, numbered(1)); got != "a longer one" {
		t.Errorf("a cut answer took the place of a good one: %q", got)
	}
}

// The clock of the bubble stands while SQLite works.
func TestAnAnswerThatIsTooOldIsNeverGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := saved.Open(filepath.Join(t.TempDir(), "answers.db"), saved.Options{MaxAge: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, numbered(1), saying("one", time.Time{}))
		time.Sleep(time.Hour)
		put(t, s, numbered(2), saying("two", time.Time{}))
		if got := text(t, s, numbered(1)); got != "one" {
			t.Errorf("after an hour: %q", got)
		}
		time.Sleep(time.Millisecond)
		if got := text(t, s, numbered(1)); got != "" {
			t.Errorf("after more than an hour: %q", got)
		}
		if got := s.Stats(); got.Answers != 2 || got.Hits != 1 || got.Misses != 1 {
			t.Errorf("before the next keep: %+v", got)
		}
		put(t, s, numbered(2), saying("two", time.Time{}))
		if got := s.Stats(); got.Answers != 1 {
			t.Errorf("after it: %+v", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheOldestGoFirst(t *testing.T) {
	t.Parallel()
	size := func(o saved.Options) int64 {
		s := open(t, "", o)
		put(t, s, numbered(1), saying("1", time.Time{}))
		return s.Stats().Bytes
	}(saved.Options{})
	for name, o := range map[string]saved.Options{"by size": {MaxBytes: 3*size + size/2}, "by number": {MaxAnswers: 3}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "", o)
			start := time.Now().Add(-time.Hour)
			for n, minutes := range []int{5, 1, 4, 2, 3} {
				put(t, s, numbered(n), saying(fmt.Sprint(n), start.Add(time.Duration(minutes)*time.Minute)))
			}
			var left string
			for n := range 5 {
				left += text(t, s, numbered(n))
			}
			if got := s.Stats(); left != "024" || got.Answers != 3 || got.Bytes != 3*size {
				t.Errorf("left are %q, %+v", left, got)
			}
		})
	}
	s := open(t, "", saved.Options{MaxBytes: size + 5})
	put(t, s, numbered(1), saying("1", time.Time{}))
	if err := s.Put(t.Context(), numbered(2), saying("longer than all", time.Time{})); err == nil {
		t.Error("an answer larger than the store was kept")
	}
	if got := s.Stats(); text(t, s, numbered(1)) != "1" || got.Drops != 1 {
		t.Errorf("it pushed the others out: %+v", got)
	}
}

func TestKeepCountsWhatItDoesNotKeep(t *testing.T) {
	t.Parallel()
	s := open(t, "", saved.Options{})
	cut := asJSON(strings.Replace(goodMessage, "end_turn", "max_tokens", 1))
	other := question(messages, false)
	other.Path = "/v1/messages/count_tokens"
	stateful := question(responses, false)
	stateful.Body = []byte(`{"model":"m","input":"Why?","conversation":"conv_1"}`)
	if err := s.Keep(t.Context(), other, asJSON(goodMessage)); !errors.Is(err, saved.ErrQuestion) {
		t.Errorf("a question of another kind: %v", err)
	}
	for _, err := range []error{
		s.Keep(t.Context(), numbered(1), cut),
		s.Keep(t.Context(), stateful, asJSON(goodResponse)),
		s.Keep(t.Context(), question(messages, false), saying("x", time.Time{})),
		s.Flush(t.Context()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Stats(); got.Refused != 3 || got.Keeps != 1 || got.Drops != 0 || got.Answers != 1 {
		t.Errorf("%+v", got)
	}
}

// A gateway uses the memory of a request again as soon as the call is over.
func TestAQuestionIsFreeWhenKeepReturns(t *testing.T) {
	t.Parallel()
	s := open(t, "", saved.Options{})
	const calls = 50
	for n := range calls {
		q := numbered(n)
		if err := s.Keep(t.Context(), q, saying("x", time.Time{})); err != nil {
			t.Fatal(err)
		}
		clear(q.Body)
		clear(q.Header)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range calls {
		if text(t, s, numbered(n)) != "x" {
			t.Errorf("the answer to question %d is not there", n)
		}
	}
}

// A burst costs the callers nothing: what cannot be written in time is counted and dropped, and Close writes the rest.
func TestABurstIsWrittenOrCounted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.db")
	s, err := saved.Open(path, saved.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const callers, each = 8, 100
	var (
		wg   sync.WaitGroup
		full [callers]int64
	)
	for c := range callers {
		wg.Go(func() {
			for n := range each {
				if err := s.Keep(context.Background(), numbered(c*each+n), saying("x", time.Time{})); errors.Is(err, saved.ErrFull) {
					full[c]++
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context(), numbered(1), saying("x", time.Time{})); !errors.Is(err, saved.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
	if err := errors.Join(s.Close(), s.Flush(t.Context())); err != nil {
		t.Error(err)
	}
	var lost int64
	for _, n := range full {
		lost += n
	}
	if got := open(t, path, saved.Options{}).Stats(); int64(got.Answers)+lost != callers*each || got.Answers == 0 {
		t.Errorf("%d written and %d dropped of %d", got.Answers, lost, callers*each)
	}
}

// Two stores on one file are what a gateway and a command are.
func TestSeveralProcessesUseOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.db")
	stores := make([]*saved.Store, 4)
	var wg sync.WaitGroup
	for i := range stores { // made by all at once
		wg.Go(func() {
			s, err := saved.Open(path, saved.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			stores[i] = s
			for n := range 50 {
				if err := s.Put(context.Background(), numbered(i*50+n), saying("x", time.Time{})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, s := range stores {
		if s == nil {
			continue
		}
		if got := s.Stats(); got.Answers != 200 || got.Keeps != 50 || text(t, s, numbered((i*50+75)%200)) != "x" {
			t.Errorf("store %d: %+v", i, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOtherFilesAreLeftAsTheyAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours := filepath.Join(dir, "ours.db")
	s := open(t, ours, saved.Options{})
	for n := range 50 {
		put(t, s, numbered(n), saying(strings.Repeat("x", 500), time.Time{}))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func([]byte)) []byte {
		text := bytes.Clone(whole)
		change(text)
		return text
	}
	for name, row := range map[string]struct {
		text []byte
		why  string
	}{
		"a text":              {[]byte("my diary, of which there is one copy only, longer than the header of a file of SQLite is long: it has 100 bytes"), "not a file of saved answers"},
		"a short text":        {[]byte("hello"), "not a file of saved answers"},
		"another program's":   {changed(func(b []byte) { copy(b[68:], "\x00\x00\x00\x07") }), "not a file of saved answers"},
		"a newer version's":   {changed(func(b []byte) { copy(b[60:], "\x00\x00\x00\x63") }), "newer version"},
		"one that is damaged": {changed(func(b []byte) { copy(b[4096:], bytes.Repeat([]byte("?"), 8192)) }), "it is damaged"},
		"half of one":         {whole[:len(whole)/2], "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(path, row.text, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := saved.Open(path, saved.Options{})
			if err == nil {
				s.Close()
			}
			var e *saved.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), row.why) || !strings.Contains(err.Error(), path) || e.Hint() == "" {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, row.text) {
				t.Errorf("the file has changed, %v", err)
			}
		})
	}
	if _, err := saved.Open(filepath.Join(dir, "no", "such", "folder"), saved.Options{}); err == nil {
		t.Error("a folder was made")
	}
}

// What a caller asks, and the key he asks with, are in no file; nor is what the API repeats of it.
func TestNoFileHoldsAQuestionOrAKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "answers.db"), saved.Options{MaxAge: -1})
	const canary = "CANARY-3f9b"
	for path, whole := range good {
		q := question(path, false)
		q.Path = "/" + canary + path + "?key=" + canary
		q.Header.Set("X-Api-Key", canary)
		q.Header.Set("Authorization", "Bearer "+canary)
		q.Header.Set("Anthropic-Beta", canary)
		q.Body = []byte(strings.ReplaceAll(`{"model":"m","stream_options":{"include_usage":true},"instructions":"C","input":"C","messages":[{"role":"user","content":"C"}],"metadata":{"user_id":"C"},"user":"C","tools":[{"name":"C"}],"prompt":{"id":"C"}}`, `"C"`, `"`+canary+`"`))
		echoed := strings.TrimSuffix(whole, "}") + strings.ReplaceAll(`,"instructions":"C","input":"C","metadata":{"user_id":"C"},"user":"C","tools":[{"name":"C"}],"prompt":{"id":"C"},"safety_identifier":null}`, `"C"`, `"`+canary+`"`)
		for _, a := range []*saved.Answer{asJSON(echoed), asStream(events(t, q, echoed))} {
			put(t, s, q, a)
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(files) < 2 {
				t.Fatalf("the store has %d files, %v", len(files), err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil || bytes.Contains(content, []byte(canary)) {
					t.Errorf("%s: %s holds a question, %v", path, filepath.Base(file), err)
				}
				if info, err := os.Stat(file); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o600) {
					t.Errorf("%s has mode %v, %v", file, info.Mode(), err)
				}
			}
			got, found := s.Load(t.Context(), q)
			if !found {
				t.Fatalf("%s: not found", path)
			}
			sameJSON(t, "what the API repeats comes back with the question", echoed, string(got.Body))
		}
	}
}

// events returns an answer as the stream that a question asks for.
func events(t *testing.T, q *saved.Question, text string) string {
	t.Helper()
	asks := *q
	asks.Stream = true
	a, err := saved.Give(&asks, asJSON(text), false)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Body)
}

func TestDropForgets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "answers.db"), saved.Options{})
	now := time.Now()
	for n, made := range []time.Time{now, now.Add(-time.Hour), now.Add(-2 * time.Hour), now.Add(-3 * time.Hour)} {
		put(t, s, numbered(n), saying(fmt.Sprintf("SECRET-%d", n), made))
	}
	entries, err := s.List(t.Context())
	if err != nil || len(entries) != 4 || entries[0].Path != messages || entries[0].Model != "claude-sonnet-5-5" || !entries[3].At.Before(entries[0].At) || entries[0].Bytes < 200 {
		t.Fatalf("%+v, %v", entries, err)
	}
	a, said, err := s.Find(t.Context(), entries[0].ID[:8])
	if err != nil || said != "SECRET-0" || a.ContentType != "application/json" || !strings.Contains(string(a.Body), "SECRET-0") {
		t.Errorf("%+v says %q, %v", a, said, err)
	}
	for _, id := range []string{"", "abc", "nonsense", "000000000000", "%%%%"} {
		if _, _, err := s.Find(t.Context(), id); !errors.Is(err, saved.ErrUnknown) {
			t.Errorf("Find(%q): %v", id, err)
		}
	}
	if err := s.Drop(t.Context(), entries[0].ID); err != nil {
		t.Error(err)
	}
	if n, err := s.DropOlder(t.Context(), now.Add(-90*time.Minute)); n != 2 || err != nil {
		t.Errorf("dropped %d, %v", n, err)
	}
	if got := s.Stats(); got.Answers != 1 || text(t, s, numbered(1)) != "SECRET-1" {
		t.Errorf("%+v", got)
	}
	if n, err := s.DropAll(t.Context()); n != 1 || err != nil {
		t.Errorf("dropped %d, %v", n, err)
	}
	if got := s.Stats(); got.Answers != 0 || got.Bytes != 0 {
		t.Errorf("%+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		if content, err := os.ReadFile(file); err != nil || bytes.Contains(content, []byte("SECRET")) {
			t.Errorf("%s still holds what was dropped, %v", filepath.Base(file), err)
		}
	}
}

func TestTheMark(t *testing.T) {
	t.Parallel()
	const line = `[saved answer of 2026-03-14 15:09 UTC]\n\n`
	cited := strings.Replace(goodResponse, `"annotations":[]`, `"annotations":[{"type":"url_citation","start_index":0,"end_index":7}]`, 1)
	for _, row := range []struct{ name, path, body, answer, old, marked string }{
		{"a message", messages, "", goodMessage, `"Because.`, `"` + line + "Because."},
		{"a completion", chat, "", goodChat, `"Because.`, `"` + line + "Because."},
		{"a response", responses, "", goodResponse, `"Because.`, `"` + line + "Because."},
		{"places in the text move along", responses, "", cited, `"start_index":0,"end_index":7}],"logprobs":[],"text":"`, `"start_index":40,"end_index":47}],"logprobs":[],"text":"` + line},
		{"thinking has none", messages, "", richMessage, `"See `, `"` + line + "See "},
		{"no text, no mark", messages, "", strings.Replace(strings.Replace(goodMessage, `{"type":"text","text":"Because."}`, `{"type":"tool_use","id":"t","name":"n","input":{}}`, 1), "end_turn", "tool_use", 1), "", ""},
		{"empty text, no mark", chat, "", strings.Replace(goodChat, `"content":"Because."`, `"content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]`, 1), "", ""},
		{"an empty text before the real one", messages, "", strings.Replace(goodMessage, `{"type":"text","text":"Because."}`, `{"type":"text","text":""},{"type":"text","text":"Because."}`, 1), `"Because.`, `"` + line + "Because."},
		{"JSON is not spoilt", messages, `{"model":"m","output_config":{"format":{"type":"json_schema","schema":{}}}}`, goodMessage, "", ""},
		{"JSON of a completion", chat, `{"model":"m","response_format":{"type":"json_object"}}`, goodChat, "", ""},
		{"JSON of a response", responses, `{"model":"m","text":{"format":{"type":"json_schema"}}}`, goodResponse, "", ""},
		{"text is no JSON", responses, `{"model":"m","text":{"format":{"type":"text"}}}`, goodResponse, `"Because.`, `"` + line + "Because."},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := open(t, "", saved.Options{Mark: true, MaxAge: -1})
			q := question(row.path, false)
			if row.body != "" {
				q.Body = []byte(row.body)
			}
			put(t, s, q, asJSON(row.answer))
			want := strings.Replace(row.answer, row.old, row.marked, 1)
			if row.old != "" && want == row.answer {
				t.Fatalf("%q is not there", row.old)
			}
			for _, q.Stream = range []bool{false, true} {
				got, found := s.Load(t.Context(), q)
				if !found {
					t.Fatal("not found")
				}
				text := string(got.Body)
				if q.Stream {
					text = give(t, row.path, false, got)
				}
				if row.path == chat && q.Stream {
					want = strings.Replace(want, `,"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}`, "", 1)
				}
				sameJSON(t, "the answer", want, text)
			}
			entries, err := s.List(t.Context())
			if err != nil || len(entries) != 1 {
				t.Fatal(err)
			}
			if a, _, err := s.Find(t.Context(), entries[0].ID); err != nil || strings.Contains(string(a.Body), "saved answer") {
				t.Errorf("the mark was kept: %s, %v", a.Body, err)
			}
		})
	}
}

func TestCountsComeInAStreamToWhoAsks(t *testing.T) {
	t.Parallel()
	q := &saved.Question{Method: http.MethodPost, Path: chat, Stream: true, Body: []byte(`{"model":"m","stream_options":{"include_usage":true}}`)}
	a, err := saved.Give(q, asJSON(goodChat), false)
	if err != nil {
		t.Fatal(err)
	}
	chunks := strings.Split(strings.TrimSpace(string(a.Body)), "\n\n")
	for i, chunk := range chunks[:len(chunks)-2] {
		if !strings.HasSuffix(chunk, `"usage":null}`) {
			t.Errorf("chunk %d is %s", i, chunk)
		}
	}
	if last := chunks[len(chunks)-2]; !strings.Contains(last, `"choices":[],"usage":{"prompt_tokens":9`) || chunks[len(chunks)-1] != "data: [DONE]" {
		t.Errorf("the end is %s", last)
	}
	if plain := stream(t, chat, goodChat); strings.Contains(plain, "usage") {
		t.Errorf("counts that nobody asked for: %s", plain)
	}
}
