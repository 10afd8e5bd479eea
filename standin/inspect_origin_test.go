package standin_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/standin"
)

// A browser says which page sends a request, so a page of somebody else's cannot change what is played.
func TestNoWebPageChangesThePlan(t *testing.T) {
	s := standin.New(standin.Failing(1, 529, ""))
	for _, target := range []string{"/_standin/plan", "/_standin/reset"} {
		r := httptest.NewRequest("POST", target, strings.NewReader("{}"))
		r.Header.Set("origin", "http://elsewhere.example")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 403 || len(s.Plan().Steps) != 1 {
			t.Errorf("%s: status %d, %d steps", target, w.Code, len(s.Plan().Steps))
		}
	}
}
