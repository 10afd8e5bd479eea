package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/sse"
)

// got is an event whose parts outlive the next call.
type got struct {
	Name, Data, ID string
	Unterminated   bool
}

// readAll returns the events, the relayed bytes with the rest, and the error
// at the end (nil for io.EOF).
func readAll(src io.Reader, limit int) (events []got, raw string, err error) {
	r := sse.NewReader(src, limit)
	var b strings.Builder
	for {
		e, err := r.Next()
		if err != nil {
			b.Write(r.Rest())
			if again, err2 := r.Next(); again.Raw != nil || err2 == nil || !errors.Is(err2, errors.Unwrap(err)) && err2 != err {
				return nil, "", fmt.Errorf("after %v came %v", err, err2)
			}
			if err == io.EOF {
				err = nil
			}
			return events, b.String(), err
		}
		b.Write(e.Raw)
		events = append(events, got{e.Name, string(e.Data), e.ID, e.Unterminated})
	}
}

// pieces yields one string per Read.
type pieces struct{ parts []string }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.parts[0])
	if p.parts[0] = p.parts[0][n:]; p.parts[0] == "" {
		p.parts = p.parts[1:]
	}
	return n, nil
}

func TestEventsOfAStreamInEverySplit(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []got
	}{
		{"nothing", "", nil},
		{"one event", "event: ping\ndata: {}\n\n", []got{{Name: "ping", Data: "{}"}}},
		{"nameless event", "data: a\n\n", []got{{Data: "a"}}},
		{"no space after the colon", "event:e\ndata:a\n\n", []got{{Name: "e", Data: "a"}}},
		{"only one space is dropped", "data:  a \n\n", []got{{Data: " a "}}},
		{"colon in the value", "data: a: b\n\n", []got{{Data: "a: b"}}},
		{"data over several lines", "data: a\ndata:\ndata: b\n\n", []got{{Data: "a\n\nb"}}},
		{"empty data is an event", "data:\n\n", []got{{Data: ""}}},
		{"field without a colon", "data\n\n", []got{{Data: ""}}},
		{"last name wins", "event: a\nevent: b\ndata: 1\n\n", []got{{Name: "b", Data: "1"}}},
		{"name is forgotten with a block without data", "event: a\n\ndata: 1\n\n", []got{{Data: "1"}}},
		{"names are case sensitive", "Data: 1\ndata: 2\n\n", []got{{Data: "2"}}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []got{{Data: "a"}}},
		{"byte order mark before a blank line", "\xEF\xBB\xBF\n\ndata: a\n\n", []got{{Data: "a"}}},
		{"byte order mark and no line end", "\xEF\xBB\xBFdata: a", []got{{Data: "a", Unterminated: true}}},
		{"second byte order mark is part of a name", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\ndata: b\n\n", []got{{Data: "b"}}},
		{"comments", ": hi\n:\ndata: a\n: mid\n\n: tail\n\n", []got{{Data: "a"}}},
		{"id is sticky", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []got{{Data: "a", ID: "1"}, {Data: "b", ID: "1"}, {Data: "c"}}},
		{"id with NUL is ignored", "id: 1\nid: 2\x00\ndata: a\n\n", []got{{Data: "a", ID: "1"}}},
		{"CRLF", "event: e\r\ndata: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []got{{Name: "e", Data: "a\nb"}, {Data: "c"}}},
		{"line ends mixed", "data: a\rdata: b\ndata: c\r\n\n\r\ndata: d\n\r", []got{{Data: "a\nb\nc"}, {Data: "d"}}},
		{"B68 split characters", "data: \u6f22\u5b57\U0001F600\u00e9\n\n", []got{{Data: "\u6f22\u5b57\U0001F600\u00e9"}}},
		{"B69 many events ending in a long character", strings.Repeat("data: \u6f22\n\n", 40), repeat(got{Data: "\u6f22"}, 40)},
		{"B71 CRLF torn apart", "data: {\"a\":\r\ndata: 1}\r\n\r\n", []got{{Data: "{\"a\":\n1}"}}},
		{"B72 lone CR", "event: e\rdata: a\r\rdata: b\r\r", []got{{Name: "e", Data: "a"}, {Data: "b"}}},
		{"B74 blocks without data", "retry: 1000\n\n: keepalive\n\nid: 7\n\ndata: a\n\n", []got{{Data: "a", ID: "7"}}},
		{"B75 comments after an id", "id: 1\ndata: a\n\n: ping\n\n: ping\n\nid: 2\ndata: b\n\n: ping\n\n", []got{{Data: "a", ID: "1"}, {Data: "b", ID: "2"}}},
		{"B78 no blank line", "data: a\n\nevent: stop\ndata: b\n", []got{{Data: "a"}, {Name: "stop", Data: "b", Unterminated: true}}},
		{"B78 no line end", "data: a\n\nevent: stop\ndata: b", []got{{Data: "a"}, {Name: "stop", Data: "b", Unterminated: true}}},
		{"B64 cut inside the last frame", "event: message_stop\ndata: {\"type\":\"m", []got{{Name: "message_stop", Data: "{\"type\":\"m", Unterminated: true}}},
		{"cut before any data is no event", "data: a\n\nevent: stop\nda", []got{{Data: "a"}}},
		{"B80 malformed data is the caller's affair", "data: {broken\n\ndata: {}\n\n", []got{{Data: "{broken"}, {Data: "{}"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check := func(how string, src io.Reader) {
				t.Helper()
				events, raw, err := readAll(src, 0)
				if err != nil || raw != tt.stream {
					t.Fatalf("%s: relayed %q, error %v; want the stream %q", how, raw, err, tt.stream)
				}
				if diff := cmp.Diff(tt.want, events); diff != "" {
					t.Fatalf("%s: events (-want +got):\n%s", how, diff)
				}
			}
			check("whole", strings.NewReader(tt.stream))
			check("byte by byte", iotest.OneByteReader(strings.NewReader(tt.stream)))
			check("data with the error", iotest.DataErrReader(strings.NewReader(tt.stream)))
			for i := range tt.stream {
				check(fmt.Sprintf("cut at %d", i), &pieces{[]string{tt.stream[:i], tt.stream[i:]}})
			}
		})
	}
}

func repeat(e got, n int) []got {
	all := make([]got, n)
	for i := range all {
		all[i] = e
	}
	return all
}

func TestEventIsHandedOverWithItsBlankLine(t *testing.T) {
	for name, frame := range map[string]string{"LF": "data: a\n\n", "CRLF cut at its last LF": "data: a\r\n\r", "CR": "data: a\r\r"} {
		t.Run(name, func(t *testing.T) {
			r := sse.NewReader(io.MultiReader(strings.NewReader(frame), readMustNotBeCalled{t}), 0)
			e, err := r.Next()
			if err != nil || string(e.Data) != "a" || string(e.Raw) != frame {
				t.Errorf("Next = %q %q, %v", e.Data, e.Raw, err)
			}
		})
	}
}

type readMustNotBeCalled struct{ t *testing.T }

func (r readMustNotBeCalled) Read([]byte) (int, error) {
	r.t.Error("the reader asked for more bytes before it gave the event away")
	return 0, io.EOF
}

func TestRawOfCRLFKeepsTheFrameWhole(t *testing.T) {
	r := sse.NewReader(strings.NewReader(": c\r\n\r\ndata: a\r\n\r\ndata: b\r\n\r\n"), 0)
	for _, want := range []string{": c\r\n\r\ndata: a\r\n\r\n", "data: b\r\n\r\n"} {
		if e, err := r.Next(); err != nil || string(e.Raw) != want {
			t.Errorf("Raw = %q, %v; want %q", e.Raw, err, want)
		}
	}
}

func TestRestIsWhatNoEventHolds(t *testing.T) {
	r := sse.NewReader(strings.NewReader("data: a\n\n: tail\n\nid: 3\n"), 0)
	if e, err := r.Next(); err != nil || string(e.Data) != "a" {
		t.Fatalf("Next = %q, %v", e.Data, err)
	}
	if got := string(r.Rest()); got != ": tail\n\nid: 3\n" {
		t.Errorf("Rest after the event = %q", got)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("second Next: %v, want io.EOF", err)
	}
	if got := string(r.Rest()); got != ": tail\n\nid: 3\n" {
		t.Errorf("Rest at the end = %q", got)
	}
}

func TestSourceErrorComesAfterTheEventsBeforeIt(t *testing.T) {
	broken := errors.New("connection reset")
	src := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))
	events, raw, err := readAll(src, 0)
	if diff := cmp.Diff([]got{{Data: "a"}}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !errors.Is(err, broken) || raw != "data: a\n\ndata: b" {
		t.Errorf("error %v, bytes %q", err, raw)
	}
}

func TestB77_LongLinesPassUpToTheLimit(t *testing.T) {
	for _, size := range []int{70 << 10, 300 << 10, 4 << 20, 20 << 20} {
		line := strings.Repeat("x", size)
		events, _, err := readAll(strings.NewReader("data: a\n\ndata: "+line+"\n\ndata: b\n\n"), 0)
		if err != nil || len(events) != 3 || events[1].Data != line || events[2].Data != "b" {
			t.Errorf("%d bytes: %d events, error %v", size, len(events), err)
		}
	}
}

func TestB77_AboveTheLimitIsATypedErrorInEverySplit(t *testing.T) {
	const limit = 12
	tests := []struct {
		name, stream string
		events       int
		tooLarge     bool
	}{
		{"event of the limit", "data: 1234\n\ndata: 5678\n\n", 2, false},
		{"one byte more", "data: 1234\n\ndata: 56789\n\n", 1, true},
		{"CRLF counts", "data: 12\r\n\r\ndata: 34\r\n\r\n", 2, false},
		{"last LF of a CRLF does not", "data: 123\r\n\r\ndata: 456\r\n\r\n", 2, false},
		{"many short lines", "data: 1\ndata: 2\ndata: 3\n\n", 0, true},
		{"comments without an event", ": 1\n\n: 2\n\n: 3\n\n", 0, true},
		{"no line end at all", "data: 1234567", 0, true},
		{"cut at the limit", "data: 123456", 1, false},
	}
	for _, tt := range tests {
		for i := range len(tt.stream) + 1 {
			var src io.Reader = &pieces{[]string{tt.stream[:i], tt.stream[i:]}}
			if i == len(tt.stream) {
				src = iotest.OneByteReader(strings.NewReader(tt.stream))
			}
			events, _, err := readAll(src, limit)
			if len(events) != tt.events || errors.Is(err, sse.ErrTooLarge) != tt.tooLarge || !tt.tooLarge && err != nil {
				t.Errorf("%s, cut at %d: %d events, error %v", tt.name, i, len(events), err)
			}
		}
	}
}

func TestSourceThatGivesNothingIsGivenUp(t *testing.T) {
	if _, _, err := readAll(idle{}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v, want io.ErrNoProgress", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// A reader of memory says the same as one of a stream, as often as it is used.
func TestMemoryIsReadAsAStreamIs(t *testing.T) {
	memory := sse.NewMemory()
	for _, stream := range []string{
		"", "\n", "data: a\n\n", "data: a\r\n\r\ndata: b\r\rid: 7\ndata: c", "event: x\ndata: a\ndata: b\n\n: comment\n\n", "\xEF\xBB\xBFdata: a\n\n", "data: a\n\r\n",
	} {
		memory.Over([]byte(stream))
		for r := sse.NewReader(strings.NewReader(stream), 0); ; {
			want, wantErr := r.Next()
			got, err := memory.Next()
			if err != wantErr || got.Name != want.Name || got.ID != want.ID || !bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.Raw, want.Raw) || got.Unterminated != want.Unterminated {
				t.Fatalf("%q: %+v, %v; want %+v, %v", stream, got, err, want, wantErr)
			}
			if err != nil {
				break
			}
		}
	}
}
