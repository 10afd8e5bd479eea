package standin_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/standin"
)

// B178: a mock sent the whole answer as one chunk, and clients tested against it never met real framing.
func TestB178_StreamComesEventByEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := strings.Fields(strings.Repeat("word ", 20))
		_, c, url := serve(t, standin.Plan{
			Reply: strings.Join(words, " "),
			Steps: []standin.Step{{Kind: standin.OK, Gap: time.Second}},
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+anthropicPath, strings.NewReader(streamQuestion))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("x-api-key", "good")
		req.Header.Set("anthropic-version", "2023-06-01")
		start := time.Now()
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.ContentLength >= 0 || !slices.Equal(resp.TransferEncoding, []string{"chunked"}) {
			t.Errorf("content-length %d, transfer-encoding %v: it is not streamed", resp.ContentLength, resp.TransferEncoding)
		}
		var arrived []string
		var last string
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				last = event
				if event == "content_block_delta" {
					arrived = append(arrived, fmt.Sprint(time.Since(start)))
				}
			}
		}
		var want []string
		for i := range len(words) {
			want = append(want, fmt.Sprint(time.Duration(i)*time.Second))
		}
		if !slices.Equal(arrived, want) {
			t.Errorf("content arrived at %v, want %v", arrived, want)
		}
		if last != "message_stop" {
			t.Errorf("the last event is %q", last)
		}
	})
}

// B179: a bridge that lost its upstream sent the done marker. The stand-in can show every end, and none of the early ones
// carries a terminal event.
func TestB179_BothEndsAreHonest(t *testing.T) {
	for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST, standin.Silence} {
		for _, torn := range []standin.Tear{"", standin.TornFrame} {
			t.Run(fmt.Sprintf("%s torn=%v", how, torn), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Cut, How: how, After: 3, Torn: torn, Gap: time.Second}}})
					c.Timeout = time.Minute // ends a stall
					got := post(t, c, url+anthropicPath, streamQuestion)
					if strings.Contains(string(got.body), "message_stop") || strings.Contains(string(got.body), "stop_reason\":\"end_turn") {
						t.Errorf("a cut answer looks whole: %s", got.body)
					}
					if deltas := strings.Count(string(got.body), "event: content_block_delta"); deltas < 1 {
						t.Errorf("%d content events arrived", deltas)
					}
					if clean := got.readErr == nil; clean != (how == standin.Clean) {
						t.Errorf("read error %v", got.readErr)
					}
					synctest.Wait()
					if s.Open() != 0 {
						t.Errorf("%d requests are open", s.Open())
					}
				})
			})
		}
	}
}
