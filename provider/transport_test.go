package provider_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/testcloud"
	"holdfast/provider"
	"holdfast/standin"
)

// each runs a test for every provider, whole and streamed, in a bubble of its own.
func each(t *testing.T, test func(t *testing.T, d door, stream bool)) {
	alone(t)
	for _, d := range doors {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", d.name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, d, stream) })
			})
		}
	}
}

func TestEveryProviderAnswersAsTheClaudeAPIDoes(t *testing.T) {
	each(t, func(t *testing.T, d door, stream bool) {
		b := d.open(t, standin.Plan{Reply: "It is at sea."})
		resp, text, err := post(t, b, "/v1/messages", asking(stream))
		if err != nil {
			t.Fatal(err)
		}
		want, typ := `"text":"It is at sea."`, "application/json"
		if stream {
			want, typ = "event: message_stop\n", "text/event-stream"
		}
		if resp.StatusCode != http.StatusOK || !strings.Contains(text, want) || !strings.HasPrefix(resp.Header.Get("Content-Type"), typ) {
			t.Fatalf("%d %v\n%s", resp.StatusCode, resp.Header, text)
		}
		standin.Expect(t, b.model.Journal(), standin.Requests(1))
		if model := b.model.Journal()[0].Model; model != "cloud-sonnet-5-5" {
			t.Errorf("the provider was asked for %s", model)
		}
		h := b.seen[0]
		if !d.auth(h) {
			t.Errorf("the credential that arrived: %q, %q", h.Get("Authorization"), h.Get("X-Api-Key"))
		}
		if h.Get("X-Trace") != "kept" || h.Get("Holdfast-Anything") != "" || (h.Get("Anthropic-Version") == "2023-06-01") == d.inBody {
			t.Errorf("headers: %v", h)
		}
		if all := fmt.Sprint(h); strings.Contains(all, canary) || strings.Contains(all, testcloud.SecretKey) {
			t.Errorf("a key that is none of its business: %s", all)
		}
	})
}

// What a provider says in an error comes back as it said it, read by nobody on the way.
func TestErrorsComeBackAsTheyAre(t *testing.T) {
	each(t, func(t *testing.T, d door, stream bool) {
		const body = `{"__type":"ThrottlingException","message":"Too many tokens"}` + "\n "
		b := d.open(t, standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 429, Body: body, ContentType: "application/x-amz-json-1.0", Times: -1}}})
		resp, text, err := post(t, b, "/v1/messages", asking(stream))
		if err != nil || resp.StatusCode != 429 || text != body || resp.Header.Get("Content-Type") != "application/x-amz-json-1.0" {
			t.Fatalf("%v, %v, %q", err, resp, text)
		}
		standin.Expect(t, b.model.Journal(), standin.Requests(1)) // the SDK itself would ask three times
	})
}

// An event comes when it was sent, and not when there is more.
func TestStreamsAreNotHeldBack(t *testing.T) {
	alone(t)
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := d.open(t, standin.Plan{Reply: "one two three four", Steps: []standin.Step{{Kind: standin.OK, Gap: 10 * time.Second}}})
				start := time.Now()
				resp, err := b.RoundTrip(newRequest(t.Context(), "/v1/messages", streamQuestion))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				buffer, got, first := make([]byte, 64<<10), "", time.Duration(0)
				for err == nil {
					var n int
					n, err = resp.Body.Read(buffer)
					if got += string(buffer[:n]); first == 0 && strings.Contains(got, "content_block_delta") {
						first = time.Since(start)
					}
				}
				if whole := time.Since(start); err != io.EOF || first != 10*time.Second || whole != 30*time.Second {
					t.Errorf("the first word after %v, all after %v, %v", first, whole, err)
				}
			})
		})
	}
}

func TestTheCallersLeavingEndsTheRequest(t *testing.T) {
	each(t, func(t *testing.T, d door, stream bool) {
		step := standin.Step{Kind: standin.Timeout}
		if stream {
			step = standin.Step{Kind: standin.Stall, After: 1}
		}
		b := d.open(t, standin.Plan{Reply: "one two three", Steps: []standin.Step{step}})
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		start := time.Now()
		resp, err := b.RoundTrip(newRequest(ctx, "/v1/messages", asking(stream)))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 7*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		synctest.Wait()
		if e := b.model.Journal()[0]; e.ClosedBy != standin.Client {
			t.Errorf("the provider did not see the caller leave: %+v", e)
		}
	})
}

func TestWhatIsNotServedIsNeverSent(t *testing.T) {
	alone(t)
	for _, c := range []struct {
		door int
		path string
	}{
		{0, "/v1/messages/count_tokens"}, {0, "/v1/messages/batches"}, {0, "/v1/models"}, {0, "/v1/files"},
		{2, "/v1/messages/batches"}, {4, "/v1/messages/batches/b1"}, {4, "/v1/models"}, {6, "/v1/messages/batches"}, {6, "/v1/models"},
	} {
		t.Run(doors[c.door].name+c.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := doors[c.door].open(t, standin.Plan{})
				resp, text, err := post(t, b, c.path, question)
				if err != nil || resp.StatusCode != http.StatusNotFound || !strings.Contains(text, `"type":"not_found_error"`) || !strings.Contains(text, "does not serve") {
					t.Errorf("%v, %v, %s", err, resp, text)
				}
				if len(b.seen) > 0 || b.Serves(c.path) {
					t.Errorf("it was sent: %v", b.paths)
				}
			})
		})
	}
}

func TestVertexCountsTokens(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		b := doors[4].open(t, standin.Plan{})
		resp, text, err := post(t, b, "/v1/messages/count_tokens", `{"model":"claude-sonnet-5-5","messages":[{"role":"user","content":"hi"}]}`)
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(text, "input_tokens") {
			t.Errorf("%v, %v, %s", err, resp, text)
		}
	})
}

// A larger body than the provider takes is refused before it is sent, as it is too when its length is not known beforehand.
func TestLargeRequestsAreNeverSent(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		b := doors[0].open(t, standin.Plan{})
		large := `{"model":"claude-sonnet-5-5","messages":"` + strings.Repeat("x", int(b.MaxBody())) + `"}`
		for _, known := range []bool{true, false} {
			req := newRequest(t.Context(), "/v1/messages", large)
			if !known {
				req.ContentLength = -1
			}
			_, err := b.RoundTrip(req)
			var own *provider.Error
			if !errors.As(err, &own) || !errors.Is(err, provider.ErrTooLarge) || own.Hint() == "" || len(b.seen) > 0 {
				t.Errorf("%v; %d sent", err, len(b.seen))
			}
		}
	})
}

func TestPackedRequestsAreUnpacked(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		b := doors[0].open(t, standin.Plan{})
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, _ = io.WriteString(zip, question)
		_ = zip.Close()
		req := newRequest(t.Context(), "/v1/messages", packed.String())
		req.Header.Set("Content-Encoding", "gzip")
		resp, err := b.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", resp, err)
		}
		resp.Body.Close()
	})
}

func TestRequestsWithoutAModelAreNeverSent(t *testing.T) {
	alone(t)
	for _, body := range []string{`{"max_tokens":1}`, `no JSON`, ``, `{"model":""}`} {
		synctest.Test(t, func(t *testing.T) {
			b := doors[0].open(t, standin.Plan{})
			resp, text, err := post(t, b, "/v1/messages", body)
			if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "invalid_request_error") || len(b.seen) > 0 {
				t.Errorf("%q: %v, %v, %s", body, err, resp, text)
			}
		})
	}
}

// The key that is named is the one that is sent, whatever a variable holds.
func TestTheNamedKeyComesBeforeTheVariable(t *testing.T) {
	alone(t)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "another-key-0123456789")
	t.Setenv("ANTHROPIC_FOUNDRY_API_KEY", "another-key-0123456789")
	t.Setenv("ANTHROPIC_FOUNDRY_RESOURCE", "another")
	t.Setenv("ANTHROPIC_AWS_API_KEY", "another-key-0123456789")
	for _, i := range []int{1, 2, 3, 6} {
		synctest.Test(t, func(t *testing.T) {
			b := doors[i].open(t, standin.Plan{})
			resp, text, err := post(t, b, "/v1/messages", question)
			if err != nil || resp.StatusCode != http.StatusOK || !doors[i].auth(b.seen[0]) {
				t.Errorf("%s: %v, %v, %s, %v", doors[i].name, err, resp, text, b.seen)
			}
		})
	}
}

func TestTheVariableIsTakenWithoutAKey(t *testing.T) {
	alone(t)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", testcloud.Key)
	t.Setenv("ANTHROPIC_FOUNDRY_API_KEY", testcloud.Key)
	t.Setenv("ANTHROPIC_AWS_API_KEY", testcloud.Key)
	for _, i := range []int{1, 2, 3, 6} {
		synctest.Test(t, func(t *testing.T) {
			d := doors[i]
			d.settings.Key = ""
			b := d.open(t, standin.Plan{})
			resp, text, err := post(t, b, "/v1/messages", question)
			if err != nil || resp.StatusCode != http.StatusOK || !d.auth(b.seen[0]) {
				t.Errorf("%s: %v, %v, %s, %v", d.name, err, resp, text, b.seen)
			}
		})
	}
}

// Providers with all of the Claude API get the rest of it too, whatever its body is.
func TestTheRestOfTheAPIPassesThrough(t *testing.T) {
	alone(t)
	for _, i := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			b := doors[i].open(t, standin.Plan{})
			req := newRequest(t.Context(), "/v1/models?limit=1", "")
			req.Method, req.Body = http.MethodGet, nil
			resp, err := b.RoundTrip(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v %v", doors[i].name, resp, err)
			}
			resp.Body.Close()
			const form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nmodel\r\n--b--\r\n"
			req = newRequest(t.Context(), "/v1/files", form)
			req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			req.Header.Set("Anthropic-Beta", "files-api-2025-04-14")
			resp, err = b.RoundTrip(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v %v", doors[i].name, resp, err)
			}
			resp.Body.Close()
			if h := b.seen[1]; h.Get("Content-Type") != "multipart/form-data; boundary=b" || h.Get("Anthropic-Beta") != "files-api-2025-04-14" || !doors[i].auth(h) {
				t.Errorf("%s: %v", doors[i].name, h)
			}
		})
	}
}

// The connections on which credentials are fetched are not those of the request.
func TestCredentialsAreFetchedAside(t *testing.T) {
	alone(t)
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		d := doors[7]
		var seen context.Context
		d.settings.Tokens = func(ctx context.Context) (string, error) { seen = ctx; return testcloud.Token, nil }
		b := d.open(t, standin.Plan{})
		resp, err := b.RoundTrip(newRequest(context.WithValue(t.Context(), key{}, "a value"), "/v1/messages", question))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, bounded := seen.Deadline(); seen.Value(key{}) != nil || !bounded {
			t.Errorf("tokens are asked for with %v, bounded: %v", seen, bounded)
		}
	})
}
