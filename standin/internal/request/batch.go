package request

import (
	"holdfast/internal/wire"
)

// maxItems is how many requests a batch may hold.
const maxItems = 100_000

// readBatch reads the body that creates a batch. What the items ask for is checked when they are worked off, so a mistake
// there refuses the item alone.
func (q *Request) readBatch(body *value, terms terms) *Refusal {
	requests := body.get("requests")
	switch {
	case requests == nil:
		return invalid("requests: Field required")
	case requests.kind != isArray:
		return invalid("requests: Input should be a valid list")
	case len(requests.members) == 0:
		return invalid("requests: List should have at least 1 item after validation, not 0")
	case len(requests.members) > maxItems:
		return invalid("requests: List should have at most %d items after validation, not %d", maxItems, len(requests.members))
	}
	for i := range body.members {
		if key := body.members[i].key; key != "requests" {
			return invalid("%s: Extra inputs are not permitted", clip(key))
		}
	}
	seen := make(map[string]bool, len(requests.members))
	items := make([]Item, 0, len(requests.members))
	for i := range requests.members {
		item, refusal := q.readItem(i, &requests.members[i].value, terms)
		if refusal != nil {
			return refusal
		}
		if seen[item.CustomID] {
			return invalid("requests.%d.custom_id: custom_id must be unique within a batch", i)
		}
		seen[item.CustomID] = true
		items = append(items, item)
		q.Input += item.Params.Input
	}
	q.Items = items
	return nil
}

func (q *Request) readItem(i int, v *value, terms terms) (Item, *Refusal) {
	id, params := v.get("custom_id"), v.get("params")
	switch {
	case v.kind != isObject:
		return Item{}, invalid("requests.%d: Input should be a valid dictionary", i)
	case id == nil:
		return Item{}, invalid("requests.%d.custom_id: Field required", i)
	case id.kind != isString:
		return Item{}, invalid("requests.%d.custom_id: Input should be a valid string", i)
	case !identifier(id.text(), 64):
		return Item{}, invalid("requests.%d.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
	case params == nil:
		return Item{}, invalid("requests.%d.params: Field required", i)
	case params.kind != isObject:
		return Item{}, invalid("requests.%d.params: Input should be a valid dictionary", i)
	}
	for j := range v.members {
		if key := v.members[j].key; key != "custom_id" && key != "params" {
			return Item{}, invalid("requests.%d.%s: Extra inputs are not permitted", i, clip(key))
		}
	}
	item := Item{CustomID: id.kept()}
	item.Params = Request{Endpoint: Messages, Dialect: wire.DialectAnthropic, Path: "/v1/messages", Key: q.Key, CustomID: item.CustomID}
	item.Refusal = item.Params.readMessages(params, terms)
	if item.Params.Stream && item.Refusal == nil {
		item.Refusal = invalid("stream: streaming is not supported in a batch")
	}
	item.Params.Stream = false
	return item, nil
}
