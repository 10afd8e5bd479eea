package standin_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/standin"
)

// The URL of a stand-in that listens on every address is one that a client can reach, and its pages are no requests to the API.
func TestStartReturnsAReachableURL(t *testing.T) {
	for _, addr := range []string{"", ":0", "0.0.0.0:0", "127.0.0.1:0"} {
		s := standin.New(standin.Plan{})
		url, stop, err := s.Start(addr)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(url, "http://127.0.0.1:") {
			t.Errorf("addr %q has the URL %s", addr, url)
		}
		for _, page := range []string{"/_standin", "/_standin/", "/_standin/journal"} {
			res, err := http.Get(url + page)
			if err != nil {
				t.Fatal(err)
			}
			if res.Body.Close(); res.StatusCode != http.StatusOK {
				t.Errorf("GET %s: %s", page, res.Status)
			}
		}
		if n := len(s.Journal()); n != 0 {
			t.Errorf("addr %q: %d requests in the journal", addr, n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}
