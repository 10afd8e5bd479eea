package resource_test

import (
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

func TestListOfModelsIsPaged(t *testing.T) {
	t.Parallel()
	var models resource.Models
	all := listModels(t, models, request.Page{Limit: 1000})
	var ids []string
	for _, one := range all.Data {
		ids = append(ids, one.ID)
	}
	for _, limit := range []int{1, 5, 6, 17, 18, 19} {
		var got []string
		for page, more := (request.Page{Limit: limit}), true; more; {
			part := listModels(t, models, page)
			for _, one := range part.Data {
				got = append(got, one.ID)
			}
			page.AfterID, more = part.LastID, part.HasMore
		}
		if !slices.Equal(got, ids) {
			t.Errorf("by %d: %v", limit, got)
		}
		var back []string
		for page, more := (request.Page{Limit: limit, BeforeID: ids[len(ids)-1]}), true; more; {
			part := listModels(t, models, page)
			for _, one := range slices.Backward(part.Data) {
				back = append(back, one.ID)
			}
			page.BeforeID, more = part.FirstID, part.HasMore
		}
		slices.Reverse(back)
		if !slices.Equal(back, ids[:len(ids)-1]) {
			t.Errorf("back by %d: %v", limit, back)
		}
	}
}

func TestUnknownModelIsNotFound(t *testing.T) {
	t.Parallel()
	var models resource.Models
	_, refusal := models.Get(wire.DialectAnthropic, "claude-none")
	refused(t, refusal, 404, "not_found_error", "", "model: claude-none")
	if _, refusal = models.Get(wire.DialectAnthropic, ""); refusal == nil {
		t.Error("a model without a name is known: it is the alias of those that have none")
	}
}

// What a model accepts decides whether a fallback to it is refused: facts that clients read before they switch.
func TestModelsSayWhatTheyAccept(t *testing.T) {
	t.Parallel()
	var models resource.Models
	for id, want := range map[string]struct {
		window, output                            int64
		enabled, adaptive, disabled, betweenTools bool
		effort, xhigh                             bool
	}{
		"claude-opus-5-5":   {1_000_000, 128_000, false, true, false, false, true, true},
		"claude-sonnet-5-5": {1_000_000, 128_000, false, true, false, true, true, true},
		"claude-opus-4-7":   {1_000_000, 128_000, false, true, true, false, true, true},
		"claude-opus-4-6":   {1_000_000, 128_000, true, true, true, false, true, false},
		"claude-sonnet-4-6": {1_000_000, 64_000, true, true, true, false, true, false},
		"claude-opus-4-5":   {200_000, 64_000, true, false, true, false, true, false},
		"claude-haiku-4-5":  {200_000, 64_000, true, false, true, false, false, false},
		"claude-fable-5":    {1_000_000, 128_000, false, true, false, false, true, true},
	} {
		body, refusal := models.Get(wire.DialectAnthropic, id)
		refuseNot(t, refusal)
		one := wellShaped[anthropic.ModelInfo](t, body)
		got := want
		got.window, got.output = one.MaxInputTokens, one.MaxTokens
		types := one.Capabilities.Thinking.Types
		got.enabled, got.adaptive = types.Enabled.Supported, types.Adaptive.Supported
		got.disabled, got.betweenTools = types.Disabled.Supported, types.BetweenTools.Supported
		got.effort, got.xhigh = one.Capabilities.Effort.Supported, one.Capabilities.Effort.Xhigh.Supported
		if got != want {
			t.Errorf("%s: got %+v, want %+v", id, got, want)
		}
	}
}
