package standin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/standin"
)

func TestServeServesUntilTheTestEnds(t *testing.T) {
	var url string
	t.Run("inner", func(t *testing.T) {
		var s *standin.Server
		s, url = standin.Serve(t, standin.Failing(1, 529, ""))
		for _, want := range []int{529, 200} {
			if got := post(t, http.DefaultClient, url+anthropicPath, question); got.status != want {
				t.Errorf("status %d, want %d", got.status, want)
			}
		}
		standin.Expect(t, s.Journal(), standin.Requests(2))
	})
	if got := post(t, http.DefaultClient, url+anthropicPath, question); got.err == nil {
		t.Errorf("it still answers: %d", got.status)
	}
}

// strictTest is a test that ends at the first fatal mistake.
type strictTest struct{ said string }

func (*strictTest) Helper()                          {}
func (*strictTest) Cleanup(func())                   {}
func (s *strictTest) Errorf(format string, a ...any) { s.said = fmt.Sprintf(format, a...) }
func (s *strictTest) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func TestServeEndsTheTestOverABadPlan(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, `steps.0.kind: `) {
			t.Errorf("it said %s", said)
		}
	}()
	standin.Serve(&strictTest{}, standin.Plan{Steps: []standin.Step{{Kind: "cutt"}}})
}
