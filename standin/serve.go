package standin

// TB is the part of testing.TB that Serve needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Serve serves the plan on a loopback port until the test ends, and returns the
// server and its base URL. A plan with mistakes, and a port that is not to be
// had, end the test.
//
//	server, url := standin.Serve(t, standin.Failing(2, 429, "1"))
//	client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("any"))
//	…
//	standin.Expect(t, server.Journal(), standin.Requests(3), standin.WaitsHonoured(0))
func Serve(t TB, plan Plan) (*Server, string) {
	t.Helper()
	if err := plan.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	s := New(plan)
	url, stop, err := s.Start("")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("standin: cannot stop: %v", err)
		}
	})
	return s, url
}
