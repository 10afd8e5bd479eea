package e2e_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/testnet"
)

// slowModel answers as a model does, by and by, and counts what is open. It keeps nothing, so that what grows is the gateway.
type slowModel struct {
	open  atomic.Int64
	words int
	gap   time.Duration
}

const leakText = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`

func (m *slowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.open.Add(1)
	defer m.open.Add(-1)
	head := make([]byte, 100)
	if _, err := io.ReadFull(r.Body, head[:80]); err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	pause := func() bool {
		timer := time.NewTimer(m.gap)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-r.Context().Done():
			return false
		}
	}
	if !strings.Contains(string(head), `"stream":true`) {
		if pause() {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"one answer"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`)
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(name, data string) bool {
		_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		return err == nil && http.NewResponseController(w).Flush() == nil
	}
	say("message_start", `{"type":"message_start","message":{"type":"message","usage":{"input_tokens":9,"output_tokens":1}}}`)
	for range m.words {
		if !say("content_block_delta", leakText) || !pause() {
			return
		}
	}
	say("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`)
	say("message_stop", `{"type":"message_stop"}`)
}

// leakBodies are requests with a stream and without. A prompt of 25,000 tokens is a usual one of a coding agent.
var leakBodies = map[bool]string{
	false: `{"model":"claude-sonnet-5-5","max_tokens":100,"messages":[{"role":"user","content":"one question"}]}`,
	true:  `{"model":"claude-sonnet-5-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 20_000) + `"}]}`,
}

// standing is a gateway between two networks, whose connections are counted apart.
type standing struct {
	model           *slowModel
	inside, outside *testnet.Network // the upstream's, and the callers'
	base            *http.Transport
	client          *http.Client
	url             string
}

func stand(t *testing.T, m *slowModel, through bool) *standing {
	t.Helper()
	s := &standing{model: m, inside: testnet.New(), outside: testnet.New()}
	s.base = s.inside.Client().Transport.(*http.Transport)
	s.base.MaxIdleConnsPerHost = 256
	s.inside.Serve(t, "api.test:80", m)
	s.client, s.url = s.inside.Client(), "http://api.test"
	if through {
		g, err := gateway.New(gateway.Settings{
			Targets: []gateway.Target{{Name: "api", URL: "http://api.test", Dialect: "anthropic"}},
			Pace:    holdfast.Limits{RequestsPerMinute: 10_000_000},
			Base:    s.base,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.client, s.url = s.outside.Client(), s.outside.Serve(t, "gateway.test:80", g).URL
	}
	s.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 256
	return s
}

// ask makes one call, and leaves it when the context ends.
func (s *standing) ask(ctx context.Context, stream bool, first func()) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/messages", strings.NewReader(leakBodies[stream]))
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", "sk-test")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var piece [512]byte
	for {
		n, err := resp.Body.Read(piece[:])
		if n > 0 && first != nil {
			first()
			first = nil
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
}

// held is what is in use after everything that is not has been collected.
func held() (heap, stack uint64) {
	var m runtime.MemStats
	for range 2 { // pools give their things up at the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}

// Ten thousand calls, of which a fifth is left by its caller at some time, streams and answers alike, leave nothing behind.
func TestGatewayKeepsNothingOfCallsThatEnded(t *testing.T) {
	calls, workers := 10_000, 50
	if raceDetector { // it takes ten times as long
		calls = 2000
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	synctest.Test(t, func(t *testing.T) {
		s := stand(t, &slowModel{words: 5, gap: 100 * time.Millisecond}, true)
		var answered, left, wrong atomic.Int64
		storm := func(seed uint64, calls int) {
			var wg sync.WaitGroup
			for worker := range workers {
				dice := rand.New(rand.NewPCG(seed, uint64(worker)))
				wg.Go(func() {
					for range calls / workers {
						ctx, cancel := context.WithCancel(t.Context())
						leaves := dice.IntN(5) == 0
						if leaves { // before the answer, or in the middle of it
							after := time.Duration(dice.Int64N(int64(90 * time.Millisecond)))
							time.AfterFunc(after, cancel)
						}
						err := s.ask(ctx, dice.IntN(2) == 0, nil)
						cancel()
						switch {
						case err == nil:
							answered.Add(1)
						case leaves:
							left.Add(1)
						default:
							wrong.Add(1)
						}
					}
				})
			}
			wg.Wait()
			s.client.CloseIdleConnections()
			s.base.CloseIdleConnections()
			synctest.Wait()
		}
		storm(1, calls*7/10) // fills the rings of records
		heap, _ := held()
		storm(2, calls*3/10)
		after, _ := held()
		if n := int(left.Load()); int(answered.Load()) != calls-n || wrong.Load() != 0 || n < calls/6 || n > calls/4 {
			t.Errorf("%d answered, %d left, %d went wrong", answered.Load(), left.Load(), wrong.Load())
		}
		if n := s.model.open.Load(); n != 0 {
			t.Errorf("%d requests are open at the upstream", n)
		}
		if in, out := s.inside.Stats(), s.outside.Stats(); in.Open != 0 || out.Open != 0 || in.Peak > 2*workers {
			t.Errorf("%d connections to the upstream are open, %d of callers; the most to the upstream were %d", in.Open, out.Open, in.Peak)
		}
		if after > heap+heap/10+256<<10 && !raceDetector {
			t.Errorf("the heap holds %d KB after seven of ten, and %d KB after all", heap>>10, after>>10)
		}
	})
}

// Two thousand streams of slow models, each for a prompt of 100 KB, hold less than 64 KB each in the gateway when they are open at once. What caller and upstream hold in
// the same process is measured without it, and taken off.
func TestGatewayHoldsLittleOfASlowStream(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector everything is larger")
	}
	const streams, most = 2000, 64 << 10
	open := func(through bool) (total uint64) {
		synctest.Test(t, func(t *testing.T) {
			s := stand(t, &slowModel{words: 60, gap: time.Second}, through)
			heap, stack := held()
			ctx, leave := context.WithCancel(t.Context())
			var wg, begun sync.WaitGroup
			begun.Add(streams)
			for range streams {
				wg.Go(func() { _ = s.ask(ctx, true, begun.Done) })
			}
			begun.Wait()
			time.Sleep(5 * time.Second) // five words
			nowHeap, nowStack := held()
			if n := s.model.open.Load(); n != streams {
				t.Errorf("%d streams are open, want %d", n, streams)
			}
			total = nowHeap + nowStack - heap - stack
			leave()
			wg.Wait()
		})
		return total
	}
	bare, through := open(false), open(true)
	each := (int64(through) - int64(bare)) / streams
	t.Logf("%d bytes for each stream, besides %d of its caller and its upstream", each, bare/streams)
	if each > most {
		t.Errorf("%d bytes for each stream, want at most %d", each, most)
	}
	if each < 4<<10 {
		t.Errorf("%d bytes for each stream: that cannot be all", each)
	}
}
