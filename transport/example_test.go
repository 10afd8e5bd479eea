package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"holdfast"
	"holdfast/transport"
)

// flaky answers the second request.
func flaky() http.RoundTripper {
	asked := 0
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
		w := httptest.NewRecorder()
		if asked++; asked == 1 {
			respond(529, overloaded, "request-id: req_1")(w, req)
		} else {
			good(w, req)
		}
		return w.Result(), nil
	})
}

func Example() {
	policy := holdfast.Policy{Deadline: 30 * time.Second, Backoff: holdfast.Backoff{Base: time.Millisecond}}
	client := http.Client{Transport: transport.New(&policy, flaky())}
	resp, err := client.Post("https://api.test/v1/messages", "application/json", strings.NewReader(prompt))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, resp.Header.Get("Holdfast-Source"), resp.Header.Get("Holdfast-Attempts"))
	trace, _ := transport.TraceOf(resp)
	fmt.Println(trace.RequestIDs())
	// Output:
	// 200 OK live 2
	// [req_1]
}

func ExampleErrorOf() {
	client := http.Client{Transport: transport.New(&holdfast.Policy{Attempts: 1}, flaky())}
	resp, err := client.Post("https://api.test/v1/messages", "application/json", strings.NewReader(prompt))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	if err := transport.ErrorOf(resp); err != nil {
		fmt.Println(resp.StatusCode, err.Reason)
	}
	// Output: 529 holdfast: all attempts used
}
