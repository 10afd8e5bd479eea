package provider_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
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

// source gives credentials in whatever way do says, and knows no context.
type source struct{ do func() }

func (s source) Retrieve(context.Context) (aws.Credentials, error) {
	s.do()
	return aws.Credentials{AccessKeyID: testcloud.AccessKey, SecretAccessKey: testcloud.SecretKey}, nil
}

func (s source) Token() (*oauth2.Token, error) {
	s.do()
	return &oauth2.Token{AccessToken: testcloud.Token}, nil
}

// sources are the doors whose credentials come from a function of the caller.
var sources = []struct {
	name string
	door int
	set  func(*provider.Settings, func())
}{
	{"AWS", 0, func(s *provider.Settings, do func()) {
		s.AWSConfig = &aws.Config{Region: region, Credentials: source{do}}
	}},
	{"Google", 4, func(s *provider.Settings, do func()) { s.GoogleTokens = source{do} }},
	{"Foundry", 7, func(s *provider.Settings, do func()) {
		s.Tokens = func(context.Context) (string, error) { do(); return testcloud.Token, nil }
	}},
}

// Credentials that hang cost a call a third of its time, the next target has the rest, and the calls after it wait for nothing.
func TestCredentialsThatHangLeaveTimeForTheNextTarget(t *testing.T) {
	alone(t)
	for _, c := range sources {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, asked := doors[c.door], atomic.Int32{}
				c.set(&d.settings, func() {
					asked.Add(1)
					time.Sleep(20 * time.Second)
				})
				slow, good := d.open(t, standin.Plan{}), doors[1].open(t, standin.Plan{})
				policy := holdfast.Policy{Deadline: 6 * time.Second, Targets: []holdfast.Target{{Name: "slow"}, {Name: "good"}}}
				through := transport.New(&policy, byTarget{"slow": slow, "good": good})
				for i, want := range []time.Duration{2 * time.Second, 0, 0} {
					start := time.Now()
					resp, text, err := post(t, through, "/v1/messages", question)
					if took := time.Since(start); err != nil || resp.StatusCode != http.StatusOK || took != want {
						t.Fatalf("call %d: %v, %v, %s after %v, want %v", i, err, resp, text, took, want)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				_, err := slow.RoundTrip(newRequest(ctx, "/v1/messages", question))
				var own *provider.Error
				if !errors.As(err, &own) || !errors.Is(err, provider.ErrCredentials) || own.Hint() == "" || time.Since(start) > 0 || asked.Load() != 1 {
					t.Errorf("%v after %v, asked %d times", err, time.Since(start), asked.Load())
				}
				time.Sleep(31 * time.Second)
				if _, err = slow.RoundTrip(newRequest(ctx, "/v1/messages", question)); !errors.Is(err, context.DeadlineExceeded) || asked.Load() != 1 {
					t.Errorf("a request whose time is over: %v, asked %d times", err, asked.Load())
				}
			})
		})
	}
}

// A source that comes back is asked again after a while.
func TestCredentialsThatHungAreAskedForAgain(t *testing.T) {
	alone(t)
	for _, c := range sources {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, hang := doors[c.door], atomic.Int64{}
				hang.Store(int64(15 * time.Second))
				c.set(&d.settings, func() { time.Sleep(time.Duration(hang.Load())) })
				b := d.open(t, standin.Plan{})
				if _, _, err := post(t, b, "/v1/messages", question); !errors.Is(err, provider.ErrCredentials) || !strings.Contains(err.Error(), "within 10s") {
					t.Fatal(err)
				}
				hang.Store(0)
				time.Sleep(31 * time.Second)
				if resp, _, err := post(t, b, "/v1/messages", question); err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("%v, %v", resp, err)
				}
			})
		})
	}
}

// A source that panics is a target without credentials, not the end of the process; what it said is not shown.
func TestCredentialsThatPanicAreAnError(t *testing.T) {
	alone(t)
	for _, c := range sources {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := doors[c.door]
				c.set(&d.settings, func() { panic("no " + canary) })
				b := d.open(t, standin.Plan{})
				for range 2 {
					_, _, err := post(t, b, "/v1/messages", question)
					var own *provider.Error
					if !errors.As(err, &own) || own.Reason != provider.ErrCredentials || strings.Contains(err.Error(), canary) || holdfast.Judge(err).ShouldRetry != "false" {
						t.Errorf("%v", err)
					}
				}
			})
		})
	}
}
