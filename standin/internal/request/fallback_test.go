package request_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFallbacks(t *testing.T) {
	const beta, first = "server-side-fallback-2026-07-01", "server-side-fallback-2026-06-01"
	for name, test := range map[string]struct {
		body, beta string
		want       []string
		refusal    string
	}{
		"a list":                               {`"fallbacks":[{"model":"claude-sonnet-5-5"},{"model":"claude-haiku-5-5","speed":"fast"}]`, beta, []string{"claude-sonnet-5-5", "claude-haiku-5-5"}, ""},
		"a list of the first beta":             {`"fallbacks":[{"model":"claude-sonnet-5-5"}]`, first, []string{"claude-sonnet-5-5"}, ""},
		"the default":                          {`"fallbacks":"default"`, beta, []string{"claude-sonnet-5-5"}, ""},
		"none":                                 {`"fallbacks":null`, beta, nil, ""},
		"the default of a model that has none": {`"model":"claude-haiku-5-5","fallbacks":"default"`, beta, nil, ""},
		"not of the first beta":                {`"fallbacks":"default"`, first, nil, "fallbacks: Input should be a valid list"},
		"without a beta":                       {`"fallbacks":"default"`, "", nil, "fallbacks: Extra inputs are not permitted"},
		"with a beta of tomorrow":              {`"fallbacks":"default"`, "server-side-fallback-2027-01-01", nil, "fallbacks: Extra inputs are not permitted"},
		"of a model without":                   {`"model":"claude-haiku-5-5","fallbacks":[{"model":"claude-sonnet-5-5"}]`, beta, nil, "fallbacks: this model does not support fallbacks"},
		"twice the same":                       {`"fallbacks":[{"model":"a"},{"model":"a"}]`, beta, nil, "fallbacks: models must be distinct"},
		"the same as asked":                    {`"fallbacks":[{"model":"claude-opus-5-5"}]`, beta, nil, "fallbacks: models must be distinct"},
		"without a name":                       {`"fallbacks":[{}]`, beta, nil, "fallbacks.0.model: Field required"},
		"too many":                             {`"fallbacks":[{"model":"a"},{"model":"b"},{"model":"c"},{"model":"d"}]`, beta, nil, "fallbacks: List should have at most 3 items after validation, not 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var header []string
			if test.beta != "" {
				header = []string{"anthropic-beta", "other-2026-01-01," + test.beta}
			}
			body := test.body
			if !strings.HasPrefix(body, `"model"`) {
				body = `"model":"claude-opus-5-5",` + body
			}
			q, refusal := ask(messagesPath, current, message(body), header...)
			said := ""
			if refusal != nil {
				said = refusal.Message
			}
			if said != test.refusal {
				t.Fatalf("refused with %q, want %q", said, test.refusal)
			}
			if diff := cmp.Diff(test.want, q.Fallbacks); refusal == nil && diff != "" {
				t.Errorf("fallbacks (-want +got):\n%s", diff)
			}
		})
	}
}
