package standin_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/standin"
)

// recordOne records one exchange with a stand-in over real sockets.
func recordOne(t *testing.T, o standin.RecordOptions) []byte {
	t.Helper()
	upstream := httptest.NewServer(standin.New(standin.Plan{}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	recorder, err := standin.Record(target, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(recorder)
	got := post(t, front.Client(), front.URL+anthropicPath, streamQuestion)
	front.Close()
	if err := recorder.Close(); err != nil || recorder.Kept() != 1 || recorder.Missed() != 0 {
		t.Errorf("kept %d, missed %d, error %v", recorder.Kept(), recorder.Missed(), err)
	}
	if got.status != 200 || !strings.HasSuffix(got.body, "{\"type\":\"message_stop\"}\n\n") {
		t.Errorf("reply %+v", got)
	}
	return out.Bytes()
}

func TestRecordKeepsAnExchange(t *testing.T) {
	for _, noPrompts := range []bool{false, true} {
		text := recordOne(t, standin.RecordOptions{NoPrompts: noPrompts})
		if kept := bytes.Contains(text, []byte("hello there")); kept == noPrompts {
			t.Errorf("NoPrompts %v, the prompt is on the tape: %v", noPrompts, kept)
		}
		played, err := standin.ReadTape(bytes.NewReader(text))
		if err != nil || played.Len() != 1 || len(played.Warnings()) != 0 || played.Speed != 1 {
			t.Errorf("tape %+v, error %v", played, err)
		}
	}
}

func TestRecordRefusesWhatIsNoUpstream(t *testing.T) {
	secret := &url.URL{Scheme: "ftp", Host: "api.test", User: url.UserPassword("me", "secret")}
	for _, u := range []*url.URL{nil, {}, {Path: "api.test"}, secret} {
		_, err := standin.Record(u, io.Discard, standin.RecordOptions{})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: error %v", u, err)
		}
	}
}

func TestLoadTape(t *testing.T) {
	text := recordOne(t, standin.RecordOptions{})
	file := filepath.Join(t.TempDir(), "tape.jsonl")
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(append(bytes.Clone(text), text[bytes.IndexByte(text, '\n')+1:len(text)/2]...))
	played, err := standin.LoadTape(file)
	if err != nil || played.Len() != 1 || len(played.Warnings()) != 1 {
		t.Errorf("torn: %+v, %v", played, err)
	}
	write([]byte("{\"steps\": []}\n"))
	if _, err := standin.LoadTape(file); err == nil || !strings.HasPrefix(err.Error(), "standin: tape line 1") {
		t.Errorf("no tape: %v", err)
	}
	if _, err := standin.LoadTape(file + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func ExampleRecord() {
	api := httptest.NewServer(standin.New(standin.Plan{})) // in place of the real one
	defer api.Close()
	upstream, _ := url.Parse(api.URL)

	var file bytes.Buffer
	recorder, err := standin.Record(upstream, &file, standin.RecordOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	proxy := httptest.NewServer(recorder)
	req, _ := http.NewRequest("POST", proxy.URL+"/v1/messages",
		strings.NewReader(`{"model":"claude-sonnet-5-5","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`))
	req.Header.Set("x-api-key", "any")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	res.Body.Close()
	proxy.Close()
	if err := recorder.Close(); err != nil {
		fmt.Println(err)
		return
	}
	played, err := standin.ReadTape(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.StatusCode, played.Len(), "exchange on the tape")
	// Output: 200 1 exchange on the tape
}
