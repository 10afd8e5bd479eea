package wire

// Tokens counts the tokens of one answer, in the Anthropic way for both
// dialects: Input leaves out cached tokens, which CacheRead and CacheWrite
// hold, so that the sum of the three is the whole prompt.
type Tokens struct{ Input, Output, CacheRead, CacheWrite int }

// Usage returns the token counts of a complete JSON answer of either dialect,
// and false when it carries none.
func Usage(body []byte) (Tokens, bool) {
	var tokens Tokens
	found := tokens.replace(parse(plain(body).text).get("usage"))
	return tokens, found
}

// replace takes every count that usage carries and keeps the others, because
// the counts in a stream are cumulative and a later event may repeat only some
// of them. It reports whether there was any.
func (t *Tokens) replace(usage node) bool {
	found := false
	var prompt int
	var counted, split bool
	details := usage.get("prompt_tokens_details")
	usage.members(func(key, value node) bool {
		count, ok := value.count()
		switch {
		case key.is("input_tokens_details"):
			details = value
		case !ok:
		case key.is("input_tokens"), key.is("prompt_tokens"):
			prompt, counted, found = count, true, true
		case key.is("output_tokens"), key.is("completion_tokens"):
			t.Output, found = count, true
		case key.is("cache_read_input_tokens"):
			t.CacheRead, found = count, true
		case key.is("cache_creation_input_tokens"):
			t.CacheWrite, found = count, true
		}
		return true
	})
	if read, ok := details.get("cached_tokens").count(); ok {
		t.CacheRead, split = read, true
	}
	if written, ok := details.get("cache_write_tokens").count(); ok {
		t.CacheWrite, split = written, true
	}
	if counted {
		t.Input = prompt
	}
	if counted && split {
		// OpenAI counts cached tokens inside the prompt.
		t.Input = max(0, prompt-t.CacheRead-t.CacheWrite)
	}
	return found
}
