package provider_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/oauth2"

	"holdfast"
	"holdfast/internal/testcloud"
	"holdfast/provider"
	"holdfast/standin"
	"holdfast/transport"
)

// dice make every wait of ours the longest of its range.
func dice() float64 { return 0.999999 }

// What AWS and Google say in their own words decides as what the Claude API says in its own: how often the provider is asked,
// and after which wait. No provider names one.
func TestFaultsOfTheCloudsAreJudged(t *testing.T) {
	alone(t)
	aws := func(status int, body string) standin.Step {
		return standin.Step{Kind: standin.HTTP, Status: status, Body: body, ContentType: "application/json"}
	}
	for _, c := range []struct {
		name     string
		door     int
		step     standin.Step
		stream   bool
		attempts int
		status   int
	}{
		{"throttle of AWS", 0, aws(429, `{"__type":"ThrottlingException","message":"Too many requests"}`), false, 2, 200},
		{"B23 throttle of AWS for too many tokens", 0, aws(429, `{"__type":"ThrottlingException","message":"Too many tokens, please wait before trying again"}`), false, 2, 200},
		{"B23 throttle of AWS for too many tokens, stream", 0, aws(429, `{"message":"Too many tokens, please wait before trying again."}`), true, 2, 200},
		{"model that is not ready", 0, aws(429, `{"__type":"ModelNotReadyException","message":"warming"}`), false, 2, 200},
		{"model that timed out", 0, aws(408, `{"__type":"ModelTimeoutException","message":"late"}`), true, 2, 200},
		{"424 behind a 500", 0, aws(424, `{"__type":"ModelErrorException","originalStatusCode":500,"message":"failed"}`), false, 2, 200},
		{"424 behind a 500, stream", 0, aws(424, `{"__type":"ModelErrorException","originalStatusCode":503,"message":"failed"}`), true, 2, 200},
		{"424 behind a 400", 0, aws(424, `{"__type":"ModelErrorException","originalStatusCode":400,"message":"failed"}`), false, 1, 424},
		{"no capacity at AWS", 0, aws(503, `{"__type":"ServiceUnavailableException"}`), false, 2, 200},
		{"validation", 0, aws(400, `{"__type":"ValidationException","message":"no"}`), false, 1, 400},
		{"quota of the service", 0, aws(400, `{"__type":"ServiceQuotaExceededException","message":"no"}`), false, 1, 400},
		{"access denied", 0, aws(403, `{"__type":"AccessDeniedException","message":"no"}`), true, 1, 403},
		{"B26 throttle inside a stream of AWS", 0, standin.Step{Kind: standin.Error, Type: "throttlingException", Message: "slow"}, true, 2, 200},
		{"B26 model error inside a stream of AWS", 0, standin.Step{Kind: standin.Error, Type: "modelStreamErrorException", Message: "failed", At: standin.Preamble}, true, 2, 200},
		{"B26 internal error inside a stream of AWS", 0, standin.Step{Kind: standin.Error, Type: "internalServerException", Message: "failed"}, true, 2, 200},
		{"B26 overload inside a stream of Vertex", 4, standin.Step{Kind: standin.Error, Status: 529}, true, 2, 200},
		{"quota of Google", 4, aws(429, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}`), false, 2, 200},
		{"quota of Google, stream", 4, aws(429, `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}]`), true, 2, 200},
		{"overload at Google", 4, aws(503, `{"error":{"code":503,"status":"UNAVAILABLE"}}`), false, 2, 200},
		{"deadline of Google", 4, aws(504, `{"error":{"code":504,"status":"DEADLINE_EXCEEDED"}}`), true, 2, 200},
		{"permission at Google", 4, aws(403, `{"error":{"code":403,"status":"PERMISSION_DENIED"}}`), false, 1, 403},
		{"throttle of Foundry", 6, aws(429, `{"error":{"code":"429","message":"Requests exceed the limit"}}`), false, 2, 200},
		{"cut before content at AWS", 0, standin.Step{Kind: standin.Cut, At: standin.Preamble, How: standin.Chunk}, true, 2, 200},
		{"reset at AWS", 0, standin.Step{Kind: standin.Reset}, false, 2, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := doors[c.door].open(t, standin.Plan{Steps: []standin.Step{c.step}})
				policy := holdfast.Policy{Dice: dice, Backoff: holdfast.Backoff{Base: time.Second, ThrottleBase: 2 * time.Second}}
				resp, text, err := post(t, transport.New(&policy, b), "/v1/messages", asking(c.stream))
				if err != nil || resp.StatusCode != c.status {
					t.Fatalf("%v, %v, %s", err, resp, text)
				}
				j := b.model.Journal()
				standin.Expect(t, j, standin.Requests(c.attempts))
				if c.attempts == 2 && j[0].Digest != j[1].Digest {
					t.Error("asked again with another body")
				}
				if c.attempts == 2 && (j.Gaps()[0] < 900*time.Millisecond || j.Gaps()[0] > 2*time.Second) {
					t.Errorf("asked again after %v", j.Gaps())
				}
				if c.attempts == 2 && c.stream && strings.Count(text, "message_start\n") != 1 {
					t.Errorf("two answers in one:\n%s", text)
				}
			})
		})
	}
}

// After content nothing is repeated: the caller sees that the answer was cut.
func TestAStreamOfAWSThatBreaksAfterContentIsNotRepeated(t *testing.T) {
	alone(t)
	for name, step := range map[string]standin.Step{
		"exception": {Kind: standin.Error, Type: "modelStreamErrorException", After: 2},
		"cut":       {Kind: standin.Cut, How: standin.Chunk, After: 2},
		"clean end": {Kind: standin.Cut, How: standin.Clean, After: 2},
		"reset":     {Kind: standin.Cut, How: standin.RST, After: 2, Gap: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := doors[0].open(t, standin.Plan{Reply: "one two three four", Steps: []standin.Step{step}})
				_, text, err := post(t, transport.New(nil, b), "/v1/messages", streamQuestion)
				if name != "exception" && !errors.Is(err, holdfast.ErrCut) || name == "exception" && !strings.Contains(text, "event: error\n") {
					t.Errorf("%v\n%s", err, text)
				}
				standin.Expect(t, b.model.Journal(), standin.Requests(1))
			})
		})
	}
}

// A frame of AWS that ends in its middle is a cut, wherever it ends, and so is one whose bytes are wrong.
func TestTornFramesAreCuts(t *testing.T) {
	alone(t)
	whole := httptest.NewRecorder()
	testcloud.Bedrock(region, standin.New(standin.Plan{Reply: "one two"})).ServeHTTP(whole, framed(t))
	frames := whole.Body.Bytes()
	var last [2]int // where the last two frames begin
	for at := 0; at < len(frames); at += int(binary.BigEndian.Uint32(frames[at:])) {
		last[0], last[1] = last[1], at
	}
	wrong := bytes.Clone(frames)
	wrong[last[1]-30] ^= 1
	for name, body := range map[string][]byte{"torn": frames[:last[1]-20], "torn in its length": frames[:last[0]+2], "wrong": wrong} {
		synctest.Test(t, func(t *testing.T) {
			d := doors[0]
			d.cloud = func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
					_, _ = w.Write(body)
				})
			}
			b := d.open(t, standin.Plan{})
			_, text, err := post(t, transport.New(&holdfast.Policy{Attempts: -1}, b), "/v1/messages", streamQuestion)
			if !errors.Is(err, holdfast.ErrCut) || !strings.Contains(text, "one") {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		})
	}
}

// framed is a request as it arrives at Bedrock.
func framed(t *testing.T) *http.Request {
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/model/m/invoke-with-response-stream",
		strings.NewReader(`{"anthropic_version":"2023-06-01","max_tokens":64,"messages":[{"role":"user","content":"hi"}]}`))
	req.Header.Set("Authorization", "Bearer "+testcloud.Key)
	return req
}

type badCredentials struct{ err error }

func (b badCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if b.err == nil {
		<-ctx.Done()
		return aws.Credentials{}, ctx.Err()
	}
	return aws.Credentials{}, b.err
}

type badTokens struct{ err error }

func (b badTokens) Token() (*oauth2.Token, error) { return nil, b.err }

// Credentials that do not come are a failure of their target alone: the next one answers, without a wait when waiting helps
// nothing, and nothing was sent.
func TestWithoutCredentialsTheNextTargetAnswers(t *testing.T) {
	alone(t)
	refused := &oauth2.RetrieveError{Response: &http.Response{StatusCode: 400}, ErrorCode: "invalid_grant", Body: []byte("quotes " + canary)}
	for _, c := range []struct {
		name     string
		door     int
		change   func(*provider.Settings)
		attempts int
		least    time.Duration
	}{
		{"none at AWS", 0, func(s *provider.Settings) { s.AWSConfig = &aws.Config{Region: region} }, 1, 0},
		{"none found around AWS", 0, func(s *provider.Settings) { s.AWSConfig, s.Region = nil, region }, 1, 0},
		{"wrong ones at AWS", 0, func(s *provider.Settings) {
			s.AWSConfig = &aws.Config{Region: region, Credentials: badCredentials{errors.New("expired")}}
		}, 1, 0},
		{"AWS that hangs", 0, func(s *provider.Settings) { s.AWSConfig = &aws.Config{Region: region, Credentials: badCredentials{}} }, 1, 10 * time.Second},
		{"none around mantle", 2, func(s *provider.Settings) { s.Key = "" }, 1, 0},
		{"a profile that is not there", 3, func(s *provider.Settings) { s.Key, s.Profile = "", "nobody" }, 1, 0},
		{"refused at Google", 4, func(s *provider.Settings) { s.GoogleTokens = badTokens{refused} }, 1, 0},
		{"a file that is not there", 4, func(s *provider.Settings) { s.GoogleTokens, s.Credentials = nil, "/no/such/file" }, 1, 0},
		{"none at Foundry", 6, func(s *provider.Settings) { s.Key = "" }, 1, 0},
		{"tokens that fail", 7, func(s *provider.Settings) {
			s.Tokens = func(context.Context) (string, error) { return "", errors.New("no token") }
		}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := doors[c.door]
				c.change(&d.settings)
				broken, good := d.open(t, standin.Plan{}), doors[1].open(t, standin.Plan{})
				policy := holdfast.Policy{Attempts: 2, Targets: []holdfast.Target{{Name: "broken"}, {Name: "good"}}}
				through := transport.New(&policy, byTarget{"broken": broken, "good": good})
				start := time.Now()
				resp, text, err := post(t, through, "/v1/messages", question)
				if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Holdfast-Source") != "fallback" {
					t.Fatalf("%v, %v, %s", err, resp, text)
				}
				if took := time.Since(start); took < c.least || c.least == 0 && took > 0 {
					t.Errorf("it took %v", took)
				}
				trace, _ := transport.TraceOf(resp)
				if n := trace.Sent(); n != c.attempts+1 || len(broken.seen) > 0 {
					t.Errorf("%d attempts, %d of them sent to the broken one:\n%s", n, len(broken.seen), trace.Summary())
				}
				_, _, err = post(t, broken, "/v1/messages", question)
				var own *provider.Error
				if !errors.As(err, &own) || !errors.Is(err, provider.ErrCredentials) || own.Hint() == "" {
					t.Fatalf("%v", err)
				}
				for _, secret := range []string{canary, testcloud.SecretKey, testcloud.Key, "SHP-1"} {
					if strings.Contains(err.Error()+own.Hint(), secret) {
						t.Errorf("it shows a secret: %v", err)
					}
				}
			})
		})
	}
}

// byTarget sends each attempt by the transport of its target.
type byTarget map[string]http.RoundTripper

func (b byTarget) RoundTrip(req *http.Request) (*http.Response, error) {
	target, _ := holdfast.TargetOf(req.Context())
	return b[target.Name].RoundTrip(req)
}

// A body above the limit of one target goes to the next one; where there is none, the caller learns that it was too large,
// and no saved answer hides it.
func TestTooLargeForOneTarget(t *testing.T) {
	alone(t)
	large := `{"model":"claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"` + strings.Repeat("x ", 11_000_000) + `"}]}`
	synctest.Test(t, func(t *testing.T) {
		small, wide := doors[0].open(t, standin.Plan{}), doors[6].open(t, standin.Plan{})
		policy := holdfast.Policy{Targets: []holdfast.Target{{Name: "small"}, {Name: "wide"}}}
		saved := false
		through := &transport.Transport{Policy: &policy, Base: byTarget{"small": small, "wide": wide}, Load: func(error) *http.Response { saved = true; return nil }}
		resp, text, err := post(t, through, "/v1/messages", large)
		if err != nil || resp.StatusCode != http.StatusOK || len(small.seen) > 0 {
			t.Fatalf("%v, %v, %.200s", err, resp, text)
		}
		policy.Targets = policy.Targets[:1]
		resp, text, err = post(t, through, "/v1/messages", large)
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, "too large") || saved {
			t.Errorf("%v, %v, %.300s, saved %v", err, resp, text, saved)
		}
	})
}
