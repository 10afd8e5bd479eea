package standin_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// serveOnce asks the server without a network.
func serveOnce(s *standin.Server, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", anthropicPath, strings.NewReader(body))
	r.Header.Set("x-api-key", "good")
	r.Header.Set("anthropic-version", "2023-06-01")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestChecksFindAndNameWhatIsWrong(t *testing.T) {
	second := time.Second
	waited := journal(posted(0, "a", "x", status(429), asking(second)), posted(1010, "a", "x"))
	early := journal(posted(0, "a", "x", status(429), asking(second)), posted(900, "a", "x"))
	flight := journal(posted(0, "a", "x", status(429), asking(second)), posted(5, "a", "x"), posted(1010, "a", "x"))
	tests := map[string]struct {
		journal standin.Journal
		check   standin.Check
		want    string // "" is no error
	}{
		"requests":                       {waited, standin.Requests(2), ""},
		"requests missing":               {waited, standin.Requests(3), "standin: 2 requests arrived, want 3: exchanges 1, 2"},
		"attempts":                       {waited, standin.Attempts("a", 2), ""},
		"attempts of nobody":             {waited, standin.Attempts("b", 1), "standin: job b took 0 attempts, want 1"},
		"attempts without a job":         {waited, standin.Attempts("", 1), "standin: what has no job took 0 attempts, want 1"},
		"gaps":                           {waited, standin.Gaps("a", 0, 1010*time.Millisecond), ""},
		"gaps within":                    {waited, standin.Gaps("a", 10*time.Millisecond, second), ""},
		"gap too long":                   {waited, standin.Gaps("a", 9*time.Millisecond, second), "standin: job a waited 1.01s between exchanges 1 and 2, want 1s (± 9ms)"},
		"gap too short":                  {early, standin.Gaps("a", -second, second), "standin: job a waited 900ms between exchanges 1 and 2, want 1s (± 0s)"},
		"gaps missing":                   {waited, standin.Gaps("a", 0), "standin: job a has 1 gaps [1.01s], want 0: exchanges 1, 2"},
		"same body":                      {waited, standin.SameBody(), ""},
		"same body of others":            {journal(posted(0, "a", "x"), posted(50, "a", "y")), standin.SameBody("b"), ""},
		"another body":                   {journal(posted(0, "a", "x"), posted(50, "a", "y")), standin.SameBody(), "standin: job a has another body in exchange 2 than in 1"},
		"no job has a body of its own":   {journal(posted(0, "", "x"), posted(50, "", "y")), standin.SameBody(), ""},
		"waits honoured":                 {waited, standin.WaitsHonoured(0), ""},
		"wait not honoured":              {early, standin.WaitsHonoured(0), "standin: exchange 2 of job a came 890ms after exchange 1, which had asked to wait 1s"},
		"wait within":                    {early, standin.WaitsHonoured(110 * time.Millisecond), ""},
		"wait just not within":           {early, standin.WaitsHonoured(109 * time.Millisecond), "standin: exchange 2 of job a came 890ms after exchange 1, which had asked to wait 1s"},
		"on its way before":              {flight, standin.WaitsHonoured(0), ""},
		"a 200 asks for nothing":         {journal(posted(0, "a", "x", asking(second)), posted(50, "a", "x")), standin.WaitsHonoured(0), ""},
		"another job need not wait":      {journal(posted(0, "a", "x", status(429), asking(second)), posted(50, "b", "x")), standin.WaitsHonoured(0), ""},
		"paid once":                      {waited, standin.PaidOnce(), ""},
		"paid twice":                     {journal(posted(0, "a", "x", lost), posted(50, "a", "x"), posted(99, "b", "x")), standin.PaidOnce(), "standin: job a was paid 2 times, in exchanges 1, 2"},
		"created twice":                  {journal(posted(0, "", "x", creating("file_1")), posted(50, "", "x", creating("file_2"))), standin.PaidOnce(), "standin: job x created file_1 and file_2 with one body, in exchanges 1, 2"},
		"nothing open":                   {waited, standin.NothingOpen(), ""},
		"something open":                 {journal(posted(0, "a", "x"), posted(50, "b", "x", open)), standin.NothingOpen(), "standin: 1 requests are still open: exchange 2"},
		"one at a time":                  {journal(posted(0, "a", "x"), posted(10, "b", "x")), standin.AtMost(1), ""},
		"two at a time":                  {journal(posted(0, "a", "x"), posted(9, "b", "x")), standin.AtMost(1), "standin: 2 requests were open at once when exchange 2 arrived, want at most 1"},
		"open ones stay":                 {journal(posted(0, "a", "x", open), posted(90, "b", "x")), standin.AtMost(1), "standin: 2 requests were open at once when exchange 2 arrived, want at most 1"},
		"an empty journal passes nearly": {nil, standin.AtMost(0), ""},
	}
	for name, tt := range tests {
		got := ""
		if err := tt.journal.Check(tt.check); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// recorder is a test that only notes its errors.
type recorder []string

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { *r = append(*r, fmt.Sprintf(format, args...)) }

func TestExpectReportsEveryCheckThatFails(t *testing.T) {
	j := journal(posted(0, "a", "x"), posted(50, "a", "x"))
	var got recorder
	if standin.Expect(&got, j, standin.Requests(1), standin.NothingOpen(), standin.PaidOnce()) {
		t.Error("two checks failed and Expect is content")
	}
	want := recorder{"standin: 2 requests arrived, want 1: exchanges 1, 2", "standin: job a was paid 2 times, in exchanges 1, 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := j.Check(standin.Requests(1), standin.NothingOpen(), standin.PaidOnce()); err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("Check: %v", err)
	}
	standin.Expect(t, j, standin.Requests(2), func(standin.Journal) error { return nil })
}

func TestErrorsNameOnlySoManyExchanges(t *testing.T) {
	var many []standin.Exchange
	for i := range 15 {
		many = append(many, posted(i, "a", "x"))
	}
	want := "standin: 15 requests arrived, want 1: exchanges 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 3 more"
	if err := standin.Requests(1)(journal(many...)); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func ExampleExpect() {
	server := standin.New(standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529}}})
	serveOnce(server, question) // the client under test
	serveOnce(server, question)

	var t recorder // in a test, *testing.T
	good := standin.Expect(&t, server.Journal(),
		standin.Requests(2),
		standin.PaidOnce(),
		standin.NothingOpen())
	fmt.Println(good)
	// Output: true
}

func TestLimitUsedLooksAtTheBucketThatWasUsedMost(t *testing.T) {
	used := []standin.LimitUse{
		{Requests: standin.BucketUse{Share: 0.2}, OutputTokens: standin.BucketUse{Share: 0.6}},
		{Tokens: standin.BucketUse{Share: 0.75}},
	}
	if err := standin.LimitUsed(used, 0.75)(nil); err != nil {
		t.Error(err)
	}
	want := "standin: 75.0 % of the limit were used, want at least 97.0 %"
	if err := standin.LimitUsed(used, 0.97)(nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := standin.LimitUsed(nil, 0.1)(nil); err == nil {
		t.Error("without limits nothing is used")
	}
}
