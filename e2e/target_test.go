package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

// byTarget sends each attempt to the target that the policy chose.
type byTarget struct{ next http.RoundTripper }

func (b byTarget) RoundTrip(req *http.Request) (*http.Response, error) {
	if target, ok := holdfast.TargetOf(req.Context()); ok {
		req = req.Clone(req.Context())
		req.URL.Host, req.Host = target.Name, target.Name
	}
	return b.next.RoundTrip(req)
}

// B51: a fragment of one provider was glued to the whole answer of another. Before content a further target answers
// alone, after content it is not asked.
func TestB51_NoTwoAnswersAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		step standin.Step
		whom string // whose words the caller sees
	}{
		"before content": {standin.Step{Kind: standin.Error, Status: 529, At: standin.Preamble, Times: -1}, "whole answer of b"},
		"after content":  {standin.Step{Kind: standin.Cut, How: standin.Chunk, After: 2, Times: -1}, "fragment of a which is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := testnet.New()
				a := standin.New(standin.Plan{Steps: []standin.Step{c.step}, Reply: "fragment of a which is longer"})
				b := standin.New(standin.Plan{Reply: "whole answer of b"})
				server := net.Serve(t, "a.test:80", a)
				net.Serve(t, "b.test:80", b)
				p := holdfast.Policy{Attempts: -1, Targets: []holdfast.Target{{Name: "a.test"}, {Name: "b.test"}}}
				client := &http.Client{Transport: byTarget{net.Client().Transport}}
				got := streamTransport(t.Context(), &p, client, server.URL)
				if got.text == "" || !strings.HasPrefix(c.whom, got.text) {
					t.Errorf("the caller saw %q", got.text)
				}
				fallback := name == "before content"
				if asked := len(b.Journal()) > 0; asked != fallback || got.complete != fallback || (got.err == nil) != fallback {
					t.Errorf("b asked: %v; complete %v, %v", asked, got.complete, got.err)
				}
			})
		})
	}
}
