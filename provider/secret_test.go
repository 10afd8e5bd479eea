package provider_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"holdfast/internal/testcloud"
	"holdfast/provider"
	"holdfast/standin"
)

// A redirect comes back as it is: following it would take the credential to an address that nobody has named.
func TestRedirectsAreNeverFollowed(t *testing.T) {
	each(t, func(t *testing.T, d door, stream bool) {
		var elsewhere atomic.Int32
		for _, status := range []int{301, 302, 303, 307, 308} {
			moved := d
			moved.cloud = func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Location", "http://elsewhere.test"+r.URL.Path)
					w.WriteHeader(status)
				})
			}
			b := moved.open(t, standin.Plan{})
			b.net.Serve(t, "elsewhere.test:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
			resp, text, err := post(t, b, "/v1/messages", asking(stream))
			if err != nil || resp.StatusCode != status || len(b.seen) != 1 {
				t.Errorf("%d: %v, %v, %s, %d requests", status, err, resp, text, len(b.seen))
			}
		}
		if n := elsewhere.Load(); n != 0 {
			t.Errorf("%d requests went elsewhere", n)
		}
	})
}

// What Google answers to a request for a token is never shown, with a code of an error in it or without.
func TestGooglesReplyIsNeverShown(t *testing.T) {
	alone(t)
	for name, refused := range map[string]*oauth2.RetrieveError{
		"with a code":        {Response: &http.Response{StatusCode: 400, Status: "400 " + canary}, ErrorCode: "invalid_grant", ErrorDescription: canary, ErrorURI: canary, Body: []byte(canary)},
		"without a code":     {Response: &http.Response{StatusCode: 502, Status: "502 Bad Gateway"}, Body: []byte("quotes " + canary)},
		"without a response": {ErrorDescription: canary, Body: []byte(canary)},
	} {
		for _, i := range []int{4, 5} {
			synctest.Test(t, func(t *testing.T) {
				d := doors[i]
				d.settings.GoogleTokens = badTokens{refused}
				b := d.open(t, standin.Plan{})
				_, _, err := post(t, b, "/v1/messages", question)
				if !errors.Is(err, provider.ErrCredentials) || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "no token was given") {
					t.Errorf("%s, %s: %v", d.name, name, err)
				}
			})
		}
	}
}

// A cause that others have worded is one short line, and its keys are gone.
func TestCausesAreScrubbed(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		d := doors[7]
		d.settings.Tokens = func(context.Context) (string, error) {
			return "", errors.New("key " + canary + " was\nrefused " + strings.Repeat("long ", 500))
		}
		_, _, err := post(t, d.open(t, standin.Plan{}), "/v1/messages", question)
		if !errors.Is(err, provider.ErrCredentials) || !strings.Contains(err.Error(), "refused") {
			t.Fatal(err)
		}
		if text := err.Error(); strings.Contains(text, canary) || strings.Contains(text, "\n") || len(text) > 400 {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	})
}

// A small packed body that unpacks to more than the provider takes is refused, and so is one that grows by the name of the
// model.
func TestBodiesThatGrowAreNeverSent(t *testing.T) {
	alone(t)
	for _, i := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := doors[i].open(t, standin.Plan{})
			most := int(b.MaxBody())
			if most == 0 {
				most = 32 << 20
			}
			var bomb bytes.Buffer
			zip := gzip.NewWriter(&bomb)
			_, _ = zip.Write([]byte(`{"model":"claude-sonnet-5-5","messages":"` + strings.Repeat("x", most) + `"}`))
			_ = zip.Close()
			req := newRequest(t.Context(), "/v1/messages", bomb.String())
			req.Header.Set("Content-Encoding", "gzip")
			if _, err := b.RoundTrip(req); !errors.Is(err, provider.ErrTooLarge) || len(b.seen) != 0 {
				t.Errorf("%s: %v, %d sent", doors[i].name, err, len(b.seen))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := doors[0]
		b := d.open(t, standin.Plan{})
		most := int(b.MaxBody())
		s := d.settings
		s.Base, s.Models = b.net.Client().Transport, map[string]string{"m": strings.Repeat("long", 9)}
		renaming, err := provider.New(s)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"model":"m","messages":"` + strings.Repeat("x", most-30) + `"}`
		if len(body) > most {
			t.Fatal("it is too large before")
		}
		if _, _, err := post(t, renaming, "/v1/messages", body); !errors.Is(err, provider.ErrTooLarge) || len(b.seen) != 0 {
			t.Errorf("%v, %d sent", err, len(b.seen))
		}
	})
}

// counted is a source of tokens that counts them.
type counted struct{ n atomic.Int32 }

func (c *counted) Token() (*oauth2.Token, error) {
	c.n.Add(1)
	return &oauth2.Token{AccessToken: testcloud.Token, Expiry: time.Now().Add(time.Hour)}, nil
}

// A token is fetched once, and again when it is over.
func TestTokensAreKept(t *testing.T) {
	alone(t)
	for _, i := range []int{4, 5} {
		synctest.Test(t, func(t *testing.T) {
			d, source := doors[i], &counted{}
			d.settings.GoogleTokens = source
			b := d.open(t, standin.Plan{})
			for range 3 {
				if _, _, err := post(t, b, "/v1/messages", question); err != nil {
					t.Fatal(err)
				}
			}
			if n := source.n.Load(); n != 1 {
				t.Errorf("%s: %d tokens for three requests", d.name, n)
			}
			time.Sleep(2 * time.Hour)
			if _, _, err := post(t, b, "/v1/messages", question); err != nil || source.n.Load() != 2 {
				t.Errorf("%s: %d tokens, %v", d.name, source.n.Load(), err)
			}
		})
	}
}
