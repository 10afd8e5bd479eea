package tape_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/standin"
	"holdfast/standin/internal/tape"
)

const (
	headLine = `{"tape":1,"upstream":"api.test","created":"2026-11-30T00:00:00Z"}` + "\n"
	none     = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // digest of nothing
	goodLine = `{"n":1,"at":"2026-11-30T00:00:00Z","request":{"method":"GET","path":"/v1/models?limit=2","sha256":"` + none + `","size":0},` +
		`"reply":{"status":200,"t":1.5,"header":{"content-type":["text/plain"]},"frames":[{"t":2,"text":"a"},{"t":2.000001,"base64":"/w=="}]},"end":"complete","t":3}` + "\n"
)

func TestReadTakesWhatIsWritten(t *testing.T) {
	got, err := tape.Read(strings.NewReader(headLine + "\n" + goodLine))
	if err != nil {
		t.Fatal(err)
	}
	x := got.Exchanges[0]
	if got.Host != "api.test" || x.Method != "GET" || x.Path != "/v1/models" || x.Query != "limit=2" || x.Began != 1500*time.Microsecond ||
		x.Frames[1].At != 2*time.Millisecond+1 || string(x.Reply()) != "a\xff" || x.Ended != 3*time.Millisecond || x.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("%+v", x)
	}
}

// Every mistake is told with its line, all of them at once.
func TestReadTellsEveryMistakeWithItsLine(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(goodLine, old, new, 1) }
	tests := []struct{ name, line, want string }{
		{"no JSON", "{\n", "unexpected EOF"},
		{"unknown member", change(`"n":1`, `"m":1`), `unknown field "m"`},
		{"two values", strings.TrimSpace(goodLine) + "{}\n", "something stands behind"},
		{"no method", change(`"method":"GET",`, ""), "request.method"},
		{"no path", change(`/v1/models?limit=2`, "v1"), "request.path"},
		{"no digest", change(none, "abc"), "request.sha256"},
		{"negative size", change(`"size":0`, `"size":-1`), "request.size"},
		{"odd status", change(`"status":200`, `"status":99`), "reply.status 99"},
		{"no status", change(`"status":200`, `"status":0`), "reply.status is missing"},
		{"unknown end", change(`"end":"complete"`, `"end":"done"`), `end "done"`},
		{"unknown closer", change(`"end"`, `"closed_by":"me","end"`), `closed_by "me"`},
		{"negative time", change(`"t":1.5`, `"t":-1`), "a time is"},
		{"endless time", change(`"t":3}`, `"t":1e300}`), "a time is"},
		{"time goes back", change(`"t":2,`, `"t":1,`), "reply.frames[0] comes before"},
		{"no bytes", change(`,"text":"a"`, ""), "reply.frames[0] takes text or base64"},
		{"both", change(`"text":"a"`, `"text":"a","base64":"AA=="`), "reply.frames[0] takes text or base64"},
		{"early end", change(`"t":3}`, `"t":1}`), "ends before its last frame"},
	}
	all := headLine
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := tape.Read(strings.NewReader(headLine + goodLine + test.line))
			if err == nil || !strings.Contains(err.Error(), "tape line 3: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
		all += test.line
	}
	if _, err := tape.Read(strings.NewReader(all)); err == nil || strings.Count(err.Error(), "\n")+1 != len(tests) {
		t.Errorf("not all of %d mistakes: %v", len(tests), err)
	}
}

func TestReadRefusesWhatIsNoTape(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "empty",
		goodLine:               "line 1 is not the head",
		`{"tape":2}` + "\n":    "format 2",
		`{"plan":1}` + "\n":    "line 1 is not the head",
		"\x00\x01\x02":         "line 1 is not the head",
		`{"tape":1,"upstream"`: "line 1 is not the head",
	} {
		if _, err := tape.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	broken := errors.New("disk")
	if _, err := tape.Read(io.MultiReader(strings.NewReader(headLine), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// A recording that is killed anywhere leaves a tape of every exchange before it.
func TestTapeTornAnywhereKeepsWhatIsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := record(t, standin.New(standin.Plan{Reply: "ä€𝄞"}), tape.Options{})
		for range 3 {
			s.post(s.url, "/v1/messages", question)
			synctest.Wait()
		}
		s.tape()
		whole := s.reel.Bytes()
		head := bytes.IndexByte(whole, '\n') + 1
		for cut := head; cut <= len(whole); cut += 3 {
			lines := bytes.Count(whole[head:cut], []byte("\n"))
			got, err := tape.Read(bytes.NewReader(whole[:cut]))
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			torn := whole[cut-1] != '\n' && (cut == len(whole) || whole[cut] != '\n')
			if want := lines + b2i(whole[cut-1] != '\n' && !torn); len(got.Exchanges) != want || (len(got.Warnings) == 1) != torn {
				t.Fatalf("cut at %d: %d exchanges, want %d; warnings %q", cut, len(got.Exchanges), want, got.Warnings)
			}
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Whatever is read is written the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte(headLine + goodLine))
	f.Add([]byte(headLine + goodLine[:100]))
	f.Add([]byte(headLine + strings.Replace(goodLine, `"status":200,"t":1.5`, `"status":0,"t":0`, 1)))
	f.Add([]byte(headLine + strings.Replace(goodLine, `text/plain`, `text/event-stream`, 1)))
	f.Add([]byte(`{"tape":1}` + "\r\n\r\n" + goodLine))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := tape.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := tape.Write(&again, got); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		second, err := tape.Read(&again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, again.String())
		}
		if diff := cmp.Diff(got.Exchanges, second.Exchanges, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("it changed:\n%s", diff)
		}
		for _, x := range got.Exchanges {
			x.Play(1)
			if p, ok := x.PlayEvents(0); ok && x.Header.Get("content-encoding") == "" {
				var joined []byte
				for _, e := range p.Events {
					joined = append(joined, e.Data...)
				}
				if !bytes.Equal(joined, x.Reply()) {
					t.Errorf("the events are %q, the reply %q", joined, x.Reply())
				}
			}
		}
	})
}
